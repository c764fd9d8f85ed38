"""Which pipelines stand for a model: standard steps of scikit-learn, then an estimator of ours.

What acts on a fitted model takes such a pipeline, too. Other steps are refused by their name,
because nothing is known about what they do and what they have learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sklearn.pipeline import Pipeline

from latentmetric.registry import ESTIMATORS

STEPS = {
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "RobustScaler": "sklearn.preprocessing",
    "Normalizer": "sklearn.preprocessing",
    "OneHotEncoder": "sklearn.preprocessing",
    "SimpleImputer": "sklearn.impute",
    "PCA": "sklearn.decomposition",
    "TruncatedSVD": "sklearn.decomposition",
    "ColumnTransformer": "sklearn.compose",
    "Pipeline": "sklearn.pipeline",
}
"""The module that each class of a step is imported from."""

WORDS = ("passthrough", "drop")
"""What may take the place of a step; only columns can be dropped."""

NamedStep = tuple[str, Any]


def step_class(name: str) -> type[Any]:
    """The class with this name, which must be in ``STEPS``."""
    found: type[Any] = getattr(import_module(STEPS[name]), name)
    return found


@dataclass(frozen=True)
class Piped:
    """An estimator, and the steps that its rows pass before."""

    steps: Pipeline | None
    """None where rows come to the estimator as they are."""
    estimator: Any

    @classmethod
    def of(cls, model: Any) -> Piped:
        """The parts of a pipeline, or an estimator alone; refuse other pipelines."""
        if not isinstance(model, Pipeline):
            return cls(None, model)
        *before, (name, last) = model.steps
        if not hasattr(last, "_parameter_rules"):
            raise TypeError(
                f"the pipeline ends in {name!r}, a {type(last).__name__}; it must end in one of "
                f"{', '.join(ESTIMATORS)}"
            )
        for path, step in before:
            check_step(path, step)
        return cls(model[:-1] if before else None, last)

    def prepared(self, X: Any) -> Any:
        """Rows as the estimator takes them."""
        return X if self.steps is None else self.steps.transform(X)

    @property
    def first(self) -> Any:
        """What the caller's rows come to first: its features are those that the caller gives."""
        steps = [] if self.steps is None else [step for _, step in self.steps.steps]
        return next((step for step in steps if not _is_word(step)), self.estimator)

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features that the caller gives, where the fit has seen names."""
        names = getattr(self.first, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @property
    def takes_missing_values(self) -> bool:
        """Whether a step fills missing values in."""
        if self.steps is None:
            return False
        return any(type(step).__name__ == "SimpleImputer" for step in _all_steps(self.steps))

    @property
    def text_columns(self) -> list[int]:
        """The features that hold words, which a step encodes."""
        if self.steps is None:
            return []
        return sorted(set(_texts(self.steps, list(range(self.first.n_features_in_)))))

    @property
    def categories(self) -> dict[int, set[Any]]:
        """What each feature may hold that a step encodes and takes anything else for nothing."""
        if self.steps is None:
            return {}
        taking = _taking(self.steps, list(range(self.first.n_features_in_)))
        return {
            place: set(known.tolist())
            for step, places in taking
            if type(step).__name__ == "OneHotEncoder" and step.handle_unknown != "error"
            if len(step.categories_) == len(places)
            for place, known in zip(places, step.categories_, strict=True)
        }


def check_step(path: str, step: Any) -> None:
    """Refuse a step that is not a standard one, or holds one that is not; ``path`` names it."""
    if _is_word(step):
        return
    name = type(step).__name__
    if name not in STEPS or type(step) is not step_class(name):
        raise TypeError(
            f"the step {path!r} is a {type(step).__module__}.{type(step).__qualname__}; before the "
            f"estimator, a pipeline may only have {', '.join(STEPS)}"
        )
    for inner, held in held_by(step):
        check_step(f"{path}/{inner}", held)


def _is_word(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in WORDS)


def held_by(step: Any) -> list[NamedStep]:
    """The steps within a step, by name."""
    if isinstance(step, Pipeline):
        return list(step.steps)
    if type(step).__name__ != "ColumnTransformer":
        return []
    if not hasattr(step, "transformers_"):
        return [(name, held) for name, held, _ in step.transformers]
    return [(name, held) for name, held, _ in fitted_columns(step)]


def fitted_columns(step: Any) -> list[tuple[str, Any, list[int]]]:
    """Name, step and places of the columns of each part of a fitted ``ColumnTransformer``.

    A part without columns, which is not fitted, is "drop"; one that changes nothing is
    "passthrough", as whoever made the step has written it.
    """
    asked = {name: held for name, held, _ in step.transformers} | {"remainder": step.remainder}
    parts = []
    for name, held, columns in step.transformers_:
        places = column_places(columns, step)
        word = asked[name] if isinstance(asked[name], str) else None
        parts.append((name, word or (held if places else "drop"), places))
    return parts


def column_places(columns: Any, step: Any) -> list[int]:
    """The numbers of columns that are given by name, number, slice or mask."""
    names = getattr(step, "feature_names_in_", None)
    known: dict[Any, Any] = {}
    if names is not None:
        known = {name: place for place, name in enumerate(names)}
    if isinstance(columns, slice):
        start, stop = known.get(columns.start, columns.start), columns.stop
        if isinstance(stop, str):
            stop = known[stop] + 1  # the last name is part of a slice of names
        return list(range(step.n_features_in_))[start : stop : columns.step]
    listed = [columns] if isinstance(columns, str | int) else list(columns)
    if listed and all(type(column).__name__ in ("bool", "bool_") for column in listed):
        return [place for place, is_in in enumerate(listed) if is_in]
    places = [known[column] if isinstance(column, str) else int(column) for column in listed]
    return [range(step.n_features_in_)[place] for place in places]


def _all_steps(step: Any) -> Iterator[Any]:
    yield step
    for _, held in held_by(step):
        yield from _all_steps(held)


def _texts(step: Any, places: list[int]) -> list[int]:
    """Which of the columns at these places hold words, judging by the steps that take them."""
    return [place for taking, own in _taking(step, places) for place in _words_among(taking, own)]


def _taking(step: Any, places: list[int]) -> list[tuple[Any, list[int]]]:
    """The single steps that the columns at these places come to, each with its own places."""
    kind = type(step).__name__
    if kind == "Pipeline":
        held = [inner for _, inner in step.steps if not _is_word(inner)]
        following = [inner for inner in held if type(inner).__name__ != "SimpleImputer"]
        taking = held[:1] + following[:1]  # an imputer leaves the columns in their places
        return [found for inner in taking for found in _taking(inner, places)]
    if kind == "ColumnTransformer":
        parts = fitted_columns(step)
        return [
            found
            for _, inner, columns in parts
            for found in _taking(inner, [places[column] for column in columns])
        ]
    return [(step, places)]


def _words_among(step: Any, places: list[int]) -> list[int]:
    """Which of the columns hold words, judging by what a fitted step knows of them."""
    kind = type(step).__name__
    if kind == "SimpleImputer":
        return [place for place, held in zip(places, step.statistics_, strict=True)
                if isinstance(held, str)]  # fmt: skip
    if kind == "OneHotEncoder" and len(step.categories_) == len(places):
        return [
            place
            for place, known in zip(places, step.categories_, strict=True)
            if known.dtype.kind in "UO" and any(isinstance(word, str) for word in known)
        ]
    return []
