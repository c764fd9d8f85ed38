"""Which column is what: by name, by number, or by what people call it.

The rules are the same for text and for files of columns.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from latentmetric.characters import shortened
from latentmetric.io.headers import LABEL_NAMES

INDEX_NAMES = ("__index_level_0__",)
"""What pandas calls an index without a name in a file of columns."""


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
        Whether the first line of a text file names its columns; None takes it for a header if it
        cannot be data, and raises ``ValueError`` if it may be both.
    encoding : str, default=None
        Of a text file; None means by its byte order mark, else UTF-8. A mark is never text.
    decimal : {".", ","}, default="."
        The mark before the decimals in a text file.
    labelled : bool, default=True
        Whether labels must be found. If not, a column that is clearly the labels is left out.
    categories : sequence of str, default=()
        Features that are words, not numbers: columns as in ``ignore``. Rows are then an array of
        objects.
    missing : bool, default=False
        Whether features may be missing: gaps become NaN instead of an error.
    for_model : bool, default=False
        Whether the rows are for a model that is fitted already, which needs all of its columns:
        messages then do not advise to leave one out.
    usual_label, usual_id : str, default=None
        What ``label`` and ``id`` are in a file that has such a column or array, if they are not
        given: the names in the file that a model was fitted with.
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
    for_model: bool = False
    usual_label: str | None = None
    usual_id: str | None = None

    @property
    def wanted(self) -> list[str]:
        """The names and numbers of columns that are given one by one."""
        lists = (*self.ignore, *self.categories)
        listed = [part.strip() for entry in lists for part in entry.split(",")]
        return [name for name in (self.label, self.id, *lists, *listed) if name]

    def settled(self, names: Sequence[str]) -> Choice:
        """The choice for one file: with the usual label and id, where it has them.

        Parameters
        ----------
        names : sequence of str
            The names of its columns or arrays.

        Returns
        -------
        Choice
        """
        taken = {*self.wanted, *(self.names or ()), self.key}
        free = {name for name, times in Counter(names).items() if times == 1} - taken
        label = self.usual_label if self.usual_label in free else None
        identity = self.usual_id if self.usual_id in free else None
        return replace(self, label=self.label or label, id=self.id or identity)


@dataclass(frozen=True)
class ColumnsOfFile:
    """What is known about a file's columns before they are read."""

    file: str | Path
    """What messages call it."""
    names: list[str]
    are_named: bool
    """Whether the file gives the names."""
    kinds: list[str]
    """Of each column: "number", "text", "list" (of numbers), "nested" or "other"."""
    described: Callable[[int], str]
    """What a column that holds no numbers holds, for messages."""
    has_index: bool = False
    """Whether the first column only numbers the rows and has no name."""


@dataclass(frozen=True)
class Roles:
    """The places of the columns by what they are for."""

    features: list[int]
    label: int | None
    """The labels' column, also where labels are not needed."""
    id: int | None
    left_out: list[int]
    """Columns that nothing is read from, except those given by ``ignore``."""
    words: list[int]
    """Those of the features that are categories."""


def assign_roles(columns: ColumnsOfFile, choice: Choice, own_labels: bool) -> Roles:
    """Decide what each column is for; ``own_labels`` if no other file has the labels."""
    if not own_labels:
        _refuse_labels_alone(columns, choice)
    wanted = None
    if choice.key is not None:
        wanted = [find_column(columns.names, choice.key, columns.file)]
    elif choice.names is not None and columns.are_named:
        wanted = places_of(choice.names, columns.names, columns.file)
    id_place = None if choice.id is None else find_column(columns.names, choice.id, columns.file)
    ignored, words = (_places(columns, entries) for entries in (choice.ignore, choice.categories))
    taken = ignored | words | {*(wanted or []), *([] if id_place is None else [id_place])}
    label = _find_label(columns, choice, own_labels, taken)
    _refuse_two_roles(columns, {*(wanted or []), *words}, label, id_place)
    _refuse_nameless_words(columns, words)
    needed = {*(wanted or []), *words, id_place}
    clash = ignored & (needed | {label if choice.label is not None else None})
    if clash:
        name = columns.names[min(place for place in clash if place is not None)]
        raise ValueError(
            f"{columns.file}: column {name!r} is named by --ignore, but it is needed as a feature "
            "of the model, as the labels or as the id"
        )
    others = [
        p for p in range(len(columns.names)) if p not in ignored and p not in (label, id_place)
    ]
    features = _features_among(columns, others, words) if wanted is None else wanted
    if not features:
        raise ValueError(
            f"{columns.file} has no column of numbers for the features: {listed(columns.names)}"
        )
    if wanted is None:
        _refuse_same_names(columns, features)
    left_out = sorted(set(others) - set(features))
    return Roles(features, label, id_place, left_out, [p for p in features if p in words])


