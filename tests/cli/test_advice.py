"""What commands say to whoever gives the wrong file, column, label or number."""

import numpy as np
import pandas
import pytest
from helpers import call, make_blobs

from latentmetric.cli._parameters import _first_sentence

WORDS = np.array(["ant", "bee", "cow"])
NAMES = ["f0", "f1", "f2", "f3", "f4", "f5"]
QUICK = ("--estimator", "euclidean", "--no-check")


@pytest.fixture
def table():
    X, y = make_blobs(n_rows=60)
    return pandas.DataFrame(X.round(6), columns=NAMES).assign(kind=WORDS[y])


@pytest.fixture
def folder(tmp_path, monkeypatch, table):
    """A table, a model of it, and the folder of both."""
    monkeypatch.chdir(tmp_path)
    table.to_csv("train.csv", index=False)
    call("fit", "train.csv", "-o", "model", *QUICK)
    return tmp_path


def test_a_feature_that_is_named_like_an_id_is_doubted(folder, table):
    table.insert(0, "patient_id", range(60))
    table.to_csv("named.csv", index=False)
    table.to_parquet("named.parquet", index=False)
    doubted = (
        "Warning: by name, 'patient_id' identifies rows but is a feature; leave out with --ignore "
        "patient_id, or keep beside the answers with --id patient_id"
    )
    for name in ("named.csv", "named.parquet"):
        assert doubted in call("fit", name, "-o", "other", *QUICK).stderr
    options = ("--methods", "euclid", "--folds", 2)
    assert doubted in call("compare", "named.csv", *options).stderr
    for choice in ("--ignore", "--id"):
        done = call("fit", "named.csv", choice, "patient_id", "-o", "other", *QUICK)
        assert "identifies rows" not in done.stderr
    assert "identifies rows" not in call("predict", "model", "named.csv").stderr
    call("fit", "named.csv", "-o", "other", *QUICK)
    assert "identifies rows" not in call("predict", "other", "named.csv").stderr


def test_labels_that_most_rows_have_to_themselves_are_doubted(folder, table):
    table["who"] = np.arange(60)
    table.to_csv("who.csv", index=False)
    doubted = (
        "Warning: 60 of 60 classes have a single row, of 60 rows in all; are these really labels? "
        "--label names another column"
    )
    options = ("--label", "who", "--ignore", "kind")
    assert doubted in call("fit", "who.csv", *options, "-o", "m", *QUICK).stderr
    assert doubted in call("doubts", "who.csv", *options, "--max-iter", 0, "--refine", 0).stderr
    assert "really labels" not in call("fit", "train.csv", "-o", "m", *QUICK).stderr


def test_words_that_a_model_was_not_fitted_with_are_counted(folder, table):
    table["region"] = np.where(np.arange(60) % 2, "north", "south")
    table.to_csv("regions.csv", index=False)
    options = ("--label", "kind", "--one-hot", "region")
    call("fit", "regions.csv", *options, "-o", "piped", *QUICK)
    table.loc[:6, "region"] = "west"
    table.to_csv("later.csv", index=False)
    for command in ("predict", "evaluate"):
        assert (
            "Warning: column 'region' has a value that the model was not fitted with in 7 of 60 "
            "rows, such as 'west'"
        ) in call(command, "piped", "later.csv").stderr
        assert "not fitted with" not in call(command, "piped", "regions.csv").stderr


def test_help_does_not_cut_sentences_at_abbreviations():
    assert _first_sentence("Passes (Alg. 1) per round. More.") == "Passes (Alg. 1) per round."
    assert _first_sentence("One. Two.") == "One."
    assert "(Alg. (default" not in " ".join(call("fit", "--help").stdout.split())


def test_a_model_in_place_of_rows_is_called_one(folder):
    for arguments, advice in (
        (("doubts", "model", "train.csv"), "a model is given with --model"),
        (("doubts", "train.csv", "model"), "a model is given with --model"),
        (("compare", "model", "train.csv"), "compare fits its own and takes none"),
        (("fit", "model", "train.csv", "-o", "m"), "fit learns a new model and takes none"),
        (("predict", "model", "model"), "features come second"),
    ):
        done = call(*arguments, code=1)
        assert (
            f"Error: model is a model file, not a file of rows or labels; {advice}" in done.stderr
        )


def test_labels_in_place_of_features_are_recognised(folder, table):
    table["kind"].to_csv("labels.txt", index=False, header=False)
    table[NAMES].to_csv("features.csv", index=False)
    done = call("fit", "labels.txt", "features.csv", "-o", "m", code=1)
    assert "labels.txt has no column of numbers, only text such as 'ant'" in done.stderr
    assert "features come first and labels second" in done.stderr
    call("fit", "features.csv", "labels.txt", "-o", "m", *QUICK)


