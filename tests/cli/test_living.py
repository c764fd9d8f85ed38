"""Commands that look into a model and its labels, compared with the library."""

import json

import numpy as np
import pandas
import pytest
from helpers import call, make_blobs

import latentmetric
from latentmetric import LMNN, MaPML, save

WORDS = np.array(["ant", "bee", "cow"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with one wrong label, in row 7, and a model of it."""
    folder = tmp_path_factory.mktemp("living")
    X, y = make_blobs()
    X[:, -2:] *= 3
    y[7] = (y[7] + 1) % 3
    names = ["latent", *[f"f{place}" for place in range(5)]]
    frame = pandas.DataFrame(X.round(6), columns=names).assign(kind=WORDS[y], who=np.arange(240))
    frame.to_csv(folder / "table.csv", index=False)
    model = MaPML(random_state=0, label_noise=True).fit(frame[names], frame["kind"])
    save(model, folder / "model")
    return folder


@pytest.fixture(scope="module")
def table(folder):
    return pandas.read_csv(folder / "table.csv")


@pytest.fixture(scope="module")
def model(folder):
    return latentmetric.load(folder / "model")


def features(table):
    return table.drop(columns=["kind", "who"])


class TestDoubts:
    def test_the_worst_rows_come_first(self, folder, table, model):
        call("doubts", folder / "table.csv", "--label", "kind", "--ignore", "who", "--model",
             folder / "model", "--most", 5, "-o", folder / "doubts.csv")  # fmt: skip
        found = pandas.read_csv(folder / "doubts.csv")
        assert found.columns.tolist() == ["row", "label", "score", "likelier", "probability"]
        scores = model.label_scores(features(table), table["kind"])
        assert found["row"].tolist() == np.argsort(scores, kind="stable")[:5].tolist()
        assert found["row"][0] == 7
        assert found["score"].tolist() == np.sort(scores)[:5].round(6).tolist()
        rows = features(table).iloc[found["row"]]
        assert found["likelier"].tolist() == model.predict(rows).tolist()
        probability = model.predict_proba(rows).max(axis=1)
        np.testing.assert_allclose(found["probability"], probability, rtol=0, atol=5.1e-7)
        assert found["label"].tolist() == table["kind"][found["row"]].tolist()

    def test_rows_without_a_label_are_learned_from_and_not_listed(self, folder, table):
        marked = table.assign(kind=table["kind"].where(table.index % 4 > 0, "?"))
        marked.to_csv(folder / "marked.csv", index=False)
        done = call("doubts", folder / "marked.csv", "--label", "kind", "--ignore", "who",
                    "--unlabelled", "?", "--random-state", 0, "--most", 500, "--json")  # fmt: skip
        found = json.loads(done.stdout)
        assert sorted(found["row"]) == [row for row in range(240) if row % 4]
        assert found["row"][0] == 7

    def test_without_a_model_one_is_fitted_for_wrong_labels(self, folder):
        done = call("doubts", folder / "table.csv", "--label", "kind", "--id", "who",
                    "--random-state", 0, "--most", 3, "--json")  # fmt: skip
        answers = json.loads(done.stdout)
        assert answers["row"] == answers["who"]
        assert answers["row"][0] == 7

    def test_an_array_has_the_rows_alone(self, folder):
        call("doubts", folder / "table.csv", "--label", "kind", "--ignore", "who", "--model",
             folder / "model", "-o", folder / "doubts.npy")  # fmt: skip
        assert np.load(folder / "doubts.npy").shape == (100,)

    def test_what_it_refuses(self, folder, table):
        common = ("doubts", folder / "table.csv", "--label", "kind", "--ignore", "who")
        call(*common, "--model", folder / "model", "--refine", 2, code=2)
        rival = LMNN(max_iter=2).fit(features(table), table["kind"])
        save(rival, folder / "rival")
        assert "no latent examples" in call(*common, "--model", folder / "rival", code=1).output


class TestLatents:
    def test_the_table_has_label_rows_and_features(self, folder, model):
        call("latents", folder / "model", "-o", folder / "latents.csv")
        found = pandas.read_csv(folder / "latents.csv")
        names = ["latent", "label", "rows", "feature latent", "f0", "f1", "f2", "f3", "f4"]
        assert found.columns.tolist() == names
        assert found["label"].tolist() == model.latent_labels_.tolist()
        assert found["rows"].sum() == 240
        assert found["rows"].dtype.kind == "i", "no 13.0 rows"
        np.testing.assert_allclose(found.iloc[:, 3:], model.latent_examples_)
        call("latents", folder / "model", "-o", folder / "latents.csv")  # replaces its own

    def test_json_and_arrays(self, folder, model):
        answers = json.loads(call("latents", folder / "model", "--json").stdout)
        assert answers["features"] == model.latent_examples_.tolist()
        call("latents", folder / "model", "-o", folder / "latents.npy")
        np.testing.assert_array_equal(np.load(folder / "latents.npy"), model.latent_examples_)


class TestRejection:
    def predicted(self, folder, *options, code=0):
        return call(
            "predict", folder / "model", folder / "table.csv", "--json", *options, code=code
        )

    def test_a_share_is_rejected(self, folder, table, model):
        labels = json.loads(self.predicted(folder, "--reject-share", 0.1).stdout)["label"]
        below = model.reject_threshold(0.1)
        expected = model.predict(features(table), reject_below=below, reject_label="unknown")
        assert labels == expected.tolist()
        assert 0 < labels.count("unknown") < 0.2 * len(labels)

    def test_a_score_and_a_label_of_ones_own(self, folder):
        options = ("--reject-below", 0, "--reject-label", "none")
        assert set(json.loads(self.predicted(folder, *options).stdout)["label"]) == {"none"}

    def test_numbers_are_rejected_as_minus_one(self, tmp_path):
        X, y = make_blobs()
        save(MaPML(max_iter=1, refine=0, random_state=0).fit(X, y), tmp_path / "model")
        np.save(tmp_path / "rows.npy", X + 1000)
        done = call("predict", tmp_path / "model", tmp_path / "rows.npy", "--reject-share", 0.05,
                    "--json")  # fmt: skip
        assert set(json.loads(done.stdout)["label"]) == {-1}

    def test_a_label_among_numbers_must_be_a_number(self, tmp_path):
        X, y = make_blobs()
        for labels, code in ((y, 2), (y == 0, 2), (y.astype(str), 0)):
            model = MaPML(max_iter=0, refine=0, random_state=0).fit(X, labels)
            save(model, tmp_path / "model")
            np.save(tmp_path / "rows.npy", X)
            arguments = ("predict", tmp_path / "model", tmp_path / "rows.npy", "--proba")
            call(*arguments, "--reject-below", 0, code=0)
            call(*arguments, "--reject-below", 0, "--reject-label", "other", code=code)

    def test_what_it_refuses(self, folder, table):
        self.predicted(folder, "--reject-share", 0.1, "--reject-below", 0, code=2)
        self.predicted(folder, "--reject-label", "none", code=2)
        for share in (2, -0.1):
            done = self.predicted(folder, "--reject-share", share, code=2)
            assert "--reject-share" in done.output
        rival = LMNN(max_iter=2).fit(features(table), table["kind"])
        save(rival, folder / "other")
        done = call(
            "predict", folder / "other", folder / "table.csv", "--reject-share", 0.1, code=1
        )
        assert "--reject-below" in done.output
