"""Features with their labels, out of the files people have: which column or array is which.

Notes say what was taken, with the option that chooses another. Arrays and columns in binary files
stay there until their rows are needed; text is read.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from latentmetric.io.arrays import ArrayFile
from latentmetric.io.cells import advice_on
from latentmetric.io.choosing import (
    Choice,
    ColumnsOfFile,
    Roles,
    assign_roles,
    listed,
    only_column,
)
from latentmetric.io.columns import ColumnFile, ColumnRows
from latentmetric.io.files import Source, SourceRows
from latentmetric.io.formats import STREAM, Format, format_of
from latentmetric.io.headers import LABEL_NAMES, is_header_of_labels
from latentmetric.io.identifiers import doubt_about
from latentmetric.io.rows import RowFile
from latentmetric.io.text import TextFile
from latentmetric.io.typed import as_ids, as_labels
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
    """The features that are words, by their places; rows are objects if there are any."""


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
    with _as_file(features) as (path, form, name):
        source = Source(path, form, name)
        with source.opened():
            file = form.open(path, choice, name)
            if isinstance(file, ArrayFile):
                table = _from_arrays(file, choice.settled(list(file.shapes)), labels is None)
            elif isinstance(file, ColumnFile):
                table = _from_columns(file, choice.settled(file.names), labels is None)
            else:
                names = file.names if file.has_header else []
                table = _from_text(file, choice.settled(names), labels is None)
        if isinstance(table.rows, RowFile):
            rows = _Checked(SourceRows(table.rows, source), path, choice)
            table = replace(table, rows=rows)
        if labels is not None:
            table = _with_labels(table, name, Path(labels), choice)
        _check(table, name)
        return table


@contextmanager
def _as_file(features: str | Path | BinaryIO) -> Iterator[tuple[Path, Format, str]]:
    """A path with its format and its name for messages; a stream is copied to a file first.

    Text is read more than once: a stream could not be.
    """
    if isinstance(features, str | Path):
        path = Path(features)
        yield path, format_of(path), str(path)
        return
    name = str(getattr(features, "name", "<stream>"))
    # Windows deletes no file that is open, and a failed read may still hold it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"stream{STREAM.suffix}"
        with path.open("wb") as copy:
            shutil.copyfileobj(features, copy)
        yield path, STREAM, name


def _from_arrays(file: ArrayFile, choice: Choice, own_labels: bool) -> Table:
    if choice.ignore:
        raise ValueError(f"{file.path} has arrays, not columns: --ignore has no meaning for it")
    if choice.categories:
        raise ValueError(f"{file.path} has arrays, not columns: --one-hot has no meaning for it")
    key = _features_key(file, choice) if choice.key is None else file.find(choice.key)
    rows = file.rows(key)
    note = f"features: {file.named(key)}, {' × '.join(f'{size:,}' for size in file.shapes[key])}"
    others = [
        name
        for name, shape in file.shapes.items()
        if name not in (key, choice.id) and len(shape) > 1
    ]
    note += f" (--key chooses another: {listed(others)})" if others else ""
    table = Table(rows, notes=[note])
    if choice.id is not None:
        ids = _ids(file, choice.id, len(rows))
        notes = [*table.notes, f"id: {file.named(choice.id)}"]
        table = replace(table, notes=notes, ids=ids, id_name=choice.id)
    if not own_labels or not choice.labelled:
        return table
    label = _label_key(file, key, choice)
    if label is None:
        why = f"no other array has {len(rows)} values"
        if file.unopened:
            why = f"it holds {file.listed()}"
        raise ValueError(
            f"{file.path} holds no labels beside {key or 'its array'} ({why}); give a file of "
            "labels, or name an array with --label"
        )
    found = f"labels: {file.named(label)}, the only array of {len(rows):,} values"
    if len(_of_length(file, len(rows))) > 1:
        found = f"labels: {file.named(label)} (--label chooses another)"
    labels = _as_stored(file.values(label), file.named(label))
    return replace(table, labels=labels, label_name=label, notes=[*table.notes, found])


def _ids(file: ArrayFile, name: str, n_rows: int) -> np.ndarray[Any, Any]:
    values = file.values(file.find(name))
    if values.shape not in ((n_rows,), (n_rows, 1)):
        raise ValueError(
            f"{file.named(name)} has the shape {values.shape}, but the id is one value for each "
            f"of {n_rows} rows"
        )
    values = values.reshape(n_rows)
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    return values if values.dtype.kind in "iuUO" else values.astype(str)


def _features_key(file: ArrayFile, choice: Choice) -> str:
    tables = [name for name, shape in file.shapes.items() if len(shape) >= 2 and name != choice.id]
    if len(tables) == 1:
        return tables[0]
    if len(file.shapes) == 1:
        return file.only_table()
    known = [name for name in tables if name.lower() in FEATURE_NAMES]
    if len(known) == 1:
        return known[0]
    raise ValueError(f"{file.path} holds {file.listed()}: choose the features with --key")


def _label_key(file: ArrayFile, key: str, choice: Choice) -> str | None:
    if choice.label is not None:
        return file.find(choice.label)
    n_rows = file.shapes[key][0]
    fitting = [name for name in _of_length(file, n_rows) if name not in (key, choice.id)]
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
    """Arrays that may be the labels of ``n_rows`` rows."""
    return [name for name, shape in file.shapes.items() if shape in ((n_rows,), (n_rows, 1))]


def _from_columns(file: ColumnFile, choice: Choice, own_labels: bool) -> Table:
    columns = ColumnsOfFile(
        file.path, file.names, True, [file.kind(name) for name in file.names],
        lambda place: file.described(file.names[place]),
    )  # fmt: skip
    roles = assign_roles(columns, choice, own_labels)
    needed = own_labels and choice.labelled
    labels = None
    if roles.label is not None and needed:
        labels = _column(file, file.names[roles.label])
    numbers = [file.names[place] for place in roles.features if place not in roles.words]
    rows = ColumnRows(file, numbers, choice.missing) if numbers else None
    id_name = None if roles.id is None else file.names[roles.id]
    table = Table(
        rows,
        labels,
        None if rows is None else rows.feature_names,
        _notes(columns, roles, choice, needed),
        None if id_name is None else file.ids(id_name),
        id_name,
        None if labels is None or roles.label is None else file.names[roles.label],
    )
    if not roles.words:
        return table
    texts = [[str(word) for word in file.ids(file.names[place])] for place in roles.words]
    held = None if rows is None else np.asarray(_Checked(rows, file.path, choice))
    return _with_words(table, held, texts, roles, file.names)


def _from_text(file: TextFile, choice: Choice, own_labels: bool) -> Table:
    if choice.key is not None:
        raise ValueError(f"{file.name} has columns, not arrays: --key has no meaning for it")
    kinds = [file.kind(place) for place in range(len(file.names))]
    columns = ColumnsOfFile(
        file.name, file.names, file.has_header, kinds, file.described, file.has_index
    )
    roles = assign_roles(columns, choice, own_labels)
    needed = own_labels and choice.labelled
    label = roles.label if needed else None
    numbers = [place for place in roles.features if place not in roles.words]
    others = [place for place in (label, roles.id) if place is not None]
    rows, texts = file.read(numbers, [*others, *roles.words])
    words, texts = texts[len(others) :], texts[: len(others)]
    file.check_finite(rows, numbers)
    ids = None if roles.id is None else as_ids(texts.pop())
    labels = None
    if label is not None:
        file.check_labels(texts[0], label)
        labels = as_labels(texts[0])
    names = [file.names[place] for place in roles.features] if file.has_header else None
    id_name = None if roles.id is None else file.names[roles.id]
    label_name = file.names[label] if label is not None and file.has_header else None
    notes = _notes(columns, roles, choice, needed)
    table = Table(rows, labels, names, notes, ids, id_name, label_name)
    if not roles.words:
        return table
    return _with_words(table, rows, [column.tolist() for column in words], roles, file.names)


def _with_words(
    table: Table, numbers: Any, words: list[list[str]], roles: Roles, names: list[str]
) -> Table:
    """Rows of objects: columns of numbers and of words, in the order of the features."""
    places = {place: number for number, place in enumerate(roles.features)}
    rows = np.empty((len(words[0]), len(places)), dtype=object)
    held = [places[place] for place in roles.features if place not in roles.words]
    if held:
        rows[:, held] = numbers
    for place, column in zip(roles.words, words, strict=True):
        rows[:, places[place]] = column
    return replace(
        table,
        rows=rows,
        feature_names=[names[place] for place in roles.features],
        words=[places[place] for place in roles.words],
    )


def _with_labels(table: Table, features: str, path: Path, choice: Choice) -> Table:
    """The table with labels from a file of their own."""
    form = format_of(path)
    with Source(path, form, str(path)).opened():
        labels, notes = _labels_of(path, form, choice, len(table.rows))
    if len(labels) != len(table.rows):
        is_detected = form.kind == "text" and choice.header is None
        hint = {
            1: "; if its first line is not a label, add --header",
            -1: "; if its first line is a label, add --no-header",
        }.get(len(labels) - len(table.rows), "")
        raise ValueError(
            f"{features} has {len(table.rows):,} rows, but {path} has {len(labels):,} labels"
            f"{hint if is_detected else ''}"
        )
    return replace(table, labels=labels, notes=[*table.notes, *notes])


def _labels_of(
    path: Path, form: Format, choice: Choice, n_rows: int
) -> tuple[np.ndarray[Any, Any], list[str]]:
    file = _open_labels(path, form, choice)
    if isinstance(file, ArrayFile):
        name = choice.label
        if name is None:
            fitting = _of_length(file, n_rows)
            if len(fitting) != 1 and len(file.shapes) != 1:
                raise ValueError(f"{path} holds {file.listed()}: choose the labels with --label")
            name = fitting[0] if fitting else next(iter(file.shapes))
        values = file.values(file.find(name))
        return _as_stored(values, file.named(name)), [f"labels: {file.named(name)}"]
    has_names = isinstance(file, ColumnFile) or file.has_header or choice.header is not None
    first = () if has_names else file.sample[0]
    place = only_column(file.names, choice, path, first)
    if isinstance(file, ColumnFile):
        note = f"labels: column {file.names[place]!r} of {path}"
        return _column(file, file.names[place]), [note]
    return _labels_of_text(file, place, choice, n_rows)


def _open_labels(path: Path, form: Format, choice: Choice) -> Any:
    """A file of labels; the header of one column is found by the number of its lines."""
    choice = replace(choice, names=None)
    if choice.header is None and form.kind == "text":
        file = form.open(path, replace(choice, header=False), str(path))
        if isinstance(file, TextFile) and len(file.names) == 1:
            return file
    return form.open(path, choice, str(path))


def _labels_of_text(
    file: TextFile, place: int, choice: Choice, n_rows: int
) -> tuple[np.ndarray[Any, Any], list[str]]:
    labels = file.read([], [place])[1][0]
    if file.has_header or choice.header is not None:
        file.check_labels(labels, place)
        named = f"column {file.names[place]!r} of {file.path}" if file.has_header else file.path
        return as_labels(labels), [f"labels: {named}"]
    note, first = f"labels: {file.path}", str(labels[0])
    is_header = is_header_of_labels(labels.tolist())
    if len(labels) == n_rows and is_header:
        raise ValueError(
            f"{file.path} has {len(labels):,} lines for {n_rows:,} rows, but the first, {first!r}, "
            "looks like a header; add the label that is missing, or say --no-header"
        )
    file.check_labels(labels, place)
    if len(labels) == n_rows + 1 and is_header is not False:
        return as_labels(labels[1:]), [f"{note}, the first line, {first!r}, read as a header"]
    return as_labels(labels), [note]


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


def _check(table: Table, name: str) -> None:
    n_rows, n_features = table.rows.shape
    if not n_rows or not n_features:
        raise ValueError(f"{name} holds {n_rows} rows of {n_features} features")
    if table.labels is not None and table.labels.dtype.kind == "f":
        missing = ~np.isfinite(table.labels)
        if missing.any():
            row = int(missing.argmax())
            raise ValueError(f"row {row} (counted from 0) has the label {table.labels[row]}")


class _Checked(RowFile):
    """Rows of a file; a value that is not finite is refused with its place."""

    def __init__(self, rows: RowFile, path: Path, choice: Choice) -> None:
        self._rows, self._path, self._choice = rows, path, choice
        self.shape, self.dtype, self.feature_names = rows.shape, rows.dtype, rows.feature_names

    def _read(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        block = self._rows[slice(start, stop)]
        bad = first_not_finite(block, self._choice.missing)
        if bad is not None:
            names = self.feature_names
            column = repr(names[bad[1]]) if names else f"{bad[1]} (from 0 as well)"
            raise ValueError(
                f"{self._path}, row {start + bad[0]} (counted from 0), column {column}: "
                f"{block[bad]} is not a finite number; "
                f"{advice_on(block[bad], self._choice.for_model)}"
            )
        return block


def _notes(columns: ColumnsOfFile, roles: Roles, choice: Choice, labels_needed: bool) -> list[str]:
    features = [columns.names[place] for place in roles.features]
    what = f"column {features[0]!r}"
    if len(features) > 1:
        what = f"{len(features)} columns, {features[0]!r} to {features[-1]!r}"
    can_change = "" if choice.names else " (--ignore leaves one out)"
    notes = [f"features: {what} of {columns.file}{can_change}"]
    out = [
        "the first column, which has no name"
        if place == 0 and columns.has_index
        else columns.names[place]
        for place in roles.left_out
    ]
    if roles.label is not None:
        label = columns.names[roles.label]
        if labels_needed:
            notes.append(f"labels: column {label!r} of {columns.file} (--label chooses another)")
        else:
            out = [label, *out]
    if roles.id is not None:
        notes.append(f"id: column {columns.names[roles.id]!r} of {columns.file}")
    if out:
        notes.append(f"left out: {listed(out)}")
    if choice.names is None and choice.key is None:
        numbers = [columns.names[place] for place in roles.features if place not in roles.words]
        notes += doubt_about(numbers)
    return notes
