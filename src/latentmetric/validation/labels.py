"""The rules for labels of any container: all of one kind, none missing, at least two classes.

Labels keep their type: integers are never rounded to floats, text stays text.
"""

from __future__ import annotations

from collections import UserList, deque
from collections.abc import Mapping
from decimal import Decimal
from math import inf
from numbers import Integral, Real
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
    given = _without_rounding(_without_merging(y, name), name)
    if not _is_sequence(given):
        raise ValueError(f"{name} must be a list or an array of labels, got {y!r:.60}")
    labels: Labels = column_or_1d(given, warn=True)
    _refuse_missing(labels, f"Input {name}", start)
    return labels


def as_words(values: np.ndarray[Any, Any], name: str) -> Labels:
    """Objects as text; raise if any is missing, which would become a word such as None."""
    objects = np.asarray(values, dtype=object)
    _refuse_missing(objects.ravel(), name, 0)
    return text_array(words_of(objects.ravel().tolist(), name), name).reshape(objects.shape)


def words_of(values: list[Any], name: str) -> list[str]:
    """Values as text, bytes decoded; raise on bytes that are not UTF-8."""
    return [_word(value, row, name) for row, value in enumerate(values)]


def _word(value: Any, row: int, name: str) -> str:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}: row {row} (counted from 0) holds the bytes {shortened(repr(value), 80)}, "
            "which are not UTF-8; store text, or numbers"
        ) from error


def text_array(texts: list[str], name: str, n_labels: int = 0) -> Labels:
    """Texts as an array of fixed width, or of objects if one text is long and there are many.

    ``n_labels`` is how many labels will be taken from the array, if more than it holds. Raise on a
    text that ends in a zero character, which arrays drop.
    """
    refuse_cut(texts, name)
    width = 4 * max(map(len, texts), default=0)
    padded = width * max(len(texts), n_labels) <= MAX_PADDED_BYTES
    return np.array(texts, dtype=str if padded else object)


def refuse_cut(texts: list[str], name: str) -> None:
    """Raise on a text that ends in a zero character, which arrays of a fixed width drop."""
    cut = [text for text in texts if text.endswith("\0")]
    if cut:
        raise ValueError(
            f"{name} holds {shortened(cut[0], 40)!r}, which ends in a zero character; remove it "
            "there"
        )


def _refuse_missing(labels: Labels, name: str, start: int) -> None:
    missing = _missing(labels)
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


def check_same_length(n_rows: int, n_others: int, others: str = "y has {} labels") -> None:
    """Raise unless there is one label, or whatever ``others`` says, for each row."""
    if n_rows != n_others:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_rows} rows, {others.format(n_others)}; both need the same number"
        )


def known_codes(labels: Labels, classes: Labels, name: str = "y") -> Ints:
    """The code of each label; raise on labels that are not among the model's classes."""
    given, places = classes_and_codes(labels)
    given = _comparable(given, classes, name)
    unknown = np.setdiff1d(given, classes)
    if len(unknown):
        raise ValueError(
            f"{name} holds {len(unknown)} label(s) that the model does not know, "
            f"such as {unknown.tolist()[0]!r}; it knows {len(classes)} classes"
        )
    codes: Ints = np.searchsorted(classes, given)[places]
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
    given = _comparable(classes_and_codes(labels)[0], classes)
    joined: Labels = np.union1d(classes, given)
    if joined.dtype.kind == "f":
        if "f" not in (given.dtype.kind, classes.dtype.kind):
            raise ValueError(
                f"y is {given.dtype} and the model's classes are {classes.dtype}, which have no "
                f"common dtype of integers: {joined.dtype} would round some; choose smaller labels"
            )
        check_classification_targets(np.repeat(joined, 3))
    return joined


def are_known(labels: Labels, classes: Labels) -> Bools:
    """Which labels are among the model's classes; raise if they are not of one kind."""
    given, places = classes_and_codes(labels)
    known: Bools = np.isin(_comparable(given, classes), classes)[places]
    return known


def refuse_known(labels: Labels, classes: Labels) -> None:
    """Raise if any label is among the model's classes."""
    known = np.intersect1d(_comparable(classes_and_codes(labels)[0], classes), classes)
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


def _comparable(labels: Labels, classes: Labels, name: str = "y") -> Labels:
    """Different labels, sorted, that compare with the classes without rounding either of them.

    Raise if they are of another kind: True is not the class 1, nor is "1".
    """
    if len(labels) and len(classes) and kind_of(labels) != kind_of(classes):
        raise TypeError(
            f"{name} must be of the same kind as the model's classes: {name} holds "
            f"{kind_of(labels)}, such as {labels.tolist()[0]!r}, but the classes are "
            f"{kind_of(classes)}, such as {classes.tolist()[0]!r}; convert {name}"
        )
    if labels.dtype.kind == "f" and classes.dtype.kind in "iu":
        with np.errstate(invalid="ignore"):
            whole = labels.astype(classes.dtype)
        if np.array_equal(whole, labels) and (np.abs(labels) < 2**53).all():
            return whole
    if not {labels.dtype.kind, classes.dtype.kind} <= set("iuf") or labels.dtype == classes.dtype:
        return labels
    if labels.dtype.kind in "iu" and classes.dtype.kind in "iu":
        cast = labels.astype(classes.dtype)
        if np.array_equal(cast.astype(labels.dtype), labels) and ((cast < 0) == (labels < 0)).all():
            return cast
    common = np.result_type(labels, classes)
    if (classes.astype(common).astype(classes.dtype) != classes).any():
        raise ValueError(
            f"y is {labels.dtype}, but the model's classes are {classes.dtype}: compared as "
            f"{common} some would be rounded; convert y with y.astype({str(classes.dtype)!r})"
        )
    return labels


