"""Estimators from options, and commands with steps before them: built by fit, used by all."""

import json

import numpy as np
import pandas
import pytest
import typer
from helpers import call
from pipelines import make_frame
from sklearn.pipeline import Pipeline

from latentmetric import load
from latentmetric.cli._estimators import Parameters

WORDS = np.array(["ant", "bee", "cow"])
FEW = ("--set", "max_iter=1", "--set", "refine=0", "--set", "n_steps=200")
STEPS = ("--label", "kind", "--impute", "median", "--one-hot", "color")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("metric_reg=1e-3", 1e-3),
        ("early-stopping=true", True),
        ("n_components=none", None),
        ("unlabelled=007", "007"),
        ("class_weight={'ant': 2}", {"ant": 2}),
    ],
)
def test_any_parameter_can_be_set(setting, value):
    name = setting.split("=")[0].strip().replace("-", "_")
    assert Parameters(set_=[setting]).estimator("MaPML").get_params()[name] == value


def test_options_of_their_own_and_defaults_of_commands():
    made = Parameters("4", ["random_state=3"]).estimator("mapml", label_noise=True)
    assert (made.n_latents, made.random_state, made.label_noise) == (4, 3, True)


@pytest.mark.parametrize(
    ("name", "setting", "n_latents", "message"),
    [
        ("mapml", "max_itr=3", None, "Invalid parameter 'max_itr' for estimator MaPML"),
        ("mapml", "max_iter", None, "'max_iter' is not NAME=VALUE"),
        ("mapml", "max_iter=many", None, "max_iter must be an integer, got 'many'"),
        ("mapml", "random_state=-1", None, "random_state must be None, an integer from 0 to"),
        ("mapml", None, "2.5", "n_latents must be above 0 and at most 1, got 2.5"),
        ("lmnn", None, "0.1", "Invalid parameter 'n_latents' for estimator LMNN"),
        ("mapl", None, None, "'mapl' is not one of mapml, lmnn, oasis"),
    ],
)
def test_wrong_parameters_are_usage_errors(name, setting, n_latents, message):
    with pytest.raises(typer.BadParameter) as raised:
        Parameters(n_latents, setting and [setting]).estimator(name)
    assert message in str(raised.value)


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Tables with missing numbers and a column of words, and a pipeline fitted to one."""
    folder = tmp_path_factory.mktemp("pipelines")
    for name, n_rows, seed in (("train", 120, 0), ("test", 45, 1)):
        frame, y = make_frame(n_rows, seed)
        frame = frame.round(6).assign(kind=WORDS[y])
        if name == "test":
            frame.loc[3, "color"] = "mauve"  # a category that the fit has not seen
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_parquet(folder / f"{name}.parquet")
    done = call("fit", folder / "train.csv", "-o", folder / "model", *STEPS, *FEW)
    assert "6 features made from 4 columns" in done.stdout
    return folder


@pytest.fixture
def pipeline(frames, monkeypatch):
    monkeypatch.chdir(frames)
    return load("model")


@pytest.fixture
def rows(frames):
    return pandas.read_csv(frames / "test.csv").drop(columns="kind")


def test_fit_builds_a_pipeline(pipeline, rows):
    assert isinstance(pipeline, Pipeline)
    assert [name for name, _ in pipeline.steps] == ["columns", "mapml"]
    assert pipeline.feature_names_in_.tolist() == rows.columns.tolist()
    train = pandas.read_csv("train.csv")
    imputer = pipeline[0].named_transformers_["numbers"]
    np.testing.assert_allclose(imputer.statistics_, train[["size", "weight", "grade"]].median())
    assert imputer.feature_names_in_.tolist() == ["size", "weight", "grade"]
    (known,) = pipeline[0].named_transformers_["one_hot"].categories_
    assert known.tolist() == ["blue", "green", "red"]


def test_normalize_and_impute_without_words(pipeline, tmp_path):
    call("fit", "train.csv", "-o", tmp_path / "model", "--label", "kind", "--ignore", "color",
         "--impute", "mean", "--normalize", *FEW)  # fmt: skip
    names = [name for name, _ in load(tmp_path / "model").steps]
    assert names == ["impute", "normalize", "mapml"]
    done = call("latents", tmp_path / "model")
    assert "as they are after the steps: " in done.stderr
    assert done.stdout.startswith("latent,label,rows,feature 0,feature 1,feature 2\n")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict(pipeline, rows, ending):
    done = call("predict", "model", f"test.{ending}", "--proba", "--json")
    assert "Warning: column 'color' has a value that the model was not fitted with in 1 of 45 " in (
        done.stderr
    )
    answers = json.loads(done.stdout)
    assert answers["label"] == pipeline.predict(rows).tolist()
    found = np.column_stack([answers[word] for word in WORDS])
    np.testing.assert_allclose(found, pipeline.predict_proba(rows), atol=1e-9)


def test_other_commands(pipeline, rows, tmp_path):
    labels = pandas.read_csv("test.csv")["kind"]
    facts = json.loads(call("evaluate", "model", "test.csv", "--json").stdout)
    assert facts["errors"] == (pipeline.predict(rows) != labels).sum()
    near = json.loads(call("neighbors", "model", "test.csv", "-k", 1, "--json").stdout)
    found = pipeline[-1].kneighbors(pipeline[:-1].transform(rows).astype(float), 1)[1]
    assert near["references"] == found.tolist()
    doubts = call("doubts", "test.csv", "--model", "model", "--json")
    assert len(json.loads(doubts.stdout)["row"]) == len(rows)
    info = json.loads(call("info", "model", "--json").stdout)
    assert (info["features"], info["estimator"]) == (4, "MaPML")
    assert "OneHotEncoder" in info["steps"][0]["step"]
    assert "steps: ColumnTransf" in call("info", "model").stdout
    done = call("export", "model", "--to", "faiss", "-o", tmp_path / "model.faiss")
    assert "queries pass pipeline[:-1].transform first" in done.stderr
    call("report", "model", "test.csv", "--quick", "-o", tmp_path / "report.html")


def test_latents_are_in_the_units_of_the_file(pipeline, tmp_path):
    call("latents", "model", "-o", tmp_path / "latents.csv")
    found = pandas.read_csv(tmp_path / "latents.csv")
    names = ["latent", "label", "rows", "size", "weight", "grade", "color"]
    assert found.columns.tolist() == names
    assert set(found["color"]) <= {"red", "green", "blue"}
    np.testing.assert_allclose(found["size"], pipeline[-1].latent_examples_[:, 0])


def test_doubts_and_compare_build_steps_too(pipeline):
    done = call("doubts", "train.csv", *STEPS, *FEW, "--most", 2, "--json")
    assert len(json.loads(done.stdout)["row"]) == 2
    done = call("compare", "train.csv", *STEPS, "--methods", "euclid", "--folds", 2, "--normalize",
                "--json")  # fmt: skip
    assert json.loads(done.stdout)[1]["error"] < 0.6  # after the majority class


@pytest.mark.parametrize("command", [("fit", "-o", "new"), ("compare",)])
def test_identifiers_are_no_categories(pipeline, tmp_path, command):
    table = pandas.read_csv("train.csv")
    table["who"] = [f"patient {number}" for number in range(len(table))]
    table.to_csv(tmp_path / "named.csv", index=False)
    done = call(*command, tmp_path / "named.csv", *STEPS, "--one-hot", "who", code=1)
    assert "column 'who' has 120 different values in 120 rows" in done.stderr
    assert "--id" in done.stderr
