"""Thumbnails of rows that are images, all in one PNG inside the page.

They share a byte budget: once it is spent, further rows are shown as text.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from latentmetric.core.types import Floats

LONGEST_SIDE = 32
"""Pixels of a thumbnail's longer side; larger images are averaged down."""

PIXEL_BYTES = 4_500_000
"""Bytes of all thumbnails before compression, which may save nothing; base64 adds a third."""

COLUMNS = 48
"""Thumbnails side by side in the sheet."""

Pixels = NDArray[np.uint8]


class Pictures:
    """The thumbnails of a page, each stored once."""

    def __init__(self, image_shape: tuple[int, ...], lowest: float, highest: float) -> None:
        self._shape = image_shape if len(image_shape) == 3 else (*image_shape, 1)
        self._lowest, self._range = lowest, (highest - lowest) or 1.0
        self._places: dict[Hashable, int] = {}
        self._thumbnails: list[Pixels] = []
        self._left = PIXEL_BYTES

    def place(self, key: Hashable, row: Floats) -> int | None:
        """The number of this row's thumbnail; None where the budget is spent."""
        if key not in self._places:
            thumbnail = self._thumbnail(row)
            if thumbnail.nbytes > self._left:
                return None
            self._left -= thumbnail.nbytes
            self._places[key] = len(self._thumbnails)
            self._thumbnails.append(thumbnail)
        return self._places[key]

    def __len__(self) -> int:
        return len(self._thumbnails)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of a thumbnail."""
        height, width, _ = self._shape
        shrink = max(1.0, max(height, width) / LONGEST_SIDE)
        return max(1, round(height / shrink)), max(1, round(width / shrink))

    def sheet(self) -> str:
        """All thumbnails, row by row, as a PNG in base64."""
        height, width = self.size
        channels = self._thumbnails[0].shape[2]
        lines = -(-len(self._thumbnails) // COLUMNS)
        sheet = np.zeros((lines * height, COLUMNS * width, channels), dtype=np.uint8)
        for number, thumbnail in enumerate(self._thumbnails):
            top, left = number // COLUMNS * height, number % COLUMNS * width
            sheet[top : top + height, left : left + width] = thumbnail
        return b64encode(png(sheet)).decode("ascii")

    def _thumbnail(self, row: Floats) -> Pixels:
        image: Floats = np.reshape(row, self._shape)[:, :, :3].astype(np.float64)
        image = np.clip((image - self._lowest) / self._range, 0, 1)
        height, width = self.size
        image = _averaged(_averaged(image, height, axis=0), width, axis=1)
        return np.rint(255 * image).astype(np.uint8)


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


def _averaged(image: Floats, n_parts: int, axis: int) -> Floats:
    """The image reduced to ``n_parts`` pixels along an axis, each a mean."""
    length = image.shape[axis]
    if n_parts == length:
        return image
    edges = np.arange(n_parts) * length // n_parts
    counts = np.diff(np.append(edges, length))
    counts = counts[:, None, None] if axis == 0 else counts[None, :, None]
    means: Floats = np.add.reduceat(image, edges, axis=axis) / counts
    return means


def png(pixels: Pixels) -> bytes:
    """A PNG of (height, width, 1 or 3) bytes."""
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # filter 0 opens each line
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    chunks = ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
