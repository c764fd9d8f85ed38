from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from latentmetric.viz.report import pictures
from latentmetric.viz.report.pictures import Pictures, png


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB")])
def test_a_png_is_read_back_unchanged(rng, channels, mode):
    pixels = rng.integers(0, 256, (5, 7, channels)).astype(np.uint8)
    image = Image.open(BytesIO(png(pixels)))
    image.load()
    assert image.mode == mode
    np.testing.assert_array_equal(np.asarray(image).reshape(5, 7, channels), pixels)


def sheet_of(album):
    from base64 import b64decode

    return np.asarray(Image.open(BytesIO(b64decode(album.sheet()))))


def test_pictures_are_stored_once_and_in_order(rng):
    album = Pictures((4, 6), 0, 1)
    rows = rng.random((60, 24))
    assert [album.place(("row", n), row) for n, row in enumerate(rows)] == list(range(60))
    assert album.place(("row", 3), rows[3]) == 3
    assert len(album) == 60
    sheet = sheet_of(album)
    assert sheet.shape == (2 * 4, pictures.COLUMNS * 6)
    expected = np.rint(255 * rows[50].reshape(4, 6))
    np.testing.assert_array_equal(sheet[4:8, 12:18], expected)


def test_large_colour_images_are_averaged_down():
    image = np.zeros((64, 96, 3))
    image[:32, :, 0] = 200
    album = Pictures((64, 96, 3), 0, 200)
    album.place("one", image.ravel())
    assert album.size == (21, 32)
    sheet = sheet_of(album)[:21, :32]
    assert set(sheet[0, :, 0]) == {255}
    assert set(sheet[20, :, 0]) == {0}
    assert not sheet[:, :, 1:].any()
    assert sheet[:, :, 0].mean() == pytest.approx(255 / 2, abs=5)


def test_four_channels_are_shown_without_the_last():
    album = Pictures((1, 2, 4), 0, 255)
    album.place("one", np.array([1, 2, 3, 99, 4, 5, 6, 99.0]))
    np.testing.assert_array_equal(sheet_of(album)[0, :2], [[1, 2, 3], [4, 5, 6]])


def test_there_are_no_pictures_beyond_the_budget(monkeypatch):
    monkeypatch.setattr(pictures, "PIXEL_BYTES", 10)
    album = Pictures((2, 2), 0, 1)
    places = [album.place(n, np.zeros(4)) for n in range(4)]
    assert places == [0, 1, None, None]
    assert album.place(1, np.zeros(4)) == 1


def test_constant_rows_make_a_picture():
    album = Pictures((2, 2), 5, 5)
    assert album.place("one", np.full(4, 5.0)) == 0
