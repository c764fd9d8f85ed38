"""Which column is what: by name, by number, or by what people call it; one rule for all formats."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING

from latentmetric.characters import shortened
from latentmetric.validation.rows import NUMBERS_FROM_DATES

if TYPE_CHECKING:
    from latentmetric.io.columns import ColumnFile

LABEL_NAMES = ("label", "labels", "y", "target", "targets", "class", "classes", "category")
"""What people call the column or array of labels, in lower case."""

DATE = re.compile(
    r"(date|time|duration)\w*\[|text such as '(\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{4})"
)
"""A column of dates or times, as ``ColumnFile`` describes it."""

ID_NAME = re.compile(
    r"(ids?|index|idx|guid|uuid|row([\s_.-]?(id|nr|num|number))?)|(?-i:.*([\s_.-](id|ID|Id)|[a-z0-9](Id|ID)))",
    re.IGNORECASE,
)
"""Names of columns that identify rows: id, index, patient_id or patientId, but not acid."""


@dataclass(frozen=True)
class Choice:
    """How to read files; what is not given is detected.

    Parameters
    ----------
    key : str, default=None
        The array, data set or column of lists that holds the features.
    label : str, default=None
        The column or array with the labels. A number counts columns from 1, or from −1 backwards.
    id : str, default=None
        The column or array that identifies the rows. It is not a feature.
    ignore : sequence of str, default=()
        Columns that are none of these: names, numbers, or several with commas between. A name
        that holds a comma is looked for first as it is.
    names : sequence of str, default=None
        The features wanted, by name and in this order, where the file names its columns.
    header : bool, default=None
        Whether the first line of a text file names its columns; None takes it for a header if no
        cell of it is a number, or if its names are known.
    encoding : str, default=None
        Of a text file; None means UTF-8. A byte order mark is never text.
    decimal : {".", ","}, default="."
        The mark before the decimals in a text file.
    labelled : bool, default=True
        Whether labels must be found. If not, a column that is clearly the labels is left out.
    categories : sequence of str, default=()
        Features that are words, not numbers: columns as in ``ignore``. Rows are then an array of
        objects.
    missing : bool, default=False
        Whether features may be missing: gaps become NaN instead of an error.
    usual : dict of str, default={}
        What ``"label"``, ``"id"`` and ``"key"`` are in a file that has such a column or array, if
        they are not given: the names in the file that a model was fitted with.
    """

    key: str | None = None
    label: str | None = None
    id: str | None = None
    ignore: Sequence[str] = ()
    names: Sequence[str] | None = None
    header: bool | None = None
    encoding: str | None = None
    decimal: str = "."
    labelled: bool = True
    categories: Sequence[str] = ()
    missing: bool = False
    usual: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> list[str]:
        """The names and numbers of columns that are given one by one."""
        lists = (*self.ignore, *self.categories)
        parts = [part.strip() for entry in lists for part in entry.split(",")]
        return [name for name in (self.label, self.id, *lists, *parts) if name]


@dataclass(frozen=True)
class Roles:
    """The indices of columns by what they are for."""

    features: list[int]
    label: int | None
    """The labels' column, also where labels are not needed."""
    id: int | None
    left_out: list[int]
    """Columns that nothing is read from, except those given by ``ignore``."""
    words: list[int]
    """Those of the features that are categories."""


