"""Checkpoints: the last step of a fit in a folder, so that a killed fit can resume from there.

One file is replaced as a whole after every step. It holds the state that the next step starts
from, the state to return, the history, the random state and the parameters. A resumed fit gives
bit for bit the same model as one that was never interrupted, on the same machine with the same
number of threads. Memory and disk: one state, and with early stopping a second one.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, cast, get_args, get_origin, get_type_hints

import numpy as np

from latentmetric.core.steps import AnyState, Record, Steps
from latentmetric.persistence.model_file import (
    FORMAT_VERSION,
    Arrays,
    Contents,
    ModelFileError,
    pack,
    read_model_file,
    unpack,
    write_model_file,
)
from latentmetric.persistence.replacing import remove_temporary_files

FILE_NAME = "checkpoint.safetensors"


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the fit continues."""


@dataclass(frozen=True)
class Progress(Generic[AnyState]):
    """All that a fit needs to continue after a step."""

    state: AnyState
    kept: AnyState
    """The state to return if this step were the last."""
    kept_error: tuple[float, float]
    """What the state was kept by: an error or a loss, and a loss that breaks ties."""
    history: list[Record]
    generator_state: Any
    finished: bool


class Checkpoints:
    """Reads and writes the checkpoint of one fit.

    ``identity`` is what distinguishes the fit from others, apart from its data: the estimator, the
    parameters that change the result, and a digest of the model that a warm start begins from.
    """

    def __init__(
        self, folder: str | os.PathLike[str], resume: bool, identity: dict[str, Any],
        generator: np.random.Generator,
    ) -> None:  # fmt: skip
        """Look for a checkpoint; on resume, reset the generator to the start of that fit."""
        from latentmetric import __version__

        if Path(folder).exists() and not Path(folder).is_dir():
            raise NotADirectoryError(f"checkpoint must be a folder, but {folder} is a file")
        self._path = Path(folder) / FILE_NAME
        self._warned = False
        self._found: tuple[dict[str, Any], Contents] | None = None
        seed = identity.get("random_state")
        seed = seed if isinstance(seed, int | np.integer) else None
        identity = identity | {"random_state": seed, "latentmetric": __version__}
        self._fit: dict[str, Any] = {"identity": {k: _text(v) for k, v in identity.items()}}
        if self._path.exists():
            document, contents = read_model_file(self._path)
            if document.get("estimator") != "checkpoint":
                raise ModelFileError(f"{self._path} is not a checkpoint")
            if resume:
                self._check_same("identity", document)
                generator.bit_generator.state = document["start"]
                self._found = document, contents
            elif not document["progress"]["finished"]:
                last = document["progress"]["history"][-1]["round"]
                raise ValueError(
                    f"{self._path} holds a fit that was interrupted after round {last}; pass "
                    "resume=True (--resume) to continue it, or remove the file"
                )
        self._fit["start"] = generator.bit_generator.state
        remove_temporary_files(self._path)

    def _check_same(self, what: str, document: dict[str, Any]) -> None:
        """Raise on the checkpoint of another fit, or of a fit to other data."""
        now, before = self._fit[what], document[what]
        names = sorted(now.keys() | before.keys())
        changed = [name for name in names if now.get(name) != before.get(name)]
        if "estimator" in changed:
            changed = ["estimator"]  # then all else differs
        elif len(changed) > 1 and "fingerprint" in changed:
            changed.remove("fingerprint")  # it always differs then, and tells people nothing
        if changed:
            other = "another fit" if what == "identity" else "a fit to other data"
            changes = (f"{name} is {now.get(name)} now and was {before.get(name)}"
                       for name in changed)  # fmt: skip
            raise ValueError(f"{self._path} belongs to {other}: {'; '.join(changes)}")

    def resumed(self, data: dict[str, Any], steps: Steps[AnyState]) -> Progress[AnyState] | None:
        """The progress in the checkpoint; None without one. Raise if its data was different."""
        self._fit["data"] = data
        if self._found is None:
            return None
        document, contents = self._found
        self._found = None
        self._check_same("data", document)
        found = unpack(document["progress"], contents)
        found["state"] = _restored(steps.kind, found["state"])
        is_last = found["kept"] is None
        found["kept"] = found["state"] if is_last else _restored(steps.kind, found["kept"])
        return Progress(**found)

    def write(self, progress: Progress[Any]) -> None:
        """Replace the checkpoint; if that fails, warn once and keep the previous one."""
        if progress.kept is progress.state:
            progress = replace(progress, kept=None)
        arrays: Arrays = {}
        document = {
            "estimator": "checkpoint",
            "format_version": FORMAT_VERSION,
            **self._fit,
            "progress": pack(_as_dict(progress), arrays, "progress"),
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_model_file(self._path, document, arrays)
        except OSError as error:
            if not self._warned:
                message = f"the fit continues without checkpoints: {error}"
                warnings.warn(message, CheckpointWarning, stacklevel=4)
            self._warned = True


def _text(value: Any) -> str:
    """A parameter as JSON, where 1 (a count) is not 1.0 (a share); counts by class are sorted."""
    if isinstance(value, dict):
        value = dict(sorted(value.items()))
    return json.dumps(pack(value, {}, ""))


def _as_dict(value: Any) -> Any:
    """A dataclass as dicts of its fields."""
    if is_dataclass(value):
        return {field.name: _as_dict(getattr(value, field.name)) for field in fields(value)}
    return [_as_dict(item) for item in value] if isinstance(value, tuple) else value


def _restored(kind: Any, value: Any) -> Any:
    """The state whose ``_as_dict`` this is."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        found = {
            field.name: _restored(hints[field.name], value[field.name]) for field in fields(kind)
        }
        return cast("Any", kind)(**found)
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], item) for item in value)
    return value
