"""``info``, ``export`` and ``report``, compared with the library."""

import json

import joblib
import numpy as np
import pytest
from helpers import call, make_blobs

import latentmetric
from latentmetric import save
from latentmetric.characters import percent


def test_info(folder, model):
    facts = json.loads(call("info", "model", "--json").stdout)
    assert facts["classes"] == ["ant", "bee", "cow"]
    assert facts["feature_names"] == [f"f{index}" for index in range(6)]
    assert facts["latent_examples"] == facts["references"] == len(model.latent_examples_)
    assert facts["parameters"] == model.get_params()
    assert facts["bytes"] == (folder / "model").stat().st_size
    assert len(facts["history"]) == len(model.history_)


def test_info_shows_what_was_chosen(folder, model):
    first = model.history_[0]
    facts = json.loads(call("info", "model", "--json").stdout)
    for name in ("start", "n_latents", "ridge", "bandwidth"):
        assert facts[name] == first[name]
    assert facts["history"][0]["tried"] == first["tried"]
    shown = call("info", "model").stdout
    assert f"start: {first['start']}\n" in shown
    assert f"ridge: {first['ridge']}\n" in shown
    assert f"bandwidth: {first['bandwidth']}\n" in shown
    kinds = {tuple(list(one.items())[:4]) for one in first["tried"]}
    assert f"chosen from: {len(kinds)} candidates by cross-validation" in shown
    assert len(facts["history"]) == 2


def test_info_shows_the_starts_and_marks_the_refinement(folder, train, in_batches):
    model = latentmetric.MaPML(random_state=0)
    model.fit(train.drop(columns="kind"), train["kind"])
    save(model, "model")
    first = model.history_[0]
    facts = json.loads(call("info", "model", "--json").stdout)
    for name in ("start", "start_losses", "start_errors"):
        assert facts[name] == first[name]
    shown = call("info", "model").stdout
    errors = ", ".join(
        f"{name} {first['start_losses'][name]:.4g} ({percent(first['start_errors'][name])} wrong)"
        for name in first["start_losses"]
    )
    assert f"start: {first['start']}, by the loss on rows not seen: {errors}\n" in shown
    assert "classes: 3: ant, bee, cow\n" in shown
    assert "feature names: f0 to f5\n" in shown
    head, _, *rounds = shown[shown.index("  round ") : shown.index("r1, r2 and so")].splitlines()
    rounds = [line for line in rounds if line.strip()]
    assert "objective" in head
    assert "loo error" in head
    assert [line.split()[0] for line in rounds] == [str(number) for number in range(9)]
    passes = [line.split()[1] for line in rounds if line.split()[1].startswith("r")]
    assert passes == ["r1", "r2", "r3"]
    for record, line in zip(model.history_, rounds, strict=True):
        assert f"{record['loss']:.4g}" in line


@pytest.mark.parametrize(
    ("made", "start"),
    [(latentmetric.MaPML.as_published(max_iter=2), "euclidean"), (latentmetric.LMNN(), None)],
    ids=["as published", "LMNN"],
)
def test_info_of_models_without_race_and_refinement(tmp_path, made, start):
    save(made.fit(*make_blobs()), tmp_path / "model")
    shown = call("info", tmp_path / "model").stdout
    assert "refinement" not in shown.replace("refine=", "")
    assert "loo error" not in shown
    assert "feature names" not in shown
    assert ("start: euclidean\n" in shown) == (start is not None)
    facts = json.loads(call("info", tmp_path / "model", "--json").stdout)
    assert facts.get("start") == start
    assert "start_losses" not in facts


@pytest.mark.parametrize("name", ["model", "euclidean"])
def test_export(folder, test_rows, name):
    named = test_rows.drop(columns="kind")
    X, model = named.to_numpy(), latentmetric.load(name)
    for target in ("onnx", "faiss", "sklearn"):
        done = call("export", name, "-o", f"out.{target}", "--to", target, "--json")
        files = json.loads(done.stdout)["files"]
        assert files == [f"out.{target}"] + (["out.faiss.npz"] if target == "faiss" else [])
    pipeline = joblib.load("out.sklearn")
    np.testing.assert_array_equal(pipeline.predict(named), model.predict(named))
    faiss = pytest.importorskip("faiss")
    index = faiss.read_index("out.faiss")
    with np.load("out.faiss.npz") as file:
        beside = dict(file)
    queries = (X - beside["centre"]) / beside["scale"] @ beside["components"].T
    found = index.search(queries.astype(np.float32), 1)[1]
    np.testing.assert_array_equal(found, model.kneighbors(named, 1)[1])
    np.testing.assert_array_equal(beside["labels"], model.classes_[model.model_.codes])


def test_report(folder, train, test_rows):
    train.assign(code=[f"train-{row}" for row in range(180)]).to_csv("train.csv", index=False)
    test_rows.assign(code=[f"test-{row}" for row in range(60)]).to_csv("test.csv", index=False)
    done = call("report", "model", "test.csv", "--train", "train.csv", "--id", "code", "--quick")
    assert "report.html: " in done.stdout
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "test-" in page
    assert "train-" in page
    done = call("report", "model", "test.csv", "--quick", "--image-shape", "2x3", "--json")
    assert json.loads(done.stdout)["bytes"] == (folder / "report.html").stat().st_size


def test_demo(tmp_path, monkeypatch):
    monkeypatch.setattr("latentmetric.demo.show", lambda out: (out / "shown").write_text("yes"))
    call("demo", "--out", tmp_path)
    assert (tmp_path / "shown").exists()
