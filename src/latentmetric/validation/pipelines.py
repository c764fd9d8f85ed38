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


def step_class(name: str) -> type[Any]:
    """The class with this name, which must be in ``STEPS``."""
    found: type[Any] = getattr(import_module(STEPS[name]), name)
    return found


@dataclass(frozen=True)
class SplitPipeline:
    """An estimator, and the steps that its rows pass before."""

    steps: Pipeline | None
    """None where rows come to the estimator as they are."""
    estimator: Any

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
        return any(hasattr(step, "statistics_") for step, _ in self._single_steps())

    @property
    def text_columns(self) -> list[int]:
        """The features that hold words, which a step encodes."""
        found = set()
        for step, indices in self._single_steps():
            filled = [[value] for value in getattr(step, "statistics_", ())]
            known = filled or [values.tolist() for values in getattr(step, "categories_", ())]
            for index, values in zip(indices, known, strict=False):
                if any(isinstance(value, str) for value in values):
                    found.add(index)
        return sorted(found)

    @property
    def categories(self) -> dict[int, set[Any]]:
        """What each feature may hold that a step encodes and takes anything else for nothing."""
        return {
            index: set(known.tolist())
            for step, indices in self._single_steps()
            if indices and getattr(step, "handle_unknown", "error") != "error"
            for index, known in zip(indices, step.categories_, strict=True)
        }

    def _single_steps(self) -> list[tuple[Any, list[int]]]:
        if self.steps is None:
            return []
        return list(_single_steps(self.steps, list(range(self.first.n_features_in_))))


def split_pipeline(model: Any) -> SplitPipeline:
    """The steps and the estimator of a pipeline, or an estimator alone; refuse other pipelines."""
    if not isinstance(model, Pipeline):
        return SplitPipeline(None, model)
    *before, (name, last) = model.steps
    if not hasattr(last, "_parameter_rules"):
        raise TypeError(
            f"the pipeline ends in {name!r}, a {type(last).__name__}; it must end in one of "
            f"{', '.join(ESTIMATORS)}"
        )
    for path, step in before:
        _check_step(path, step)
    return SplitPipeline(model[:-1] if before else None, last)


def _check_step(path: str, step: Any) -> None:
    """Refuse a step that is not a standard one, or holds one that is not; ``path`` names it."""
    if _is_word(step):
        return
    name = type(step).__name__
    if name not in STEPS or type(step) is not step_class(name):
        raise TypeError(
            f"the step {path!r} is a {type(step).__module__}.{type(step).__qualname__}; before the "
            f"estimator, a pipeline may only have {', '.join(STEPS)}"
        )
    for inner, held in _held_by(step):
        _check_step(f"{path}/{inner}", held)


def _is_word(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in WORDS)


def _held_by(step: Any) -> list[tuple[str, Any]]:
    """The steps within a step, by name."""
    if isinstance(step, Pipeline):
        return list(step.steps)
    if not hasattr(step, "transformers"):
        return []
    return [*((name, held) for name, held, _ in step.transformers), ("remainder", step.remainder)]


def fitted_columns(step: Any) -> list[tuple[str, Any, list[int]]]:
    """Name, step and indices of the columns of each part of a fitted ``ColumnTransformer``.

    A part without columns, which is not fitted, is "drop"; one that changes nothing is
    "passthrough", as whoever made the step has written it.
    """
    asked = dict(_held_by(step))
    parts = []
    for name, held, columns in step.transformers_:
        indices = column_indices(columns, step)
        word = asked[name] if isinstance(asked[name], str) else None
        parts.append((name, word or (held if indices else "drop"), indices))
    return parts


def column_indices(columns: Any, step: Any) -> list[int]:
    """The indices of columns of a step that are given by name, number, slice or mask."""
    names = getattr(step, "feature_names_in_", None)
    known = {} if names is None else {name: index for index, name in enumerate(names)}
    if isinstance(columns, slice):
        start, stop = known.get(columns.start, columns.start), columns.stop
        if isinstance(stop, str):
            stop = known[stop] + 1  # the last name is part of a slice of names
        return list(range(step.n_features_in_))[start : stop : columns.step]
    listed = [columns] if isinstance(columns, str | int) else list(columns)
    if listed and all(type(column).__name__ in ("bool", "bool_") for column in listed):
        return [index for index, is_in in enumerate(listed) if is_in]
    indices = [known[column] if isinstance(column, str) else int(column) for column in listed]
    return [range(step.n_features_in_)[index] for index in indices]


def _single_steps(step: Any, indices: list[int]) -> Iterator[tuple[Any, list[int]]]:
    """Each single step, with the indices of the given columns that come to it, if still known."""
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            yield from _single_steps(inner, indices)
            filled = hasattr(inner, "statistics_") and len(inner.get_feature_names_out())
            if not _is_word(inner) and filled != len(indices):
                indices = []  # only a step that fills missing values in keeps the columns
    elif hasattr(step, "transformers_"):
        for _, inner, columns in fitted_columns(step):
            yield from _single_steps(inner, [indices[column] for column in columns if indices])
    elif not _is_word(step):
        yield step, indices
