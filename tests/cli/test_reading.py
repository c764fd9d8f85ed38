"""How commands take the tables people have: ids, text columns, standard input, commas."""

import gzip
import json
import re

import numpy as np
import pandas
import pytest
from helpers import make_blobs
from typer.testing import CliRunner

import latentmetric
from latentmetric.cli.main import COMMANDS, application
from latentmetric.io.formats import FORMATS

WORDS = np.array(["ant", "bee", "cow"])
NAMES = [f"f{place}" for place in range(6)]


def call(*arguments, code=0, stdin=None):
    done = CliRunner().invoke(application(), [str(argument) for argument in arguments], input=stdin)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def table():
    X, y = make_blobs(n_rows=60)
    who = [f"row {number}" for number in range(60)]
    table = pandas.DataFrame(X, columns=NAMES).assign(kind=WORDS[y])
    table.insert(0, "who", who)
    return table


@pytest.fixture
def folder(tmp_path, monkeypatch, table):
    """The table in several formats, and a model of it."""
    monkeypatch.chdir(tmp_path)
    table.to_csv("table.csv", index=False)
    table.to_parquet("table.parquet", index=False)
    table.to_csv("table.tsv.gz", index=False, sep="\t")
    np.savez(
        "table.npz", x=table[NAMES], y=table["kind"].to_numpy(str), who=table["who"].to_numpy(str)
    )
    call("fit", "table.csv", "-o", "model", "--label", "kind", "--id", "who", *QUICK)
    return tmp_path


QUICK = ("--estimator", "euclidean")
FILES = ["table.csv", "table.parquet", "table.tsv.gz", "table.npz"]


@pytest.mark.parametrize("name", FILES)
def test_an_id_is_kept_in_the_answers_and_is_not_a_feature(folder, table, name):
    model = latentmetric.load("model")
    assert model.feature_names_in_.tolist() == NAMES
    expected = model.predict(table[NAMES]).tolist()
    for out in ("out.csv", "out.tsv", "out.parquet"):
        call("predict", "model", name, "--id", "who", "-o", out)
        read = {
            "out.csv": pandas.read_csv,
            "out.tsv": lambda path: pandas.read_csv(path, sep="\t"),
            "out.parquet": pandas.read_parquet,
        }[out]
        found = read(out)
        assert found.columns.tolist() == ["who", "row", "label"]
        assert found["who"].tolist() == table["who"].tolist()
        assert found["label"].tolist() == expected
    shown = json.loads(call("predict", "model", name, "--id", "who", "--json").stdout)
    assert list(shown) == ["who", "label"]
    assert shown["who"] == table["who"].tolist()


@pytest.mark.parametrize("name", FILES)
def test_a_model_remembers_which_column_holds_the_labels_and_which_the_ids(folder, table, name):
    """Two columns hold text, so that a file by itself does not tell; an array may be called y."""
    of_arrays = name.endswith("npz")
    label = "y" if of_arrays else "kind"
    if not of_arrays:
        assert "--label" in call("fit", name, "-o", "other", *QUICK, code=1).stderr
    call("fit", name, "-o", "other", "--label", label, "--id", "who", *QUICK)
    assert latentmetric.load("other").columns_in_ == {"label": label, "id": "who"}
    done = call("evaluate", "other", name, "--json")
    rows = np.array(table[NAMES]) if of_arrays else table[NAMES]
    wrong = latentmetric.load("other").predict(rows) != table["kind"]
    assert json.loads(done.stdout)["errors"] == wrong.sum()
    call("predict", "other", name, "-o", "out.csv")
    assert pandas.read_csv("out.csv")["who"].tolist() == table["who"].tolist()


