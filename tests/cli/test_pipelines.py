"""Commands with steps before the estimator: built by fit, and used by all others."""

import json

import joblib
import numpy as np
import onnxruntime
import pandas
import pytest
from helpers import call
from page_reader import Page
from pipelines import make_frame, make_numbers, model
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric import load, save

WORDS = np.array(["ant", "bee", "cow"])
FEW = ("--max-iter", 1, "--refine", 0, "--n-steps", 200, "--random-state", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables with missing numbers and a column of words, and a pipeline fitted to one."""
    folder = tmp_path_factory.mktemp("pipelines")
    for name, n_rows, seed in (("train", 120, 0), ("test", 45, 1)):
        frame, y = make_frame(n_rows, seed)
        frame = frame.round(6).assign(kind=WORDS[y])
        if name == "test":
            frame.loc[3, "color"] = "mauve"  # a category that the fit has not seen
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.to_parquet(folder / f"{name}.parquet")
    call("fit", folder / "train.csv", "-o", folder / "model", "--label", "kind", "--impute",
         "median", "--one-hot", "color", *FEW)  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def pipeline(folder):
    return load(folder / "model")


@pytest.fixture(scope="module")
def rows(folder):
    return pandas.read_csv(folder / "test.csv").drop(columns="kind")


def test_fit_builds_a_pipeline(folder, pipeline, rows):
    assert isinstance(pipeline, Pipeline)
    assert [name for name, _ in pipeline.steps] == ["columns", "mapml"]
    assert pipeline.feature_names_in_.tolist() == rows.columns.tolist()
    train = pandas.read_csv(folder / "train.csv")
    imputed = pipeline[0].named_transformers_["numbers"].statistics_
    np.testing.assert_allclose(imputed, train[["size", "weight", "grade"]].median())
    (known,) = pipeline[0].named_transformers_["one_hot"].categories_
    assert known.tolist() == ["blue", "green", "red"]


def test_normalize_and_impute_without_words(folder, tmp_path):
    call("fit", folder / "train.csv", "-o", tmp_path / "model", "--label", "kind", "--ignore",
         "color", "--impute", "mean", "--normalize", *FEW)  # fmt: skip
    pipeline = load(tmp_path / "model")
    assert [name for name, _ in pipeline.steps] == ["impute", "normalize", "mapml"]
    done = call("latents", tmp_path / "model")
    assert "as they are after the steps: the step 'normalize'" in done.stderr
    assert done.stdout.startswith("latent,label,rows,feature 0,feature 1,feature 2\n")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predict(folder, pipeline, rows, ending):
    done = call("predict", folder / "model", folder / f"test.{ending}", "--proba", "--json")
    answers = json.loads(done.stdout)
    assert answers["label"] == pipeline.predict(rows).tolist()
    found = np.column_stack([answers[word] for word in WORDS])
    np.testing.assert_allclose(found, pipeline.predict_proba(rows), atol=1e-9)


def test_other_commands(folder, pipeline, rows):
    labels = pandas.read_csv(folder / "test.csv")["kind"]
    test = folder / "test.csv"
    facts = json.loads(call("evaluate", folder / "model", test, "--label", "kind", "--json").stdout)
    assert facts["errors"] == (pipeline.predict(rows) != labels).sum()
    near = json.loads(call("neighbors", folder / "model", test, "-k", 1, "--json").stdout)
    found = pipeline[-1].kneighbors(pipeline[:-1].transform(rows).astype(float), 1)[1]
    assert near["references"] == found.tolist()
    doubts = call("doubts", test, "--label", "kind", "--model", folder / "model", "--json")
    assert len(json.loads(doubts.stdout)["row"]) == len(rows)
    info = json.loads(call("info", folder / "model", "--json").stdout)
    assert (info["features"], info["estimator"]) == (4, "MaPML")
    assert info["feature_names"] == rows.columns.tolist()
    assert "OneHotEncoder" in info["steps"][0]["step"]
    assert "steps before the estimator: ColumnTransf" in call("info", folder / "model").stdout


def test_latents_are_in_the_units_of_the_file(folder, pipeline):
    call("latents", folder / "model", "-o", folder / "latents.csv")
    found = pandas.read_csv(folder / "latents.csv")
    names = ["latent", "label", "rows", "size", "weight", "grade", "color"]
    assert found.columns.tolist() == names
    assert set(found["color"]) <= {"red", "green", "blue"}
    np.testing.assert_allclose(found["size"], pipeline[-1].latent_examples_[:, 0])


def test_fit_says_how_many_features_the_columns_became(folder):
    done = call("fit", folder / "train.csv", "--label", "kind", "--impute", "median", "--one-hot",
                "color", "--no-check", "-o", folder / "counted")  # fmt: skip
    assert "6 features made from 4 columns" in done.stdout


def test_report_shows_the_units_of_the_file(folder):
    out = folder / "report.html"
    call("report", folder / "model", folder / "test.csv", "--label", "kind", "--train",
         folder / "train.csv", "-o", out)  # fmt: skip
    page = Page.read(out)
    data = page.section("data").text
    assert "4: size, weight, grade, color" in data
    assert "columns (ColumnTransformer), to 6 features" in data
    gallery = page.section("gallery").text
    assert "size" in gallery
    assert "color" in gallery


def test_export(folder, pipeline, rows):
    call("export", folder / "model", "--to", "sklearn", "-o", folder / "model.joblib")
    exported = joblib.load(folder / "model.joblib")
    np.testing.assert_array_equal(exported.predict(rows), pipeline.predict(rows))
    done = call("export", folder / "model", "--to", "faiss", "-o", folder / "model.faiss")
    assert "queries pass pipeline[:-1].transform first" in done.stderr
    call("export", folder / "model", "--to", "onnx", "-o", folder / "model.onnx")
    inputs = onnxruntime.InferenceSession(folder / "model.onnx").get_inputs()
    assert [column.name for column in inputs] == ["size", "weight", "grade", "color"]


def test_doubts_and_compare_build_steps_too(folder):
    options = ("--label", "kind", "--impute", "most_frequent", "--one-hot", "color")
    done = call("doubts", folder / "train.csv", *options, *FEW, "--most", 2, "--json")
    assert len(json.loads(done.stdout)["row"]) == 2
    done = call("compare", folder / "train.csv", *options, "--methods", "euclid", "--folds", 2,
                "--normalize", "--json")  # fmt: skip
    assert json.loads(done.stdout)[0]["error"] < 0.6
    call("doubts", folder / "train.csv", *options, "--model", folder / "model", code=2)


def test_a_pipeline_made_in_python(tmp_path):
    X, y = make_numbers()
    pipeline = make_pipeline(StandardScaler(), model()).fit(X, y)
    save(pipeline, tmp_path / "model")
    np.save(tmp_path / "rows.npy", X)
    done = call("predict", tmp_path / "model", tmp_path / "rows.npy", "--json")
    assert json.loads(done.stdout)["label"] == pipeline.predict(X).tolist()


def test_what_is_refused(folder, tmp_path):
    common = ("-o", tmp_path / "model", "--label", "kind")
    done = call("fit", folder / "train.csv", *common, code=1)
    assert "as categories with --one-hot color (fit, compare, doubts)" in done.stderr
    done = call("fit", folder / "train.csv", *common, "--ignore", "color", code=1)
    assert "the cell is empty (fit and compare fill it in with --impute median)" in done.stderr
    done = call("fit", folder / "train.csv", *common, "--one-hot", "hue", code=1)
    assert "has no column 'hue'" in done.stderr
    done = call("fit", folder / "train.csv", *common, "--one-hot", "kind", code=1)
    assert "'kind' is a feature and cannot be the labels too" in done.stderr
    (tmp_path / "bare.csv").write_text("1,red,a\n2,blue,b\n" * 9)
    done = call("fit", tmp_path / "bare.csv", "-o", tmp_path / "model", "--label", 3, "--one-hot",
                2, "--no-header", code=1)  # fmt: skip
    assert "does not name its columns" in done.stderr
    (tmp_path / "empty.csv").write_text("a,b,label\n" + "1,,x\n2,NA,y\n" * 9)
    done = call("fit", tmp_path / "empty.csv", "-o", tmp_path / "model", "--impute", "mean", code=1)
    assert "column 'b' has no number in any of 18 rows" in done.stderr
    np.savez(tmp_path / "rows.npz", X=np.eye(4), y=np.arange(4) % 2)
    done = call("fit", tmp_path / "rows.npz", "-o", tmp_path / "model", "--one-hot", "1", code=1)
    assert "--one-hot has no meaning for it" in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_identifiers_are_no_categories(folder, tmp_path, command):
    table = pandas.read_csv(folder / "train.csv")
    table["who"] = [f"patient {number}" for number in range(len(table))]
    table.to_csv(tmp_path / "named.csv", index=False)
    out = ("-o", tmp_path / "model") if command == "fit" else ()
    done = call(command, tmp_path / "named.csv", "--label", "kind", "--impute", "median",
                "--one-hot", "color,who", *out, code=1)  # fmt: skip
    assert f"'who' has {len(table)} different values in {len(table)} rows" in done.stderr
    assert "--id" in done.stderr
    assert not (tmp_path / "model").exists()
