"""The report of a pipeline: rows as they were given, distances after the steps."""

import numpy as np
from page_reader import Page
from pipelines import OF_FRAMES, make_frame, make_numbers, model
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from latentmetric.viz import write_report
from latentmetric.viz.report.evidence import gather


def page_of(pipeline, X, y, folder, **options):
    return Page.read(write_report(pipeline, X, y, folder / "report.html", **options))


def gathered(model, X, y, **options):
    return gather(model, X, y, max_queries=1000, generator=np.random.default_rng(0), **options)


def test_rows_are_in_the_units_given(tmp_path):
    frame, y = make_frame()
    pipeline = make_pipeline(OF_FRAMES["named"], model()).fit(frame, y)
    page = page_of(pipeline, frame.iloc[:, ::-1], y, tmp_path)
    data = page.section("data").text
    assert "4: size, weight, grade, color" in data
    assert "numbers and words" in data
    assert "columntransformer (ColumnTransformer), to 5 features" in data
    gallery = page.section("gallery").text
    assert "in the units of the rows as they were given" in gallery
    assert any(word in gallery for word in ("red", "green", "blue"))
    assert "What MaPML learned" in page.source


def test_errors_are_those_of_the_pipeline(tmp_path):
    X, y = make_numbers()
    pipeline = make_pipeline(StandardScaler(), model()).fit(X, y)
    evidence = gathered(pipeline, X, y, X_train=X, y_train=y, quick=True)
    np.testing.assert_array_equal(evidence.verdict.predicted, pipeline.predict(X))
    np.testing.assert_array_equal(evidence.given.given, X)
    np.testing.assert_allclose(evidence.given.rows, pipeline[:-1].transform(X))
    back = pipeline[0].inverse_transform(pipeline[-1].latent_examples_)
    np.testing.assert_allclose(evidence.latents, back)


def test_steps_that_cannot_be_undone_are_said(tmp_path):
    X, y = make_numbers()
    pipeline = make_pipeline(Normalizer(), PCA(3, random_state=0), model()).fit(X, y)
    page = page_of(pipeline, X, y, tmp_path)
    gallery = page.section("gallery").text
    assert "are not known: the step 'normalizer', a Normalizer, cannot be undone." in gallery
    assert not list(page.section("mistakes").all("table")), "columns are mixed"
    drawn = {text.text for text in page.section("spectrum").all("text", class_="bar-name")}
    assert drawn == {"pca0", "pca1", "pca2"}


def test_misclassified_rows_show_the_values_given(tmp_path):
    frame, y = make_frame(seed=1)
    pipeline = make_pipeline(OF_FRAMES["named"], model()).fit(frame[:60], y[:60])
    test = frame[60:].reset_index(drop=True)
    training = {"X_train": frame[:60], "y_train": y[:60]}
    page = page_of(pipeline, test, y[60:], tmp_path, **training)
    mistakes = page.section("mistakes")
    assert "the word that it has most of" in mistakes.text
    cards = list(mistakes.all("article"))
    assert cards
    for card in cards:
        row = test.iloc[int(card.one("bdi", class_="name").text.removeprefix("row "))]
        shown = {
            line.one("th").text: next(iter(line.all("td"))) for line in card.one("tbody").all("tr")
        }
        assert set(shown) == {"size", "weight", "color"}
        assert shown["color"].text == row["color"]
        assert float(shown["size"].attributes["data-value"]) == row["size"]
        if np.isnan(row["weight"]):
            assert shown["weight"].text == "–"
    metric = page.section("spectrum")
    assert "features are the columns that the steps make" in metric.text
    drawn = {text.text for text in metric.all("text", class_="bar-name")}
    assert drawn == {"size", "weight", "color = red", "color = green", "color = blue"}
    assert "after the same steps of the pipeline as the model's" in page.section("verdict").text
