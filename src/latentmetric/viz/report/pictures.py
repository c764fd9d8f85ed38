"""Thumbnails of rows that are images, all in one PNG inside the page.

They share a byte budget: once it is spent, further rows are shown as text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Hashable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.viz.report import limits
from latentmetric.viz.report.rows import LabelledRows, Row

if TYPE_CHECKING:
    from latentmetric.viz.report.evidence import Evidence

COLUMNS = 48
"""Thumbnails side by side in the sheet."""


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
        return self.index(("latent", int(latent)), evidence.latent_row(latent))

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


def check_image_shape(image_shape: tuple[int, ...], n_features: int) -> None:
    """Refuse a shape that is not height, width and 1, 3 or 4 channels, or does not fit."""
    whole = all(isinstance(side, (int, np.integer)) and side > 0 for side in image_shape)
    if not whole or len(image_shape) not in (2, 3) or image_shape[2:] not in ((), (1,), (3,), (4,)):
        raise ValueError(
            "image_shape must be height and width, and 1, 3 or 4 channels if there are any, "
            f"got {image_shape}"
        )
    if int(np.prod(image_shape)) != n_features:
        raise ValueError(
            f"image_shape {image_shape} has {int(np.prod(image_shape))} pixels, "
            f"but the model has {n_features} features"
        )
