from urllib.error import URLError

import data
import numpy as np
import pytest
import sklearn.datasets
from data import BENCHMARK_SETS, load_benchmark, load_noisy_mnist, load_split
from sklearn.utils import Bunch


def write_sets(folder):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (6, 2, 3)).astype(np.uint8)
    rows, y = images.reshape(6, 6), np.arange(6) % 2
    both = {"y_train": y, "y_test": y}
    np.savez(folder / "mnist.npz", x_train=images, x_test=images[:3], **both)
    for name in ("cifar10", "cifar100", "imagenet200"):
        scale = np.linspace(0.5, 2, 6).astype(np.float64)
        np.savez(folder / f"{name}_features.npz", x_train=rows, x_test=rows, scale=scale, **both)
    for name in ("clinc150", "banking77"):
        half = rows.astype(np.float16)
        np.savez(folder / f"{name}_embeddings.npz", x_train=half, x_test=half, **both)
    np.savez(folder / "letter.npz", x=rows, y=y, n_train=4)
    return rows


@pytest.fixture
def openml(monkeypatch):
    """OpenML's answers, without a connection; what was asked for."""
    asked = []
    generator = np.random.default_rng(0)
    answers = {
        "mnist_784": (generator.integers(0, 256, (70_000, 784), dtype=np.uint8), "0123456789"),
        "letter": (generator.integers(0, 16, (20_000, 16)), "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    }

    def fetch(name, **options):
        asked.append((name, options))
        rows, classes = answers[name]
        target = np.array(list(classes), dtype=object)[np.arange(len(rows)) % len(classes)]
        return Bunch(data=rows, target=target)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    monkeypatch.delenv("LATENTMETRIC_DATA", raising=False)
    data._from_openml.cache_clear()
    yield asked
    data._from_openml.cache_clear()


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


def test_noise_is_only_on_training_images_and_always_the_same(tmp_path):
    write_sets(tmp_path)
    clean, noisy = load_benchmark("mnist", tmp_path), load_noisy_mnist(100, tmp_path)
    np.testing.assert_array_equal(noisy.X_test, clean.X_test)
    np.testing.assert_array_equal(noisy.y_train, clean.y_train)
    normal = np.random.default_rng(0).standard_normal(clean.X_train.shape, dtype=np.float32)
    np.testing.assert_allclose(noisy.X_train - clean.X_train, normal * 100 / 255, atol=1e-6)
    again = load_noisy_mnist(100, tmp_path)
    np.testing.assert_array_equal(again.X_train, noisy.X_train)
    assert noisy.X_train.dtype == np.float32


def test_what_is_missing_or_damaged_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cifar10_features\.npz does not exist.*--data"):
        load_benchmark("cifar10", tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        load_benchmark("mnist", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="'imagenet'"):
        load_benchmark("imagenet", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"mine\.npz, which does not exist"):
        load_split("mine", tmp_path / "mine.npz")
    (tmp_path / "cifar10_features.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"cannot be read from .*cifar10_features\.npz"):
        load_benchmark("cifar10", tmp_path)


def test_mnist_and_letter_come_from_openml_if_there_is_no_file(openml, tmp_path, capsys):
    mnist = load_benchmark("mnist", tmp_path)
    assert (mnist.X_train.shape, mnist.X_test.shape) == ((60_000, 784), (10_000, 784))
    assert (mnist.X_train.dtype, mnist.X_train.max()) == (np.float32, 1)
    np.testing.assert_array_equal(mnist.y_test[:3], [0, 1, 2])
    load_benchmark("mnist")
    options = {"version": 1, "as_frame": False, "parser": "auto"}
    assert openml == [("mnist_784", options)], "parsed once"
    letter = load_benchmark("letter")
    assert (letter.X_train.shape, letter.X_test.shape) == ((16_000, 16), (4_000, 16))
    assert (letter.X_train.dtype, letter.X_train.max()) == (np.float32, 15)
    np.testing.assert_array_equal(np.unique(letter.y_train), np.arange(26))
    assert openml[1:] == [("letter", options)]
    assert "mnist: from OpenML" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (URLError("no route"), "(?s)mnist could not be downloaded.*no route.*again.*mnist.npz"),
        (ImportError("requires pandas"), "pip install pandas"),
    ],
)
def test_a_download_that_fails_says_what_to_do(openml, monkeypatch, cause, expected):
    def fail(name, **options):
        raise cause

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)
    kind = ImportError if isinstance(cause, ImportError) else ConnectionError
    with pytest.raises(kind, match=expected):
        load_benchmark("mnist")