def assign_roles(file: ColumnFile, choice: Choice, own_labels: bool) -> Roles:
    """Decide what each column is for; ``own_labels`` if no other file has the labels."""
    free = {name for name, times in Counter(file.names).items() if times == 1 and file.has_names}
    free -= {*choice.wanted, *(choice.names or ()), choice.key}
    if choice.usual.get("label") in free:
        choice = replace(choice, label=choice.label or choice.usual["label"])
    if choice.usual.get("id") in free:
        choice = replace(choice, id=choice.id or choice.usual["id"])
    key = choice.key or file.key
    wanted = None if key is None else [find_column(file, key)]
    if key is None and choice.names is not None and file.has_names:
        wanted = _columns_of_model(file, choice.names)
    row_id = None if choice.id is None else find_column(file, choice.id)
    ignored, words = (_find_all(file, entries) for entries in (choice.ignore, choice.categories))
    if words and (key or not file.has_names):
        raise ValueError(
            f"{file.name} does not name its features one by one, but a model finds a column of "
            "categories by its name: add a header"
        )
    needed = {*(wanted or ()), *words}
    label = find_label(file, choice, own_labels, {*needed, *ignored, row_id})
    uses = {"a feature": needed, "the labels": {label}, "the id": {row_id}, "ignored": ignored}
    for (one, first), (other, second) in combinations(uses.items(), 2):
        for i in first & second - {None}:
            raise ValueError(
                f"{file.name}: column {file.names[i]!r} is {one} and cannot be {other} too"
            )
    others = [i for i in range(len(file.names)) if i not in {*ignored, label, row_id}]
    features = wanted or _features_among(file, others, words, choice, own_labels)
    if not features:
        raise ValueError(
            f"{file.name} has no column of numbers for the features: {listed(file.names)}"
        )
    left_out = [i for i in others if i not in features]
    return Roles(features, label, row_id, left_out, [i for i in features if i in words])


def _columns_of_model(file: ColumnFile, wanted: Sequence[str]) -> list[int]:
    """The features that a model was fitted with, in its order."""
    lacking = list((Counter(wanted) - Counter(file.names)).elements())
    if lacking:
        raise ValueError(
            f"{file.name} lacks {len(lacking)} of the {len(wanted)} columns that the model was "
            f"fitted with: {listed(lacking)}; it has {listed(file.names)}"
        )
    indices = {name: i for i, name in enumerate(file.names)}
    if len(indices) == len(file.names):
        return [indices[name] for name in wanted]
    return [find_column(file, name) for name in wanted]  # a name may stand for several


def find_label(
    file: ColumnFile, choice: Choice, own_labels: bool, taken: set[int | None]
) -> int | None:
    """The index of the labels: as chosen, by name, or the only column that can be."""
    if choice.label is not None and own_labels:
        return find_column(file, choice.label)
    free = [i for i in range(len(file.names)) if i not in taken]
    known = [i for i in free if file.names[i].strip().lower() in LABEL_NAMES]
    if len(known) == 1:
        return known[0]
    needed, remembered = own_labels and choice.labelled, choice.usual.get("label")
    if needed and file.has_names and remembered not in (None, *file.names):
        raise ValueError(
            f"{file.name} lacks column {remembered!r}, which had the labels that the model was "
            f"fitted with; it has {listed(file.names)}: name another with --label, or give a file "
            "of labels"
        )
    texts = [i for i in free if file.kinds[i] == "text" and i != file.index_column]
    if not known and len(texts) == 1 and own_labels:
        return texts[0]
    single = [i for i in free if file.kinds[i] not in ("list", "nested")]
    has_rows = file.key or "list" in file.kinds or len(file.names) == 1
    if len(single) == 1 and needed and has_rows:
        return single[0]
    if needed:
        held = "".join(f"; {file.names[i]} holds {file.described[i]}" for i in texts[:3])
        raise ValueError(
            f"{file.name}: no column is clearly the labels among {listed(file.names)}{held}; name "
            "one with --label (what else is text, with --id or --ignore), or give a file of labels"
        )
    return None


