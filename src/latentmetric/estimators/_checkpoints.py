"""The last round of a fit in a folder, so that a fit that was killed can go on from there.

One file, replaced as a whole after every round: what the next round starts from, the round to be
returned, the history, the random state, and what the fit was asked for. A fit that goes on gives
bit for bit the model of one that was never interrupted, on the same machine with the same number
of threads. Memory and disk: about twice the latent examples.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.core.alternation import State
from latentmetric.core.triplets import Candidates, Triplets
from latentmetric.estimators._stored_values import (
    history_as_json,
    history_from_json,
    parameters_as_json,
)
from latentmetric.io.model_file import (
    FORMAT_VERSION,
    ModelFileError,
    read_model_file,
    write_model_file,
)

if TYPE_CHECKING:
    from latentmetric.estimators.mapml import MaPML

FILE_NAME = "checkpoint.safetensors"

FREE_PARAMETERS = ("n_jobs", "verbose")
"""What may differ from the fit that was interrupted; the number of threads may change rounding."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the fit goes on."""


@dataclass(frozen=True)
class Progress:
    """Where a fit stands after a round."""

    state: State
    kept: State
    """The round to be returned if it were the last."""
    kept_error: float
    history: list[dict[str, Any]]
    generator: np.random.Generator
    finished: bool


class Checkpoints:
    """Reads and writes the checkpoint of one fit."""

    def __init__(self, folder: str | os.PathLike[str], resume: bool) -> None:
        self._path = Path(folder) / FILE_NAME
        if Path(folder).exists() and not Path(folder).is_dir():
            raise NotADirectoryError(f"checkpoint must be a folder, but {folder} is a file")
        self._identity: dict[str, Any] = {}
        self._warned = False
        self._found: tuple[dict[str, Any], dict[str, Any]] | None = None
        if self._path.exists():
            self._find(resume)

    def _find(self, resume: bool) -> None:
        document, arrays = read_model_file(self._path)
        if document.get("estimator") != "checkpoint":
            raise ModelFileError(f"{self._path} is not a checkpoint")
        if resume:
            self._found = document, arrays
            return
        with _complete(self._path):
            finished, done = document["finished"], document["history"][-1]["round"]
        if not finished:
            raise ValueError(
                f"{self._path} holds a fit that was interrupted after round {done}; pass "
                "resume=True (--resume) to go on with it, or remove the file"
            )

    def _sweep(self) -> None:
        """Remove what a fit that was killed in the middle of writing has left."""
        with suppress(OSError):
            for left in self._path.parent.glob(f".{FILE_NAME}.*.tmp"):
                left.unlink()

    def begin(self, model: MaPML, generator: np.random.Generator) -> None:
        """Tell what is asked for; where a fit goes on, the generator starts as it did then."""
        stored, _ = parameters_as_json(
            {
                name: value
                for name, value in model.get_params(deep=False).items()
                if name not in FREE_PARAMETERS
            }
        )
        self._identity = {
            "parameters": stored,
            "begun_from": _begun_from(model),
            "start": generator.bit_generator.state,
        }
        if self._found is not None:
            with _complete(self._path):
                self._refuse_others(self._found[0])
                generator.bit_generator.state = self._found[0]["start"]
            self._identity["start"] = generator.bit_generator.state
        self._sweep()

    def _refuse_others(self, document: dict[str, Any]) -> None:
        """Raise on a checkpoint of a fit with other parameters or another beginning."""
        stored, before = self._identity["parameters"], document["parameters"]
        differing = sorted(
            name
            for name in stored.keys() | before.keys()
            if _comparable(name, stored.get(name)) != _comparable(name, before.get(name))
        )
        if differing:
            told = "; ".join(
                f"{name} is {stored.get(name)!r} now and was {before.get(name)!r}"
                for name in differing
            )
            raise _OtherFitError(f"{self._path} is of a fit with other parameters: {told}")
        if document["begun_from"] != self._identity["begun_from"]:
            raise _OtherFitError(
                f"{self._path} is of a fit with warm_start=True that began from another model; "
                "remove the file to begin from this one"
            )

    def resumed(self, data: dict[str, Any]) -> Progress | None:
        """Where the fit stood, if there is one and its data was the same."""
        self._identity["data"] = data
        if self._found is None:
            return None
        document, arrays = self._found
        self._found = None
        with _complete(self._path):
            before = {name: document["data"].get(name) for name in data}
        differing = [name for name, value in data.items() if before[name] != value]
        if differing:
            told = "; ".join(
                f"{name} is {data[name]} now and was {before[name]}" for name in differing
            )
            raise ValueError(f"{self._path} is of a fit to other data: {told}")
        with _complete(self._path):
            return _checked(_progress_from(document, arrays), data)

    def write(self, progress: Progress) -> None:
        """Replace the checkpoint; where that fails, warn once and leave the last one."""
        document, arrays = _contents(progress)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_model_file(self._path, document | self._identity, arrays)
        except OSError as error:
            if not self._warned:
                warnings.warn(
                    f"the fit goes on without checkpoints: {error}", CheckpointWarning, stacklevel=4
                )
            self._warned = True


