"""Shared by all sections: how labels, rows and pictures are shown, and the script's data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latentmetric.characters import told_apart
from latentmetric.viz.report.columns import Column, columns_after
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Content, Html, breakable, distinct, join, shown, tag
from latentmetric.viz.report.pictures import Pictures, check_image_shape
from latentmetric.viz.report.rows import LabelledRows

TALL_ROWS = 20
"""A table with more rows scrolls within its frame."""

LONGEST_OPTION = 24
"""Characters of a label in a box to choose from, which is narrow."""

Row = np.ndarray[Any, Any]


@dataclass
class Context:
    """Names, pictures and script data of one page."""

    labels: list[str]
    """The classes as text, in the order of their codes."""
    pictures: Pictures | None
    feature_names: list[str] | None
    """Of the columns that the caller gave."""
    columns: list[Column]
    """Those that the metric sees: after the steps of a pipeline."""
    source: str | None
    generator: np.random.Generator
    quick: bool = False
    """Whether nothing is fitted for the page."""
    about_to: Callable[[str], None] = lambda step: None
    """Called before each step that takes time."""
    script_data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        image_shape: tuple[int, ...] | None,
        source: str | None,
        generator: np.random.Generator,
        quick: bool = False,
        about_to: Callable[[str], None] = lambda step: None,
    ) -> Context:
        """Check the image shape and convert all names to text that can be shown."""
        pictures = None
        if image_shape is not None:
            image_shape = tuple(image_shape)
            rows = evidence.originals.given
            check_image_shape(image_shape, rows.shape[1])
            pictures = Pictures(image_shape, *value_range(rows))
        given = evidence.piped.feature_names
        names = None if given is None else distinct(given)
        return cls(
            distinct(evidence.model.classes_.tolist()),
            pictures,
            names,
            columns_after(evidence.piped, names, evidence.given.given.shape[1]),
            None if source is None else shown(source, 200),
            generator,
            quick,
            about_to,
        )

    def label(self, code: int) -> Html:
        """A class's label, isolated from the direction of the text around it."""
        return tag("bdi", breakable(self.labels[code]), class_="label")

    def options(self, codes: Iterable[int]) -> list[Html]:
        """Classes to choose from; a box shows short names, which are as different as the labels."""
        short = told_apart(self.labels, LONGEST_OPTION)
        return [
            tag("option", self.labels[code], value=code,
                label=None if short[code] == self.labels[code] else short[code])
            for code in codes
        ]  # fmt: skip

    def thumbnail(self, key: tuple[str, int], row: Row | None) -> int | None:
        """The number of a row's picture; None if rows are not images or the budget is spent.

        A row that is None cannot be shown in the units that the caller gave.
        """
        if self.pictures is None or row is None:
            return None
        return self.pictures.place(key, np.nan_to_num(row.astype(np.float64), copy=False))

    def picture(self, key: tuple[str, int], row: Row | None, text: str) -> Html | None:
        """A row's picture with its text alternative; None where it has no picture."""
        place = self.thumbnail(key, row)
        if place is None:
            return None
        return tag("i", class_="picture", data_picture=place, role="img", aria_label=text)


def value_range(rows: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The smallest and the largest number among rows, in which words and gaps are left out."""
    if rows.dtype.kind == "O":
        numbers = [value for value in rows.ravel() if isinstance(value, int | float | np.number)]
        rows = np.array(numbers or [0.0], dtype=np.float64)
    known = rows[np.isfinite(rows)] if rows.dtype.kind == "f" else rows
    return float(known.min()), float(known.max())


def row_text(rows: LabelledRows, row: int) -> str:
    """The name of a row, or its number in the caller's array."""
    return rows.names[row] if rows.names is not None else f"row {row_number(rows, row)}"


def row_number(rows: LabelledRows, row: int) -> str:
    """The number of a row in the caller's array, counted from 0."""
    return f"{rows.numbers[row]:,}"


def picture_key(evidence: Evidence, pool: str, row: int) -> tuple[str, int]:
    """One key for each picture, whether the row is one of ``given`` or an original."""
    return ("row" if pool == "given" or not evidence.has_training_rows else "original", row)


def section(name: str, heading: str, *content: Content) -> Html:
    """A part of the page that can be linked to."""
    return tag(
        "section",
        tag("h2", heading, id=f"{name}-heading"),
        *content,
        id=name,
        aria_labelledby=f"{name}-heading",
    )


def paragraph(*content: Content, class_: str | None = None) -> Html:
    """A paragraph."""
    return tag("p", *content, class_=class_)


def table(name: str, head: list[Html], body: list[list[Html]], **attributes: Any) -> Html:
    """A table of cells that scrolls sideways where the screen is narrow; ``name`` is its file's."""
    lines = join(tag("tr", *line) for line in body)
    tall = " tall" if len(body) > TALL_ROWS else ""
    label = attributes.pop("aria_label", name)
    whole = tag(
        "table", tag("thead", tag("tr", *head)), tag("tbody", lines),
        data_name=name, aria_label=label, **attributes,
    )  # fmt: skip
    scrolling = tag(
        "div", whole, class_=f"scroll{tall}", tabindex=0, role="region", aria_label=label
    )
    return tag("div", scrolling, class_="table")


def head_cell(text: str, kind: str | None = None) -> Html:
    """The heading of a column; ``kind`` is ``number`` where its cells are numbers."""
    return tag("th", text, scope="col", class_=kind)


def figure(name: str, *content: Content) -> Html:
    """A drawing that can be saved; ``name`` is its file's."""
    return tag("figure", *content, data_name=name)


def zoom_buttons(what: str) -> Html:
    """Buttons to zoom; the script finds them by what they zoom."""
    buttons = [
        tag("button", text, type="button", data_zoom=factor, aria_label=said)
        for text, factor, said in (
            ("+", 1.5, "Zoom in"), ("−", 1 / 1.5, "Zoom out"), ("⟲", 0, "Show all")
        )
    ]  # fmt: skip
    return tag("span", *buttons, class_="zoom", data_of=what)
