"""Features with their labels, out of the files people have: which column or array is which.

Notes say what was taken, with the option that chooses another. Arrays and columns in binary files
stay there until their rows are needed; text is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from latentmetric.io.choosing import (
    Choice,
    Roles,
    assign_roles,
    find_column,
    is_label_name,
    listed,
    warn_of_ids,
)
from latentmetric.io.formats import ArrayFile, ColumnFile, open_file
from latentmetric.io.rows import RowFile, SlicedRows, advice_on, readable
from latentmetric.io.text import TextFile, as_labels, is_value
from latentmetric.validation.labels import text_array
from latentmetric.validation.rows import first_not_finite

FEATURE_NAMES = ("x", "features", "embeddings", "data")
"""What people call the array of features, in lower case."""


@dataclass(frozen=True)
class Table:
    """Features, and labels where there are any."""

    rows: Any
    """An array of shape (n_rows, n_features), or a ``RowFile`` of that shape."""
    labels: np.ndarray[Any, Any] | None = None
    """The label of each row, where there are labels."""
    feature_names: list[str] | None = None
    """Of the columns, where the file names them."""
    notes: list[str] = field(default_factory=list)
    """What was taken from where, one line each."""
    ids: np.ndarray[Any, Any] | None = None
    """The id of each row, if requested: whole numbers or text."""
    id_name: str | None = None
    """The name of the id in the file."""
    label_name: str | None = None
    """The name of the labels in the file, if it has them."""
    words: list[int] = field(default_factory=list)
    """The indices of features that are words; rows are objects if there are any."""


def open_rows(
    path: str | Path, key: str | None = None, columns: list[str] | None = None
) -> RowFile:
    """Open a table of numbers without reading it.

    Parameters
    ----------
    path : path
        .npy, .npz, .h5, .hdf5, .zarr, .parquet, .arrow or .feather; or text, which is read.
    key : str, default=None
        The array of an .npz, the data set of an .h5, the array of a .zarr group; None takes the
        only one with two dimensions or more, or the one called x, features, embeddings or data.
        Dimensions after the first are taken as one.
    columns : list of str, default=None
        The columns of a .parquet, .arrow, .feather or text file: several of numbers or Booleans, or
        one of lists of equal length. None takes those that hold numbers or Booleans.

    Returns
    -------
    RowFile

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from latentmetric.io import open_rows
    >>> path = tempfile.mktemp(suffix=".npy")
    >>> np.save(path, np.arange(6.0).reshape(3, 2))
    >>> open_rows(path)[1:]
    array([[2., 3.],
           [4., 5.]])
    """
    file = open_file(Path(path), Choice())
    if isinstance(file, ArrayFile):
        return file.rows(_features_key(file, Choice()) if key is None else key)
    chosen = [find_column(file, name) for name in columns or ()]
    chosen = chosen or [i for i, kind in enumerate(file.kinds) if kind == "number"]
    if not chosen:
        raise ValueError(f"{path} has the columns {listed(file.names)}, none of them numeric")
    rows = file.numbers(chosen)
    return rows if isinstance(rows, RowFile) else SlicedRows(rows)


def open_table(
    features: str | Path | BinaryIO,
    labels: str | Path | None = None,
    choice: Choice | None = None,
) -> Table:
    """Open a file of features, with its labels in a column, an array or a file of their own.

    Parameters
    ----------
    features : path or binary file
        A path that ends in .csv, .tsv or .txt, also with .gz after it, .npy, .npz, .h5, .hdf5,
        .zarr, .parquet, .arrow or .feather. Or an open binary file with a table in text, such as
        ``sys.stdin.buffer``.
    labels : path, default=None
        Any such path; None takes the labels from the first file.
    choice : Choice, default=None
        Which column, array or key is which; what is not given is detected.

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
    choice = choice or Choice()
    if isinstance(features, str | Path):
        name = str(features)
        file = open_file(Path(features), choice)
    else:
        name = str(getattr(features, "name", "<stream>"))
        with readable(name):
            file = TextFile(features.read(), choice, name)
    with readable(name):
        if isinstance(file, ArrayFile):
            table = _from_arrays(file, choice._settled([*file.shapes]), labels is None)
        else:
            names = file.names if file.has_names else []
            table = _from_columns(file, choice._settled(names), labels is None)
    if labels is not None:
        table = _with_labels(table, name, Path(labels), choice)
    n_rows, n_features = table.rows.shape
    if not n_rows or not n_features:
        raise ValueError(f"{name} holds {n_rows} rows of {n_features} features")
    return table


