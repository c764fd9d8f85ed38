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
from latentmetric.core.types import Bools, Ints
from latentmetric.validation.parameters import Number

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
    labels: Labels = column_or_1d(_as_array(y, name), warn=True)
    _refuse_missing(labels, f"Input {name}", start)
    return labels


def _as_array(y: Any, name: str) -> Any:
    """Labels as NumPy should take them: it would turn numbers beside words into words.

    Nullable integers of pandas become plain integers, where scikit-learn would make floats.
    """
    if isinstance(y, list | tuple):
        objects = np.array(y, dtype=object)
        words = [isinstance(label, str) for label in objects.ravel()]
        if all(words):
            return text_array(objects.ravel().tolist(), name).reshape(objects.shape)
        return objects if any(words) else y
    numpy_dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if numpy_dtype is None or np.dtype(numpy_dtype).kind not in "iub":
        return y
    return np.asarray(y, dtype=object if y.isna().any() else numpy_dtype)


def _refuse_missing(labels: Labels, name: str, start: int) -> None:
    if labels.dtype.kind == "O":  # pandas.NA cannot be compared
        unequal = (label is None or type(label).__name__ == "NAType" or bool(label != label)
                   for label in labels.tolist())  # fmt: skip
        missing = np.fromiter(unequal, dtype=bool, count=len(labels))
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


def known_codes(labels: Labels, classes: Labels, name: str = "y") -> Ints:
    """The code of each label; raise on labels that are not among the model's classes."""
    given, indices = _distinct(labels, classes, name)
    unknown = np.setdiff1d(given, classes)
    if len(unknown):
        raise ValueError(
            f"{name} holds {len(unknown)} label(s) that the model does not know, "
            f"such as {unknown.tolist()[0]!r}; it knows {len(classes)} classes"
        )
    codes: Ints = np.searchsorted(classes, given)[indices]
    return codes


def check_same_classes(given: Labels, classes: Labels) -> None:
    """Raise unless these are the classes of the first call."""
    if not np.array_equal(np.unique(given), classes):
        raise ValueError(
            f"classes={given.tolist()!r:.60} is not the same as on the last call to partial_fit, "
            f"which was: {classes.tolist()!r:.60}; add_classes takes rows of new classes"
        )


def joined_classes(classes: Labels, labels: Labels) -> Labels:
    """The model's classes and those of new labels, sorted; raise if they are of different kinds."""
    joined: Labels = np.union1d(classes, _distinct(labels, classes)[0])
    if joined.dtype.kind == "f":
        check_classification_targets(np.repeat(joined, 3))
    return joined


def are_known(labels: Labels, classes: Labels) -> Bools:
    """Which labels are among the model's classes; raise if they are not of one kind."""
    given, indices = _distinct(labels, classes)
    known: Bools = np.isin(given, classes)[indices]
    return known


def refuse_known(labels: Labels, classes: Labels) -> None:
    """Raise if any label is among the model's classes."""
    known = np.intersect1d(_distinct(labels, classes)[0], classes)
    if len(known):
        raise ValueError(
            f"y holds {len(known)} of the model's {len(classes)} classes, such as "
            f"{known.tolist()[0]!r}; add_classes takes rows of new classes only, partial_fit takes "
            "rows of known ones"
        )


def kind_of(labels: Labels) -> str:
    """What labels are, whatever holds them: text, numbers, Booleans, or the name of a dtype."""
    kinds = {type(label) for label in labels.tolist()} if labels.dtype.kind == "O" else set()
    for name, kind, letters in KINDS:
        if labels.dtype.kind in letters or (kinds and all(issubclass(own, kind) for own in kinds)):
            return name
    return str(labels.dtype.type.__name__)


def _distinct(labels: Labels, classes: Labels, name: str = "y") -> tuple[Labels, Ints]:
    """As ``classes_and_codes``, in the dtype of the classes if they are integers.

    Raise if they are of another kind: True is not the class 1, nor is "1".
    """
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
    if np.ndim(reject_label):
        raise TypeError(f"reject_label must be one label, got {reject_label!r:.60}")
    if reject_label is None or reject_label in classes.tolist():
        example = "unknown" if kind_of(classes) == "text" else -1
        raise ValueError(
            "reject_label must be a label that is not one of the model's classes, such as "
            f"{example!r}, got {reject_label!r}"
        )
    label = np.array([reject_label])
    kinds = {kind_of(label), kind_of(classes)}
    if len(kinds) > 1 and kinds != {"numbers", "Booleans"}:
        raise TypeError(
            f"reject_label must be of the same kind as the classes, which are {kind_of(classes)}, "
            f"got {reject_label!r} of type {type(reject_label).__name__}"
        )
    dtype: np.dtype[Any] = np.result_type(classes, np.min_scalar_type(label[0]))
    return dtype


def as_words(values: np.ndarray[Any, Any], name: str) -> Labels:
    """Objects as text; raise if any is missing, which would become a word such as None."""
    objects = np.asarray(values, dtype=object)
    _refuse_missing(objects.ravel(), name, 0)
    return text_array(words_of(objects.ravel().tolist(), name), name).reshape(objects.shape)


def words_of(values: list[Any], name: str) -> list[str]:
    """Values as text, bytes decoded; raise on bytes that are not UTF-8."""
    try:
        return [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} holds the bytes {shortened(repr(error.object), 80)}, which are not UTF-8; "
            "store text, or numbers"
        ) from error


def text_array(texts: list[str], name: str) -> Labels:
    """Texts as an array of fixed width, or of objects if one text is long and there are many."""
    width = 4 * max(map(len, texts), default=0)
    padded = width * len(texts) <= MAX_PADDED_BYTES
    return np.array(texts, dtype=str if padded else object)