class _OtherFitError(ValueError):
    """A checkpoint of another fit: complete, but not the one to go on from."""


@contextmanager
def _complete(path: Path) -> Iterator[None]:
    """What is missing from a checkpoint, or cannot be, is told with its file."""
    try:
        yield
    except (_OtherFitError, ModelFileError):
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"{path} is not a complete checkpoint ({type(error).__name__}: {error})"
        ) from error


def _comparable(name: str, value: Any) -> Any:
    """Of latent_ratio 1, a number, is not 1.0, a share; and counts by class have no order."""
    if name != "latent_ratio":
        return value
    if isinstance(value, dict):
        return {key: sorted(map(repr, pairs)) for key, pairs in value.items()}
    return type(value).__name__, value


def _begun_from(model: MaPML) -> str:
    """What tells the model that a warm start goes on from; "rows" without one."""
    if not model._continues():
        return "rows"
    digest = blake2b(digest_size=16)
    for part in (model.components_, model.latent_examples_):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _checked(progress: Progress, data: dict[str, Any]) -> Progress:
    """Arrays that fit together and to the data, of finite numbers; else a ValueError."""
    _check_state(progress.state, data)
    _check_state(progress.kept, data)
    rounds = [record["round"] for record in progress.history]
    if rounds != list(range(progress.state.round + 1)):
        raise ValueError("its history does not lead to its last round")
    return progress


def _check_state(state: State, data: dict[str, Any]) -> None:
    n_features, n_classes = data["number of features"], data["number of classes"]
    starts, n_latents = state.class_starts, len(state.latents)
    shapes = (
        state.latents.shape[1:],
        state.components.shape[1:],
        state.spreads.shape,
        starts.shape,
    )
    if shapes != ((n_features,), (n_features,), (n_classes,), (n_classes + 1,)):
        raise ValueError("its arrays do not have the shapes of this data")
    if starts[0] != 0 or starts[-1] != n_latents or (np.diff(starts) < 1).any():
        raise ValueError("its classes do not share out its latent examples")
    if not all(np.isfinite(part).all() for part in _of_state(state, "").values()):
        raise ValueError("its latent examples or its metric are not finite")
    for some in (state.candidates, state.watched):
        if np.isnan(some.margins).any() or len(some.margins) != len(some.anchors):
            raise ValueError("its margins are not numbers, one an anchor")
        for numbers in (some.anchors, some.targets, some.impostors):
            if numbers.size and not 0 <= numbers.min() <= numbers.max() < n_latents:
                raise ValueError("its triplets name latent examples that do not exist")


def _contents(progress: Progress) -> tuple[dict[str, Any], dict[str, Any]]:
    state, kept = progress.state, progress.kept
    document = {
        "format_version": FORMAT_VERSION,
        "estimator": "checkpoint",
        "finished": progress.finished,
        "history": history_as_json(progress.history),
        "records": history_as_json([state.record, kept.record]),
        "kept_error": history_as_json([{"error": progress.kept_error}]),
        "now": progress.generator.bit_generator.state,
        "hinges_shape": state.candidates.hinges.shape,
    }
    arrays = {
        "class_starts": state.class_starts,
        **_of_state(state, ""),
        **(_of_state(kept, "kept_") if kept is not state else {}),
        **_fields(state.candidates, "candidates_"),
        **_fields(state.watched, "watched_"),
    }
    hinges = arrays["candidates_hinges"]
    arrays["candidates_hinges"] = hinges.reshape(len(hinges), -1)
    return document, arrays


def _of_state(state: State, prefix: str) -> dict[str, Any]:
    names = ("components", "latents", "spreads")
    return {prefix + name: getattr(state, name) for name in names}


def _fields(some: Candidates | Triplets, prefix: str) -> dict[str, Any]:
    return {prefix + name: value for name, value in vars(some).items()}


def _progress_from(document: dict[str, Any], arrays: dict[str, Any]) -> Progress:
    of = {
        prefix: {
            name.removeprefix(prefix): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }
        for prefix in ("candidates_", "watched_", "kept_")
    }
    of["candidates_"]["hinges"] = of["candidates_"]["hinges"].reshape(document["hinges_shape"])
    shared = {
        "class_starts": arrays["class_starts"],
        "candidates": Candidates(**of["candidates_"]),
        "watched": Triplets(**of["watched_"]),
    }
    record, kept_record = history_from_json(document["records"])
    own = {name: arrays[name] for name in ("components", "latents", "spreads")}
    state = State(**own, **shared, record=record)
    kept = State(**of["kept_"], **shared, record=kept_record) if of["kept_"] else state
    generator = np.random.default_rng()
    generator.bit_generator.state = document["now"]
    (kept_error,) = history_from_json(document["kept_error"])
    return Progress(
        state, kept, kept_error["error"], history_from_json(document["history"]), generator,
        document["finished"],
    )  # fmt: skip
