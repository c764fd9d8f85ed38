"""Models after their fit: classes and rows that come and go, membership and doubtful labels."""

import numpy as np
import pytest
from helpers import make_blobs
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split

from latentmetric import OASIS, Euclidean, MaPML, load, save
from latentmetric.viz import write_report

QUICK = {"max_iter": 2, "n_steps": 500, "refine": 1, "random_state": 0}
FITTED = (
    "classes_", "latent_examples_", "latent_labels_", "latent_counts_", "margins_", "components_"
)  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1200], y[:1200], X[1200:], y[1200:]


@pytest.fixture(scope="module")
def eight(digits):
    X, y, _, _ = digits
    return MaPML(0.1, **QUICK).fit(X[y < 8], y[y < 8])


def copied(model):
    twin = clone(model)
    vars(twin).update(vars(model))
    return twin


def assert_same(left, right):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


class TestAddClasses:
    def test_new_classes_are_known_and_old_ones_keep_every_bit(self, digits, eight):
        X, y, X_test, y_test = digits
        model = copied(eight).add_classes(X[y >= 8], y[y >= 8])
        assert model.classes_.tolist() == list(range(10))
        old = model.latent_labels_ < 8
        np.testing.assert_array_equal(model.latent_examples_[old], eight.latent_examples_)
        np.testing.assert_array_equal(model.latent_counts_[old], eight.latent_counts_)
        np.testing.assert_array_equal(model.margins_[:8], eight.margins_)
        nearest = model.kneighbors(X_test, 1, return_distance=False)[:, 0]
        np.testing.assert_array_equal(model.apply(X_test), nearest)
        np.testing.assert_array_equal(
            model.model_.references.rows[old], eight.model_.references.rows
        )
        assert model.components_ is eight.components_
        assert model.predict_proba(X_test).shape == (len(X_test), 10)
        assert model.score(X_test, y_test) > 0.92
        assert model.latent_counts_[~old].sum() == (y >= 8).sum()

    def test_new_classes_are_refined(self, digits):
        X, y, *_ = digits
        late, losses = np.isin(y, (3, 5)), []
        first = MaPML(0.1, **QUICK).fit(X[~late], y[~late])
        for refine in (0, 1):
            model = copied(first).set_params(refine=refine).add_classes(X[late], y[late])
            shares = model.predict_proba(X)[np.arange(len(y)), y]
            losses.append(-np.log(shares).mean())
            np.testing.assert_allclose(
                model.model_.references.rows,
                model.model_.coordinates.transform(model.latent_examples_)
                @ model.model_.components.T,
                rtol=1e-9, atol=1e-9,
            )  # fmt: skip
        assert losses[1] < losses[0]

    def test_where_classes_overlap_a_new_one_is_not_refined(self, rng):
        """Rows are near in units of T there: latent examples of old classes say little of them."""
        places = np.array([[0, 0, 0], [6, 0, 0], [0, 2.5, 0]])
        y = np.repeat([0, 1, 2], 200)
        X, new = places[y] + rng.standard_normal((600, 3)), y == 2
        first = MaPML(random_state=0).fit(X[~new], y[~new])
        model = copied(first).add_classes(X[new], y[new])
        plain = first.set_params(refine=0).add_classes(X[new], y[new])
        np.testing.assert_array_equal(model.latent_examples_, plain.latent_examples_)

    def test_the_order_of_adding_hardly_matters(self, digits):
        X, y, X_test, y_test = digits
        some = y < 7
        seven = MaPML(0.1, **QUICK).fit(X[some], y[some])
        scores = []
        for orders in ([[7, 8, 9]], [[7], [8], [9]], [[9], [7, 8]], [[8], [9], [7]]):
            model = copied(seven)
            for labels in orders:
                model.add_classes(X[np.isin(y, labels)], y[np.isin(y, labels)])
            scores.append(model.score(X_test, y_test))
            if orders == [[7, 8, 9]]:
                together = model
            elif orders == [[7], [8], [9]]:  # in the order of their labels
                np.testing.assert_allclose(
                    model.latent_examples_, together.latent_examples_, rtol=1e-6, atol=1e-6
                )
        assert np.ptp(scores) < 0.02

    def test_a_class_may_have_one_row(self, digits, eight):
        X, y, _, _ = digits
        nine = np.flatnonzero(y == 9)[0]
        model = copied(eight).add_classes(X[[nine]], [9])
        np.testing.assert_allclose(model.latent_examples_[-1], X[nine], atol=1e-9)
        assert model.predict(X[[nine]]).tolist() == [9]

    @pytest.mark.parametrize("reference", ["original", "set"])
    def test_where_rows_vote_new_rows_do_too(self, digits, eight, reference):
        X, y, _, _ = digits
        known = y < 8
        if reference == "set":
            model = copied(eight).set_references(X[known], y[known])
        else:
            model = MaPML(**QUICK, reference="original").fit(X[known], y[known])
        model.add_classes(X[~known], y[~known])
        assert len(model.model_.references) == len(X)
        assert set(model.latent_labels_) == set(range(10))
        assert model.score(X[~known], y[~known]) > 0.95

    @pytest.mark.parametrize("model", [Euclidean(), OASIS(n_steps=200, psd=False)])
    def test_rivals_take_new_classes(self, model):
        X, y = make_blobs(240, 4)
        model.fit(X[y < 2], y[y < 2]).add_classes(X[y >= 2], y[y >= 2])
        assert model.predict_proba(X).shape == (240, 4)
        assert set(model.predict(X)) == {0, 1, 2, 3}
        model.remove_classes([0])
        assert set(model.predict(X)) <= {1, 2, 3}

    def test_bad_input_leaves_the_model_as_it_was(self, digits, eight):
        X, y, _, _ = digits
        model = copied(eight)
        for rows, labels, error, message in (
            (X[:2], [3, 11], ValueError, "1 of the model's 8 classes, such as 3; add_classes"),
            (X[:2], ["a", "b"], TypeError, "same kind"),
            (X[:2, :5], [11, 12], ValueError, "features"),
            (X[:2] * np.nan, [11, 12], ValueError, "NaN"),
        ):
            with pytest.raises(error, match=message):
                model.add_classes(rows, labels)
        with pytest.raises(ValueError, match=r"labels holds 1 label\(s\)"):
            model.remove_classes([55])
        with pytest.raises(ValueError, match="only 1 would remain"):
            model.remove_classes(range(7))
        with pytest.raises(NotFittedError):
            MaPML().add_classes(X, y)
        assert_same(model, eight)

    def test_counts_by_class_need_one_for_the_new_class(self, digits):
        X, y, _, _ = digits
        some = y < 3
        model = MaPML(n_latents={0: 3, 1: 4, 2: 5}, **QUICK).fit(X[some], y[some])
        with pytest.raises(ValueError, match=r"no number for the class 3.*set_params"):
            model.add_classes(X[y == 3], y[y == 3])
        model.set_params(n_latents={**model.n_latents, 3: 6}).add_classes(X[y == 3], y[y == 3])
        assert np.bincount(model.latent_labels_).tolist() == [3, 4, 5, 6]


