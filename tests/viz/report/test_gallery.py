import re
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from latentmetric.viz.report.gallery import COLUMNS, Pictures


def sheet_of(album):
    coded = re.search(r"base64,([^)]+)", album.style_sheet())[1]
    return np.asarray(Image.open(BytesIO(b64decode(coded))))


def test_pictures_are_stored_once_and_in_order(rng):
    album = Pictures((4, 6), 0, 1)
    rows = rng.random((60, 24))
    assert [album.index(("row", n), row) for n, row in enumerate(rows)] == list(range(60))
    assert album.index(("row", 3), rows[3]) == 3
    assert len(album) == 60
    sheet = sheet_of(album)
    assert sheet.shape == (2 * 4, COLUMNS * 6)
    expected = np.rint(255 * rows[50].reshape(4, 6))
    np.testing.assert_array_equal(sheet[4:8, 12:18], expected)


def test_large_colour_images_are_averaged_down():
    image = np.zeros((64, 96, 3))
    image[:32, :, 0] = 200
    album = Pictures((64, 96, 3), 0, 200)
    album.index("one", image.ravel())
    sheet = sheet_of(album)
    assert sheet.shape == (21, COLUMNS * 32, 3)
    sheet = sheet[:, :32]
    assert set(sheet[0, :, 0]) == {255}
    assert set(sheet[20, :, 0]) == {0}
    assert not sheet[:, :, 1:].any()
    assert sheet[:, :, 0].mean() == pytest.approx(255 / 2, abs=5)


def test_there_are_no_pictures_beyond_the_budget(monkeypatch):
    monkeypatch.setattr("latentmetric.viz.report.limits.MAX_PICTURE_BYTES", 10)
    album = Pictures((2, 2), 0, 1)
    found = [album.index(n, np.zeros(4)) for n in range(4)]
    assert found == [0, 1, None, None]
    assert album.index(1, np.zeros(4)) == 1