def _from_columns(file: ColumnFile | TextFile, choice: Choice, own_labels: bool) -> Table:
    if choice.key is not None and isinstance(file, TextFile):
        raise ValueError(f"{file.name} has columns, not arrays: --key has no meaning for it")
    roles = assign_roles(file, choice, own_labels)
    label = roles.label if own_labels and choice.labelled else None
    numbers = [i for i in roles.features if i not in roles.words]
    rows = file.numbers(numbers, choice.missing) if numbers else None
    names: list[str] | None = [file.names[i] for i in roles.features]
    if isinstance(rows, RowFile):
        names = names if roles.words else rows.feature_names
        rows = _CheckedRows(rows, file.name, choice)
    if roles.words:
        rows = _with_words(file, rows, roles)
    return Table(
        rows,
        None if label is None else _as_stored(file.labels(label), _column_of(file, label)),
        names if file.has_names else None,
        _notes(file, roles, choice, label is not None),
        None if roles.id is None else file.ids(roles.id),
        None if roles.id is None else file.names[roles.id],
        None if label is None or not file.has_names else file.names[label],
        [k for k, i in enumerate(roles.features) if i in roles.words],
    )


def _column_of(file: ColumnFile | TextFile, column: int) -> str:
    return f"column {file.names[column]!r} of {file.name}"


def _with_words(file: ColumnFile | TextFile, numbers: Any, roles: Roles) -> np.ndarray[Any, Any]:
    """Rows of objects: columns of numbers and of words, in the order of the features."""
    held = iter([] if numbers is None else np.asarray(numbers, dtype=object).T)
    words = {i: file.ids(i).astype(str).astype(object) for i in roles.words}
    return np.array([words[i] if i in words else next(held) for i in roles.features]).T


def _notes(
    file: ColumnFile | TextFile, roles: Roles, choice: Choice, labels_read: bool
) -> list[str]:
    features = [file.names[i] for i in roles.features]
    what = f"column {features[0]!r}"
    if len(features) > 1:
        what = f"{len(features)} columns, {features[0]!r} to {features[-1]!r}"
    can_change = "" if choice.names else " (--ignore leaves one out)"
    notes = [f"features: {what} of {file.name}{can_change}"]
    out = [file.names[i] for i in roles.left_out]
    if file.index_column in roles.left_out and isinstance(file, TextFile):
        out[roles.left_out.index(0)] = "the first column, which has no name"
    if roles.label is not None and labels_read:
        notes.append(f"labels: {_column_of(file, roles.label)} (--label chooses another)")
    elif roles.label is not None:
        out = [file.names[roles.label], *out]
    if roles.id is not None:
        notes.append(f"id: {_column_of(file, roles.id)}")
    if out:
        notes.append(f"left out: {listed(out)}")
    if choice.names is None and choice.key is None:
        notes += warn_of_ids([file.names[i] for i in roles.features if i not in roles.words])
    return notes


def _from_arrays(file: ArrayFile, choice: Choice, own_labels: bool) -> Table:
    for given, option in ((choice.ignore, "--ignore"), (choice.categories, "--one-hot")):
        if given:
            raise ValueError(f"{file.path} has arrays, not columns: {option} has no meaning for it")
    key = _features_key(file, choice) if choice.key is None else file.find(choice.key)
    rows = _CheckedRows(file.rows(key), str(file.path), choice)
    others = [name for name, shape in file.shapes.items() if len(shape) > 1]
    others = [name for name in others if name not in (key, choice.id)]
    note = f"features: {file.named(key)}, {' × '.join(f'{size:,}' for size in file.shapes[key])}"
    notes = [note + (f" (--key chooses another: {listed(others)})" if others else "")]
    ids = labels = label = None
    if choice.id is not None:
        ids = _ids(file, choice.id, len(rows))
        notes.append(f"id: {file.named(choice.id)}")
    if own_labels and choice.labelled:
        label = _label_key(file, key, choice)
        labels = _as_stored(file.values(label), file.named(label))
        notes.append(f"labels: {file.named(label)} (--label chooses another)")
    return Table(rows, labels, None, notes, ids, choice.id, label)


def _only(*choices: list[str]) -> str | None:
    """The name in the first of some lists that has just one."""
    return next((names[0] for names in choices if len(names) == 1), None)


def _features_key(file: ArrayFile, choice: Choice) -> str:
    tables = [name for name, shape in file.shapes.items() if len(shape) >= 2 and name != choice.id]
    found = _only(tables, [*file.shapes], [n for n in tables if n.lower() in FEATURE_NAMES])
    if found is None:
        raise ValueError(
            f"{file.path} holds {file.listed()}: choose the features with --key (or key=)"
        )
    return found


