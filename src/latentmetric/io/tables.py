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
    find_label,
    listed,
    warn_of_ids,
)
from latentmetric.io.columns import ColumnFile
from latentmetric.io.formats import open_file
from latentmetric.io.rows import RowFile, readable
from latentmetric.io.text import TextFile, number_in


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
    key: str | None = None
    """The name of the array, or column of lists, with the features, if it is one of several."""
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
    file = open_file(Path(path), Choice(key=key))
    names = columns or ([file.key] if file.key else [key] if key else [])
    chosen = [find_column(file, name) for name in names]
    chosen = chosen or [i for i, kind in enumerate(file.kinds) if kind == "number"]
    if not chosen:
        raise ValueError(
            f"{path} has the columns {listed(file.names)}, none of them numeric; choose one of "
            "lists with --key (or key=)"
        )
    return file.rows(chosen)


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
        table = _from_columns(file, choice, labels is None)
    if labels is not None:
        table = _with_labels(table, name, Path(labels), choice)
    n_rows, n_features = table.rows.shape
    if not n_rows or not n_features:
        raise ValueError(f"{name} holds {n_rows} rows of {n_features} features")
    return table


def _from_columns(file: ColumnFile, choice: Choice, own_labels: bool) -> Table:
    roles = assign_roles(file, choice, own_labels)
    label = roles.label if own_labels and choice.labelled else None
    numbers = [i for i in roles.features if i not in roles.words]
    is_list = file.kinds[roles.features[0]] == "list"
    names: list[str] | None = [file.names[i] for i in roles.features]
    rows: Any = None
    if numbers:
        rows = file.features(numbers, choice.missing)
        names = names if roles.words else getattr(rows, "feature_names", names)
    if roles.words:  # rows of objects
        held = iter([] if rows is None else np.asarray(rows, dtype=object).T)
        columns = [
            file.ids(i).astype(str).astype(object) if i in roles.words else next(held)
            for i in roles.features
        ]
        rows = np.array(columns).T
    return Table(
        rows,
        None if label is None else file.labels(label),
        names if file.has_names else None,
        _notes(file, roles, choice, label is not None),
        None if roles.id is None else file.ids(roles.id),
        None if roles.id is None else file.names[roles.id],
        None if label is None or not file.has_names else file.names[label],
        file.names[roles.features[0]] if is_list and len(file.names) > 1 else None,
        [k for k, i in enumerate(roles.features) if i in roles.words],
    )


def _notes(file: ColumnFile, roles: Roles, choice: Choice, labels_read: bool) -> list[str]:
    """What each column was taken for, with the option that chooses another."""
    features = [file.names[i] for i in roles.features]
    what, remedy = f"{len(features)} columns, {features[0]!r} to {features[-1]!r},", ""
    if len(features) == 1:
        what = f"column {features[0]!r}, {file.described[roles.features[0]]},"
    if choice.names is None:
        is_one = file.key or file.kinds[roles.features[0]] == "list"
        remedy = " (--key chooses another)" if is_one else " (--ignore leaves one out)"
    notes = [f"features: {what} of {file.name}{remedy}"]
    out = [*roles.left_out]
    if roles.label is not None and labels_read:
        label = file.names[roles.label]
        notes.append(f"labels: column {label!r} of {file.name} (--label chooses another)")
    elif roles.label is not None:
        out = [roles.label, *out]
    if roles.id is not None:
        notes.append(f"id: column {file.names[roles.id]!r} of {file.name}")
    if out:
        notes.append(f"left out: {listed([file.names[i] for i in out])}")
    if choice.names is None and choice.key is None:
        notes += warn_of_ids([file.names[i] for i in roles.features if i not in roles.words])
    return notes


def _with_labels(table: Table, features: str, path: Path, choice: Choice) -> Table:
    """The table with labels from a file of their own."""
    n_rows, hint = len(table.rows), ""
    choice = replace(choice, names=None, labelled=True, usual={})
    file = open_file(path, choice)
    with readable(str(path)):
        if isinstance(file, TextFile) and choice.header is None:
            hint = "; is its first line a header or not? Say --header or --no-header"
            if len(file.names) == 1:
                file = _one_a_line(path, choice, n_rows)
        column: Any = find_label(file, choice, True, set())
        labels = file.labels(column)
        where = f"column {file.names[column]!r} of {path}" if file.has_names else str(path)
    if len(labels) != n_rows:
        raise ValueError(
            f"{features} has {n_rows:,} rows, but {path} has {len(labels):,} labels{hint}"
        )
    return replace(table, labels=labels, notes=[*table.notes, f"labels: {where}"])


def _one_a_line(path: Path, choice: Choice, n_rows: int) -> ColumnFile:
    """A file with one label a line.

    Its first line is a header if there is one line more than there are rows, unless it is a number
    or occurs again, as labels do.
    """
    lines = open_file(path, replace(choice, header=False))
    first, *others = map(str, lines.values(0).tolist())
    has_names = len(others) == n_rows and first not in others and number_in(first) is None
    return open_file(path, replace(choice, header=True)) if has_names else lines
