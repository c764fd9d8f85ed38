"""Commands that answer for rows or latent examples, compared with the library."""

import json

import numpy as np
import pandas
import pyarrow.parquet
import pytest
from helpers import call, make_blobs

import latentmetric
from latentmetric import MaPML, load, save

WORDS = np.array(["ant", "bee", "cow"])


def features(table):
    return table.drop(columns="kind")


class TestPredict:
    def test_csv_json_and_files(self, folder, model, test_rows):
        expected = model.predict(features(test_rows)).tolist()
        lines = call("predict", "model", "test.csv").stdout.splitlines()
        assert lines[0] == "row,label"
        assert [line.split(",")[1] for line in lines[1:]] == expected
        printed = call("predict", "model", "test.csv", "--json").stdout
        assert json.loads(printed)["label"] == expected
        for name in ("out.csv", "out.tsv", "out.parquet", "out.npy"):
            done = call("predict", "model", "test.csv", "-o", name)
            assert done.stdout == ""
            assert f"{name}: 60 rows" in done.stderr
            again = ("predict", "model", "test.csv", "-o", name, "--json", "--overwrite")
            assert call(*again).stdout == printed
        assert pandas.read_csv("out.csv")["label"].tolist() == expected
        assert pandas.read_csv("out.tsv", sep="\t")["label"].tolist() == expected
        assert pyarrow.parquet.read_table("out.parquet")["label"].to_pylist() == expected
        assert np.load("out.npy").tolist() == expected

    def test_columns_are_found_by_name(self, folder, test_rows):
        straight = call("predict", "model", "test.csv").stdout
        features(test_rows)[features(test_rows).columns[::-1]].to_csv("turned.csv")
        assert call("predict", "model", "turned.csv").stdout == straight

    def test_probabilities(self, folder, model, test_rows):
        expected = model.predict_proba(features(test_rows))
        call("predict", "model", "test.csv", "--proba", "-o", "p.npy")
        np.testing.assert_array_equal(np.load("p.npy"), expected)
        call("predict", "model", "test.csv", "--proba", "-o", "p.csv")
        found = pandas.read_csv("p.csv")
        assert found.columns.tolist() == ["row", "label", *WORDS]
        np.testing.assert_allclose(found[WORDS].to_numpy(), expected, rtol=1e-12)
        assert found["label"].tolist() == model.predict(features(test_rows)).tolist()

    def test_probabilities_of_classes_named_like_other_columns(self, folder):
        """No column overwrites another, in text or in JSON."""
        X, y = make_blobs()
        np.save("rows.npy", X)
        names = np.array(["label", "probability of row", "row"])
        model = latentmetric.Euclidean(n_neighbors=4).fit(X, names[y])
        save(model, "named")
        arguments = ("predict", "named", "rows.npy", "--proba")
        call(*arguments, "-o", "out.csv")
        found, shares = pandas.read_csv("out.csv"), model.predict_proba(X)
        columns = [f"probability of {name}" for name in names]
        assert found.columns.tolist() == ["row", "label", *columns]
        assert found["label"].tolist() == names[shares.argmax(axis=1)].tolist()
        np.testing.assert_allclose(found[columns], shares)
        answers = json.loads(call(*arguments, "--json").stdout)
        assert list(answers) == ["label", *columns]


class TestRejection:
    def predicted(self, *options, code=0):
        return call("predict", "model", "test.csv", "--json", *options, code=code)

    def test_a_share_is_rejected(self, folder, model, test_rows):
        labels = json.loads(self.predicted("--reject-share", 0.1).stdout)["label"]
        below = model.reject_threshold(0.1)
        rows = features(test_rows)
        expected = model.predict(rows, reject_below=below, reject_label="unknown")
        assert labels == expected.tolist()
        assert 0 < labels.count("unknown") < 0.3 * len(labels)

    def test_a_score_and_a_label_of_ones_own(self, folder):
        options = ("--reject-below", 1000, "--reject-label", "none", "--proba")
        assert set(json.loads(self.predicted(*options).stdout)["label"]) == {"none"}

    @pytest.mark.parametrize(
        ("kind", "default", "given", "code"),
        [("int", -1, "other", 2), ("float", -1.0, "0.5", 0), ("bool", True, "other", 2)],
    )  # fmt: skip
    def test_a_label_among_numbers_is_a_number(self, folder, kind, default, given, code):
        X, y = make_blobs()
        labels = y == 0 if kind == "bool" else y.astype(kind)
        save(MaPML(max_iter=0, refine=0, random_state=0).fit(X, labels), "numbers")
        np.save("rows.npy", X + 1000)
        arguments = ("predict", "numbers", "rows.npy", "--reject-share", 0.2, "--json")
        if kind != "bool":
            assert set(json.loads(call(*arguments).stdout)["label"]) == {default}
        call(*arguments, "--reject-label", given, code=code)

    def test_what_it_refuses(self, folder):
        self.predicted("--reject-share", 0.1, "--reject-below", 0, code=2)
        self.predicted("--reject-label", "none", code=2)
        assert "--reject-share" in self.predicted("--reject-share", 2, code=2).output
        done = call("predict", "euclidean", "test.csv", "--reject-share", 0.1, code=1)
        assert "Euclidean keeps no scores of held-out rows; use --reject-below" in done.output


