import hashlib
import re
import sys
from base64 import b64encode

import numpy as np
import pytest
from page_reader import HOSTILE, Page
from sklearn.metrics import confusion_matrix

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML
from latentmetric.evaluation.rivals import TUNED
from latentmetric.viz import write_report
from latentmetric.viz.report.map import GRID
from latentmetric.viz.report.page import TITLES, _templates
from latentmetric.viz.report.text import distinct, percent

SECTIONS = list(TITLES)
KINDS = "row", "tested", "latent"


def bars(page):
    """Error in percent of each method in the table of the verdict."""
    lines = list(page.section("verdict").one("tbody").all("tr"))
    return {line.one("th").text: float(next(line.all("td")).text.split()[0]) for line in lines}


def test_errors_agree_with_the_models_and_with_scikit_learn(digits, digits_page):
    model, X_train, y_train, X_test, y_test = digits
    links = [link.attributes["href"] for link in digits_page.root.one("nav").all("a")]
    assert links == [f"#{name}" for name in SECTIONS]
    errors = bars(digits_page)
    names = [name.replace("\N{NON-BREAKING HYPHEN}", "-") for name in errors]
    assert names == ["MaPML", *TUNED, "Euclid", "MaPML-O"]
    euclid = Euclidean().fit(X_train, y_train).score(X_test, y_test)
    assert errors["Euclid"] == pytest.approx(100 * (1 - euclid), abs=0.005)
    assert errors["MaPML"] == pytest.approx(100 * (1 - model.score(X_test, y_test)), abs=0.005)


def unfolded(node):
    """The text that shows before anything is opened."""
    if isinstance(node, str) or node.name in ("script", "style"):
        return node if isinstance(node, str) else ""
    shown = [next(node.all("summary"))] if node.name == "details" else node.children
    return "".join(map(unfolded, shown))


def test_what_only_readers_of_the_paper_know_is_folded_and_explained(digits_page):
    shown = unfolded(digits_page.root)
    assert "latent examples" in shown
    assert not [word for word in ("Euclid", "MaPML-O", "effective rank") if word in shown]
    words = digits_page.root.text
    for explained in ("Euclid learns nothing", "MaPML-O is the paper's name", "The margin is how"):
        assert explained in words


def test_nothing_on_the_page_points_outside_and_its_policy_forbids_it(digits_page, hostile_page):
    for page in (digits_page, hostile_page):
        for element in page.root.all():
            for name in ("src", "href", "action", "srcset", "style", "onclick", "onerror"):
                value = element.attributes.get(name, "#")
                assert value.startswith("#"), (element.name, name)
        style = "".join(element.text for element in page.root.all("style"))
        assert "@import" not in style
        assert all(url.startswith("data:image/png") for url in re.findall(r"url\((.{20})", style))
        policy = page.root.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        (running,) = [part for part in page.root.all("script") if "type" not in part.attributes]
        assert rules["default-src"] == "'none'"
        assert rules["style-src"].split() == [hashed(part) for part in page.root.all("style")]
        assert rules["script-src"] == hashed(running)


def hashed(part):
    return f"'sha256-{b64encode(hashlib.sha256(part.text.encode()).digest()).decode()}'"


def test_the_class_table_agrees_with_the_predictions(digits, digits_page):
    model, _, _, X_test, y_test = digits
    predicted = model.predict(X_test)
    lines = list(digits_page.section("classes").one("tbody").all("tr"))
    assert len(lines) == 10
    for line in lines:
        label = int(line.one("th").text)
        tested, error, _, wrong, latents, margin, _ = line.all("td")
        of_class = y_test == label
        assert int(tested.text) == of_class.sum()
        assert int(wrong.text) == (predicted[of_class] != label).sum()
        share = (predicted[of_class] != label).mean()
        assert float(error.attributes["data-value"]) == pytest.approx(share)
        assert int(latents.text) == (model.latent_labels_ == label).sum()
        assert float(margin.attributes["data-value"]) == pytest.approx(model.margins_[label])


def test_the_gallery_shows_each_latent_beside_its_nearest_rows(digits, digits_page):
    model, X_train, y_train, _, _ = digits
    strips = list(digits_page.section("gallery").all("article", class_="strip"))
    latents = [int(strip.attributes["data-latent"]) for strip in strips]
    expected = sum(min(12, (model.latent_labels_ == label).sum()) for label in range(10))
    assert len(set(latents)) == len(latents) == expected
    positions = model.transform(model.latent_examples_)
    for strip in strips[::17]:
        latent = int(strip.attributes["data-latent"])
        own = np.flatnonzero(model.latent_labels_ == model.latent_labels_[latent])
        for line in strip.all("li"):
            row = int(line.attributes["title"].removeprefix("row ").replace(",", ""))
            assert y_train[row] == model.latent_labels_[latent]
            to_latents = np.linalg.norm(model.transform(X_train[[row]]) - positions[own], axis=1)
            assert own[np.argmin(to_latents)] == latent
            shown = float(line.one("span", class_="distance").text)
            assert shown == pytest.approx(to_latents.min(), rel=5e-3)


