"""How commands take the tables people have: ids, remembered columns, standard input, commas."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from helpers import call, make_blobs
from typer.testing import CliRunner

import latentmetric
from latentmetric.cli.main import app

WORDS = np.array(["ant", "bee", "cow"])
NAMES = [f"f{index}" for index in range(6)]
QUICK = ("--estimator", "euclidean")
FILES = ["table.parquet", "table.tsv.gz", "table.npz"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table in several formats, and a model of it."""
    monkeypatch.chdir(tmp_path)
    X, y = make_blobs(n_rows=60)
    table = pandas.DataFrame(X, columns=NAMES).assign(kind=WORDS[y])
    table.insert(0, "who", [f"row {number}" for number in range(60)])
    table.to_csv("table.csv", index=False)
    table.to_parquet("table.parquet", index=False)
    table.to_csv("table.tsv.gz", index=False, sep="\t")
    np.savez("table.npz", x=X, y=WORDS[y], who=table["who"].to_numpy(str))
    call("fit", "table.csv", "-o", "model", "--label", "kind", "--id", "who", *QUICK)
    return table


@pytest.mark.parametrize("name", FILES)
def test_a_model_remembers_which_column_holds_the_labels_and_which_the_ids(table, name):
    """Two columns hold text, so that a file by itself does not tell; an array may be called y."""
    of_arrays = name.endswith("npz")
    label = "y" if of_arrays else "kind"
    if not of_arrays:
        assert "--label" in call("fit", name, "-o", "other", *QUICK, code=1).stderr
    call("fit", name, "-o", "other", "--label", label, "--id", "who", *QUICK)
    model = latentmetric.load("other")
    key = {"key": "x"} if of_arrays else {}
    assert model.columns_in_ == {"label": label, "id": "who", **key}
    rows = np.array(table[NAMES]) if of_arrays else table[NAMES]
    predicted = model.predict(rows)
    done = call("evaluate", "other", name, "--json")
    assert json.loads(done.stdout)["errors"] == (predicted != table["kind"]).sum()
    shown = json.loads(call("predict", "other", name, "--json").stdout)
    assert list(shown) == ["who", "label"]
    assert shown["who"] == table["who"].tolist()
    assert shown["label"] == predicted.tolist()
    near = json.loads(call("neighbors", "other", name, "-k", 2, "--json").stdout)
    assert near["who"] == table["who"].tolist()


def test_a_model_remembers_which_column_holds_its_embeddings(table):
    lists = table[NAMES].to_numpy().tolist()
    held = table[["who", "kind"]].assign(first=lists, second=[row[::-1] for row in lists])
    held.to_parquet("lists.parquet", index=False)
    options = ("--label", "kind", "--id", "who")
    assert "--key first" in call("fit", "lists.parquet", "-o", "m", *options, code=1).stderr
    call("fit", "lists.parquet", "-o", "m", *options, "--key", "second", *QUICK)
    predicted = latentmetric.load("m").predict(table[NAMES].to_numpy()[:, ::-1])
    assert json.loads(call("predict", "m", "lists.parquet", "--json").stdout)["label"] == list(
        predicted
    )
    other = json.loads(call("predict", "m", "lists.parquet", "--key", "first", "--json").stdout)
    assert other["label"] != list(predicted)


def test_what_a_command_names_goes_before_what_the_model_remembers(table, tmp_path):
    turned = table.assign(kind=table["kind"].map({"ant": "bee", "bee": "cow", "cow": "ant"}))
    turned.assign(truth=table["kind"], number=range(60)).to_csv("turned.csv", index=False)
    right = json.loads(call("evaluate", "model", "table.csv", "--json").stdout)["errors"]
    (tmp_path / "labels.txt").write_text("\n".join(table["kind"]))
    for named in (("turned.csv", "--label", "truth"), ("turned.csv", "labels.txt")):
        found = call("evaluate", "model", *named, "--json")
        assert json.loads(found.stdout)["errors"] == right
    call("predict", "model", "turned.csv", "--id", "number", "-o", "out.csv")
    assert pandas.read_csv("out.csv")["number"].tolist() == list(range(60))


def test_only_a_column_with_a_name_of_labels_replaces_the_remembered_one(table):
    renamed = table[[*NAMES, "kind"]].rename(columns={"kind": "sort"})
    renamed.to_csv("renamed.csv", index=False)
    for command in ("evaluate", "report"):
        refused = call(command, "model", "renamed.csv", code=1).stderr
        assert "renamed.csv lacks column 'kind', which had the labels" in refused
    right = call("evaluate", "model", "table.csv").stdout
    assert call("evaluate", "model", "renamed.csv", "--label", "sort").stdout == right
    renamed[["sort"]].to_csv("sorts.csv", index=False)
    assert call("evaluate", "model", "renamed.csv", "sorts.csv").stdout == right
    call("predict", "model", "renamed.csv")
    renamed.rename(columns={"sort": "Label"}).to_csv("usual.csv", index=False)
    assert call("evaluate", "model", "usual.csv").stdout == right
    table[[*NAMES, "kind"]].to_csv("plain.csv", index=False, header=False)
    call("evaluate", "model", "plain.csv")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "-", "-o", "new", "--label", "kind", "--ignore", "who", *QUICK),
        ("predict", "model", "-"),
        ("evaluate", "model", "-", "--label", "kind"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_dash_reads_standard_input(table, arguments):
    text = Path("table.csv").read_bytes()
    piped = CliRunner().invoke(app, [*arguments, "--json"], input=text)
    named = call(*["table.csv" if part == "-" else part for part in arguments], "--json")
    assert piped.exit_code == 0
    if arguments[0] == "fit":
        assert json.loads(piped.stdout)["features"] == 6
    else:
        assert piped.stdout == named.stdout
    broken = CliRunner().invoke(app, [*arguments], input=b"a,label\n1,x\nz,y\n")
    assert broken.exit_code == 1
    assert len(broken.stderr.strip().splitlines()) == 1


def test_numbers_with_a_decimal_comma_encodings_and_headers(table):
    rows = table.drop(columns=["who", "kind"])
    rows.to_csv("comma.csv", index=False, sep=";", decimal=",")
    expected = call("predict", "model", "table.csv", "--ignore", "who").stdout
    assert call("predict", "model", "comma.csv", "--decimal", ",").stdout == expected
    assert "--decimal" in call("predict", "model", "comma.csv", "--decimal", "x", code=2).stderr
    table.assign(kind="é").to_csv("latin.csv", index=False, encoding="latin-1")
    done = call("predict", "model", "latin.csv", "--encoding", "latin-1", "--ignore", "who")
    assert done.stdout == expected
    rows.to_csv("headless.csv", index=False, header=False)
    assert call("predict", "model", "headless.csv", "--no-header").stdout == expected


def test_words_need_names(table):
    words = table.assign(region=np.where(np.arange(60) % 2, "north", "south"))
    words.to_csv("words.csv", index=False)
    options = ("--label", "kind", "--id", "who", "--one-hot", "region")
    call("fit", "words.csv", "-o", "piped", *options, *QUICK)
    assert len(call("predict", "piped", "words.csv").stdout.splitlines()) == 61
    done = call("predict", "piped", "words.csv", "--key", "f0", code=1)
    assert "commands find columns of words by their names" in done.stderr