def test_explanations(folder, test_rows):
    """Each row has the references that voted, with names of rows that fit was given."""
    table = pandas.read_csv("train.csv").assign(name=[f"n{number}" for number in range(180)])
    table.to_csv("named.csv", index=False)
    fit = ("fit", "named.csv", "--label", "kind", "--id", "name", "-o", "named", "--n-latents", 0.2)
    call(*fit)
    assert "row ids: 108\n" in call("info", "named").stdout
    model, rows = load("named"), features(test_rows)
    explained = model.explain(rows)
    assert explained.row_ids is not None
    printed = call("predict", "named", "test.csv", "--explain", "-o", "out.csv", "--json").stdout
    found = pandas.read_csv("out.csv", keep_default_na=False)
    expected = pandas.DataFrame(explained.to_dict()).rename(columns={"label": "voter"})
    expected.insert(1, "label", np.repeat(model.predict(rows), 5))
    pandas.testing.assert_frame_equal(found, expected, check_dtype=False)
    document = json.loads(printed)
    assert document["label"] == model.predict(rows).tolist()
    assert document["shares"] == explained.shares.tolist()
    assert document["examples"] == explained.row_ids.tolist()
    call("predict", "named", "test.csv", "--explain", "-o", "out.csv")  # its own file
    nearest = call("neighbors", "named", "test.csv", "-k", 2, "--json").stdout
    indices = model.kneighbors(rows, 2, return_distance=False)
    assert json.loads(nearest)["examples"] == model.model_.row_ids[indices].tolist()
    header = call("neighbors", "named", "test.csv").stdout.splitlines()[0]
    assert header == "row,rank,reference,label,distance,example_1,example_2,example_3"
    without = call("predict", "model", "test.csv", "--explain").stdout.splitlines()
    assert without[0] == "row,label,rank,reference,voter,distance,share"
    call("predict", "model", "test.csv", "--explain", "--proba", code=2)
    call("predict", "named", "test.csv", "--explain", "--reject-below", 1e9, "-o", "out.csv")
    assert set(pandas.read_csv("out.csv")["label"]) == {"unknown"}


def test_neighbors(folder, model, test_rows):
    distances, found = model.kneighbors(features(test_rows), 2)
    arguments = ("neighbors", "model", "test.csv", "-k", 2)
    call(*arguments, "-o", "n.csv")
    lines = pandas.read_csv("n.csv")
    assert lines.columns.tolist() == ["row", "rank", "reference", "label", "distance"]
    assert lines["reference"].tolist() == found.ravel().tolist()
    assert lines["label"].tolist() == model.latent_labels_[found].ravel().tolist()
    np.testing.assert_allclose(lines["distance"], distances.ravel(), rtol=1e-12)
    call(*arguments, "-o", "n.npy")
    np.testing.assert_array_equal(np.load("n.npy"), found)
    assert json.loads(call(*arguments, "--json").stdout)["references"] == found.tolist()


class TestDoubts:
    @pytest.fixture
    def wrong(self, folder, train, short_passes):
        """A table with one wrong label, in row 7, and a model of it."""
        train.loc[7, "kind"] = "bee" if train.loc[7, "kind"] == "ant" else "ant"
        train.iloc[:, 4:6] *= 3
        train.assign(who=np.arange(180)).to_csv("wrong.csv", index=False)
        model = MaPML(0.1, max_iter=1, label_noise=True, random_state=0)
        save(model.fit(features(train), train["kind"]), "model")
        return train

    options = ("doubts", "wrong.csv", "--label", "kind", "--id", "who")

    def test_the_worst_rows_come_first(self, wrong):
        call(*self.options, "--model", "model", "--most", 5, "-o", "doubts.csv")
        found, model = pandas.read_csv("doubts.csv"), load("model")
        columns = ["who", "row", "label", "score", "suggested", "probability"]
        assert found.columns.tolist() == columns
        scores = model.label_scores(features(wrong), wrong["kind"])
        assert found["row"].tolist() == np.argsort(scores, kind="stable")[:5].tolist()
        assert found["row"][0] == found["who"][0] == 7
        assert found["score"].tolist() == np.sort(scores)[:5].round(6).tolist()
        rows = features(wrong).iloc[found["row"]]
        assert found["suggested"].tolist() == model.predict(rows).tolist()
        probability = model.predict_proba(rows).max(axis=1)
        np.testing.assert_allclose(found["probability"], probability, rtol=0, atol=5.1e-7)
        assert found["label"].tolist() == wrong["kind"][found["row"]].tolist()
        call(*self.options, "--model", "model", "-o", "doubts.npy")
        assert np.load("doubts.npy")[:5].tolist() == found["row"].tolist()

    def test_without_a_model_one_is_fitted_for_wrong_labels(self, wrong):
        done = call(
            *self.options, "--most", 3, "--json", "--set", "max_iter=1", "--set", "n_latents=0.1"
        )
        answers = json.loads(done.stdout)
        assert answers["row"] == answers["who"]
        assert answers["row"][0] == 7
        assert len(answers["row"]) == 3


class TestLatents:
    def test_the_table_has_label_rows_and_features(self, folder, train):
        named = features(train).rename(columns={"f0": "latent"})
        model = MaPML(max_iter=1, refine=0, random_state=0).fit(named, train["kind"])
        save(model, "model")
        for _ in range(2):  # it replaces its own
            call("latents", "model", "-o", "latents.csv")
        found = pandas.read_csv("latents.csv")
        names = ["latent", "label", "rows", "feature latent", "f1", "f2", "f3", "f4", "f5"]
        assert found.columns.tolist() == names
        assert found["label"].tolist() == model.latent_labels_.tolist()
        assert found["rows"].sum() == 180
        assert found["rows"].dtype.kind == "i", "no 13.0 rows"
        np.testing.assert_allclose(found.iloc[:, 3:], model.latent_examples_, rtol=1e-12)

    def test_json_and_arrays(self, folder, model):
        answers = json.loads(call("latents", "model", "--json").stdout)
        assert answers["features"] == model.latent_examples_.tolist()
        call("latents", "model", "-o", "latents.npy")
        np.testing.assert_array_equal(np.load("latents.npy"), model.latent_examples_)