def test_what_a_command_names_goes_before_what_the_model_remembers(folder, table):
    turned = table.assign(kind=table["kind"].map({"ant": "bee", "bee": "cow", "cow": "ant"}))
    turned.assign(truth=table["kind"], number=range(60)).to_csv("turned.csv", index=False)
    right = json.loads(call("evaluate", "model", "table.csv", "--json").stdout)["errors"]
    found = call("evaluate", "model", "turned.csv", "--label", "truth", "--json")
    assert json.loads(found.stdout)["errors"] == right
    (folder / "labels.txt").write_text("\n".join(table["kind"]))
    found = call("evaluate", "model", "turned.csv", "labels.txt", "--json")
    assert json.loads(found.stdout)["errors"] == right
    call("predict", "model", "turned.csv", "--id", "number", "-o", "out.csv")
    assert pandas.read_csv("out.csv")["number"].tolist() == list(range(60))
    call("predict", "model", "turned.csv", "--ignore", "who", "-o", "out.csv")
    assert "who" not in pandas.read_csv("out.csv")


def test_files_without_the_remembered_columns_are_read_as_before(folder, table):
    table[[*NAMES, "kind"]].rename(columns={"kind": "sort"}).to_csv("renamed.csv", index=False)
    done = call("evaluate", "model", "renamed.csv")
    assert "labels: column 'sort'" in done.stderr
    table[[*NAMES, "kind"]].to_csv("plain.csv", index=False, header=False)
    call("evaluate", "model", "plain.csv")


def test_a_fit_without_named_columns_remembers_none(folder, table):
    table[[*NAMES, "kind"]].to_csv("plain.csv", index=False, header=False)
    call("fit", "plain.csv", "-o", "other", *QUICK)
    assert not hasattr(latentmetric.load("other"), "columns_in_")


def test_another_fit_forgets_the_columns_of_the_first(folder, table):
    model = latentmetric.load("model")
    assert model.columns_in_ == {"label": "kind", "id": "who"}
    model.fit(np.array(table[NAMES]), table["kind"].to_numpy(str))
    assert not hasattr(model, "columns_in_")


@pytest.mark.parametrize("name", FILES)
def test_neighbors_keep_the_id_of_their_row(folder, table, name):
    call("neighbors", "model", name, "--id", "who", "-k", 2, "-o", "out.csv")
    found = pandas.read_csv("out.csv")
    assert found.columns.tolist() == ["who", "row", "rank", "reference", "label", "distance"]
    assert found["who"].tolist() == np.repeat(table["who"].to_numpy(), 2).tolist()
    shown = json.loads(call("neighbors", "model", name, "--id", "who", "--json").stdout)
    assert shown["who"] == table["who"].tolist()


@pytest.mark.parametrize("name", FILES)
def test_the_other_commands_do_not_use_an_id_as_a_feature(folder, name):
    label = ("--label", "y" if name == "table.npz" else "kind")
    call("evaluate", "model", name, "--id", "who", *label)
    call("compare", name, "--id", "who", *label, "--methods", "euclid", "--folds", 2)
    call("report", "model", name, "--id", "who", *label, "-o", "page.html")
    call("fit", name, "--id", "who", *label, "-o", "again", *QUICK)
    assert latentmetric.load("again").n_features_in_ == 6


