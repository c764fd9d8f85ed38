"""Each command, called in this process, compared with the library."""

import inspect
import json
from importlib import import_module

import joblib
import numpy as np
import pandas
import pyarrow.parquet
import pytest
from helpers import call, make_blobs
from page_reader import Page
from typer.main import get_command

import latentmetric
from latentmetric import save
from latentmetric.characters import percent, told_apart
from latentmetric.cli._docstrings import docstring_of
from latentmetric.cli._parameters import KINDS
from latentmetric.cli.main import COMMANDS, application
from latentmetric.core.starts import STARTS
from latentmetric.persistence.model_file import read_model_file, write_model_file

WORDS = np.array(["ant", "bee", "cow"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of labelled rows with named columns, and test rows."""
    folder = tmp_path_factory.mktemp("commands")
    X, y = make_blobs()
    X = X.round(6)  # pandas before 3 reads more digits inexactly
    names = [f"f{place}" for place in range(6)]
    train = pandas.DataFrame(X[:180], columns=names).assign(kind=WORDS[y[:180]])
    test = pandas.DataFrame(X[180:], columns=names).assign(kind=WORDS[y[180:]])
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    test.drop(columns="kind")[names[::-1]].to_csv(folder / "turned.csv")
    call(
        "fit", folder / "train.csv", "-o", folder / "model", "--random-state", 0,
        "--n-latents", 0.2, "--weights", "kernel",
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return latentmetric.load(folder / "model")


@pytest.fixture(scope="module")
def test_rows(folder):
    return pandas.read_csv(folder / "test.csv")


def test_fit_agrees_with_the_library(folder, model):
    train = pandas.read_csv(folder / "train.csv")
    same = latentmetric.MaPML(n_latents=0.2, weights="kernel", random_state=0)
    rows = np.ascontiguousarray(train.drop(columns="kind"))
    same.fit(rows, train["kind"].to_numpy(str))
    np.testing.assert_array_equal(model.components_, same.components_)
    assert model.feature_names_in_.tolist() == train.columns[:-1].tolist()
    assert model.get_params() == same.get_params()


@pytest.mark.parametrize("name", ["lmnn", "oasis", "hrsgd", "euclidean"])
def test_every_estimator_can_be_fitted(folder, tmp_path, name):
    call("fit", folder / "train.csv", "-o", tmp_path / "model", "--estimator", name)
    loaded = latentmetric.load(tmp_path / "model")
    assert type(loaded).__name__.lower() == name
    done = call("evaluate", tmp_path / "model", folder / "test.csv", "--json")
    assert json.loads(done.stdout)["rows"] == 60


def test_every_parameter_of_every_estimator_is_an_option():
    from latentmetric.cli._parameters import KINDS, NOT_OFFERED, described
    from latentmetric.cli.fit import fit

    options = inspect.signature(fit).parameters
    for kind in KINDS.values():
        parameters = inspect.signature(kind).parameters
        assert set(described(kind)) == set(parameters)
        assert set(parameters) - set(NOT_OFFERED) <= set(options)


@pytest.mark.parametrize(
    "thing",
    [
        *KINDS.values(),
        *[getattr(import_module(f"latentmetric.cli.{name}"), name) for name in COMMANDS],
    ],
    ids=lambda thing: thing.__name__,
)
def test_docstrings_are_found_in_the_source_where_python_drops_them(thing, monkeypatch):
    """As ``python -OO`` does; the texts of options come from them."""
    expected = inspect.getdoc(thing)
    assert docstring_of(thing) == expected
    monkeypatch.setattr(thing, "__doc__", None)
    assert docstring_of(thing) == expected


def test_without_its_source_a_docstring_is_empty():
    made = {}
    exec("def bare(): pass", made)
    assert docstring_of(made["bare"]) == ""


def test_fit_reports_the_kept_round(folder, tmp_path):
    arguments = ("fit", folder / "train.csv", "-o", tmp_path / "model", "--early-stopping")
    facts = json.loads(call(*arguments, "--json").stdout)
    loaded = latentmetric.load(tmp_path / "model")
    assert facts["kept_round"] == loaded.best_iter_
    errors = {record["round"]: record["validation_error"] for record in loaded.history_}
    assert facts["validation_error"] == errors[loaded.best_iter_] == min(errors.values())
    assert (facts["classes"], facts["features"], facts["interrupted"]) == (3, 6, False)
    assert "validation error" in call(*arguments).stdout


def test_the_same_call_gives_the_same_model(folder, tmp_path):
    for name in ("one", "two"):
        call("fit", folder / "train.csv", "-o", tmp_path / name, "--no-check")
    one, two = (latentmetric.load(tmp_path / name) for name in ("one", "two"))
    np.testing.assert_array_equal(one.latent_examples_, two.latent_examples_)
    assert one.random_state == 0
    assert "(default: 0)" in call("fit", "--help").stdout


def test_fit_reports_the_start_the_refinement_and_the_leave_one_out_error(folder, tmp_path):
    arguments = ("fit", folder / "train.csv", "-o", tmp_path / "model", "--random-state", 0)
    done = call(*arguments)
    model = latentmetric.load(tmp_path / "model")
    first, kept = model.history_[0], model.history_[model.best_iter_]
    assert f"MaPML, start {first['start']}, round {kept['round']} (refinement " in done.stdout
    error = f", error on training rows {percent(kept['loo_error'])} (no estimate for new rows), "
    assert error in done.stdout
    lines = done.stderr.splitlines()
    for record in model.history_[5:7]:
        refined = " (refinement 1)" if record["round"] == 6 else ""
        shown = f"round {record['round']} of 8{refined}: error on training rows "
        assert sum(line.startswith(shown + percent(record["loo_error"])) for line in lines) == 1
    facts = json.loads(call(*arguments, "--overwrite", "--json").stdout)
    assert facts["start"] == first["start"]
    assert (facts["loss"], facts["loo_error"]) == (kept["loss"], kept["loo_error"])
    assert "validation_error" not in facts


def test_fit_reports_no_start_of_estimators_that_have_none(folder, tmp_path):
    arguments = ("fit", folder / "train.csv", "-o", tmp_path / "model", "--estimator", "lmnn")
    shown = call(*arguments).stdout
    assert "LMNN, round " in shown
    assert "start" not in json.loads(call(*arguments, "--overwrite", "--json").stdout)


def test_predict_as_csv_json_and_files(folder, model, test_rows, tmp_path):
    expected = model.predict(test_rows.drop(columns="kind")).tolist()
    lines = call("predict", folder / "model", folder / "test.csv").stdout.splitlines()
    assert lines[0] == "row,label"
    assert [line.split(",")[1] for line in lines[1:]] == expected
    found = json.loads(call("predict", folder / "model", folder / "test.csv", "--json").stdout)
    assert found["label"] == expected
    for name in ("out.csv", "out.tsv", "out.parquet", "out.npy"):
        call("predict", folder / "model", folder / "test.csv", "-o", tmp_path / name)
    assert pandas.read_csv(tmp_path / "out.csv")["label"].tolist() == expected
    assert pandas.read_csv(tmp_path / "out.tsv", sep="\t")["label"].tolist() == expected
    read = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert read.column("label").to_pylist() == expected
    assert np.load(tmp_path / "out.npy").tolist() == expected


def test_columns_are_found_by_name(folder):
    straight = call("predict", folder / "model", folder / "test.csv").stdout
    assert call("predict", folder / "model", folder / "turned.csv").stdout == straight


def test_probabilities(folder, model, test_rows, tmp_path):
    expected = model.predict_proba(test_rows.drop(columns="kind"))
    call("predict", folder / "model", folder / "test.csv", "--proba", "-o", tmp_path / "p.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), expected)
    call("predict", folder / "model", folder / "test.csv", "--proba", "-o", tmp_path / "p.csv")
    found = pandas.read_csv(tmp_path / "p.csv")
    assert found.columns.tolist() == ["row", "label", *WORDS]
    np.testing.assert_allclose(found[WORDS].to_numpy(), expected)
    assert found["label"].tolist() == model.predict(test_rows.drop(columns="kind")).tolist()


def test_probabilities_of_classes_named_like_other_columns(folder, tmp_path):
    """No column overwrites another, in text or in JSON."""
    X, y = make_blobs()
    np.save(tmp_path / "rows.npy", X)
    names = np.array(["label", "probability of row", "row"])
    model = latentmetric.Euclidean(n_neighbors=4).fit(X, names[y])
    save(model, tmp_path / "model")
    arguments = ("predict", tmp_path / "model", tmp_path / "rows.npy", "--proba")
    call(*arguments, "-o", tmp_path / "out.csv")
    call(*arguments, "-o", tmp_path / "out.npy")
    found, shares = pandas.read_csv(tmp_path / "out.csv"), model.predict_proba(X)
    columns = ["probability of label", "probability of row", "probability of probability of row"]
    assert found.columns.tolist() == ["row", "label", *columns]
    assert found["row"].tolist() == list(range(len(X)))
    assert found["label"].tolist() == names[shares.argmax(axis=1)].tolist()
    np.testing.assert_allclose(found[columns], shares)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), shares)
    answers = json.loads(call(*arguments, "--json").stdout)
    assert list(answers) == ["label", *columns]
    assert answers["label"] == found["label"].tolist()


def test_labels_that_are_objects_become_strings_in_npy(tmp_path):
    X, y = make_blobs()
    np.save(tmp_path / "rows.npy", X)
    model = latentmetric.Euclidean().fit(X, WORDS.astype(object)[y])
    save(model, tmp_path / "model")
    call("predict", tmp_path / "model", tmp_path / "rows.npy", "-o", tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy").tolist() == model.predict(X).tolist()


def test_labels_of_uniform_votes_and_their_probabilities_agree(folder, tmp_path):
    call("fit", folder / "train.csv", "-o", tmp_path / "model", "--n-neighbors", 4)
    plain = call("predict", tmp_path / "model", folder / "test.csv", "--json").stdout
    shares = call("predict", tmp_path / "model", folder / "test.csv", "--proba", "--json").stdout
    assert json.loads(plain)["label"] == json.loads(shares)["label"]


def test_evaluate(folder, model, test_rows):
    predicted = model.predict(test_rows.drop(columns="kind"))
    wrong = predicted != test_rows["kind"]
    facts = json.loads(call("evaluate", folder / "model", folder / "test.csv", "--json").stdout)
    assert facts["errors"] == wrong.sum() > 0
    by_class = {line["label"]: line for line in facts["classes"]}
    for name in WORDS:
        of_class = test_rows["kind"] == name
        assert by_class[name]["rows"] == of_class.sum()
        assert by_class[name]["error"] == pytest.approx(wrong[of_class].mean())
        assert by_class[name]["precision"] == pytest.approx(1 - wrong[predicted == name].mean())
    assert sum(pair["rows"] for pair in facts["confused"]) == wrong.sum()
    shares = model.predict_proba(test_rows.drop(columns="kind"))
    own = shares[np.arange(60), np.searchsorted(WORDS, test_rows["kind"])]
    assert facts["log_loss"] == pytest.approx(-np.log(np.maximum(own, 1e-3)).mean())
    shown = call("evaluate", folder / "model", folder / "test.csv").stdout
    assert f"({wrong.sum()} of 60 rows)" in shown
    assert "Most confused" in shown


def test_long_names_of_classes_stay_different(tmp_path):
    X, y = make_blobs()
    long = "Chronic inflammatory condition of the lower respiratory tract"
    names = np.array([f"{long}, moderate", f"{long}, severe", f"{long * 2}, severe"])
    frame = pandas.DataFrame(X, columns=list("abcdef")).assign(kind=names[y])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    save(latentmetric.Euclidean().fit(X, names[y]), tmp_path / "model")
    shown = call("evaluate", tmp_path / "model", tmp_path / "rows.csv").stdout
    assert all(name in shown for name in told_apart(names, 60))
    shown = call("info", tmp_path / "model").stdout
    assert f"classes: 3: {', '.join(told_apart(names, 40))}" in shown


def test_rows_of_unknown_labels_are_errors_and_counted(folder, test_rows, tmp_path):
    test_rows.assign(kind="yak").to_csv(tmp_path / "yaks.csv", index=False)
    done = call("evaluate", folder / "model", tmp_path / "yaks.csv", code=1)
    assert "knows none of the labels" in done.stderr
    half = test_rows.assign(kind=np.where(np.arange(60) < 30, "yak", test_rows["kind"]))
    half.to_csv(tmp_path / "half.csv", index=False)
    facts = json.loads(call("evaluate", folder / "model", tmp_path / "half.csv", "--json").stdout)
    assert facts["unknown_rows"] == 30
    assert facts["errors"] >= 30


def test_labels_that_look_like_numbers_match_labels_that_are_text(tmp_path):
    X, y = make_blobs()
    np.savez(tmp_path / "train.npz", x=X, y=y.astype(str))
    np.save(tmp_path / "test.npy", X)
    np.savetxt(tmp_path / "labels.txt", y, fmt="%d")
    call("fit", tmp_path / "train.npz", "-o", tmp_path / "model", "--max-iter", 0)
    arguments = (tmp_path / "model", tmp_path / "test.npy", tmp_path / "labels.txt")
    facts = json.loads(call("evaluate", *arguments, "--json").stdout)
    assert facts["unknown_rows"] == 0


def test_labels_that_are_numbers_match_however_they_are_written(tmp_path):
    X, y = make_blobs()
    table = pandas.DataFrame(X).assign(label=y)
    table.to_csv(tmp_path / "train.csv", index=False)
    table.assign(label=np.array(["0.00", "+1", "2e0"])[y]).to_csv(
        tmp_path / "test.csv", index=False
    )
    call("fit", tmp_path / "train.csv", "-o", tmp_path / "m", "--estimator", "euclidean")
    assert latentmetric.load(tmp_path / "m").classes_.tolist() == [0, 1, 2]
    done = call("evaluate", tmp_path / "m", tmp_path / "test.csv", "--json")
    assert json.loads(done.stdout)["unknown_rows"] == 0


def test_neighbors(folder, model, test_rows, tmp_path):
    distances, found = model.kneighbors(test_rows.drop(columns="kind"), 2)
    call("neighbors", folder / "model", folder / "test.csv", "-k", 2, "-o", tmp_path / "n.csv")
    lines = pandas.read_csv(tmp_path / "n.csv")
    assert lines["reference"].tolist() == found.ravel().tolist()
    assert lines["label"].tolist() == model.latent_labels_[found].ravel().tolist()
    np.testing.assert_allclose(lines["distance"], distances.ravel())
    call("neighbors", folder / "model", folder / "test.csv", "-k", 2, "-o", tmp_path / "n.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "n.npy"), found)
    arguments = ("neighbors", folder / "model", folder / "test.csv", "-k", 2, "--json")
    assert json.loads(call(*arguments).stdout)["references"] == found.tolist()


def test_compare(folder):
    done = call(
        "compare", folder / "train.csv", "--methods", "euclid,MAPML,mapml-o", "--folds", 2,
        "--max-rows", 100, "--json",
    )  # fmt: skip
    assert "100 rows drawn at random from 180" in done.stderr
    found = json.loads(done.stdout)
    assert [line["method"] for line in found] == ["Euclid", "MaPML", "MaPML-O"]
    assert all(len(line["errors"]) == 2 for line in found)
    assert found[0]["references"] == 50
    assert sum(line["recommended"] for line in found) == 1
    shown = call("compare", folder / "train.csv", "--methods", "euclid", "--folds", 2).stdout
    assert "Euclid" in shown
    assert "2 of 2" in shown
    assert "Use " not in shown, "one method is no comparison"


def test_compare_with_scikit_learn_and_a_recommendation(folder):
    methods = "euclid-scaled,knn,logistic,svm,forest"
    shown = call("compare", folder / "train.csv", "--methods", methods, "--folds", 2).stdout
    for name in ("Euclid-scaled", "tuned-k-NN", "logistic-regression", "SVC", "random-forest"):
        assert f"  {name} " in shown
    assert "none" in shown, "logistic regression has no references"
    assert shown.splitlines()[-1].startswith("Use ")


@pytest.mark.usefixtures("trial_fits")
def test_fit_says_whether_it_beat_others(folder, tmp_path, monkeypatch):
    arguments = (
        "fit", folder / "train.csv", "-o", tmp_path / "model", "--random-state", 0, "--max-iter", 1,
        "--refine", 0,
    )  # fmt: skip
    shown = call(*arguments).stdout.splitlines()
    assert len(shown) == 2
    assert shown[1].startswith("Error on 60 rows after a trial fit to 120 others: MaPML ")
    checked = latentmetric.load(tmp_path / "model")
    trial = json.loads(call(*arguments, "--json").stdout)["trial"]
    assert list(trial["errors"]) == ["MaPML", "tuned-k-NN", "logistic-regression"]
    assert trial["words"] == shown[1]
    assert "trial" not in json.loads(call(*arguments, "--no-check", "--json").stdout)
    unchecked = latentmetric.load(tmp_path / "model")
    np.testing.assert_array_equal(checked.components_, unchecked.components_)
    monkeypatch.setattr("latentmetric.cli.fit.QUICK_SECONDS", -1)
    slow = call(*arguments)
    assert len(slow.stdout.splitlines()) == 1, "a fit that took long is not compared"
    assert slow.stderr.endswith("; latentmetric compare does that\n")
    assert "compare" not in call(*arguments, "--no-check").stderr


@pytest.mark.usefixtures("trial_fits")
@pytest.mark.parametrize("error", [ValueError, FloatingPointError, MemoryError, KeyboardInterrupt])
def test_a_comparison_that_fails_does_not_fail_the_fit(folder, tmp_path, monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr("latentmetric.comparison.quick_check", fail)
    done = call(
        "fit", folder / "train.csv", "-o", tmp_path / "model", "--estimator", "euclidean",
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == 1
    assert (tmp_path / "model").exists()


def test_info(folder, model):
    facts = json.loads(call("info", folder / "model", "--json").stdout)
    assert facts["classes"] == WORDS.tolist()
    assert facts["feature_names"] == [f"f{place}" for place in range(6)]
    assert facts["latent_examples"] == facts["references"] == len(model.latent_examples_)
    assert facts["parameters"]["n_latents"] == 0.2
    assert "latent examples" in call("info", folder / "model").stdout


def test_info_shows_the_starts_and_marks_the_refinement(folder, model):
    first = model.history_[0]
    facts = json.loads(call("info", folder / "model", "--json").stdout)
    for name in ("start", "start_losses", "start_errors"):
        assert facts[name] == first[name]
    shown = call("info", folder / "model").stdout
    errors = ", ".join(
        f"{name} {first['start_losses'][name]:.4g} ({percent(first['start_errors'][name])} wrong)"
        for name in STARTS
    )
    line = f"start of the metric: {first['start']}, by the loss on rows not seen: {errors}\n"
    assert line in shown
    head, _, *rounds = shown[shown.index("  round ") : shown.index("r1, r2 and so")].splitlines()
    rounds = [line for line in rounds if line.strip()]
    assert "objective" in head
    assert "loo error" in head
    assert [line.split()[0] for line in rounds] == [str(number) for number in range(9)]
    passes = [line.split()[1] for line in rounds if line.split()[1].startswith("r")]
    assert passes == ["r1", "r2", "r3"]
    assert all(f"{record['loss']:.4g}" in line
               for record, line in zip(model.history_, rounds, strict=True))  # fmt: skip


@pytest.mark.parametrize(
    ("made", "start"),
    [(latentmetric.MaPML.as_published(max_iter=2), "euclidean"), (latentmetric.LMNN(), None)],
    ids=["as published", "LMNN"],
)
def test_info_of_models_without_race_and_refinement(tmp_path, made, start):
    save(made.fit(*make_blobs()), tmp_path / "model")
    shown = call("info", tmp_path / "model").stdout
    assert "refinement" not in shown
    assert "loo error" not in shown
    assert ("start of the metric: euclidean\n" in shown) == (start is not None)
    facts = json.loads(call("info", tmp_path / "model", "--json").stdout)
    assert facts.get("start") == start
    assert "start_losses" not in facts


def test_info_and_report_of_a_model_file_without_optional_parts(folder, model, tmp_path):
    save(model, tmp_path / "model")
    document, arrays = read_model_file(tmp_path / "model")
    del document["feature_names"]
    write_model_file(tmp_path / "model", document, arrays)
    assert "without names" in call("info", tmp_path / "model").stdout
    assert json.loads(call("info", tmp_path / "model", "--json").stdout)["feature_names"] is None
    document["history"] = []
    write_model_file(tmp_path / "model", document, arrays)
    for arguments in (
        ("info", tmp_path / "model"),
        ("report", tmp_path / "model", folder / "test.csv", "-o", tmp_path / "page.html"),
    ):
        assert "the history holds no round" in call(*arguments, code=1).stderr


def test_export(folder, tmp_path, test_rows):
    call("fit", folder / "train.csv", "-o", tmp_path / "model", "--random-state", 0)
    named = test_rows.drop(columns="kind")
    X = named.to_numpy()
    model = latentmetric.load(tmp_path / "model")
    for target in ("onnx", "faiss", "sklearn"):
        call("export", tmp_path / "model", "-o", tmp_path / f"model.{target}", "--to", target)
    pipeline = joblib.load(tmp_path / "model.sklearn")
    np.testing.assert_array_equal(pipeline.predict(named), model.predict(named))
    faiss = pytest.importorskip("faiss")
    index = faiss.read_index(str(tmp_path / "model.faiss"))
    with np.load(tmp_path / "model.faiss.npz") as file:
        beside = dict(file)
    queries = (X - beside["centre"]) / beside["scale"] @ beside["components"].T
    found = index.search(queries.astype(np.float32), 1)[1]
    np.testing.assert_array_equal(found, model.kneighbors(named, 1)[1])
    np.testing.assert_array_equal(beside["labels"], model.latent_labels_)
    assert (tmp_path / "model.onnx").stat().st_size > 0


def test_report(folder, tmp_path):
    out = tmp_path / "report.html"
    call(
        "report", folder / "model", folder / "test.csv", "--train", folder / "train.csv", "-o", out
    )
    page = out.read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "ant" in page


def test_report_shows_rows_by_their_ids(folder, tmp_path):
    for name in ("train", "test"):
        rows = pandas.read_csv(folder / f"{name}.csv")
        rows.assign(code=[f"{name}-{row}" for row in range(len(rows))]).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    call(
        "report", folder / "model", tmp_path / "test.csv", "--train", tmp_path / "train.csv",
        "-o", tmp_path / "report.html", "--label", "kind", "--id", "code", "--quick",
    )  # fmt: skip
    page = Page.read(tmp_path / "report.html")
    wrong = [name.text for name in page.section("mistakes").all("bdi", class_="name")]
    assert wrong
    assert all(name.startswith("test-") for name in wrong)
    near = [name.text for name in page.section("gallery").all("bdi", class_="name")]
    assert near
    assert all(name.startswith("train-") for name in near)


def test_the_help_of_every_command_begins_with_its_line_in_the_list():
    """The list is written separately, so that it does not import the commands."""
    listed = call("--help").stdout
    for name, line in COMMANDS.items():
        assert name in listed
        function = getattr(import_module(f"latentmetric.cli.{name}"), name)
        words = inspect.getdoc(function).splitlines()[0]
        assert line.rstrip(".") in words, name
        assert "Usage" in call(name, "--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("fitt",),
        ("fit", "data.csv"),
        ("fit", "data.csv", "-o", "model", "--n-latents", "2.5"),
        ("fit", "data.csv", "-o", "model", "--n-latents", "many"),
        ("fit", "data.csv", "-o", "model", "--weights", "heavy"),
        ("fit", "data.csv", "-o", "model", "--estimator", "lmnn", "--n-latents", "0.1"),
        ("fit", "data.csv", "-o", "model", "--metric-reg", "1" + "0" * 400),
        ("predict", "model", "data.csv", "-o", "out.docx"),
        ("compare", "data.csv", "--methods", "magic"),
        ("report", "model", "data.csv", "--image-shape", "square"),
    ],
)
def test_wrong_calls(arguments):
    done = call(*arguments, code=2)
    assert done.stdout == ""
    assert "Error" in done.stderr


@pytest.mark.parametrize(
    ("where", "code"), [("_check_parameters", 2), ("fit", 1)], ids=["parameters", "fit"]
)
def test_an_overflow_is_reported_as_bad_input(folder, tmp_path, monkeypatch, where, code):
    def overflow(*_, **__):
        raise OverflowError("int too large to convert to float")

    monkeypatch.setattr(latentmetric.MaPML, where, overflow)
    done = call("fit", folder / "train.csv", "-o", tmp_path / "model", code=code)
    assert "int too large to convert to float" in done.stderr
    assert "Error" in done.stderr


def test_version():
    assert call("--version").stdout.strip() == latentmetric.__version__


def test_the_application_is_one_of_typer():
    assert set(get_command(application()).commands) == set(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "none.npy", "-o", "model"), "none.npy does not exist"),
        (("fit", "bad.csv", "-o", "model"), "bad.csv, line 3, column 'b': 'two' is not a number"),
        (("fit", "good.csv", "-o", "nowhere/model"), "there is no folder nowhere"),
        (("fit", "good.csv", "-o", "."), "is a folder"),
        (("fit", "one.csv", "-o", "model"), "needs at least 2 classes"),
        (("fit", "real.csv", "-o", "model"), "Unknown label type: continuous"),
        (("predict", "good.csv", "good.csv"), "not a latentmetric model file"),
        (("predict", "none", "good.csv"), "none: no such file"),
        (("predict", "saved", "narrow.csv"), "lacks 1 of the 2 columns"),
        (("predict", "saved", "wide.npy"), "has 5 features, but the model was fitted with 2"),
        (("neighbors", "saved", "good.csv", "-k", "99"), "the model holds only"),
        (("predict", "saved", "good.csv", "-o", "no/out.csv"), "there is no folder"),
        (("predict", "none", "good.csv", "-o", "no/out.csv"), "there is no folder no"),
        (("report", "none", "good.csv", "-o", "no/page.html"), "there is no folder no"),
        (("export", "none", "-o", "no/model.onnx"), "there is no folder no"),
        (("fit", "dated.parquet", "-o", "model"), "'label' of dated.parquet holds datetime64[D]"),
        (("compare", "good.csv", "--key", "z"), "--key has no meaning"),
        (("info", "good.csv"), "not a latentmetric model file"),
    ],
)
def test_bad_input_is_reported_in_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text("a,b,label\n1,2,x\n1,3,y\n2,3,x\n5,6,y\n")
    (tmp_path / "bad.csv").write_text("a,b,label\n1,2,x\n1,two,y\n")
    (tmp_path / "one.csv").write_text("a,b,label\n1,2,x\n1,3,x\n")
    (tmp_path / "real.csv").write_text("a,b,label\n1,2,0.5\n1,3,0.25\n1,4,0.1\n")
    (tmp_path / "narrow.csv").write_text("a,c\n1,2\n")
    np.save(tmp_path / "wide.npy", np.zeros((3, 5)))
    dated = pyarrow.table(
        {"a": [1.0, 2.0], "label": np.array(["2020-01-01", "2020-01-02"], "M8[D]")}
    )
    pyarrow.parquet.write_table(dated, tmp_path / "dated.parquet")
    if "saved" in arguments:
        call("fit", "good.csv", "-o", "saved", "--max-iter", 0, "--n-neighbors", 1)
    done = call(*arguments, code=1)
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert message in last
    assert not (tmp_path / "model").exists()
