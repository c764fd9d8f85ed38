"""The rules for labels of any container: all of one kind, none missing, at least two classes.

Labels keep their type: integers are never rounded to floats, text stays text.
"""

from __future__ import annotations

from math import inf
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from latentmetric.characters import shortened
from latentmetric.core.types import Ints
from latentmetric.validation.parameters import Number
from latentmetric.validation.rows import check_complete, is_missing

Labels = np.ndarray[Any, Any]

MAX_PADDED_BYTES = 64 * 2**20
"""Text that would take more than this as an array of fixed width is kept as objects."""

KINDS: tuple[tuple[str, Any, str], ...] = (
    ("text", str, "U"),
    ("Booleans", bool | np.bool_, "b"),
    ("numbers", Real, "iuf"),
)
"""Kinds of labels: a name, the types of Python's objects and the letters of NumPy's dtypes."""


def checked_labels(y: Any, name: str = "y", start: int = 0) -> Labels:
    """Labels as a 1d array; raise if any is missing."""
    if y is None:
        raise ValueError(
            f"this method requires {name} to be passed, but the target {name} is None; pass one "
            "label for each row"
        )
    check_complete(y, name)
    numpy_dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if isinstance(y, list | tuple):  # NumPy would turn numbers beside words into words
        objects = np.array(y, dtype=object)
        words = [isinstance(label, str) for label in objects.ravel()]
        if all(words):
            y = text_array(objects.ravel().tolist()).reshape(objects.shape)
        elif any(words):
            y = objects
    elif numpy_dtype is not None and np.dtype(numpy_dtype).kind in "iub":
        # pandas' nullable integers, of which scikit-learn would make floats
        y = np.asarray(y, dtype=object if y.isna().any() else numpy_dtype)
    labels: Labels = column_or_1d(y, warn=True)
    _refuse_missing(labels, f"Input {name}", start)
    is_bool = labels.dtype.kind == "O" and kind_of(labels) == "Booleans"
    return labels.astype(bool) if is_bool else labels


def _refuse_missing(labels: Labels, name: str, start: int) -> None:
    if labels.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, labels.tolist()), dtype=bool, count=len(labels))
    else:  # only NaN and NaT differ from themselves; an infinite label is no class either
        missing = labels != labels if labels.dtype.kind != "f" else ~np.isfinite(labels)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(
            f"{name} contains NaN or another missing value: row {start + row} (counted "
            f"from 0) is {labels[row]!r}; fill it or remove the row"
        )


def classes_and_codes(labels: Labels) -> tuple[Labels, Ints]:
    """The distinct labels, sorted, and the index of each label among them."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise TypeError(
            f"labels must be of one kind, but y holds {' and '.join(kinds)}; "
            "convert them, for example to strings"
        ) from error
    return classes, codes


def check_classes(classes: Labels, owner: str) -> None:
    """Raise unless there are at least two classes; ``owner`` is the name of the estimator."""
    # Repeated, because scikit-learn takes labels that are all different for a continuous target.
    check_classification_targets(np.repeat(classes, 3))
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs at least 2 classes, but y holds only 1 class: {classes.tolist()[0]!r}"
        )


def check_same_length(n_rows: int, n_labels: int) -> None:
    """Raise unless there is one label for each row."""
    if n_rows != n_labels:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows, y has {n_labels} labels; both need the same number"
        )


def find_codes(labels: Labels, classes: Labels, name: str = "y") -> Ints:
    """The code of each label, -1 if it is not among the model's classes.

    Raise if they are of another kind: True is not the class 1, nor is "1".
    """
    given, indices = _distinct(labels, classes, name)
    codes: Ints = np.searchsorted(classes, given)
    codes[~np.isin(given, classes)] = -1
    return codes[indices]


def known_codes(labels: Labels, classes: Labels, name: str = "y") -> Ints:
    """The code of each label; raise on labels that are not among the model's classes."""
    codes = find_codes(labels, classes, name)
    unknown = np.unique(labels[codes < 0]).tolist()
    if unknown:
        raise ValueError(
            f"{name} holds {len(unknown)} label(s) that the model does not know, "
            f"such as {unknown[0]!r}; it knows {len(classes)} classes"
        )
    return codes


def joined_classes(classes: Labels, labels: Labels) -> Labels:
    """The model's classes and those of new labels, sorted; raise if they are of different kinds."""
    joined: Labels = np.union1d(classes, _distinct(labels, classes)[0])
    if joined.dtype.kind == "f":
        check_classification_targets(np.repeat(joined, 3))
    return joined


def kind_of(labels: Labels) -> str:
    """What labels are, whatever holds them: text, numbers, Booleans, or the name of a dtype."""
    kinds = {type(label) for label in labels.tolist()} if labels.dtype.kind == "O" else set()
    for name, kind, letters in KINDS:
        if labels.dtype.kind in letters or (kinds and all(issubclass(own, kind) for own in kinds)):
            return name
    return str(labels.dtype.type.__name__)


def _distinct(labels: Labels, classes: Labels, name: str = "y") -> tuple[Labels, Ints]:
    """As ``classes_and_codes``, in the dtype of the classes if they are integers."""
    given, indices = classes_and_codes(labels)
    if len(given) and len(classes) and kind_of(given) != kind_of(classes):
        raise TypeError(
            f"{name} must be of the same kind as the model's classes: {name} holds "
            f"{kind_of(given)}, such as {given.tolist()[0]!r}, but the classes are "
            f"{kind_of(classes)}, such as {classes.tolist()[0]!r}; convert {name}"
        )
    if given.dtype.kind in "iuf" and classes.dtype.kind in "iu":
        with np.errstate(invalid="ignore"):
            cast = given.astype(classes.dtype)
        given = cast if (cast == given).all() else given
    return given, indices


def predicted_dtype(
    classes: Labels, reject_below: float | None, reject_label: Any
) -> np.dtype[Any]:
    """The dtype of predictions, some of which may be rejected."""
    if reject_below is None:
        if reject_label is not None:
            raise ValueError(f"reject_label={reject_label!r} needs reject_below, a score")
        return np.dtype(classes.dtype)
    Number(-inf).check("reject_below", reject_below)
    kind, label = kind_of(classes), np.array([reject_label])
    same_kind = {kind_of(label), kind} in ({kind}, {"numbers", "Booleans"})
    if label.ndim > 1 or not same_kind or reject_label in classes.tolist():
        raise ValueError(
            f"reject_label must be one label of the kind of the classes, which are {kind}, but "
            f"none of them, such as {'unknown' if kind == 'text' else -1!r}, got "
            f"{reject_label!r:.60}"
        )
    dtype: np.dtype[Any] = np.result_type(classes, np.min_scalar_type(label[0]))
    return dtype


def as_words(values: np.ndarray[Any, Any], name: str) -> Labels:
    """Objects as text, bytes decoded; raise if any is missing, which would become a word: None."""
    objects = np.asarray(values, dtype=object)
    given = objects.ravel()
    _refuse_missing(given, name, 0)
    try:
        words = [one.decode() if isinstance(one, bytes) else str(one) for one in given.tolist()]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} holds the bytes {shortened(repr(error.object), 80)}, which are not UTF-8; "
            "store text, or numbers"
        ) from error
    return text_array(words).reshape(objects.shape)


def text_array(texts: list[str]) -> Labels:
    """Texts as an array of fixed width, or of objects if one text is long and there are many."""
    width = 4 * max(map(len, texts), default=0)
    return np.array(texts, dtype=str if width * len(texts) <= MAX_PADDED_BYTES else object)
