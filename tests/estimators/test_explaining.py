"""Explanations agree with the probabilities, and show rows that references stand for."""

import numpy as np
import pandas
import pytest
import sklearn
from helpers import make_blobs
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from latentmetric import OASIS, Euclidean, Explanation, MaPML

X, Y = make_blobs()
Q = make_blobs(60, seed=1)[0]
IDS = np.array([f"row {number}" for number in range(len(X))])
QUICK = {"max_iter": 1, "n_steps": 200, "random_state": 0}


def probabilities(explained, classes):
    """The shares of the references of each class, and its part of the rest."""
    own = explained.labels[:, :, None] == classes
    return (own * explained.shares[:, :, None]).sum(axis=1) + explained.rest[:, None] / len(classes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        MaPML(2, **QUICK),
        MaPML(0.5, bandwidth="shared", **QUICK),  # so many voters that they are not sorted
        MaPML(0.5, bandwidth="latent", **QUICK),
        MaPML(3, bandwidth="class", **QUICK),
        MaPML(0.5, weights="uniform", n_neighbors=4, **QUICK),
        MaPML(0.5, weights="distance", **QUICK),
        MaPML(reference="original", **QUICK),
        MaPML(reference="original", early_stopping=True, **QUICK),
        OASIS(n_steps=200, random_state=0),
        Euclidean(weights="distance"),
    ],
    ids=str,
)
def test_all_shares_of_a_class_are_its_probability(model, dtype):
    rows = np.concatenate((Q, X[:9])).astype(dtype)  # some are references
    model = clone(model).fit(X.astype(dtype), Y)
    explained = model.explain(rows, n_voters=None)
    expected = model.predict_proba(rows)
    np.testing.assert_allclose(probabilities(explained, model.classes_), expected, atol=1e-14)
    distances, indices = model.kneighbors(rows, explained.shares.shape[1])
    of_references = np.zeros((len(rows), len(model.model_.references)))
    np.put_along_axis(of_references, indices, distances, axis=1)
    found = np.take_along_axis(of_references, explained.references, axis=1)
    np.testing.assert_allclose(explained.distances, found, rtol=2e-5, atol=0)
    assert explained.distances.dtype == distances.dtype
    assert (explained.labels == model.classes_[model.model_.codes[explained.references]]).all()
    assert explained.row_ids is None


def test_a_known_row_is_at_distance_0_within_rounding():
    model = Euclidean(weights="kernel").fit(X, Y)
    assert (model.explain(X * (1 + 2**-52), n_voters=1).distances == 0).all()


def test_the_largest_shares_are_shown_first():
    model = MaPML(0.5, bandwidth="latent", **QUICK).fit(X, Y)
    every, some = model.explain(Q, n_voters=None), model.explain(Q, n_voters=3)
    assert (np.diff(every.shares, axis=1) <= 0).all()
    for name in ("references", "labels", "shares", "distances"):
        np.testing.assert_array_equal(getattr(some, name), getattr(every, name)[:, :3])
    np.testing.assert_allclose(some.rest, 1 - some.shares.sum(axis=1), rtol=1e-12)
    assert model.explain(Q).shares.shape == (60, 5)
    with pytest.raises(ValueError, match="n_voters"):
        model.explain(Q, n_voters=0)


def nearest_ids(model, X, y, ids):
    """The ids of the rows nearest to each latent example of their class, by a plain search."""
    found, mapped = [], model.transform(X)
    for latent, label in zip(
        model.transform(model.latent_examples_), model.latent_labels_, strict=True
    ):
        own = np.flatnonzero(y == label)
        away = np.linalg.norm(mapped[own] - latent, axis=1)
        found.append([*ids[own[away.argsort(kind="stable")]][:3].tolist(), None, None, None][:3])
    return found


def test_latent_examples_show_the_rows_nearest_to_them():
    y = np.where(np.arange(240) < 2, 3, Y)  # a class of two rows
    model = MaPML(4, **QUICK).fit(X, y, row_ids=IDS)
    plain = MaPML(4, **QUICK).fit(X, y)
    assert model.model_.row_ids.tolist() == nearest_ids(model, X, y, IDS)
    np.testing.assert_array_equal(model.predict_proba(Q), plain.predict_proba(Q))
    explained = model.explain(Q)
    assert (explained.row_ids == model.model_.row_ids[explained.references]).all()


def test_rows_that_do_not_count_are_not_shown():
    weights = np.where(np.arange(240) % 5 == 1, 0, 1.0)
    counts, y = weights > 0, Y
    model = MaPML(2, **QUICK).fit(X, y, sample_weight=weights, row_ids=IDS)
    assert model.model_.row_ids.tolist() == nearest_ids(model, X[counts], y[counts], IDS[counts])
    marked = np.where(counts, y, -1)
    model = MaPML(2, unlabelled=-1, **QUICK).fit(X, marked, row_ids=IDS)
    assert model.model_.row_ids.tolist() == nearest_ids(model, X[counts], y[counts], IDS[counts])


@pytest.mark.parametrize(
    "model", [MaPML(reference="original", early_stopping=True, **QUICK), Euclidean(), OASIS()],
    ids=str,
)  # fmt: skip
def test_a_row_shows_itself(model):
    explained = clone(model).fit(X, Y, row_ids=np.arange(240)).explain(Q)
    np.testing.assert_array_equal(explained.row_ids[:, :, 0], explained.references)
    assert (explained.row_ids[:, :, 1:] == None).all()  # noqa: E711