def _refuse_labels_alone(columns: ColumnsOfFile, choice: Choice) -> None:
    """Refuse a first file without numbers where a second one is given: they may be swapped."""
    if "text" in columns.kinds and not {*columns.kinds} & {"number", "list", "nested"}:
        if choice.categories or choice.names is not None:
            return
        place = columns.kinds.index("text")
        raise ValueError(
            f"{columns.file} has no column of numbers, only {columns.described(place)}; features "
            "come first and labels second: are the two files swapped?"
        )


def _places(columns: ColumnsOfFile, entries: Sequence[str]) -> set[int]:
    return {
        place for entry in entries for place in find_columns(columns.names, entry, columns.file)
    }


def _refuse_nameless_words(columns: ColumnsOfFile, words: set[int]) -> None:
    """A model finds columns of categories in later files by their names."""
    if words and not columns.are_named:
        raise ValueError(
            f"{columns.file} does not name its columns, but a model finds a column of categories "
            "by its name: add a header"
        )


def _refuse_same_names(columns: ColumnsOfFile, features: list[int]) -> None:
    """A model finds its features by name: two of one name would be one feature twice."""
    first: dict[str, int] = {}
    for place in features:
        name = columns.names[place]
        if first.setdefault(name, place) != place:
            raise ValueError(
                f"{columns.file}: columns {first[name] + 1} and {place + 1} are both called "
                f"{name!r}; rename one, or leave it out with --ignore {place + 1}"
            )


def _find_label(
    columns: ColumnsOfFile, choice: Choice, own_labels: bool, taken: set[int]
) -> int | None:
    if choice.label is not None and own_labels:
        return find_column(columns.names, choice.label, columns.file)
    free = [place for place in range(len(columns.names)) if place not in taken]
    known = [place for place in free if _is_label_name(columns.names[place])]
    if len(known) == 1:
        return known[0]
    index = _index_column(columns)
    texts = [place for place in free if columns.kinds[place] == "text" and place != index]
    if not known and len(texts) == 1 and own_labels:
        return texts[0]
    if own_labels and choice.labelled:
        held = "".join(f"; {columns.names[p]} holds {columns.described(p)}" for p in texts[:3])
        raise ValueError(
            f"{columns.file}: no column is clearly the labels among {listed(columns.names)}{held}; "
            "name one with --label (what else is text, with --id or --ignore), or give a file of "
            "labels"
        )
    return None


def _is_label_name(name: str) -> bool:
    return name.strip().lower() in LABEL_NAMES


def _refuse_two_roles(
    columns: ColumnsOfFile, features: set[int], label: int | None, id_place: int | None
) -> None:
    for place, role in ((label, "the labels"), (id_place, "the id")):
        if place is not None and place in features:
            raise ValueError(
                f"{columns.file}: column {columns.names[place]!r} is a feature and cannot be "
                f"{role} too"
            )
    if id_place is not None and id_place == label:
        raise ValueError(
            f"{columns.file}: column {columns.names[id_place]!r} cannot be the labels and the id; "
            "name another one with --label or --id"
        )