def test_misclassified_rows_are_misclassified_and_their_neighbours_are_the_nearest(
    digits, digits_page
):
    model, _, _, X_test, y_test = digits
    cards = list(digits_page.section("mistakes").all("article"))
    wrong = np.flatnonzero(model.predict(X_test) != y_test)
    assert len(cards) == min(24, len(wrong)) > 0
    for card in cards:
        row = int(card.one("bdi", class_="name").text.removeprefix("row "))
        assert row in wrong
        true, predicted = (label.text for label in card.one("b").all("bdi"))
        assert (int(true), int(predicted)) == (y_test[row], model.predict(X_test[[row]])[0])
        named = [int(line.attributes["title"].split()[-1]) for line in card.all("li")]
        nearest = model.kneighbors(X_test[[row]], 5, return_distance=False)[0]
        assert named == nearest.tolist()
        share = dict(zip(model.classes_, model.predict_proba(X_test[[row]])[0], strict=True))
        shares = percent(share[int(predicted)]), percent(share[int(true)])
        vote = card.one("span", class_="shares").text
        assert vote == f"Vote: {shares[0]} for {predicted}, {shares[1]} for {true}"


def test_the_map_lists_predictions_and_the_nearest_latents_of_each_point(digits, digits_page):
    model, X_train, y_train, X_test, y_test = digits
    data = digits_page.map_data
    points = {kind: [p for p in data["points"] if p[0] == kind] for kind in KINDS}
    tested = [int(name.removeprefix("tested row ")) for _, _, _, name, *_ in points["tested"]]
    assert sorted(tested) == list(range(len(y_test)))
    assert [code for _, code, *_ in points["tested"]] == y_test[tested].tolist()
    assert [said for _, _, said, *_ in points["tested"]] == model.predict(X_test[tested]).tolist()
    for view in data["views"].values():
        assert len(view["x"]) == len(view["y"]) == len(data["points"])
    assert list(data["views"]) == ["projection", "learned"]
    positions = model.transform(model.latent_examples_)
    for _, code, said, name, _, near in points["row"][::97]:
        row = int(name.removeprefix("training row ").replace(",", ""))
        assert code == said == y_train[row]
        distances, nearest = model.kneighbors(X_train[[row]], 3)
        assert [label for label, _, _ in near] == model.latent_labels_[nearest[0]].tolist()
        np.testing.assert_allclose([far for _, _, far in near], distances[0], rtol=1e-3, atol=1e-9)
    for _, _, _, name, _, near in points["latent"][::11]:
        latent = int(name.removeprefix("latent example "))
        to_others = np.linalg.norm(positions - positions[latent], axis=1)
        to_others[latent] = np.inf
        assert near[0][0] == model.latent_labels_[np.argmin(to_others)]


def test_an_outlier_does_not_squeeze_the_map(blobs, tmp_path):
    X, y = blobs
    model = MaPML(max_iter=1, n_steps=200, random_state=0).fit(X[:160], y[:160])
    X = X.copy()
    X[170] += 1e5
    page = Page.read(write_report(model, X[160:], y[160:], tmp_path / "page.html"))
    view = page.map_data["views"]["projection"]
    assert max(view["wide"], view["high"]) == GRID
    across = np.array(view["x"])
    inside = (across >= 0) & (across <= view["wide"])
    assert (~inside).sum() == 1
    assert np.ptp(across[inside]) > GRID / 3


def test_the_matrix_holds_every_prediction_once(digits, digits_page):
    model, _, _, X_test, y_test = digits
    section = digits_page.section("confusion")
    found = confusion_matrix(y_test, model.predict(X_test))
    expected = {
        f"{true}: {found[true, true]} of {found[true].sum()} right" if true == predicted
        else f"{true} predicted as {predicted}: {found[true, predicted]} of {found[true].sum()}"
        for true, predicted in np.argwhere(found)
    }  # fmt: skip
    assert {cell.one("title").text.split(" (")[0] for cell in section.all("g")} == expected
    assert f"{(model.predict(X_test) != y_test).sum()} rows in all" in section.text
    lines = section.one("tbody").all("tr")
    counts = [int(next(line.all("td", class_="number")).text) for line in lines]
    assert counts == sorted(counts, reverse=True)


def test_every_drawing_has_a_text_alternative(digits_page):
    for drawing in digits_page.root.all("svg"):
        assert drawing.attributes.get("aria-hidden") or drawing.attributes["aria-label"]
    assert list(digits_page.section("map").one("details").all("tr"))
    assert all(picture.attributes["aria-label"] for picture in digits_page.root.all("i"))