def _features_among(
    file: ColumnFile, columns: list[int], words: set[int], choice: Choice, own_labels: bool
) -> list[int]:
    """The only column of lists, or those of numbers and of words; refuse what is neither."""
    left = [i for i in columns if i != file.index_column and i not in words]
    lists = [i for i in left if file.kinds[i] == "list"]
    lists = [i for i in lists if file.names[i] == choice.usual.get("key")] or lists
    if len(lists) == 1 and not words:
        return lists
    features = sorted({i for i in left if file.kinds[i] == "number"} | words)
    texts = [i for i in left if file.kinds[i] in ("text", "other")]
    nested = [i for i in left if file.kinds[i] in ("list", "nested")]
    for i in texts + nested:
        _refuse_feature(file, i, texts[1:], not own_labels and not features)
    twice = [name for name, times in Counter(file.names[i] for i in features).items() if times > 1]
    if twice:
        one, other = [i + 1 for i in features if file.names[i] == twice[0]][:2]
        raise ValueError(
            f"{file.name}: columns {one} and {other} are both called {twice[0]!r}; rename one, or "
            f"leave it out with --ignore {other}"
        )
    return features


def _refuse_feature(file: ColumnFile, column: int, more: list[int], swapped: bool) -> None:
    """Say why a column is no feature, and what to do about it."""
    also = f" (also {listed([repr(file.names[i]) for i in more])})" if more else ""
    every = shlex.quote(",".join(file.names[i] for i in [column, *more[:4]]))
    first, remedy = shlex.quote(file.names[column]), f"leave out with --ignore {every}"
    if swapped:
        remedy = "features come first and labels second: are the two files swapped?"
    elif file.kinds[column] == "list":
        remedy += f", or take it alone with --key {first}"
    elif DATE.match(file.described[column]):
        remedy = f"{NUMBERS_FROM_DATES}, or {remedy}"
    elif file.kinds[column] != "nested":
        remedy += (
            f", keep beside the answers with --id {first}, take as labels with --label {first}, or "
            f"as categories with --one-hot {first} (fit, compare, doubts); sentences must become "
            "numbers first, by an encoder: see the tutorial for text, docs/tutorial-text.md"
        )
    wanted = "one number a row" if file.kinds[column] == "list" else "numbers"
    raise ValueError(
        f"{file.name}: column {file.names[column]!r} holds {file.described[column]}, not {wanted}"
        f"{also}; {remedy}"
    )


def find_column(file: ColumnFile, wanted: str) -> int:
    """The index of a column given by name, or by number from 1 (−1 is the last)."""
    found = [i for i, name in enumerate(file.names) if name == wanted]
    if len(found) > 1:
        numbers = ", ".join(str(i + 1) for i in found)
        raise ValueError(
            f"{file.name} has several columns {wanted!r}: name one by number, {numbers}"
        )
    if found:
        return found[0]
    n_columns = len(file.names)
    number = int(wanted) if re.fullmatch(r"\s*[+-]?\d+\s*", wanted) else 0
    if 1 <= abs(number) <= n_columns:
        return number - 1 if number > 0 else n_columns + number
    near = get_close_matches(wanted, file.names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f": {listed(file.names)}"
    raise ValueError(f"{file.name} has no column {wanted!r} among its {n_columns}{hint}")


def _find_all(file: ColumnFile, entries: Sequence[str]) -> set[int]:
    """The indices of columns, several of which may be given with commas between."""
    names: list[str] = []
    for entry in entries:
        is_one = entry in file.names or "," not in entry
        names += [entry] if is_one else [part.strip() for part in entry.split(",")]
    return {find_column(file, name) for name in names if name}


def warn_of_ids(features: Sequence[str]) -> list[str]:
    """One line if names of features say that these identify rows; none otherwise."""
    found = [name for name in features if ID_NAME.fullmatch(name.strip())]
    if not found:
        return []
    first = shlex.quote(found[0])
    are = "identify rows but are features" if found[1:] else "identifies rows but is a feature"
    return [
        f"Warning: by name, {listed(list(map(repr, found)))} {are}; leave out with --ignore "
        f"{first}, or keep beside the answers with --id {first}"
    ]


def listed(names: Sequence[str], limit: int = 8) -> str:
    """The first names, for messages."""
    shown = ", ".join(shortened(name, 40) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
