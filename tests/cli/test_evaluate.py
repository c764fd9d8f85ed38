"""``evaluate`` and ``compare``, compared with the library."""

import json

import numpy as np
import pandas
import pytest
from helpers import call, make_blobs
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import latentmetric
from latentmetric import evaluation, save
from latentmetric.cli import evaluate as module

WORDS = np.array(["ant", "bee", "cow"])


def test_evaluate(folder, model, test_rows):
    predicted = model.predict(test_rows.drop(columns="kind"))
    wrong = predicted != test_rows["kind"]
    facts = json.loads(call("evaluate", "model", "test.csv", "--json").stdout)
    assert facts["errors"] == wrong.sum() > 0
    assert facts["error"] == pytest.approx(wrong.mean())
    by_class = {line["label"]: line for line in facts["classes"]}
    for name in WORDS:
        of_class = test_rows["kind"] == name
        assert by_class[name]["rows"] == of_class.sum()
        assert by_class[name]["error"] == pytest.approx(wrong[of_class].mean())
        assert by_class[name]["precision"] == pytest.approx(1 - wrong[predicted == name].mean())
    pairs = pandas.crosstab(test_rows["kind"], predicted)
    for pair in facts["confused"]:
        assert pair["rows"] == pairs.loc[pair["label"], pair["taken_for"]]
    counts = [pair["rows"] for pair in facts["confused"]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == wrong.sum()
    shares = model.predict_proba(test_rows.drop(columns="kind"))
    own = shares[np.arange(60), np.searchsorted(WORDS, test_rows["kind"])]
    assert facts["log_loss"] == pytest.approx(-np.log(np.maximum(own, 1e-3)).mean())
    shown = call("evaluate", "model", "test.csv").stdout
    assert f"({wrong.sum()} of 60 rows)" in shown
    assert "Most confused" in shown
    shown = call("evaluate", "model", "test.csv", "--pairs", 0).stdout
    assert "Most confused" not in shown


def test_the_worst_classes_are_shown(folder, monkeypatch):
    monkeypatch.setattr(module, "CLASSES_SHOWN", 2)
    shown = call("evaluate", "euclidean", "test.csv").stdout
    assert "By class, the worst first (2 of 3; --json has all)" in shown
    assert "logarithmic loss" not in shown


def test_rows_of_unknown_labels_are_errors_and_counted(folder, test_rows):
    half = test_rows.assign(kind=np.where(np.arange(60) < 30, "yak", test_rows["kind"]))
    half.to_csv("half.csv", index=False)
    facts = json.loads(call("evaluate", "model", "half.csv", "--json").stdout)
    assert facts["unknown_rows"] == 30
    assert facts["errors"] >= 30
    assert "30 have a label that the model does not know" in (
        call("evaluate", "model", "half.csv").stdout
    )
    test_rows.assign(kind="yak").to_csv("yaks.csv", index=False)
    done = call("evaluate", "model", "yaks.csv", code=1)
    assert done.stderr.endswith("such as 'yak'; it knows 'ant', 'bee', 'cow'\n")


@pytest.mark.parametrize(
    ("classes", "written"),
    [
        (["0", "1", "2"], ["0", "1", "2"]),
        ([0, 1, 2], ["0.00", "+1", "2e0"]),
        ([0.5, 1.0, 2.0], ["0.5", "1", "2"]),
        ([False, True, True], ["False", "TRUE", "true"]),
    ],
    ids=["text", "integers", "floats", "booleans"],
)
def test_labels_match_however_they_are_written(folder, classes, written):
    X, y = make_blobs()
    labels = np.array(classes)[y]
    if labels.dtype.kind == "f":
        labels = labels.astype(np.float64) * 2  # scikit-learn takes no fractions for classes
        written = ["1", "2.0", "4"]
    model = latentmetric.Euclidean(n_neighbors=1).fit(X, labels)
    save(model, "typed")
    np.save("rows.npy", X)
    (folder / "labels.txt").write_text("\n".join(np.array(written)[y]))
    facts = json.loads(call("evaluate", "typed", "rows.npy", "labels.txt", "--json").stdout)
    assert (facts["unknown_rows"], facts["errors"]) == (0, 0)


def test_compare(folder):
    done = call("compare", "train.csv", "--methods", "euclid,MAPML,mapml-o", "--folds", 2,
                "--max-rows", 100, "--json")  # fmt: skip
    assert "100 rows drawn at random from 180" in done.stderr
    assert "MaPML, fold 2 of 2" in done.stderr
    found = json.loads(done.stdout)
    assert [line["method"] for line in found] == ["majority class", "Euclid", "MaPML", "MaPML-O"]
    for line in found:
        assert len(line["errors"]) == 2
        assert line["error"] == pytest.approx(np.mean(line["errors"]))
        assert line["std"] == pytest.approx(np.std(line["errors"]))
    assert [line["references"] for line in found[:2]] == [0, 50]
    assert sum(line["recommended"] for line in found) == 1
    shown = call("compare", "train.csv", "--methods", "euclid", "--folds", 2).stdout
    assert "2 of 2" in shown
    assert "Use " not in shown, "one method is no comparison"


def test_compare_random_labels(folder, rng):
    table = pandas.DataFrame(rng.standard_normal((60, 3)), columns=list("abc"))
    table["label"] = rng.permutation(np.repeat(["no", "yes"], 30))
    table.to_csv("coin.csv", index=False)
    options = ("--methods", "euclid,Logistic-Regression,random forest", "--folds", 2)
    shown = call("compare", "coin.csv", *options).stdout
    assert "majority class" in shown
    assert "50.00 %" in shown
    assert "nothing beats always saying 'no'" in shown
    found = json.loads(call("compare", "coin.csv", *options, "--json").stdout)
    assert not any(line["recommended"] for line in found)


@pytest.fixture
def unequal(folder, rng):
    """A tenth of the rows are of the second class."""
    table = pandas.DataFrame(rng.standard_normal((200, 3)), columns=list("abc"))
    table["label"] = np.where(table["a"] > table["a"].quantile(0.9), "yes", "no")
    table.to_csv("rare.csv", index=False)
    return table


@pytest.mark.parametrize("weights", ["uniform", "kernel"])
def test_evaluate_unequal_classes(unequal, weights):
    X, y = unequal[["a", "b", "c"]], unequal["label"]
    model = latentmetric.Euclidean(5, weights=weights).fit(X.iloc[:150], y.iloc[:150])
    save(model, "rare")
    facts = json.loads(call("evaluate", "rare", "rare.csv", "--json").stdout)
    assert (facts["most_frequent"], facts["base_error"]) == ("no", pytest.approx(0.1))
    assert facts["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, model.predict(X)))
    assert facts["auc"] == pytest.approx(roc_auc_score(y == "yes", model.predict_proba(X)[:, 1]))
    shown = call("evaluate", "rare", "rare.csv").stdout
    assert "always saying 'no' has an error of 10.00 %; balanced accuracy" in shown
    assert f"AUC {facts['auc']:.3f}" in shown
    assert "base_error" not in json.loads(call("evaluate", "model", "test.csv", "--json").stdout)


def test_compare_unequal_classes(unequal):
    options = ("--methods", "euclid,boosting", "--folds", 3)  # of 20 rare rows
    shown = call("compare", "rare.csv", *options).stdout
    assert "balanced accuracy" in shown
    assert "AUC" in shown
    assert "the balanced accuracy is highest with " in shown
    first, *others = json.loads(call("compare", "rare.csv", *options, "--json").stdout)
    assert (first["balanced_accuracy"], first["auc"]) == (0.5, 0.5)
    assert [line["method"] for line in others] == ["Euclid", "HistGradientBoosting"]
    assert all(0.5 < line["auc"] <= 1 for line in others)
    highest = max(others, key=lambda line: line["balanced_accuracy"])
    told = f"highest with {highest['method']}, {100 * highest['balanced_accuracy']:.2f} %"
    assert told in shown


def test_an_interrupted_comparison_prints_the_folds_it_has(folder, monkeypatch):
    whole = evaluation.compare

    def interrupted(*arguments, **options):
        yield next(iter(whole(*arguments, **options)))
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "compare", interrupted)
    done = call("compare", "train.csv", "--methods", "euclid,mapml", "--folds", 2, code=130)
    assert "Interrupted; the table holds the folds that were finished." in done.stderr
    assert "1 of 2" in done.stdout
    assert "MaPML" not in done.stdout


@pytest.mark.filterwarnings("default:The least populated class")
def test_classes_with_fewer_rows_than_folds(folder, train):
    few = train.groupby("kind").head(3)
    few.to_csv("few.csv", index=False)
    done = call("compare", "few.csv", "--methods", "euclid", code=1)
    assert "as there are folds, 5: the largest, 'ant', has 3; lower --folds" in done.stderr
    call("compare", "few.csv", "--methods", "euclid", "--folds", 3)
    rare = pandas.concat([train, train.head(1).assign(kind="dog")])
    rare.to_csv("rare.csv", index=False)
    assert "Warning: " in call("compare", "rare.csv", "--methods", "euclid").stderr
