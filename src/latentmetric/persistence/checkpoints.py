"""Checkpoints: the last step of a fit in a folder, so that a killed fit can resume from there.

One file is replaced as a whole after every step. It holds the state that the next step starts
from, the state to return, the history, the random state and the parameters. A resumed fit gives
bit for bit the same model as one that was never interrupted, on the same machine with the same
number of threads. Memory and disk: one state, and with early stopping a second one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from math import inf
from pathlib import Path
from typing import Any, Generic, cast, get_args, get_origin, get_type_hints

import numpy as np

from latentmetric.characters import shortened
from latentmetric.core.steps import AnyState, Record, Steps
from latentmetric.persistence.model_file import (
    FORMAT_VERSION,
    Arrays,
    ModelFileError,
    pack,
    read_model_file,
    told,
    unpack,
    write_model_file,
)
from latentmetric.persistence.replacing import remove_remains

FILE_NAME = "checkpoint.safetensors"


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the fit continues."""


@dataclass(frozen=True)
class Identity:
    """What distinguishes one fit from another, apart from its data."""

    estimator: str
    parameters: dict[str, Any]
    """The parameters that change the result."""
    begun_from: str
    """"rows", or a digest of the model that a warm start begins from."""


@dataclass(frozen=True)
class Progress(Generic[AnyState]):
    """All that a fit needs to continue after a step."""

    state: AnyState
    kept: AnyState
    """The state to return if this step were the last."""
    kept_error: float
    history: list[Record]
    generator_state: Any
    finished: bool