class TestModelsThatChange:
    @pytest.fixture
    def model(self):
        return MaPML(3, bandwidth="latent", **QUICK).fit(X, Y, row_ids=IDS)

    def test_new_classes_show_their_rows(self, model):
        rows, labels = X[:30] + 9, np.repeat([-1, 7], 15)
        before = model.model_.row_ids.tolist()
        model.add_classes(rows, labels, row_ids=range(30))
        new = nearest_ids(model, rows, labels, np.arange(30))
        # As sets: a latent example of two rows is equally far from both.
        shown = [set(ids) for ids in model.model_.row_ids.tolist()]
        assert shown == [set(ids) for ids in new[:3] + before + new[-3:]]
        model.remove_classes([1, 7])
        shown = [set(ids) for ids in model.model_.row_ids.tolist()]
        assert shown == [set(ids) for ids in new[:3] + before[:3] + before[6:]]
        model.add_classes(rows[15:], labels[15:])
        assert model.model_.row_ids[-3:].tolist() == [[None] * 3] * 3

    def test_new_rows_are_shown_by_new_latent_examples(self, model):
        before = model.model_.row_ids.tolist()
        model.set_params(n_latents=5)
        rows = X[Y == 1] + 1
        model.partial_fit(rows, np.ones(len(rows), dtype=int), row_ids=range(len(rows)))
        after = model.model_.row_ids.tolist()
        assert after[:6] + after[8:] == before
        ones = np.ones(len(rows), dtype=int)
        assert after[6:8] == nearest_ids(model, rows, ones, np.arange(len(rows)))[6:8]

    def test_ids_may_come_with_later_rows_only(self):
        model = MaPML(2, **QUICK).fit(X, Y).partial_fit(X[Y == 0], Y[Y == 0], row_ids=IDS[Y == 0])
        assert model.model_.row_ids[:2].tolist() == nearest_ids(model, X, Y, IDS)[:2]
        assert model.model_.row_ids[2:].tolist() == [[None] * 3] * 4
        first = MaPML(2, **QUICK).partial_fit(X, Y, classes=[0, 1, 2], row_ids=IDS)
        assert first.model_.row_ids.tolist() == nearest_ids(first, X, Y, IDS)

    def test_rows_of_weight_0_are_left_out(self, model):
        model.set_references(X[:9], Y[:9], row_ids=IDS[:9])
        weights = np.arange(3) > 0
        model.partial_fit(X[9:12], Y[9:12], sample_weight=weights, row_ids=IDS[9:12])
        assert model.model_.row_ids[:, 0].tolist() == [*IDS[:9], *IDS[10:12]]

    @pytest.mark.parametrize("estimator", [MaPML(3, **QUICK), OASIS(n_steps=50), Euclidean()])
    def test_other_references_bring_their_own_ids(self, estimator):
        model = clone(estimator).fit(X, Y, row_ids=IDS)
        model.set_references(X[:9], Y[:9] + 1, row_ids=IDS[:9])  # with a new class
        assert model.model_.row_ids[:, 0].tolist() == IDS[:9].tolist()
        model.add_classes(X[9:11], [8, 9])
        assert model.model_.row_ids[:, 0].tolist() == [*IDS[:9], None, None]
        assert model.set_references(X, Y).explain(Q).row_ids is None

    @pytest.mark.parametrize("method", ["add_classes", "partial_fit", "set_references", "fit"])
    def test_wrong_ids_leave_the_model_as_it_was(self, model, method):
        before = dict(vars(model))
        with pytest.raises(ValueError, match=r"X has 240 rows, but row_ids has the shape \(239,\)"):
            getattr(model, method)(X, Y + 9 * (method == "add_classes"), row_ids=IDS[1:])
        assert vars(model) == before


def test_columns_and_text():
    X, y, names = [[0.0], [1.0], [5.0]], ["a", "a", "b"], [7, "Al\n", None]
    model = Euclidean(weights="distance").fit(X, y, row_ids=names)
    explained = model.explain([[4.0], [5.0]], n_voters=2)
    assert isinstance(explained, Explanation)
    assert repr(explained) == (
        "row 0\n  63.16 % b: reference 2 at 1\n  21.05 % a: reference 1 at 3 | Al\\n\n"
        "row 1\n  100.00 % b: reference 2 at 0\n  0.00 % a: reference 1 at 4 | Al\\n"
    )
    assert repr(model.explain([[4.0]] * 7)).endswith("7\n… and 2 more")
    frame = pandas.DataFrame(explained.to_dict())
    assert frame.columns.tolist() == [
        "row", "rank", "reference", "label", "distance", "share",
        "example_1", "example_2", "example_3",
    ]  # fmt: skip
    assert frame.iloc[1].tolist()[:5] == [0, 2, 1, "a", 3.0]
    assert frame["example_1"].tolist() == ["", "Al\n", "", "Al\n"]
    assert model.explain([[0.0]]).to_dict()["example_1"].tolist() == ["7", "Al\n", ""]
    assert len(Euclidean().fit(X, y).explain(X).to_dict()) == 6


def test_pipelines_and_metadata_routing_pass_ids_on():
    pipeline = make_pipeline(StandardScaler(), MaPML(2, **QUICK)).fit(X, Y, mapml__row_ids=IDS)
    expected = pipeline[-1].model_.row_ids.tolist()
    assert pipeline[-1].explain(pipeline[:-1].transform(Q)).row_ids.shape == (60, 5, 3)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = MaPML(2, **QUICK).set_fit_request(row_ids=True)
        pipeline = make_pipeline(StandardScaler(), routed).fit(X, Y, row_ids=IDS)
    assert pipeline[-1].model_.row_ids.tolist() == expected