def test_new_labels_of_references_become_classes(digits, eight):
    X, y, X_test, y_test = digits
    model = copied(eight).set_references(X, y)
    assert set(model.classes_) == set(model.latent_labels_) == set(range(10))
    assert model.score(X_test, y_test) > 0.93
    assert len(model.model_.references) == len(X)


class TestPartialFit:
    def test_first_call_is_a_fit(self, digits):
        X, y, X_test, _ = digits
        whole, part = MaPML(**QUICK).fit(X, y), MaPML(**QUICK).partial_fit(X, y, np.unique(y))
        assert_same(part, whole)
        np.testing.assert_array_equal(part.predict(X_test), whole.predict(X_test))

    def test_classes_may_come_later(self, digits, tmp_path, in_batches):
        X, y, X_test, y_test = digits
        known = y < 8
        model = MaPML(0.1, **QUICK).partial_fit(X[known], y[known], classes=range(10))
        assert model.classes_.tolist() == list(range(10))
        assert (model.predict(X_test) < 8).all()
        assert model.predict_proba(X_test)[:, 8:].max() < 0.01
        save(model, tmp_path / "model")
        assert_same(load(tmp_path / "model"), model)
        write_report(model, X_test, y_test, tmp_path / "report.html")
        model.partial_fit(X[~known], y[~known])
        assert model.score(X_test, y_test) > 0.93

    @pytest.mark.parametrize(
        ("classes", "error", "message"),
        [
            ([False, True], TypeError, "same kind"),
            ([0, "a"], TypeError, "labels must be of one kind"),
            ([0, 1, 2.5], ValueError, "continuous"),
        ],
    )
    def test_wrong_classes_are_refused_before_any_work(self, monkeypatch, classes, error, message):
        X, y = make_blobs(40, 2)
        model = MaPML()
        monkeypatch.setattr(MaPML, "_fit", None)
        with pytest.raises(error, match=message):
            model.partial_fit(X, y, classes)

    def test_one_pass_in_chunks_is_nearly_as_good_as_a_fit_with_the_same_metric(self, digits):
        X, y, X_test, y_test = digits
        first = MaPML(**QUICK).fit(X[:300], y[:300])
        chunks = copied(first)
        for start in range(300, 1200, 100):
            chunks.partial_fit(X[start : start + 100], y[start : start + 100])
        # The same metric with latent examples of all rows.
        again = copied(first).remove_classes(range(8))
        again.add_classes(X[y < 8], y[y < 8]).remove_classes([8, 9])
        again.add_classes(X[y >= 8], y[y >= 8])
        assert len(chunks.latent_examples_) == pytest.approx(len(again.latent_examples_), abs=10)
        assert chunks.latent_counts_.sum() == 1200
        assert chunks.score(X_test, y_test) > again.score(X_test, y_test) - 0.02

    def test_forgetting_follows_a_drift(self, rng):
        X, y = make_blobs(400, 2)
        start = MaPML(n_latents=2, **QUICK).fit(X, y)
        shift = np.array([0, 0, 0, 0, 3.0, 3.0])
        keeps, forgets = copied(start), copied(start)
        for _ in range(5):
            keeps.partial_fit(X[:100] + shift, y[:100])
            forgets.partial_fit(X[:100] + shift, y[:100], forget=0.2)
        assert forgets.score(X + shift, y) > keeps.score(X + shift, y)

    def test_what_it_refuses(self, digits, eight):
        X, y, _, _ = digits
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            MaPML().partial_fit(X, y)
        model = copied(eight)
        for label, options, message in (
            (0, {"classes": [0, 1]}, "is not the same as on the last call"),
            (9, {}, r"1 label\(s\) that the model does not know"),
            (1, {"forget": 0}, "forget"),
        ):
            with pytest.raises(ValueError, match=message):
                model.partial_fit(X[:1], [label], **options)
        assert_same(model, eight)

    def test_an_interrupt_leaves_the_model_as_it_was(self, digits, eight, monkeypatch):
        X, y, _, _ = digits

        def interrupted(*_):
            raise KeyboardInterrupt

        model = copied(eight)
        monkeypatch.setattr("latentmetric.estimators.online.refine_new", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.add_classes(X[y == 8], y[y == 8])
        monkeypatch.setattr("latentmetric.estimators.online.grow", interrupted)
        for change in (
            lambda: model.partial_fit(X[y < 8], y[y < 8]),
            lambda: model.set_references(X, y),
        ):
            with pytest.raises(KeyboardInterrupt):
                change()
        assert_same(model, eight)
        assert model.model_ is eight.model_


def test_wrong_labels_have_low_scores(digits, rng):
    X, y, _, _ = digits
    wrong = rng.random(len(y)) < 0.1
    noisy = np.where(wrong, (y + rng.integers(1, 10, len(y))) % 10, y)
    scores = MaPML(label_noise=True, **QUICK).fit(X, noisy).label_scores(X, noisy)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert wrong[np.argsort(scores)[: wrong.sum()]].mean() > 0.85


@pytest.mark.parametrize(
    ("parameters", "kept"),
    [({}, 0), ({"early_stopping": True}, 0), ({"label_noise": True}, 0),
     ({"label_noise": True}, 0.2)],
)  # fmt: skip
def test_about_the_share_is_rejected(parameters, kept, monkeypatch):
    monkeypatch.setattr("latentmetric.core.unknown.KEPT_SHARE", kept)
    shares, rejected = (0.05, 0.3), []
    for seed in range(4):  # a twentieth of the held-out rows are seven
        X, X_test, y, _ = train_test_split(*load_digits(return_X_y=True), random_state=seed)
        model = MaPML(**QUICK, **parameters).fit(X, y)
        model.known_scores_ = np.repeat(model.known_scores_, 2)  # held-out rows are too few
        for share in shares:
            threshold = model.reject_threshold(share)
            labels = model.predict(X_test, reject_below=threshold, reject_label=-1)
            rejected.append(np.mean(labels == -1))
    ratios = np.reshape(rejected, (4, 2)).mean(axis=0) / shares
    assert ((ratios > 0.5) & (ratios < 2)).all()
    with pytest.raises(ValueError, match="other references vote"):
        model.set_references(X, y).reject_threshold(0.1)


class TestBandwidths:
    """References that come later have the mean bandwidth and weight; others keep theirs."""

    @pytest.fixture
    def wide(self):
        X, y = make_blobs(240, 4)
        model = MaPML(4, bandwidth="latent", ridge=0.1, random_state=0)
        return model.fit(X[y < 3], y[y < 3]), X, y

    @staticmethod
    def votes(model):
        return np.array((model.model_.log_scales, model.model_.log_weights))

    def test_new_classes_get_the_mean(self, wide):
        model, X, y = wide
        grown = copied(model).add_classes(X[y == 3], y[y == 3])
        before, after = self.votes(model), self.votes(grown)
        assert np.ptp(before, axis=1).min() > 0.1
        np.testing.assert_array_equal(after[:, grown.latent_labels_ < 3], before)
        mean = before.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(after[:, grown.latent_labels_ == 3], np.repeat(mean, 4, axis=1))
        squared = cdist(grown.transform(X), grown.transform(grown.latent_examples_), "sqeuclidean")
        squared /= grown.model_.temperature * grown.model_.coordinates.unit
        weights = np.exp(after[1] - np.exp(after[0]) * squared)
        shares = np.column_stack([weights[:, grown.latent_labels_ == c].sum(1) for c in range(4)])
        shares /= shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(grown.predict_proba(X), shares, rtol=1e-6, atol=1e-6)

    def test_more_rows_leave_them_and_more_latents_get_the_mean(self, wide):
        model, X, y = wide
        some = y == 1
        grown = copied(model).set_params(n_latents=6).partial_fit(X[some] + 0.5, y[some])
        before, after = self.votes(model), self.votes(grown)
        for label in (0, 2):
            np.testing.assert_array_equal(
                after[:, grown.latent_labels_ == label], before[:, model.latent_labels_ == label]
            )
        of_class = after[:, grown.latent_labels_ == 1]
        np.testing.assert_array_equal(of_class[:, :4], before[:, model.latent_labels_ == 1])
        assert of_class.shape == (2, 6)
        np.testing.assert_allclose(of_class[:, 4:], before.mean(axis=1)[:, None] * [[1, 1]])

    def test_the_score_of_a_label_that_was_not_learned_from_is_its_probability(self, wide):
        model, X, y = wide
        X, y = X[y < 3] + 0.3, y[y < 3]
        scores = model.label_scores(X, y, training=False)
        shares = model.predict_proba(X)[np.arange(len(y)), y]
        np.testing.assert_allclose(scores, shares, rtol=1e-6, atol=1e-6)

    def test_classes_that_go_take_theirs_with_them(self, wide):
        model, X, y = wide
        left = copied(model).remove_classes([1])
        np.testing.assert_array_equal(
            self.votes(left), self.votes(model)[:, model.latent_labels_ != 1]
        )
        assert left.predict_proba(X[y == 0]).shape == (60, 2)

    def test_references_that_are_set_vote_equally(self, wide):
        model, X, y = wide
        known = y < 3
        changed = copied(model).set_references(X[known], y[known])
        assert changed.model_.log_scales is None
        assert changed.model_.log_weights is None
        assert changed.score(X[known], y[known]) > 0.8
        changed.add_classes(X[y == 3], y[y == 3])
        assert changed.model_.log_scales is None
        assert changed.predict_proba(X).shape == (240, 4)