class Checkpoints:
    """Reads and writes the checkpoint of one fit."""

    def __init__(
        self, folder: str | os.PathLike[str], resume: bool, identity: Identity,
        generator: np.random.Generator,
    ) -> None:  # fmt: skip
        """Look for a checkpoint; on resume, reset the generator to the start of that fit."""
        if Path(folder).exists() and not Path(folder).is_dir():
            raise NotADirectoryError(f"checkpoint must be a folder, but {folder} is a file")
        self._path = Path(folder) / FILE_NAME
        self._warned = False
        found = read_model_file(self._path) if self._path.exists() else None
        if found is not None and found[0].get("estimator") != "checkpoint":
            raise ModelFileError(f"{self._path} is not a checkpoint")
        if found is not None and not resume:
            self._refuse_unfinished(found[0])
            found = None
        self._found = found
        seed = identity.parameters.get("random_state")
        decided = {"random_state": seed if isinstance(seed, int | np.integer) else None}
        self._identity: dict[str, Any] = {
            "of": identity.estimator,
            "parameters": pack(identity.parameters | decided, {}, "parameters"),
            "begun_from": identity.begun_from,
        }
        if found is not None:
            with _complete(self._path):
                self._refuse_others(found[0])
                generator.bit_generator.state = found[0]["start"]
        self._identity["start"] = generator.bit_generator.state
        remove_remains(self._path)

    def _refuse_unfinished(self, document: dict[str, Any]) -> None:
        with _complete(self._path):
            finished, done = document["finished"], document["history"][-1]["round"]
        if not finished:
            raise ValueError(
                f"{self._path} holds a fit that was interrupted after round {done}; pass "
                "resume=True (--resume) to continue it, or remove the file"
            )

    def _refuse_others(self, document: dict[str, Any]) -> None:
        """Raise on a checkpoint of another estimator, other parameters or another warm start."""
        if document["of"] != self._identity["of"]:
            raise _OtherFitError(
                f"{self._path} belongs to a fit of {shortened(document['of'], 40)}, "
                f"not of {self._identity['of']}"
            )
        now, before = self._identity["parameters"], document["parameters"]
        changes = [
            f"{name} is {now.get(name)!r} now and was {before.get(name)!r}"
            for name in sorted(now.keys() | before.keys())
            if _comparable(now.get(name)) != _comparable(before.get(name))
        ]
        if changes:
            raise _OtherFitError(
                f"{self._path} belongs to a fit with other parameters: {'; '.join(changes)}"
            )
        if document["begun_from"] != self._identity["begun_from"]:
            raise _OtherFitError(
                f"{self._path} belongs to a fit with warm_start=True that began from another "
                "model; remove the file to begin from this one"
            )

    def resumed(self, data: dict[str, Any], steps: Steps[AnyState]) -> Progress[AnyState] | None:
        """The progress in the checkpoint; None without one. Raise if its data was different."""
        self._identity["data"] = data
        if self._found is None:
            return None
        document, arrays = self._found
        self._found = None
        with _complete(self._path):
            before = {name: document["data"].get(name) for name in data}
            differing = [name for name, value in data.items() if before[name] != value]
            if len(differing) > 1:
                differing.remove("fingerprint")  # it always differs then, and tells people nothing
            if differing:
                changes = "; ".join(
                    f"{name} is {data[name]} now and was {before[name]}" for name in differing
                )
                raise _OtherFitError(f"{self._path} belongs to a fit to other data: {changes}")
            return _progress_from(document, arrays, steps)

    def write(self, progress: Progress[Any]) -> None:
        """Replace the checkpoint; if that fails, warn once and keep the previous one."""
        arrays: Arrays = {}
        is_last = progress.kept is progress.state
        document = {
            "estimator": "checkpoint",
            "format_version": FORMAT_VERSION,
            "finished": progress.finished,
            "history": pack(progress.history, {}, "history"),
            "kept_error": progress.kept_error,
            "now": progress.generator_state,
            "state": pack(_as_dict(progress.state), arrays, "state"),
            "kept": None if is_last else pack(_as_dict(progress.kept), arrays, "kept"),
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_model_file(self._path, document | self._identity, arrays)
        except OSError as error:
            if not self._warned:
                message = f"the fit continues without checkpoints: {error}"
                warnings.warn(message, CheckpointWarning, stacklevel=4)
            self._warned = True


class _OtherFitError(ValueError):
    """A complete checkpoint, but of another fit."""


@contextmanager
def _complete(path: Path) -> Iterator[None]:
    """Turn errors about missing or invalid contents into a ``ModelFileError`` with the path."""
    try:
        yield
    except _OtherFitError:
        raise
    except Exception as error:
        raise ModelFileError(f"{path} is not a complete checkpoint ({told(error)})") from error


def _comparable(value: Any) -> Any:
    """A form in which 1 (a count) differs from 1.0 (a share), and counts by class have no order."""
    if isinstance(value, dict):
        return {key: sorted(map(repr, pairs)) for key, pairs in value.items()}
    return type(value).__name__, value


def _progress_from(
    document: dict[str, Any], arrays: Arrays, steps: Steps[AnyState]
) -> Progress[AnyState]:
    state = _restored(steps.kind, unpack(document["state"], arrays))
    steps.check(state)
    kept = state
    if document["kept"] is not None:
        kept = _restored(steps.kind, unpack(document["kept"], arrays))
        steps.check(kept)
    history = unpack(document["history"], {})
    if [record["round"] for record in history] != list(range(state.record["round"] + 1)):
        raise ValueError("its history does not lead to its last round")
    for known in (state.record, kept.record):
        measured = history[known["round"]]
        if known.keys() != measured.keys() - {"validation_error"}:
            raise ValueError("a state's record does not have the entries of its history")
    error = document["kept_error"]
    if error not in (measured.get("validation_error"), measured.get("loss"), inf):
        raise ValueError("its error is not that of the round it keeps")
    np.random.default_rng().bit_generator.state = document["now"]  # raises on anything else
    return Progress(state, kept, error, history, document["now"], document["finished"])


def _as_dict(value: Any) -> Any:
    """A state as dicts of its fields, without those that are not stored."""
    if is_dataclass(value):
        return {
            field.name: _as_dict(getattr(value, field.name))
            for field in fields(value)
            if field.metadata.get("stored", True)
        }
    return [_as_dict(item) for item in value] if isinstance(value, tuple) else value


def _restored(kind: Any, value: Any) -> Any:
    """The state whose ``_as_dict`` this is; its algorithm checks whether its values make sense."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        stored = [field.name for field in fields(kind) if field.metadata.get("stored", True)]
        found = {name: _restored(hints[name], value[name]) for name in stored}
        return cast("Any", kind)(**found)
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], item) for item in value)
    return value