def test_an_id_named_like_a_column_of_the_answers(folder, table):
    table.rename(columns={"who": "row"}).to_csv("row.csv", index=False)
    first = call("predict", "model", "row.csv", "--id", "row").stdout.splitlines()[:2]
    assert first[0] == "row,label"
    assert first[1].startswith("row 0,")
    table.rename(columns={"who": "label"}).to_csv("label.csv", index=False)
    done = call("predict", "model", "label.csv", "--id", "label", code=1)
    assert "the id is called 'label'" in done.stderr
    table.rename(columns={"who": "distance"}).to_csv("distance.csv", index=False)
    done = call("neighbors", "model", "distance.csv", "--id", "distance", code=1)
    assert "the id is called 'distance'" in done.stderr
    table.rename(columns={"who": "ant"}).to_csv("ant.csv", index=False)
    shown = call("predict", "model", "ant.csv", "--id", "ant", "--proba").stdout
    assert shown.splitlines()[0] == "ant,row,label,probability of ant,bee,cow"


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "-", "-o", "new", "--label", "kind", "--ignore", "who", *QUICK),
        ("predict", "model", "-"),
        ("evaluate", "model", "-", "--label", "kind"),
        ("neighbors", "model", "-"),
        ("compare", "-", "--label", "kind", "--id", "who", "--methods", "euclid", "--folds", "2"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_dash_reads_standard_input(folder, arguments):
    text = (folder / "table.csv").read_bytes()
    piped = call(*arguments, "--json", stdin=text)
    named = call(*["table.csv" if part == "-" else part for part in arguments], "--json")
    timed = arguments[0] in ("fit", "compare")
    assert timed or piped.stdout == named.stdout
    assert "<std" in piped.stderr or "<stream" in piped.stderr
    assert call(*arguments, stdin=gzip.compress(text)).exit_code == 0
    broken = call(*arguments, stdin=b"a,label\n1,x\nz,y\n", code=1).stderr
    assert len(broken.strip().splitlines()) == 1


def test_a_list_of_columns_to_ignore(folder, table):
    table.assign(region="north").to_csv("more.csv", index=False)
    arguments = ("fit", "more.csv", "-o", "new", "--label", "kind", *QUICK)
    for ignore in (["--ignore", "who,region"], ["--ignore", "who", "--ignore", "region, f0"]):
        call(*arguments, *ignore)
        expected = NAMES if len(ignore) == 2 else NAMES[1:]
        assert latentmetric.load("new").feature_names_in_.tolist() == expected
    assert "no column 'z'" in call(*arguments, "--ignore", "who,z", code=1).stderr
    commas = table.rename(columns={"who": "who, really"})
    commas.to_csv("more.csv", index=False)
    call(*arguments, "--ignore", "who, really")
    call(*arguments, "--ignore", "1,f0")
    assert latentmetric.load("new").feature_names_in_.tolist() == NAMES[1:]


def test_numbers_with_a_decimal_comma(folder, table):
    table.drop(columns=["who", "kind"]).to_csv("comma.csv", index=False, sep=";", decimal=",")
    assert "--decimal ," in call("predict", "model", "comma.csv", code=1).stderr
    expected = call("predict", "model", "table.csv", "--ignore", "who").stdout
    assert call("predict", "model", "comma.csv", "--decimal", ",").stdout == expected
    assert "--decimal" in call("predict", "model", "comma.csv", "--decimal", "x", code=2).stderr


def test_help_by_its_short_name():
    for arguments in ((), *((name,) for name in COMMANDS)):
        assert call(*arguments, "-h").stdout == call(*arguments, "--help").stdout
    assert "Show the version and exit." in call("-h").stdout
    unwrapped = re.sub(r"[\s│|]", "", call("predict", "-h").stdout)
    assert all(suffix in unwrapped for suffix in FORMATS)


def test_a_table_in_place_of_a_model_is_named(folder):
    for name in ("table.csv", "table.parquet"):
        for command in ("predict", "evaluate", "neighbors", "report"):
            done = call(command, name, "model", code=1)
            assert f"{name}: not a latentmetric model file" in done.stderr
            assert "the model is the first argument, features come second" in done.stderr
        assert "first argument" not in call("info", name, code=1).stderr
    cut = (folder / "model").read_bytes()[:-100]
    (folder / "cut").write_bytes(cut)
    done = call("predict", "cut", "table.csv", code=1)
    assert "cut short" in done.stderr
    assert "first argument" not in done.stderr


def test_a_table_that_still_holds_its_labels_can_be_predicted(folder, table):
    """Also by a model that has no names of columns, and without a header."""
    bare = table.drop(columns="who")
    bare.to_csv("bare.csv", index=False, header=False)
    bare.to_parquet("bare.parquet", index=False)
    np.save("rows.npy", table[NAMES].to_numpy())
    (folder / "labels.txt").write_text("\n".join(table["kind"]))
    call("fit", "bare.csv", "-o", "headless", *QUICK)
    call("fit", "rows.npy", "labels.txt", "-o", "arrays", *QUICK)
    expected = call("predict", "model", "table.csv", "--ignore", "who").stdout
    for model in ("headless", "arrays"):
        for name in ("bare.csv", "bare.parquet"):
            done = call("predict", model, name)
            assert done.stdout == expected
            assert "left out:" in done.stderr