def _features_among(columns: ColumnsOfFile, places: list[int], words: set[int]) -> list[int]:
    """The columns of numbers and of words, or the only one of lists; refuse what is neither."""
    kinds, index = columns.kinds, _index_column(columns)
    left = [place for place in places if place != index and place not in words]
    texts = [place for place in left if kinds[place] in ("text", "other")]
    if texts:
        raise ValueError(_text_is_no_feature(columns, texts))
    features = [p for p in places if p in words or (p in left and kinds[p] == "number")]
    nested = [place for place in left if kinds[place] in ("list", "nested")]
    if not features and [kinds[place] for place in nested] == ["list"]:
        return nested
    for place in nested:
        name = shlex.quote(columns.names[place])
        take = f"take it alone with --key {name}, or " if kinds[place] == "list" else ""
        raise ValueError(
            f"{columns.file}: column {columns.names[place]!r} is nested "
            f"({columns.described(place)}); {take}leave it out with --ignore {name}"
        )
    return features


def _index_column(columns: ColumnsOfFile) -> int | None:
    if columns.has_index:
        return 0
    found = [place for place, name in enumerate(columns.names) if name in INDEX_NAMES]
    return found[0] if found else None


def _text_is_no_feature(columns: ColumnsOfFile, places: list[int]) -> str:
    names = [columns.names[place] for place in places]
    first = shlex.quote(names[0])
    every = shlex.quote(",".join(names)) if len(names) <= 5 else first
    more = f" (also {listed([repr(name) for name in names[1:]])})" if names[1:] else ""
    return (
        f"{columns.file}: column {names[0]!r} holds {columns.described(places[0])}, not numbers"
        f"{more}; leave out with --ignore {every}, keep beside the answers with --id {first}, "
        f"take as labels with --label {first}, or as categories with --one-hot {first} "
        "(fit, compare, doubts)"
    )


def find_column(names: Sequence[str], wanted: str, file: str | Path) -> int:
    """The place of a column given by name, or by number from 1 (−1 is the last)."""
    places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) > 1:
        numbers = ", ".join(str(place + 1) for place in places)
        raise ValueError(f"{file} has several columns {wanted!r}: name one by number, {numbers}")
    if places:
        return places[0]
    place = _by_number(wanted, len(names))
    if place is None:
        near = get_close_matches(wanted, names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f": {listed(names)}"
        raise ValueError(f"{file} has no column {wanted!r} among its {len(names)}{hint}")
    return place


def find_columns(names: Sequence[str], wanted: str, file: str | Path) -> list[int]:
    """The places of one column, or of several given with commas between."""
    if wanted in names or "," not in wanted:
        return [find_column(names, wanted, file)]
    parts = [part.strip() for part in wanted.split(",")]
    return [find_column(names, part, file) for part in parts if part]


def _by_number(text: str, n_columns: int) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    if 1 <= number <= n_columns:
        return number - 1
    return n_columns + number if -n_columns <= number <= -1 else None


def places_of(wanted: Sequence[str], names: list[str], file: str | Path) -> list[int]:
    """The places of the features that a model was fitted with."""
    twice = next((name for name, times in Counter(wanted).items() if times > 1), None)
    if twice is not None:
        raise ValueError(
            f"the model was fitted with several features called {twice!r}, and they cannot be told "
            f"apart in {file}: give the features without names, in the order of the fit"
        )
    held = Counter(names)
    missing = [name for name in wanted if name not in held]
    if missing:
        raise ValueError(
            f"{file} lacks {len(missing)} of the {len(wanted)} columns that the model was fitted "
            f"with: {listed(missing)}; it has {listed(names)}"
        )
    for name in wanted:
        if held[name] > 1:
            find_column(names, name, file)  # says which they are
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in wanted]


def only_column(
    names: list[str], choice: Choice, file: str | Path, first: Sequence[str] = ()
) -> int:
    """The place of the labels in a file of their own; ``first`` is a line that may name columns."""
    if choice.label is not None:
        return find_column(names, choice.label, file)
    if len(names) == 1:
        return 0
    known = [place for place, name in enumerate(names) if _is_label_name(name)]
    if len(known) == 1:
        return known[0]
    if first:
        raise ValueError(
            f"{file} has {len(names)} columns, and its first line is {listed(first)!r}; say which "
            f"has the labels with --label and its number or, if that line is a header (--header), "
            f"its name, as --label {shlex.quote(first[-1])}"
        )
    raise ValueError(f"{file} has {len(names)} columns ({listed(names)}): name one with --label")


def listed(names: Sequence[str], limit: int = 8) -> str:
    """The first names, for messages."""
    shown = ", ".join(shortened(name, 40) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