def is_of_kind(label: Any, classes: Labels) -> bool:
    """Whether a label is a number if the classes are numbers, or text if they are text."""
    if classes.dtype.kind == "O":
        return isinstance(label, tuple({type(value) for value in classes.tolist()}))
    own = np.asarray(label)
    kinds = "US" if classes.dtype.kind in "US" else "biuf"
    return own.ndim == 0 and own.dtype.kind in kinds


def predicted_dtype(
    classes: Labels, reject_below: float | None, reject_label: Any
) -> np.dtype[Any]:
    """The dtype of predictions, some of which may be rejected."""
    known: np.dtype[Any] = classes.dtype
    if reject_below is None:
        if reject_label is not None:
            raise ValueError(f"reject_label={reject_label!r} needs reject_below, a score")
        return known
    Number(-inf).check("reject_below", reject_below)
    if np.ndim(reject_label):
        raise TypeError(f"reject_label must be one label, got {reject_label!r:.60}")
    if reject_label is None or reject_label in classes.tolist():
        example = -1 if known.kind in "biuf" else "unknown"
        raise ValueError(
            "reject_label must be a label that is not one of the model's classes, such as "
            f"{example!r}, got {reject_label!r}"
        )
    if not is_of_kind(reject_label, classes):
        raise TypeError(
            f"reject_label must be of the same kind as the classes, which are {known}, "
            f"got {reject_label!r} of type {type(reject_label).__name__}"
        )
    label = np.asarray(reject_label)
    dtype = np.result_type(known, label.dtype)
    if known.kind in "iu" and label.dtype.kind in "iu":
        fits = np.iinfo(known).min <= int(label) <= np.iinfo(known).max
        dtype = known if fits else dtype
    rounded = label.astype(dtype).tolist() != reject_label
    if rounded or (classes.astype(dtype).astype(known) != classes).any():
        raise ValueError(
            f"reject_label={reject_label!r} and the classes, which are {known}, have no "
            f"common dtype that holds them all: {dtype} would round some; choose another label"
        )
    return dtype


def _without_merging(y: Any, name: str) -> Any:
    """Labels that NumPy takes as they are; it would make some equal that are not.

    Beside words, it turns numbers and NaN into words; beside floats, it rounds integers; and it
    drops zero characters at the end of a word. Lists of words become an array that is not much
    larger than they are.
    """
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", "") == "T":  # NumPy's text of any length
        return y.astype(object)
    if type(y).__module__.split(".")[0] == "polars" and str(dtype) in ("String", "Utf8"):
        y = y.to_list()
    if not isinstance(y, list | tuple | deque | UserList):
        return y
    objects = np.array(list(y), dtype=object)
    labels = objects.ravel().tolist()
    kinds = {_kind_of_text(label) for label in labels}
    if kinds == {str}:
        return text_array(labels, f"Input {name}").reshape(objects.shape)
    if len(kinds) > 1:
        return objects
    _refuse_rounding(labels, name)
    return y


def _kind_of_text(label: Any) -> type | None:
    return next((kind for kind in (str, bytes) if isinstance(label, kind)), None)


def _refuse_rounding(labels: list[Any], name: str) -> None:
    """Raise on integers that NumPy would round because there are floats or negative ones, too."""
    if not any(isinstance(label, Integral) for label in labels):
        return
    if np.array(labels).dtype.kind != "f":
        return
    integers = [int(label) for label in labels if isinstance(label, Integral)]
    rounded = [number for number in integers if int(float(number)) != number]
    if rounded:
        raise ValueError(
            f"{name} holds {rounded[0]}, which NumPy would round to {int(float(rounded[0]))} "
            "beside the other labels; convert all of them, for example to strings"
        )


def _is_sequence(given: Any) -> bool:
    """Whether this has labels one after the other: not a label alone, nor a set or a dict."""
    if isinstance(given, str | bytes | Mapping) or getattr(given, "shape", None) == ():
        return False
    return hasattr(given, "__getitem__") or hasattr(given, "__array__")


def _without_rounding(y: Any, name: str) -> Any:
    """Labels as NumPy should take them.

    Pandas' nullable integers become plain integers, where scikit-learn would convert them to
    floats.
    """
    if getattr(y, "ndim", 1) == 2 and hasattr(y, "iloc") and y.shape[1] == 1:
        return np.asarray(_without_rounding(y.iloc[:, 0], name)).reshape(-1, 1)
    if isinstance(y, np.ma.MaskedArray):
        if not np.ma.is_masked(y):
            return y.data
        labels = y.data.astype(object)
        labels[np.ma.getmaskarray(y)] = None
        return labels
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if plain is None or np.dtype(plain).kind not in "iub":
        return y
    if y.isna().any():
        return np.asarray(y, dtype=object)
    return y.to_numpy(dtype=plain)


def _missing(labels: Labels) -> Bools:
    """Which labels are NaN, NaT, None or pandas' missing values."""
    if labels.dtype.kind == "f":
        # An infinite label is rejected like a missing one: it is not a class either.
        return ~np.isfinite(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.array([_is_missing(label) for label in labels.tolist()], dtype=bool)


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, np.datetime64 | np.timedelta64):
        return bool(np.isnat(label))
    if isinstance(label, Decimal):
        return not label.is_finite()
    return isinstance(label, float | np.floating) and not np.isfinite(label)
