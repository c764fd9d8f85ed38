"""Archives, folders and texts become files that the benchmarks read; the networks are fakes."""

import csv
import io
import json
import pickle
import re
import tarfile

import compute_features
import numpy as np
import pytest
from data import load_benchmark, load_split

NAMES = ["ant", "bee", "cow"]


def batch(n_rows, seed, key="labels"):
    rows = np.random.default_rng(seed).integers(0, 256, (n_rows, 3072), dtype=np.uint8)
    return {"data": rows, key: [(seed + row) % 3 for row in range(n_rows)]}


def cifar10():
    """The files of an archive, smaller than the real ones."""
    files = {f"data_batch_{number}": batch(4, number) for number in range(1, 6)}
    return files | {"test_batch": batch(3, 9), "batches.meta": {"label_names": NAMES}}


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            if not isinstance(content, bytes):
                content = pickle.dumps(content, protocol=3)
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def networks(monkeypatch):
    """Instead of the image network, the mean colour; instead of the text encoder, counts."""

    def colours(images):
        pixels = np.stack([compute_features.resized(image) for image in images])
        return pixels.mean(axis=(1, 2), dtype=np.float32)

    def counts(texts):
        return np.array([[len(text), text.count("a")] for text in texts], dtype=np.float32)

    monkeypatch.setattr(compute_features, "image_extractor", lambda: colours)
    monkeypatch.setattr(compute_features, "text_extractor", lambda: counts)


def call(*words):
    return compute_features.main([str(word) for word in words])


def test_an_archive_of_cifar_becomes_a_file_that_the_benchmarks_read(networks, tmp_path, capsys):
    files = cifar10()
    archive = write_archive(tmp_path / "cifar.tar.gz", files)
    out = tmp_path / "cifar10_features.npz"
    assert call("cifar10", archive, "--out", out, "--batch-size", 3) == 0
    split = load_benchmark("cifar10", tmp_path)
    assert (split.X_train.shape, split.X_test.shape) == ((20, 3), (3, 3))
    np.testing.assert_array_equal(split.y_test, files["test_batch"]["labels"])
    reds = files["data_batch_2"]["data"][:, :1024].mean(axis=1)
    np.testing.assert_allclose(split.X_train[4:8, 0], reds, rtol=1 / 255)
    with np.load(out) as arrays:
        assert arrays["names"].tolist() == NAMES
        assert arrays["x_train"].dtype == arrays["y_train"].dtype == np.uint8
        assert arrays["scale"].shape == (3,)
    shown = capsys.readouterr()
    assert "x_train (20, 3), x_test (3, 3), 3 classes" in shown.out
    assert "train: 0 of 20" in shown.err
    assert {path.name for path in tmp_path.iterdir()} == {"cifar.tar.gz", "cifar10_features.npz"}


class Harmful:
    def __reduce__(self):
        return print, ("harm",)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"test_batch": Harmful()}, "test_batch in .* refers to .*print"),
        ({"test_batch": batch(3, 9) | {"labels": [0, 1, 3]}}, "numbers below 3"),
    ],
)
def test_a_bad_archive_is_one_line(networks, tmp_path, capsys, change, expected):
    archive = write_archive(tmp_path / "cifar.tar.gz", cifar10() | change)
    assert call("cifar10", archive, "--out", tmp_path / "out.npz") == 1
    shown = capsys.readouterr()
    assert re.search(f"^Error: .*{expected}", shown.err, re.MULTILINE)
    assert shown.out == ""
    assert not (tmp_path / "out.npz").exists()


def write_images(folder, sizes):
    image = pytest.importorskip("PIL.Image")
    for index, (label, size) in enumerate(sizes):
        (folder / label).mkdir(parents=True, exist_ok=True)
        colour = np.full((*size, 3), 10 * index + 5, dtype=np.uint8)
        image.fromarray(colour).save(folder / label / f"{index}.png")


def test_folders_of_images_become_a_split(networks, tmp_path):
    write_images(tmp_path / "train", [("cow", (4, 6)), ("ant", (9, 5)), ("bee", (3, 3))])
    (tmp_path / "train" / "ant" / "notes.txt").write_text("no image")
    write_images(tmp_path / "val", [("ant", (4, 4)), ("cow", (4, 4))])
    parts = (f"train={tmp_path / 'train'}", f"test={tmp_path / 'val'}")
    assert call("images", *parts, "--out", tmp_path / "mine.npz") == 0
    split = load_split("mine", tmp_path / "mine.npz")
    np.testing.assert_array_equal(split.y_train, [0, 1, 2])
    np.testing.assert_allclose(split.X_train[:, 0], [15, 25, 5], rtol=0.02)
    np.testing.assert_array_equal(split.y_test, [0, 2])


def write_csv(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "category"), *rows])
    return path


def test_texts_become_a_split(networks, tmp_path):
    train = write_csv(tmp_path / "train.csv", [("a, b", "x"), ('say "aa"', "y"), ("é", "x")])
    with train.open("a") as file:
        file.write("\n")
    test = write_csv(tmp_path / "test.csv", [("aaa", "y")])
    out = tmp_path / "banking77_embeddings.npz"
    assert call("texts", f"train={train}", f"test={test}", "--out", out) == 0
    split = load_benchmark("banking77", tmp_path)
    np.testing.assert_array_equal(split.X_train, [[4, 1], [8, 3], [1, 0]])
    np.testing.assert_array_equal(split.X_test, [[3, 3]])
    np.testing.assert_array_equal((*split.y_train, *split.y_test), [0, 1, 0, 1])
    with np.load(out) as arrays:
        assert arrays["x_train"].dtype == np.float16
        assert arrays["names"].tolist() == ["x", "y"]


def test_a_json_of_texts_keeps_all_its_parts(networks, tmp_path):
    pairs = {"train": [["a", "x"], ["b", "y"]], "test": [["c", "y"]], "oos_val": [["d", "oos"]]}
    (tmp_path / "data.json").write_text(json.dumps(pairs))
    out = tmp_path / "clinc150_embeddings.npz"
    assert call("texts", tmp_path / "data.json", "--out", out) == 0
    with np.load(out) as arrays:
        assert arrays["names"].tolist() == ["oos", "x", "y"]
        assert arrays["y_oos_val"].tolist() == [0]
        assert arrays["x_oos_val"].shape == (1, 2)
    assert load_benchmark("clinc150", tmp_path).y_train.tolist() == [1, 2]


def test_bytes_and_scale_give_the_features_back():
    generator = np.random.default_rng(0)
    train = generator.random((50, 6)).astype(np.float32) * [6, 1, 0.1, 1e-3, 0, 3]
    test = np.vstack((train[:5], 2 * train.max(axis=0)))
    stored = compute_features.quantised(
        {"x_train": train, "x_test": test, "y_train": np.arange(50)}
    )
    assert stored["x_train"].dtype == stored["x_test"].dtype == np.uint8
    assert (stored["scale"] > 0).all()
    error = np.abs(stored["x_train"] * stored["scale"] - train)
    assert (error <= 0.501 * train.max(axis=0) / 255).all()
    np.testing.assert_array_equal(stored["x_train"][:5], stored["x_test"][:5])
    assert (stored["x_test"][5, :4] == 255).all(), "a test value beyond the range is clipped"
    np.testing.assert_array_equal(stored["y_train"], np.arange(50))
