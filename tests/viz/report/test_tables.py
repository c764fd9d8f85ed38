"""What the page shows of rows that are tables: features, directions, values, doubtful labels."""

import numpy as np
import pytest
from page_reader import Page
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from latentmetric import MaPML
from latentmetric.viz import write_report
from latentmetric.viz.summaries import feature_effects


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    X_train, X_test, y_train, y_test = train_test_split(data.data, labels, random_state=0)
    wrong = y_train.copy()
    wrong[:3] = np.where(wrong[:3] == "benign", "malignant", "benign")
    model = MaPML(max_iter=2, n_steps=500, random_state=0).fit(X_train, wrong)
    return model, X_train, wrong, X_test, y_test


@pytest.fixture(scope="module")
def page(cancer, tmp_path_factory):
    model, X_train, y_train, X_test, y_test = cancer
    path = tmp_path_factory.mktemp("cancer") / "page.html"
    write_report(model, X_test, y_test, path, X_train=X_train, y_train=y_train)
    return Page.read(path)


def test_the_strongest_features_are_drawn_and_directions_listed(cancer, page):
    model, X_train, _, _, _ = cancer
    effects = feature_effects(model.components_, X_train.to_numpy().std(axis=0))
    expected = X_train.columns[np.argsort(-effects)[:12]].tolist()
    chart = page.section("spectrum").one("figure", data_name="features")
    assert [text.text for text in chart.all("text", class_="bar-name")] == expected
    values = [text.text.split()[0] for text in chart.all("text", class_="bar-value")]
    shares = np.sort(effects)[::-1][:12] / effects.max()
    assert values == [f"{100 * share:.0f}" for share in shares]
    table = page.section("spectrum").one("table", data_name="directions")
    for line in table.one("tbody").all("tr"):
        mixed = [item.text for item in line.all("li")]
        assert len(mixed) == 5
        assert all(text[0] in "+−" for text in mixed)
        ends = [label.text for label in line.all("bdi", class_="label")]
        assert sorted(ends) == ["benign", "malignant"]


def test_of_many_tables_the_first_are_seen_and_the_others_can_be_opened(long_names_page):
    section = long_names_page.section("mistakes")
    first, rest = section.all("div", class_="mistakes")
    assert len(list(first.all("article"))) == 6
    more = section.one("details")
    n_more = len(list(rest.all("article")))
    assert n_more == len(list(more.all("article"))) > 0
    assert more.one("summary").text == f"Show {n_more} more"


def test_latent_examples_of_a_table_are_lists_of_names_and_values(cancer, page):
    model, X_train, _, _, _ = cancer
    section = page.section("gallery")
    assert "framed" not in section.text
    assert "beside" not in section.text
    assert "a value may lie outside the range of the data" in section.text
    strip = next(section.all("article"))
    latent = model.latent_examples_[int(strip.attributes["data-latent"])]
    names = [name.text for name in strip.all("dt")]
    values = [value.text for value in strip.all("dd")]
    assert len(names) == len(values) == 4
    mean, deviation = X_train.to_numpy().mean(axis=0), X_train.to_numpy().std(axis=0)
    apart = (latent - mean) / deviation
    order = np.argsort(-np.abs(apart))[:4]
    assert names == X_train.columns[order].tolist()
    assert [value.split("(")[1] for value in values] == [
        f"{apart[index]:+.1f} sd)".replace("-", "−") for index in order
    ]


def test_the_doubtful_labels_are_those_with_the_lowest_scores(cancer, page):
    model, X_train, y_train, X_test, y_test = cancer
    scores = {
        ("training rows", row): score
        for row, score in enumerate(model.label_scores(X_train, y_train))
    }
    tested = model.label_scores(X_test, y_test, training=False)
    scores |= {("test rows", row): score for row, score in enumerate(tested)}
    expected = sorted((score, *key) for key, score in scores.items() if score < 0.05)[:30]
    lines = list(page.section("doubts").one("tbody").all("tr"))
    shown = [(list(line.all("td"))[-1].text, int(line.one("th").text)) for line in lines]
    assert sorted(shown) == sorted((known, row) for _, known, row in expected)
    assert len(shown) > 0
    listed = [float(list(line.all("td"))[2].attributes["data-value"]) for line in lines]
    assert listed == sorted(listed)
    cut_off = "a score below 5\N{NO-BREAK SPACE}%"
    assert cut_off in page.section("doubts").text
    assert f"doubtful ({cut_off})" in page.section("verdict").text