@pytest.mark.parametrize("cell", ["", "NA", "nan"])
def test_a_gap_in_a_row_for_a_model_must_be_filled_in(folder, table, cell):
    first = ",".join([cell, *(str(number) for number in range(5))])
    (folder / "gap.csv").write_text(f"{','.join(NAMES)}\n{first}\n")
    done = call("predict", "model", "gap.csv", code=1)
    assert "line 2, column 'f0'" in done.stderr
    assert done.stderr.endswith("; fill it in, or fit the model again with --impute\n")
    (folder / "gap.csv").write_text(f"{','.join(NAMES)}\n1,2,3,4,5,many\n1,2,3,4,5,6\n")
    done = call("predict", "model", "gap.csv", code=1)
    assert "'many' is not a number; fix it, because the model needs the column" in done.stderr
    table.assign(f0=np.nan).to_parquet("gap.parquet")
    done = call("predict", "model", "gap.parquet", code=1)
    assert "no value in row 0 (counted from 0); fill it in, or fit with --impute" in done.stderr


def test_compare_needs_as_many_rows_as_folds(folder, table):
    few = table.groupby("kind").head(3)
    few.to_csv("few.csv", index=False)
    options = ("--methods", "euclid")
    done = call("compare", "few.csv", *options, code=1)
    assert (
        "no class has as many rows as there are folds, 5: the largest, 'ant', has 3; lower --folds "
        "to at most 3"
    ) in done.stderr
    call("compare", "few.csv", *options, "--folds", 3)
    rare = pandas.concat([table, table.head(1).assign(kind="dog")])
    rare.to_csv("rare.csv", index=False)
    done = call("compare", "rare.csv", *options)
    assert (
        "1 of 4 classes have fewer rows than there are folds, 5, such as 'dog' with 1 row"
    ) in done.stderr
    assert "least populated" not in done.stderr
    table.assign(kind=[f"row {number}" for number in range(60)]).to_csv("single.csv", index=False)
    done = call("compare", "single.csv", *options, code=1)
    assert "each of 60 classes, such as 'row 0', has 1 row" in done.stderr


def test_the_first_line_of_a_file_of_labels_is_shown(folder, table):
    table[NAMES].to_csv("features.csv", index=False)
    labels = pandas.DataFrame({"who": [f"p{place}" for place in range(60)], "sort": table["kind"]})
    labels.to_csv("labels.csv", index=False)
    done = call("fit", "features.csv", "labels.csv", "-o", "m", *QUICK, code=1)
    assert "labels.csv has 2 columns, and its first line is 'who, sort'" in done.stderr
    assert "if that line is a header (--header), its name, as --label sort" in done.stderr
    call("fit", "features.csv", "labels.csv", "-o", "m", "--label", "sort", *QUICK)
    call("fit", "features.csv", "labels.csv", "-o", "m", "--header", "--label", 2, *QUICK)
    done = call("fit", "features.csv", "labels.csv", "-o", "m", "--header", *QUICK, code=1)
    assert "labels.csv has 2 columns (who, sort): name one with --label" in done.stderr


def test_labels_that_the_model_does_not_know_are_put_beside_those_it_knows(folder, table):
    table.assign(kind=table["kind"].str.upper()).to_csv("capitals.csv", index=False)
    done = call("evaluate", "model", "capitals.csv", code=1)
    assert "such as 'ANT'; it knows 'ant', 'bee', 'cow': only capitals differ" in done.stderr
    table.assign(kind="elk").to_csv("others.csv", index=False)
    done = call("evaluate", "model", "others.csv", code=1)
    assert done.stderr.endswith("it knows 'ant', 'bee', 'cow'\n")
    table.assign(kind=np.arange(60) % 2).to_csv("numbers.csv", index=False)
    call("fit", "numbers.csv", "--label", "kind", "-o", "numbers", *QUICK)
    table.assign(kind=7).to_csv("sevens.csv", index=False)
    done = call("evaluate", "numbers", "sevens.csv", code=1)
    assert done.stderr.endswith("such as 7; it knows 0, 1\n")
    many = table.assign(kind=[f"kind {place % 7}" for place in range(60)])
    many.to_csv("many.csv", index=False)
    call("fit", "many.csv", "-o", "many", *QUICK)
    done = call("evaluate", "many", "others.csv", code=1)
    assert done.stderr.endswith("'kind 3', 'kind 4' and 2 more\n")


def test_a_misspelt_file_gets_a_suggestion(folder):
    done = call("fit", "trains.csv", "-o", "m", code=1)
    assert "trains.csv does not exist; did you mean 'train.csv'?" in done.stderr
    done = call("predict", "models", "train.csv", code=1)
    assert "models: no such file or directory; did you mean 'model'?" in done.stderr
    assert "did you mean" not in call("fit", "other.npy", "-o", "m", code=1).stderr
    assert "did you mean" not in call("fit", "nowhere/train.csv", "-o", "m", code=1).stderr


def test_a_misspelt_word_of_an_option_gets_a_suggestion(folder):
    done = call("fit", "train.csv", "-o", "m", "--impute", "meadian", code=2)
    told = " ".join(done.stderr.replace("│", " ").split())
    assert (
        "'meadian' is not one of 'median', 'mean', 'most_frequent'. Did you mean 'median'?" in told
    )
    assert "Value error" not in told
    done = call("fit", "train.csv", "-o", "m", "--impute", "zzz", code=2)
    assert "Did you mean" not in done.stderr
