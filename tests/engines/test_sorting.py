import tempfile

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric import MaPML
from latentmetric.engines import sorting
from latentmetric.engines.sorting import sorted_by_class
from latentmetric.io import open_rows

pytestmark = pytest.mark.usefixtures("short_passes")


@pytest.fixture
def saved(tmp_path):
    X, y = make_blobs(n_rows=300)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    return path, X, y


@pytest.fixture(params=["memory", "disk"])
def storage(request, monkeypatch):
    monkeypatch.setattr(sorting, "READ_BYTES", 1000)
    if request.param == "disk":
        monkeypatch.setattr(sorting, "IN_MEMORY_BYTES", 0)
    return request.param


def test_a_file_gives_the_model_that_its_rows_give(saved, storage):
    path, X, y = saved
    model = MaPML(
        max_iter=3, n_steps=300, random_state=0, reference="original", early_stopping=True
    )
    inside = model.fit(X, y).predict(X)
    metric, latents = model.get_mahalanobis_matrix(), model.latent_examples_
    distances, neighbors = model.kneighbors(X[:20])
    for rows in (open_rows(path), np.load(path, mmap_mode="r")):
        model.fit(rows, y)
        np.testing.assert_array_equal(model.predict(rows), inside)
        # Few rows are refined in float32.
        np.testing.assert_allclose(model.get_mahalanobis_matrix(), metric, 1e-5, 1e-6)
        np.testing.assert_allclose(model.latent_examples_, latents, 1e-5, 1e-6)
        np.testing.assert_array_equal(model.kneighbors(rows[:20])[1], neighbors)
        np.testing.assert_allclose(model.kneighbors(rows)[0][:20], distances, 1e-5, 1e-6)
    X[250, 3] = np.nan
    np.save(path, X)
    with pytest.raises(ValueError, match="NaN: row 250, column 3 "):
        model.fit(open_rows(path), y)


def test_values_too_large_for_float32_are_read_again_as_float64(tmp_path, storage):
    X = np.ones((50, 3), dtype=np.float32)
    X[40, 1] = np.finfo(np.float32).max / 4
    np.save(tmp_path / "rows.npy", X)
    store, order = sorted_by_class(
        open_rows(tmp_path / "rows.npy"), np.arange(50) % 2, lambda *progress: None
    )
    assert store.dtype == np.float64
    np.testing.assert_array_equal(store[slice(0, 50)], X[order])


def test_too_little_disk_space_is_reported_before_any_work(saved, monkeypatch):
    path, _, y = saved
    monkeypatch.setattr(sorting, "IN_MEMORY_BYTES", 0)
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr(sorting.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=f"{tempfile.gettempdir()}, which has 0.0 GB free.*TMPDIR"):
        MaPML().fit(open_rows(path), y)
