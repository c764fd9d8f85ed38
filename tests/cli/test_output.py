"""No command writes over a file it reads, and over others only with --overwrite."""

import io
import os
import sys

import numpy as np
import pytest
from helpers import call

from latentmetric.cli._output import _write_text


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def inputs(folder, train):
    """Files of several formats."""
    train.to_parquet("train.parquet", index=False)
    train.drop(columns="kind").to_csv("bare.csv", index=False)
    np.save("rows.npy", train.drop(columns="kind"))
    (folder / "labels.txt").write_text("\n".join(train["kind"]))
    return folder


@pytest.mark.parametrize(
    ("arguments", "out", "way"),
    [
        (("fit", "train.csv"), "train.csv", "plain"),
        (("fit", "bare.csv", "labels.txt"), "labels.txt", "hard link"),
        (("predict", "model", "test.csv"), "test.csv", "symbolic link"),
        (("neighbors", "model", "rows.npy"), "rows.npy", "hard link"),
        (
            ("report", "model", "test.csv", "--train", "bare.csv", "--train-labels", "labels.txt"),
            "labels.txt",
            "symbolic link",
        ),
        (("export", "model", "--to", "sklearn"), "model", "hard link"),
    ],
)
def test_no_command_writes_over_what_it_reads(inputs, arguments, out, way):
    suffix = os.path.splitext(out)[1]
    named = out if way == "plain" else f"link{suffix}"
    if way == "symbolic link":
        os.symlink(out, named)
    elif way == "hard link":
        os.link(out, named)
    before = contents(inputs)
    done = call(*arguments, "-o", named, "--overwrite", code=1)
    assert done.stdout == ""
    assert done.stderr.splitlines() == [done.stderr.rstrip("\n")]
    assert "this command reads" in done.stderr
    assert contents(inputs) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "train.csv", "-o", "new", "--estimator", "euclidean"),
        ("predict", "model", "test.csv", "-o", "new.csv", "--proba"),
        ("neighbors", "model", "test.csv", "-o", "new.parquet"),
        ("latents", "model", "-o", "new.csv"),
        ("report", "model", "test.csv", "-o", "new", "--quick"),
        ("export", "model", "-o", "new", "--to", "faiss"),
        ("export", "model", "-o", "new", "--to", "sklearn"),
    ],
    ids=lambda arguments: " ".join(arguments[::3]),
)
def test_a_command_replaces_its_own_files_and_others_only_with_overwrite(folder, arguments):
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


def test_files_of_the_same_format_from_other_programs_are_kept(inputs):
    np.savez("index.npz", mine=np.arange(3))
    for arguments, content in (
        (("fit", "train.csv", "-o", "weights"), (8).to_bytes(8, "little") + b'{"a":[]}'),
        (("predict", "model", "test.csv", "-o", "train.csv"), None),
        (("predict", "model", "test.csv", "-o", "rows.npy"), None),
        (("report", "model", "test.csv", "-o", "p.html"), b"<!doctype html><p>mine"),
        (("export", "model", "-o", "p", "--to", "sklearn"), b"\x80\x04mine"),
        (("export", "model", "-o", "p", "--to", "onnx"), b"\x08\x08\x12\x04mine"),
        (("export", "model", "-o", "index", "--to", "faiss"), None),
    ):
        if content is not None:
            (inputs / arguments[arguments.index("-o") + 1]).write_bytes(content)
        before = contents(inputs)
        assert "is not recognised" in call(*arguments, code=1).stderr
        assert contents(inputs) == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs a device, links and names of POSIX")
@pytest.mark.parametrize("arguments", [("fit", "none.csv"), ("predict", "none", "none.csv")])
def test_what_cannot_be_written_is_found_before_any_work(folder, arguments):
    """The files to read do not exist: an error about them would come from the work."""
    os.symlink("nowhere/out.csv", "dangling.csv")
    os.symlink("/dev/null", "null.csv")
    os.symlink("loop.csv", "loop.csv")
    for out in ("dangling.csv", "loop.csv", "null.csv", f"{'m' * 252}.csv"):
        message = call(*arguments, "-o", out, code=1).stderr
        assert "none" not in message
        assert len(message.splitlines()) == 1
    assert "not a file" in call("fit", "train.csv", "-o", "-", code=1).stderr


@pytest.mark.parametrize("name", ["who", "row", "label"])
def test_ids_have_their_name_unless_an_answer_has_it(folder, test_rows, name):
    named = test_rows.rename(columns={"kind": "sort"})
    named.insert(0, name, [f"row {number}" for number in range(60)])
    named.to_csv("named.csv", index=False)
    options = ("model", "named.csv", "--id", name, "--ignore", "sort")
    lines = call("predict", *options).stdout.splitlines()
    assert lines[0] == f"{'who' if name == 'who' else 'id'},row,label"
    assert lines[1].startswith("row 0,0,")
    assert call("neighbors", *options).stdout.splitlines()[1].startswith("row 0,0,1,")


def test_a_spreadsheet_runs_no_label():
    labels = ["=HYPERLINK(A1)", "-2+3", "@SUM(1)", "＝1+1", "-1.5e3", "+", "a=b"]
    file = io.StringIO()
    _write_text({"=x": np.array(labels)}, file, ",")
    expected = [f"'{label}" for label in ["=x", *labels[:4]]] + labels[4:]
    assert file.getvalue().splitlines() == expected