def test_hostile_labels_are_escaped(hostile_page):
    names = {element.name for element in hostile_page.root.all()}
    assert names.isdisjoint({"img", "b1", "h4", "iframe", "object"})
    assert len(list(hostile_page.root.all("script"))) == 2
    shown = distinct(sorted(HOSTILE))
    assert len(set(shown)) == len(HOSTILE)
    lines = hostile_page.section("classes").one("tbody").all("tr")
    assert sorted(line.one("th").text for line in lines) == sorted(shown)
    assert hostile_page.map_data["labels"] == shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\u2028]", hostile_page.root.text)
    assert max(len(text) for text in shown) < 80
    assert len(hostile_page.source) < 1_000_000
    feature_names = hostile_page.section("data").text
    assert "<script>window.hacked" in feature_names


@pytest.mark.parametrize(
    ("rival", "absent", "with_training_rows"),
    [
        (Euclidean(), ["convergence", "gallery"], True),
        (LMNN(max_iter=3), ["gallery"], False),
        (OASIS(psd=False, n_steps=500, random_state=0), ["map", "gallery", "spectrum"], True),
        (HRSGD(n_steps=500, random_state=0), ["gallery"], True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_estimators_have_the_sections_that_apply(
    rival, absent, with_training_rows, blobs, tmp_path
):
    X, y = blobs
    rival.fit(X[:160], y[:160])
    training = {"X_train": X[:160], "y_train": y[:160]} if with_training_rows else {}
    rows, labels = np.append(X[160:], X[:1], axis=0), np.append(y[160:], 33)
    path = write_report(rival, rows, labels, tmp_path / "page.html", quick=True, **training)
    page = Page.read(path)
    (notice,) = page.section("data").all("p", class_="notice")
    assert (
        "1 more rows are left out: the model does not know their labels, such as 33" in notice.text
    )
    assert [part.attributes["id"] for part in page.root.all("section")] == SECTIONS
    for name in absent:
        section = page.section(name)
        assert not list(section.all("svg")) + list(section.all("li"))
        assert type(rival).__name__ in section.text
    if with_training_rows:
        name = "Euclid" if isinstance(rival, Euclidean) else type(rival).__name__
        expected = 100 * (1 - rival.score(X[160:], y[160:]))
        assert bars(page)[name] == pytest.approx(expected, abs=0.005)


def test_a_thousand_classes_make_a_page(tmp_path):
    generator = np.random.default_rng(0)
    y = np.arange(3600) % 1200
    X = generator.standard_normal((1200, 8))[y] * 3 + generator.standard_normal((3600, 8))
    model = MaPML.as_published(n_latents=2, max_iter=0, random_state=0).fit(X, y)
    page = Page.read(write_report(model, X, y, tmp_path / "page.html"))
    assert "1,000 hardest of 1,200" in page.section("classes").text
    assert len(list(page.section("classes").one("tbody").all("tr"))) == 1000
    assert len(list(page.section("gallery").all("article"))) == 240
    assert "of the 240 classes" in page.section("gallery").text
    assert len(list(page.section("confusion").one("tbody").all("tr"))) == 12
    assert "the 60 of 1,200 classes" in page.section("confusion").text
    assert len(page.source) < 3_000_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [1, 2]}, "y has 2 entries, but X has 450 rows"),
        ({"X_train": [[0.0] * 64]}, "y_train is missing"),
        ({"row_names": ["a"]}, "row_names has 1 entries, but X has 450 rows"),
        ({"image_shape": (7, 9)}, "63 pixels, but the model has 64 features"),
        ({"image_shape": (8, 8, 2)}, "1, 3 or 4 channels"),
        ({"max_queries": 0}, "max_queries"),
        ({"y": ["a"] * 450}, "none of the 10 classes of the model: it has 'a', the model knows 0"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(changes, message, digits, tmp_path):
    model, _, _, X_test, y_test = digits
    arguments = {"X": X_test, "y": y_test, **changes}
    with pytest.raises(ValueError, match=re.escape(message)):
        write_report(model, path=tmp_path / "page.html", **arguments)
    assert not list(tmp_path.iterdir())


def test_the_same_arguments_make_the_same_page_and_a_failure_none(digits, tmp_path, monkeypatch):
    model, _, _, X_test, y_test = digits
    pages = [
        write_report(model, X_test, y_test, tmp_path / name).read_bytes() for name in ("a", "b")
    ]
    assert pages[0] == pages[1]
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        write_report(model, X_test, y_test, tmp_path / "a", quick=True)
    assert (tmp_path / "a").read_bytes() == pages[0]
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _templates.cache_clear()
    with pytest.raises(ImportError, match="pip install jinja2"):
        write_report(model, X_test, y_test, tmp_path / "a")
