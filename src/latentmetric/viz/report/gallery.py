"""The gallery: latent examples beside rows that they represent, and thumbnails of all images.

Thumbnails are in one PNG inside the page and share a byte budget: once it is spent, further rows
are shown as text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Hashable
from io import BytesIO
from typing import Any

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.viz.report import limits
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.rows import LabelledRows, Row
from latentmetric.viz.report.text import number, value_text
from latentmetric.viz.summaries import busiest_clusters, last_before_refinement

COLUMNS = 48
"""Thumbnails side by side in the sheet."""


def gallery_section(evidence: Evidence) -> dict[str, Any]:
    """The latent examples with the most rows, each with the rows nearest to it, class by class."""
    model, latent_codes = evidence.model, evidence.latent_codes
    if latent_codes is None:
        return {"classes": None}
    n_classes, originals = len(evidence.labels), evidence.originals
    per_class = min(limits.MAX_PER_CLASS, max(1, limits.MAX_GALLERY // n_classes))
    values = None
    if evidence.image_shape is None and evidence.feature_names is not None:
        values = UnusualValues(originals.given, evidence.feature_names)
    codes = list(range(n_classes))
    if n_classes > limits.MAX_GALLERY:
        codes = sorted(evidence.errors.hardest[: limits.MAX_GALLERY].tolist())
    members, latents = _by_class(originals.codes, n_classes), _by_class(latent_codes, n_classes)
    classes = {
        code: busiest_clusters(model, latents[code], originals.rows, members[code], per_class)
        for code in codes
    }
    before = last_before_refinement(model.history_)
    return {
        "classes": classes,
        "per_class": per_class,
        "n_shown": sum(map(len, classes.values())),
        "values": values,
        "was_refined": before is not None and model.best_iter_ > before,
    }


def _by_class(codes: Ints, n_classes: int) -> list[Ints]:
    """The indices of the rows of each class."""
    sizes = np.bincount(codes, minlength=n_classes)
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])


class UnusualValues:
    """The features in which a row differs most from the mean of all rows; then its words."""

    def __init__(self, rows: Row, names: list[str]) -> None:
        is_text = [
            rows.dtype.kind == "O" and any(isinstance(value, str) for value in column)
            for column in rows.T
        ]
        self._names = names
        self._words, self._numbers = np.flatnonzero(is_text), np.flatnonzero(~np.array(is_text))
        table = rows[:, self._numbers].astype(np.float64) if rows.dtype.kind == "O" else rows
        has_gaps = table.dtype.kind == "f" and bool(np.isnan(table.sum()))
        known = np.ma.masked_invalid(table) if has_gaps else table
        self._mean: Floats = np.ma.filled(known.mean(axis=0), 0.0)
        self._deviation: Floats = np.ma.filled(known.std(axis=0), 0.0)

    def of(self, row: Row) -> list[tuple[str, str, float | None]]:
        """Names and values of a row, with the difference in standard deviations of numbers."""
        numbers = row[self._numbers].astype(self._mean.dtype)
        safe = np.where(self._deviation > 0, self._deviation, 1)
        apart = np.nan_to_num((numbers - self._mean) / safe)
        order = np.argsort(-np.abs(apart), kind="stable")[: limits.MAX_LATENT_VALUES]
        listed: list[tuple[str, str, float | None]] = [
            (self._names[self._numbers[index]], number(float(numbers[index])), float(apart[index]))
            for index in order
        ]
        words = self._words[: limits.MAX_LATENT_VALUES]
        return listed + [(self._names[index], value_text(row[index]), None) for index in words]


class Pictures:
    """The thumbnails of a page, each stored once; none if rows are not images."""

    def __init__(self, image_shape: tuple[int, ...] | None, lowest: float, highest: float) -> None:
        self._shape = image_shape
        self._lowest, self._range = lowest, (highest - lowest) or 1.0
        self._indices: dict[Hashable, int] = {}
        self._thumbnails: list[Any] = []
        self._bytes_left = limits.MAX_PICTURE_BYTES

    def __len__(self) -> int:
        return len(self._thumbnails)

    def index(self, key: Hashable, row: Row | None) -> int | None:
        """The index of this row's thumbnail; None where there is none or the budget is spent.

        A row that is None cannot be shown in the units that the caller gave.
        """
        if self._shape is None or row is None:
            return None
        if key not in self._indices:
            thumbnail = self._thumbnail(row)
            n_bytes = thumbnail.width * thumbnail.height * len(thumbnail.getbands())
            if n_bytes > self._bytes_left:
                return None
            self._bytes_left -= n_bytes
            self._indices[key] = len(self._thumbnails)
            self._thumbnails.append(thumbnail)
        return self._indices[key]

    def of_row(self, rows: LabelledRows, row: int) -> int | None:
        """The index of the thumbnail of one of the caller's rows."""
        return self.index((rows.kind, int(row)), rows.given[row])

    def of_latent(self, evidence: Evidence, latent: int) -> int | None:
        """The index of the thumbnail of a latent example."""
        row = None if evidence.latents is None else evidence.latents[latent]
        return self.index(("latent", int(latent)), row)

    def style_sheet(self) -> str:
        """All thumbnails in one image; the page's script shows the right part of it."""
        from PIL import Image

        width, height = self._thumbnails[0].size
        lines = -(-len(self) // COLUMNS)
        sheet = Image.new(self._thumbnails[0].mode, (COLUMNS * width, lines * height))
        for index, thumbnail in enumerate(self._thumbnails):
            sheet.paste(thumbnail, (index % COLUMNS * width, index // COLUMNS * height))
        png = BytesIO()
        sheet.save(png, "PNG")
        return (
            f":root{{--columns:{COLUMNS};--lines:{lines};--aspect:{width}/{height}}}"
            ".picture{background-image:url(data:image/png;base64,"
            f"{b64encode(png.getvalue()).decode('ascii')})}}"
        )

    def _thumbnail(self, row: Row) -> Any:
        from PIL import Image

        assert self._shape is not None
        height, width, n_channels = (*self._shape, 1)[:3]
        values = np.nan_to_num(row.astype(np.float64)).reshape(height, width, n_channels)
        values = np.clip((values[:, :, :3] - self._lowest) / self._range, 0, 1)
        pixels = np.rint(255 * values).astype(np.uint8)
        image = Image.fromarray(pixels[:, :, 0] if n_channels == 1 else pixels)
        shrink = max(1.0, max(height, width) / limits.MAX_THUMBNAIL)
        size = max(1, round(width / shrink)), max(1, round(height / shrink))
        return image.resize(size, Image.Resampling.BOX)
