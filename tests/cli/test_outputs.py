"""Commands never overwrite a file they read, and others only with --overwrite."""

import os
import sys

import numpy as np
import pandas
import pytest
from helpers import call, make_blobs

import latentmetric

WORDS = np.array(["ant", "bee", "cow"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model, tables, labels of their own, and this folder as the current one."""
    X, y = make_blobs()
    table = pandas.DataFrame(X, columns=[f"f{place}" for place in range(6)])
    table.assign(label=WORDS[y]).to_csv(tmp_path / "table.csv", index=False)
    table.assign(label=WORDS[y]).to_parquet(tmp_path / "table.parquet", index=False)
    table.assign(label=WORDS[y]).to_csv(tmp_path / "train.csv", index=False)
    table.to_csv(tmp_path / "bare.csv", index=False)
    np.save(tmp_path / "rows.npy", X)
    (tmp_path / "labels.txt").write_text("\n".join(WORDS[y]))
    latentmetric.save(latentmetric.Euclidean().fit(table, WORDS[y]), tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


INPUTS = [
    (("fit", "table.csv"), "table.csv"),
    (("fit", "bare.csv", "labels.txt"), "bare.csv"),
    (("fit", "bare.csv", "labels.txt"), "labels.txt"),
    (("predict", "model", "table.csv"), "table.csv"),
    (("predict", "model", "table.parquet"), "table.parquet"),
    (("neighbors", "model", "table.csv"), "table.csv"),
    (("predict", "model", "rows.npy"), "rows.npy"),
    (("report", "model", "table.csv"), "model"),
    (("report", "model", "table.csv"), "table.csv"),
    (("report", "model", "bare.csv", "labels.txt"), "labels.txt"),
    (("report", "model", "table.csv", "--train", "train.csv"), "train.csv"),
    (
        ("report", "model", "table.csv", "--train", "bare.csv", "--train-labels", "labels.txt"),
        "labels.txt",
    ),
    (("export", "model", "--to", "onnx"), "model"),
    (("export", "model", "--to", "sklearn"), "model"),
    (("export", "model", "--to", "faiss"), "model"),
]


@pytest.mark.parametrize(("arguments", "out"), INPUTS)
@pytest.mark.parametrize("way", ["plain", "long way", "symbolic link", "hard link"])
def test_no_command_writes_over_what_it_reads(folder, arguments, out, way):
    suffix = os.path.splitext(out)[1]
    named = {"plain": out, "long way": folder / ".." / folder.name / out}.get(way)
    if way == "symbolic link":
        named = f"link{suffix}"
        os.symlink(out, named)
    elif way == "hard link":
        named = f"hard{suffix}"
        os.link(out, named)
    before = contents(folder)
    done = call(*arguments, "-o", named, "--overwrite", code=1)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [done.stderr.rstrip("\n")]
    assert "this command reads" in done.stderr
    assert contents(folder) == before


def test_an_input_behind_a_link_is_not_written_over(folder):
    os.symlink("table.csv", "link.csv")
    before = contents(folder)
    assert (
        "this command reads link.csv" in call("fit", "link.csv", "-o", "table.csv", code=1).stderr
    )
    assert contents(folder) == before


def test_nothing_is_written_into_a_folder_that_is_read(folder):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group("rows.zarr", mode="w")
    group.create_array("x", data=np.load("rows.npy"))
    done = call("predict", "model", "rows.zarr", "-o", "rows.zarr/out.csv", code=1)
    assert "this command reads rows.zarr" in done.stderr


def test_the_second_file_of_a_faiss_export_is_checked_too(folder):
    os.rename("model", "index.npz")
    before = contents(folder)
    done = call("export", "index.npz", "--to", "faiss", "-o", "index", "--overwrite", code=1)
    assert "index.npz is not written" in done.stderr
    assert contents(folder) == before
    os.rename("index.npz", "model")
    np.savez("index.npz", mine=np.arange(3))
    before = contents(folder)
    done = call("export", "model", "--to", "faiss", "-o", "index", code=1)
    assert "index.npz exists and is not recognised as the arrays beside" in done.stderr
    assert contents(folder) == before


OUTPUTS = [
    ("fit", "table.csv", "-o", "new", "--estimator", "euclidean"),
    ("predict", "model", "table.csv", "-o", "new.csv"),
    ("predict", "model", "table.csv", "-o", "new.tsv"),
    ("predict", "model", "table.csv", "-o", "new.csv", "--proba"),
    ("predict", "model", "table.csv", "-o", "new.parquet"),
    ("predict", "model", "table.csv", "-o", "new.csv", "--id", "label"),
    ("neighbors", "model", "table.csv", "-o", "new.csv"),
    ("neighbors", "model", "table.csv", "-o", "new.parquet"),
    ("report", "model", "table.csv", "-o", "new"),
    ("export", "model", "-o", "new", "--to", "onnx"),
    ("export", "model", "-o", "new", "--to", "faiss"),
    ("export", "model", "-o", "new", "--to", "sklearn"),
]


@pytest.mark.parametrize("arguments", OUTPUTS, ids=lambda arguments: " ".join(arguments[::3]))
def test_a_command_replaces_its_own_files_and_others_only_with_overwrite(folder, arguments):
    if "label" in arguments:
        table = pandas.read_csv("table.csv").rename(columns={"label": "who"})
        table.to_csv("table.csv", index=False)
        arguments = [*arguments[:-1], "who"]
    out = arguments[arguments.index("-o") + 1]
    call(*arguments)
    call(*arguments)
    for content in (b"name,age\nann,7\n", b"<html>mine</html>", bytes(range(256)), b"PAR1"):
        (folder / out).write_bytes(content)
        done = call(*arguments, code=1)
        assert f"{out} exists and is not recognised as" in done.stderr
        assert "--overwrite" in done.stderr
        assert (folder / out).read_bytes() == content
    call(*arguments, "--overwrite")
    assert (folder / out).read_bytes() != content
    (folder / out).write_bytes(b"")
    call(*arguments)


def test_files_of_the_same_format_from_other_programs_are_kept(folder):
    for arguments, other in (
        (
            ("fit", "table.csv", "-o", "weights"),
            {"weights": (8).to_bytes(8, "little") + b'{"a":[]}'},
        ),
        (("predict", "model", "table.csv", "-o", "train.csv"), {}),
        (("predict", "model", "table.csv", "-o", "table.parquet"), {}),
        (("predict", "model", "table.csv", "-o", "rows.npy"), {}),
        (("report", "model", "table.csv", "-o", "p.html"), {"p.html": b"<!doctype html><p>mine"}),
        (("export", "model", "-o", "p", "--to", "sklearn"), {"p": b"\x80\x04mine"}),
        (("export", "model", "-o", "p", "--to", "onnx"), {"p": b"\x08\x08\x12\x04mine"}),
    ):
        for name, content in other.items():
            (folder / name).write_bytes(content)
        before = contents(folder)
        assert "is not recognised" in call(*arguments, code=1).stderr
        assert contents(folder) == before


def test_an_array_file_is_replaced_with_overwrite(folder):
    arguments = ("predict", "model", "rows.npy", "-o", "out.npy")
    call(*arguments)
    assert ".npy has no names" in call(*arguments, code=1).stderr
    call(*arguments, "--overwrite")
    assert np.load("out.npy").shape == (240,)


def test_a_checkpoint_is_not_written_over_by_the_model(folder):
    quick = ("fit", "table.csv", "--max-iter", "1", "--n-steps", "50", "--checkpoint", "kept")
    call(*quick, "-o", "first")
    kept = next(path for path in (folder / "kept").iterdir() if path.is_file())
    before = kept.read_bytes()
    assert "this command reads" in call(*quick, "--resume", "-o", kept, code=1).stderr
    assert kept.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs a device")
def test_devices_and_a_dash_are_refused_as_output_files(folder):
    assert "not a regular file" in call("fit", "table.csv", "-o", "/dev/null", code=1).stderr
    assert "not a file" in call("fit", "table.csv", "-o", "-", code=1).stderr


def test_without_pyarrow_a_parquet_output_is_refused_before_any_work(folder, monkeypatch):
    from latentmetric.cli import _output

    monkeypatch.setattr(_output, "find_spec", lambda name: None)
    done = call("predict", "none", "table.csv", "-o", "out.parquet", code=1)
    assert "latentmetric[files]" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and names of POSIX")
@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "none.csv"),
        ("predict", "none", "none.csv"),
        ("report", "none", "none.csv"),
        ("export", "none"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_cannot_be_written_is_found_before_any_work(folder, monkeypatch, arguments):
    """The files to read do not exist: an error about them would come from the work."""
    os.symlink("nowhere/out.csv", "dangling.csv")
    os.symlink("loop.csv", "loop.csv")
    for out, message in (
        ("dangling.csv", "there is no folder"),
        ("loop.csv", "symbolic link"),
        (f"{'m' * 252}.csv", "file name too long"),
    ):
        assert message in call(*arguments, "-o", out, code=1).stderr.lower()

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "out.csv: no space left" in call(*arguments, "-o", "out.csv", code=1).stderr


def test_a_name_of_many_bytes_can_be_written(folder):
    call("fit", "table.csv", "-o", "日" * 80, "--estimator", "euclidean")
    assert latentmetric.load("日" * 80).classes_.tolist() == WORDS.tolist()


@pytest.mark.parametrize("limit", ["MAX_DOCUMENT_BYTES", "MAX_DOCUMENT_ITEMS"])
def test_names_that_a_model_file_cannot_hold_are_found_before_the_fit(folder, monkeypatch, limit):
    from latentmetric.persistence import model_file

    monkeypatch.setattr(model_file, limit, 8)
    monkeypatch.setattr(latentmetric.Euclidean, "fit", None)
    done = call("fit", "table.csv", "-o", "new", "--estimator", "euclidean", code=1)
    assert "a model file holds at most" in done.stderr


def test_a_model_that_cannot_be_saved_as_requested_is_saved_elsewhere(folder, monkeypatch):
    """The folder of the model disappears during the fit."""
    (folder / "gone").mkdir()
    fit = latentmetric.Euclidean.fit

    def fit_and_remove(*arguments, **options):
        (folder / "gone").rmdir()
        return fit(*arguments, **options)

    monkeypatch.setattr(latentmetric.Euclidean, "fit", fit_and_remove)
    arguments = ("fit", "table.csv", "-o", "gone/model", "--estimator", "euclidean")
    reported = call(*arguments, code=1).stderr.splitlines()[-1]
    (saved,) = folder.glob("latentmetric-*.safetensors")
    assert f"there is no folder {folder / 'gone'}" in reported
    assert f"the model was saved as {saved} instead" in reported
    assert latentmetric.load(saved).classes_.tolist() == WORDS.tolist()
    if sys.platform != "win32":
        assert saved.stat().st_mode & 0o077 == 0


def test_a_model_that_can_be_saved_nowhere_leaves_no_files(folder, monkeypatch):
    from latentmetric.cli import fit

    def full(model, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(fit, "save", full)
    before = contents(folder)
    done = call("fit", "table.csv", "-o", "new", "--estimator", "euclidean", code=1)
    assert done.stderr.splitlines()[-1] == "Error: new: no space left on device"
    assert contents(folder) == before


@pytest.mark.parametrize("command", ["predict", "neighbors"])
@pytest.mark.parametrize("suffix", [".csv", ".npy", ".parquet"])
def test_a_file_is_written_and_json_is_printed(folder, command, suffix):
    alone = call(command, "model", "table.csv", "-o", f"alone{suffix}")
    assert alone.stdout == ""
    printed = call(command, "model", "table.csv", "--json").stdout
    both = call(command, "model", "table.csv", "-o", f"both{suffix}", "--json")
    assert both.stdout == printed
    assert (folder / f"both{suffix}").read_bytes() == (folder / f"alone{suffix}").read_bytes()


def test_an_id_must_fit_both_the_file_and_the_json(folder):
    table = pandas.read_csv("table.csv")
    for name, options in (("labels", ["--json"]), ("rank", ["-o", "out.csv", "--json"])):
        table.assign(**{name: range(len(table))}).to_csv("named.csv", index=False)
        done = call("neighbors", "model", "named.csv", "--id", name, *options, code=1)
        assert f"the id is called '{name}'" in done.stderr
