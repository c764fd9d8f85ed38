"""Which column is what: by name, by number, or by what people call it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from latentmetric.io.text import LABEL_NAMES


@dataclass(frozen=True)
class Choice:
    """How to read files, where that is not left to be found out.

    Parameters
    ----------
    key : str, default=None
        The array, data set or column of lists that holds the features.
    label : str, default=None
        The column or array with the labels. A number counts columns from 1, or from −1 backwards.
    ignore : sequence of str, default=()
        Columns that are neither; names or numbers.
    names : sequence of str, default=None
        The features wanted, by name and in this order, where the file names its columns.
    header : bool, default=None
        Whether the first line of a text file names its columns.
    encoding : str, default=None
        Of a text file; by default its byte order mark tells, or it is UTF-8.
    labelled : bool, default=True
        Whether labels must be found. If not, and a column is plainly the labels, it is left out.
    """

    key: str | None = None
    label: str | None = None
    ignore: Sequence[str] = ()
    names: Sequence[str] | None = None
    header: bool | None = None
    encoding: str | None = None
    labelled: bool = True


def label_and_ignored(
    path: Path, names: list[str], texts: list[int], choice: Choice, with_labels: bool
) -> tuple[int | None, set[int]]:
    """The places of the label's column, if any, and of the columns to leave out."""
    ignored = {find_column(names, name, path) for name in choice.ignore}
    if choice.label is not None and with_labels:
        return find_column(names, choice.label, path), ignored
    required = choice.labelled and with_labels
    wanted = {name.lower() for name in choice.names or ()}
    known = [place for place, name in enumerate(names) if name.lower() in LABEL_NAMES]
    known = [
        place for place in known if place not in ignored and names[place].lower() not in wanted
    ]
    if len(known) == 1:
        return known[0], ignored
    words = [place for place in texts if place not in ignored]
    if not known and len(words) == 1 and required:
        return words[0], ignored
    if required:
        raise ValueError(
            f"{path}: no column is plainly the labels among {listed(names)}; name one with "
            "--label, or give a file of labels"
        )
    return None, ignored


def find_column(names: Sequence[str], wanted: str, path: Path) -> int:
    """The place of a column given by name, or by number from 1 (−1 is the last)."""
    places = [place for place, name in enumerate(names) if name == wanted]
    if len(places) > 1:
        numbers = ", ".join(str(place + 1) for place in places)
        raise ValueError(f"{path} has several columns {wanted!r}: name one by number, {numbers}")
    if places:
        return places[0]
    try:
        number = int(wanted)
    except ValueError:
        number = 0
    if 1 <= number <= len(names):
        return number - 1
    if -len(names) <= number <= -1:
        return len(names) + number
    raise ValueError(f"{path} has no column {wanted!r} among its {len(names)}: {listed(names)}")


def places_of(wanted: Sequence[str], names: list[str], path: Path) -> list[int]:
    """The places of the features that a model was fitted with."""
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ValueError(
            f"{path} lacks {len(missing)} of the {len(wanted)} columns that the model was fitted "
            f"with: {listed(missing)}; it has {listed(names)}"
        )
    return [find_column(names, name, path) for name in wanted]


def only_column(names: list[str], choice: Choice, path: Path) -> int:
    """The place of the labels in a file of their own."""
    if choice.label is not None:
        return find_column(names, choice.label, path)
    if len(names) == 1:
        return 0
    known = [place for place, name in enumerate(names) if name.lower() in LABEL_NAMES]
    if len(known) != 1:
        raise ValueError(
            f"{path} has {len(names)} columns ({listed(names)}): name one with --label"
        )
    return known[0]


def listed(names: Sequence[str], limit: int = 8) -> str:
    """The first names, for messages."""
    shown = ", ".join(str(name)[:40] for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
