import os

import numpy as np
import pytest

from latentmetric.datasets import BENCHMARK_SETS, load_benchmark


def write_sets(folder):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (6, 2, 3)).astype(np.uint8)
    rows, y = images.reshape(6, 6), np.arange(6) % 2
    both = {"y_train": y, "y_test": y}
    np.savez(folder / "mnist.npz", x_train=images, x_test=images[:3], **both)
    for name in ("cifar10", "cifar100"):
        scale = np.linspace(0.5, 2, 6).astype(np.float64)
        np.savez(folder / f"{name}_features.npz", x_train=rows, x_test=rows, scale=scale, **both)
    for name in ("clinc150", "banking77"):
        half = rows.astype(np.float16)
        np.savez(folder / f"{name}_embeddings.npz", x_train=half, x_test=half, **both)
    np.savez(folder / "letter.npz", x=rows, y=y, n_train=4)
    return rows


def test_every_set_is_read_as_float32_rows(tmp_path):
    rows = write_sets(tmp_path)
    for name in BENCHMARK_SETS:
        split = load_benchmark(name, tmp_path)
        assert split.X_train.dtype == split.X_test.dtype == np.float32
        assert split.X_train.ndim == 2
        assert split.X_train.shape[1] == 6
    np.testing.assert_allclose(load_benchmark("mnist", tmp_path).X_train, rows / 255, rtol=1e-6)
    np.testing.assert_allclose(load_benchmark("cifar10", tmp_path).X_train[:, 0], rows[:, 0] / 2)
    assert len(load_benchmark("letter", tmp_path).X_test) == 2


def test_the_folder_comes_from_the_environment(tmp_path, monkeypatch):
    write_sets(tmp_path)
    monkeypatch.setenv("LATENTMETRIC_DATA", str(tmp_path))
    assert len(load_benchmark("letter").X_train) == 4
    monkeypatch.delenv("LATENTMETRIC_DATA")
    with pytest.raises(FileNotFoundError, match="LATENTMETRIC_DATA"):
        load_benchmark("letter")


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz"):
        load_benchmark("mnist", tmp_path)
    with pytest.raises(ValueError, match="'imagenet'"):
        load_benchmark("imagenet", tmp_path)


@pytest.mark.skipif(
    not os.environ.get("LATENTMETRIC_DATA"), reason="LATENTMETRIC_DATA names no folder of data"
)
def test_on_letter_original_references_beat_euclid():
    from sklearn.neighbors import KNeighborsClassifier

    from latentmetric import MaPML

    split = load_benchmark("letter")
    euclid = KNeighborsClassifier(3).fit(split.X_train, split.y_train)
    model = MaPML(reference="original", random_state=0).fit(split.X_train, split.y_train)
    gain = model.score(split.X_test, split.y_test) - euclid.score(split.X_test, split.y_test)
    assert gain > 0.01
