"""Features with their labels, out of the files people have: which column or array is which.

What was taken is told in words, with the option that chooses another. Arrays and columns in
binary files stay there until their rows are asked for; text is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.io import arrays, columns, text
from latentmetric.io.arrays import ArrayFile, open_arrays
from latentmetric.io.choosing import (
    Choice,
    find_column,
    label_and_ignored,
    listed,
    only_column,
    places_of,
)
from latentmetric.io.columns import ColumnFile, ColumnRows, open_columns
from latentmetric.io.files import check_exists, readable
from latentmetric.io.rows import RowFile, first_not_finite
from latentmetric.io.text import LABEL_NAMES, TextFile, as_labels, open_text

FEATURE_NAMES = ("x", "features", "embeddings", "data")
"""What people call the array of features, in lower case."""

SUFFIXES = (*arrays.SUFFIXES, *columns.SUFFIXES, *text.SUFFIXES)


@dataclass(frozen=True)
class Table:
    """Features, and labels where there are any."""

    rows: Any
    """An array of shape (n_rows, n_features), or a ``RowFile`` of that shape."""
    labels: np.ndarray[Any, Any] | None = None
    feature_names: list[str] | None = None
    """Of the columns, where the file names them."""
    told: list[str] = field(default_factory=list)
    """What was taken from where, one line each."""


def open_table(
    features: str | Path, labels: str | Path | None = None, choice: Choice | None = None
) -> Table:
    """Open a file of features, with its labels in a column, an array or a file of their own.

    Parameters
    ----------
    features : path
        .csv, .tsv, .txt, .npy, .npz, .h5, .zarr, .parquet, .arrow or .feather.
    labels : path, default=None
        Any of these; None takes the labels from the first file.
    choice : Choice, default=None
        Which column, array or key is which, where it is not to be found out.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentmetric.io import open_table
    >>> path = Path(tempfile.mkdtemp()) / "cats.csv"
    >>> _ = path.write_text("weight,length,label\\n4.1,46,cat\\n9.5,60,dog\\n")
    >>> table = open_table(path)
    >>> table.rows.tolist(), table.labels.tolist(), table.feature_names
    ([[4.1, 46.0], [9.5, 60.0]], ['cat', 'dog'], ['weight', 'length'])
    """
    path, own, choice = Path(features), labels is None, choice or Choice()
    check_exists(path, SUFFIXES)
    with readable(path):
        if path.suffix in arrays.SUFFIXES:
            table = _from_arrays(open_arrays(path), choice, own)
        elif path.suffix in columns.SUFFIXES:
            table = _from_columns(open_columns(path), choice, own)
        else:
            table = _from_text(open_text(path, choice.header, choice.encoding), choice, own)
    if labels is not None:
        table = _with_labels(table, path, Path(labels), choice)
    _check(table, path)
    return table


def _from_arrays(file: ArrayFile, choice: Choice, with_labels: bool) -> Table:
    if choice.ignore:
        raise ValueError(f"{file.path} has arrays, not columns: --ignore has no meaning for it")
    key = _features_key(file) if choice.key is None else file.find(choice.key)
    rows = file.rows(key)
    told = f"features: {file.named(key)}, {' × '.join(f'{size:,}' for size in file.shapes[key])}"
    others = [name for name, shape in file.shapes.items() if name != key and len(shape) > 1]
    told += f" (--key chooses another: {listed(others)})" if others else ""
    with_labels = with_labels and choice.labelled
    label = _label_key(file, key, choice) if with_labels else None
    if label is None:
        if with_labels:
            raise ValueError(
                f"{file.path} holds no labels beside {key or 'its array'} (no other array has "
                f"{len(rows)} values); give a file of labels, or name an array with --label"
            )
        return Table(_Checked(rows, file.path), told=[told])
    found = f"labels: {file.named(label)}, the only array of {len(rows):,} values"
    if len(_of_length(file, len(rows))) > 1:
        found = f"labels: {file.named(label)} (--label chooses another)"
    labels = _as_stored(file.values(label), file.named(label))
    return Table(_Checked(rows, file.path), labels, told=[told, found])


def _features_key(file: ArrayFile) -> str:
    tables = [name for name, shape in file.shapes.items() if len(shape) >= 2]
    if len(file.shapes) == 1 or len(tables) == 1:
        return file.only_table()
    known = [name for name in tables if name.lower() in FEATURE_NAMES]
    if len(known) == 1:
        return known[0]
    raise ValueError(f"{file.path} holds {file.listed()}: choose the features with --key")


def _label_key(file: ArrayFile, key: str, choice: Choice) -> str | None:
    if choice.label is not None:
        return file.find(choice.label)
    n_rows = file.shapes[key][0]
    fitting = [name for name in _of_length(file, n_rows) if name != key]
    if len(fitting) > 1:
        known = [name for name in fitting if name.lower() in LABEL_NAMES]
        if len(known) != 1:
            raise ValueError(
                f"{file.path} holds {listed(fitting)}, each with {n_rows} values: choose the "
                "labels with --label"
            )
        fitting = known
    return fitting[0] if fitting else None


def _of_length(file: ArrayFile, n_rows: int) -> list[str]:
    """Arrays that may be labels of so many rows."""
    return [name for name, shape in file.shapes.items() if shape in ((n_rows,), (n_rows, 1))]


def _from_columns(file: ColumnFile, choice: Choice, with_labels: bool) -> Table:
    kinds = [file.kind(name) for name in file.names]
    texts = [place for place, kind in enumerate(kinds) if kind == "text"]
    label, ignored = label_and_ignored(file.path, file.names, texts, choice, with_labels)
    with_labels = with_labels and choice.labelled
    labels = None if label is None or not with_labels else _column(file, file.names[label])
    left = [place for place in range(len(kinds)) if place not in ignored and place != label]
    if choice.key is not None:
        features = [find_column(file.names, choice.key, file.path)]
    elif choice.names is not None:
        features = places_of(choice.names, file.names, file.path)
    else:
        features = [place for place in left if kinds[place] == "number"]
        nested = [place for place in left if kinds[place] in ("list", "nested")]
        if not features and [kinds[place] for place in nested] == ["list"]:
            features, nested = nested, []
        for place in nested:
            name = file.names[place]
            held = file.schema.field(name).type
            take = f"take it alone with --key {name}, or " if kinds[place] == "list" else ""
            raise ValueError(
                f"{file.path}: column {name!r} is nested ({held}); {take}leave it out with "
                f"--ignore {name}"
            )
    names = [file.names[place] for place in features]
    if not names:
        raise ValueError(
            f"{file.path} has no column of numbers for the features: {listed(file.names)}"
        )
    rows = ColumnRows(file, names)
    of_lists = kinds[features[0]] == "list"
    out = [file.names[place] for place in left if place not in features]
    told = _told(file.path, names, file.names, label, out, with_labels)
    return Table(
        _Checked(rows, file.path, None if of_lists else names),
        labels,
        None if of_lists else names,
        told,
    )


def _from_text(file: TextFile, choice: Choice, with_labels: bool) -> Table:
    if choice.key is not None:
        raise ValueError(f"{file.path} has columns, not arrays: --key has no meaning for it")
    texts = [place for place in range(len(file.names)) if not file.is_number(place)]
    label, ignored = label_and_ignored(file.path, file.names, texts, choice, with_labels)
    out: list[str] = []
    if file.has_header and file.names[0] in ("column 1", "Unnamed: 0") and label != 0:
        ignored.add(0)
        out = ["the first column, which has no name"]
    features = [p for p in range(len(file.names)) if p not in ignored and p != label]
    if choice.names is not None and file.has_header:
        features = places_of(choice.names, file.names, file.path)
    if not features:
        raise ValueError(f"{file.path} has no columns for features: {listed(file.names)}")
    with_labels = with_labels and choice.labelled
    rows, found = file.read(features, label if with_labels else None)
    names = [file.names[place] for place in features]
    told = _told(file.path, names, file.names, label, out, with_labels)
    labels = None if found is None else as_labels(found)
    return Table(rows, labels, names if file.has_header else None, told)


def _with_labels(table: Table, features: Path, path: Path, choice: Choice) -> Table:
    """The table with labels from a file of their own."""
    check_exists(path, SUFFIXES)
    with readable(path):
        labels, told = _labels_of(path, choice, len(table.rows))
    if len(labels) != len(table.rows):
        raise ValueError(
            f"{features} has {len(table.rows):,} rows, but {path} has {len(labels):,} labels"
        )
    return Table(table.rows, labels, table.feature_names, [*table.told, *told])


def _labels_of(path: Path, choice: Choice, n_rows: int) -> tuple[np.ndarray[Any, Any], list[str]]:
    if path.suffix in arrays.SUFFIXES:
        file = open_arrays(path)
        name = choice.label
        if name is None:
            fitting = _of_length(file, n_rows)
            if len(fitting) != 1 and len(file.shapes) != 1:
                raise ValueError(f"{path} holds {file.listed()}: choose the labels with --label")
            name = fitting[0] if fitting else next(iter(file.shapes))
        values = file.values(file.find(name))
        return _as_stored(values, file.named(name)), [f"labels: {file.named(name)}"]
    if path.suffix in columns.SUFFIXES:
        held = open_columns(path)
        place = only_column(held.names, choice, path)
        return _column(held, held.names[place]), [f"labels: column {held.names[place]!r} of {path}"]
    read = open_text(path, choice.header, choice.encoding)
    place = only_column(read.names, choice, path)
    texts = read.read([], place)[1]
    assert texts is not None
    told = [f"labels: {read.names[place]!r} of {path}" if read.has_header else f"labels: {path}"]
    if len(texts) == n_rows + 1 and not read.has_header and choice.header is None:
        told = [f"{told[0]}, the first line, {str(texts[0])!r}, taken for a header"]
        texts = texts[1:]
    return as_labels(texts), told


def _column(file: ColumnFile, name: str) -> np.ndarray[Any, Any]:
    return _as_stored(file.labels(name), f"column {name!r} of {file.path}")


def _as_stored(labels: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Labels in one dimension and of a kind that a model file holds."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"{name} has the shape {labels.shape}; labels have one dimension")
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    if labels.dtype.kind not in "iubUf" or labels.dtype.char == "g":
        raise ValueError(f"{name} holds {labels.dtype}, not labels; turn them into strings")
    return labels


def _check(table: Table, path: Path) -> None:
    n_rows, n_features = table.rows.shape
    if not n_rows or not n_features:
        raise ValueError(f"{path} holds {n_rows} rows of {n_features} features")
    if table.labels is not None and table.labels.dtype.kind == "f":
        missing = ~np.isfinite(table.labels)
        if missing.any():
            row = int(missing.argmax())
            raise ValueError(f"row {row} (counted from 0) has the label {table.labels[row]}")


class _Checked(RowFile):
    """Rows of a file, refused with their place where they hold what is not a finite number."""

    def __init__(self, rows: RowFile, path: Path, names: list[str] | None = None) -> None:
        self._rows, self._path, self._names = rows, path, names
        self.shape, self.dtype = rows.shape, rows.dtype

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        with readable(self._path):
            block = self._rows[slice(start, stop)]
        bad = first_not_finite(block)
        if bad is not None:
            column = repr(self._names[bad[1]]) if self._names else f"{bad[1]} (from 0 as well)"
            raise ValueError(
                f"{self._path}, row {start + bad[0]} (counted from 0), column {column}: "
                f"{block[bad]} is not a finite number; fill it or leave the row out"
            )
        return block


def _told(
    path: Path,
    features: list[str],
    names: list[str],
    label: int | None,
    out: list[str],
    with_labels: bool,
) -> list[str]:
    what = f"column {features[0]!r}"
    if len(features) > 1:
        what = f"{len(features)} columns, {features[0]!r} to {features[-1]!r}"
    told = [f"features: {what} of {path} (--ignore leaves one out)"]
    if label is not None:
        if with_labels:
            told.append(f"labels: column {names[label]!r} of {path} (--label chooses another)")
        else:
            out = [names[label], *out]
    if out:
        told.append(f"left out: {listed(out)}")
    return told