def _label_key(file: ArrayFile, key: str, choice: Choice) -> str:
    if choice.label is not None:
        return file.find(choice.label)
    n_rows = file.shapes[key][0]
    fitting = [name for name in _of_length(file, n_rows) if name not in (key, choice.id)]
    found = _only(fitting, [name for name in fitting if is_label_name(name)])
    if found is not None:
        return found
    held = f"{listed(fitting)}, each" if fitting else f"no labels beside {key or 'its array'}, none"
    raise ValueError(
        f"{file.path} holds {held} with {n_rows} values: choose the labels with --label, or give "
        "a file of labels"
    )


def _of_length(file: ArrayFile, n_rows: int) -> list[str]:
    """Arrays that may be the labels of ``n_rows`` rows."""
    return [name for name, shape in file.shapes.items() if shape in ((n_rows,), (n_rows, 1))]


def _ids(file: ArrayFile, name: str, n_rows: int) -> np.ndarray[Any, Any]:
    values = file.values(name)
    if values.shape not in ((n_rows,), (n_rows, 1)):
        raise ValueError(
            f"{file.named(name)} has the shape {values.shape}, but the id is one value for each "
            f"of {n_rows} rows"
        )
    values = values.reshape(n_rows)
    return values if values.dtype.kind in "iuUO" else values.astype(str)


def _with_labels(table: Table, features: str, path: Path, choice: Choice) -> Table:
    """The table with labels from a file of their own."""
    n_rows = len(table.rows)
    file, hint = open_file(path, replace(choice, names=None)), ""
    with readable(str(path)):
        if isinstance(file, ArrayFile):
            fitting = _of_length(file, n_rows) or [*file.shapes]
            if choice.label is None and len(fitting) != 1:
                raise ValueError(f"{path} holds {file.listed()}: choose the labels with --label")
            name = choice.label or fitting[0]
            labels, where = file.values(name), file.named(name)
        else:
            column = _label_column(file, choice)
            labels = file.labels(column)
            where = _column_of(file, column) if file.has_names else str(path)
            if isinstance(file, TextFile) and choice.header is None:
                hint = "; is its first line a header or not? Say --header or --no-header"
                if len(file.names) == 1:
                    labels, where = _labels_by_line(file, n_rows)
        labels = _as_stored(labels, where)
    if len(labels) != n_rows:
        raise ValueError(
            f"{features} has {n_rows:,} rows, but {path} has {len(labels):,} labels{hint}"
        )
    return replace(table, labels=labels, notes=[*table.notes, f"labels: {where}"])


def _label_column(file: ColumnFile | TextFile, choice: Choice) -> int:
    """The index of the labels in a file of their own."""
    if choice.label is not None:
        return find_column(file, choice.label)
    known = [i for i, name in enumerate(file.names) if is_label_name(name)]
    if len(file.names) == 1 or len(known) == 1:
        return known[0] if known else 0
    raise ValueError(
        f"{file.name} has {len(file.names)} columns ({listed(file.names)}): name one with --label"
    )


def _labels_by_line(file: TextFile, n_rows: int) -> tuple[np.ndarray[Any, Any], str]:
    """Labels of a file with one a line, and where they are.

    The first line is a header if there is one line more than there are rows, unless it is a number
    or occurs again, as labels do.
    """
    texts = file.texts(0).tolist()
    first, *others = [file.first_line[0], *texts] if file.has_names else texts
    if len(others) == n_rows and first not in others and not is_value(first):
        return as_labels(
            text_array(others, file.name)
        ), f"{file.name}, whose first line, {first!r}, is a header"
    return as_labels(text_array([first, *others], file.name)), file.name


def _as_stored(labels: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Labels in one dimension, all there, and of a kind that a model file holds."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"{name} has the shape {labels.shape}; labels have one dimension")
    if labels.dtype.kind not in "iubUfO" or labels.dtype.char == "g":
        raise ValueError(f"{name} holds {labels.dtype}, not labels; turn them into strings")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int((~np.isfinite(labels)).argmax())
        raise ValueError(f"{name}: row {row} (counted from 0) has the label {labels[row]}")
    return labels


class _CheckedRows(RowFile):
    """Rows of a file; a value that is not finite is refused with its row and column."""

    def __init__(self, rows: RowFile, name: str, choice: Choice) -> None:
        self._rows, self._name, self._choice = rows, name, choice
        self.shape, self.dtype, self.feature_names = rows.shape, rows.dtype, rows.feature_names

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        block = self._rows[slice(start, stop)]
        bad = first_not_finite(block, self._choice.missing)
        if bad is not None:
            names = self.feature_names
            column = repr(names[bad[1]]) if names else f"{bad[1]} (from 0 as well)"
            raise ValueError(
                f"{self._name}, row {start + bad[0]} (counted from 0), column {column}: "
                f"{block[bad]} is not a finite number; "
                f"{advice_on(block[bad], self._choice.for_model)}"
            )
        return block
