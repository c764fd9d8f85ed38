"""Few rows with many features: learning in the span of the rows gives what it gives without."""

import copy

import numpy as np
import pytest
from helpers import interrupt_round, make_blobs
from scipy.spatial.distance import cdist

from latentmetric import MaPML, load, save
from latentmetric.core.alternation import Settings, first_state, next_state
from latentmetric.core.population import LocalPopulation, positions_of
from latentmetric.core.span import is_wide, span_of, spanned
from latentmetric.core.starts import STARTS, start_from
from latentmetric.estimators import setup

QUICK = {"n_latents": 0.2, "n_steps": 300, "max_iter": 3, "random_state": 0}

SETTINGS = Settings(
    n_steps=300, metric_reg=1.7, latent_reg=0.0, max_norm=np.inf, target_neighbors=3, impostors=3,
    n_components=None, max_passes=3, n_threads=1, judged=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def wide():
    """40 rows of 70 features, of which two tell the classes apart, and 100 queries."""
    X, y = make_blobs(40, 3, 70)
    return X, y, make_blobs(100, 3, 70, seed=1)[0]


@pytest.fixture
def fit_both(monkeypatch):
    """Fits a model with the span and one without it."""

    def fit(model, X, y):
        assert is_wide(LocalPopulation.of(X, y))
        other = copy.deepcopy(model)
        model.fit(X, y)
        with monkeypatch.context() as patched:
            patched.setattr(setup, "is_wide", lambda rows: False)
            other.fit(X, y)
        return model, other

    return fit


def assert_same(one, other, queries, precise=1e-8):
    """The same metric and latent examples, and the same answers to queries outside the span."""
    metric = other.get_mahalanobis_matrix()
    atol = precise * np.abs(metric).max()
    np.testing.assert_allclose(one.get_mahalanobis_matrix(), metric, rtol=0, atol=atol)
    latents = other.latent_examples_
    np.testing.assert_allclose(one.latent_examples_, latents, atol=precise * np.abs(latents).max())
    np.testing.assert_array_equal(one.latent_labels_, other.latent_labels_)
    np.testing.assert_allclose(one.margins_, other.margins_, rtol=precise)
    for answer, expected in zip(one.kneighbors(queries), other.kneighbors(queries), strict=True):
        np.testing.assert_allclose(answer, expected, rtol=precise)
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries))
    shares = other.predict_proba(queries)
    np.testing.assert_allclose(one.predict_proba(queries), shares, atol=100 * precise)
    assert one.best_iter_ == other.best_iter_
    for record, others in zip(one.history_, other.history_, strict=True):
        for name in record.keys() & {"objective", "active_share", "mean_margin", "loss"}:
            assert record[name] == pytest.approx(others[name], rel=100 * precise)


PARAMETERS = [
    {}, {"n_components": 2}, {"n_components": 70}, {"early_stopping": True},
    {"reference": "original"}, {"weights": "kernel", "keep": "best"}, {"init": "k-means++"},
    {"latent_reg": 0.5}, {"max_iter": 0}, {"max_norm": 0.5}, {"n_latents": 1}, {"n_latents": 1.0},
]  # fmt: skip


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_the_published_algorithm_gives_the_same_model(wide, fit_both, parameters):
    X, y, queries = wide
    one, other = fit_both(MaPML.as_published(**QUICK | parameters), X, y)
    assert_same(one, other, queries)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("n_components", [None, 3])
def test_every_start_gives_the_same_model(wide, fit_both, start, n_components):
    X, y, queries = wide
    model = MaPML(**QUICK, start=start, refine=0, n_components=n_components)
    one, other = fit_both(model, X, y)
    assert_same(one, other, queries, 1e-8 if n_components is None else 1e-2)


def test_float32_gives_nearly_the_same_model(wide, fit_both):
    X, y, queries = wide
    one, other = fit_both(MaPML.as_published(**QUICK | {"max_iter": 1}), X.astype("f4"), y)
    assert one.components_.dtype == one.latent_examples_.dtype == np.float32
    assert_same(one, other, queries.astype("f4"), 1e-3)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_span_even_fewer_dimensions(wide, fit_both, start, dtype):
    """Each row three times, and a feature that is a sum of others."""
    X, y, queries = wide
    X, y = np.repeat(X[:12], 3, axis=0).astype(dtype), np.repeat(y[:12], 3)
    X[:, 7] = X[:, 8] + X[:, 9]
    one, other = fit_both(MaPML(**QUICK | {"max_iter": 1}, start=start, refine=0), X, y)
    assert_same(one, other, queries.astype(dtype), 1e-8 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("start", STARTS)
def test_outside_the_span_a_refined_metric_is_that_of_the_start(wide, start):
    """Nothing was learned there, but nothing is lost."""
    X, y, queries = wide
    begun = MaPML(**QUICK | {"max_iter": 0}, start=start, refine=0).fit(X, y)
    model = MaPML(**QUICK, start=start, refine=1, keep="last").fit(X, y)
    rows = LocalPopulation.of(X, y)
    span, _ = span_of(rows.inner[:], positions_in_order(rows), start)
    outside = np.linalg.svd(span.basis)[2][len(span.basis) :] / span.factors
    before, after = (fitted.get_mahalanobis_matrix() @ outside.T for fitted in (begun, model))
    np.testing.assert_allclose(after, before, atol=1e-8 * np.abs(before).max())
    assert np.abs(model.get_mahalanobis_matrix() - begun.get_mahalanobis_matrix()).max() > 0.01
    assert model.predict(queries).shape == (100,)


def positions_in_order(rows):
    """The position of the class of every row."""
    positions = np.empty(rows.sizes.sum(), dtype=int)
    for position, members in enumerate(rows.members):
        positions[members] = position
    return positions


EQUAL = [*({"start": start} for start in (*STARTS, "auto")), {"n_components": 3}]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", EQUAL, ids=str)
def test_rows_that_are_all_equal_span_nothing(dtype, parameters):
    X, y = np.full((10, 20), 1 / 3, dtype=dtype), np.arange(10) % 2
    model = MaPML(**QUICK, **parameters).fit(X, y)
    np.testing.assert_allclose(model.latent_examples_, 1 / 3, rtol=1e-6)
    assert np.isfinite(model.components_).all()
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.parametrize("start", STARTS)
def test_a_warm_start_goes_on_from_the_metric_it_is_given(wide, fit_both, start):
    """Also outside the span of its own, other rows."""
    X, y, queries = wide
    begun = MaPML(**QUICK, start=start, warm_start=True).fit(X, y)
    kept = copy.deepcopy(begun).set_params(max_iter=0, refine=0).fit(X[:25], y[:25])
    metric = begun.get_mahalanobis_matrix()
    np.testing.assert_allclose(kept.get_mahalanobis_matrix(), metric, atol=1e-9 * metric.max())
    again = copy.deepcopy(begun).set_params(refine=0)
    assert_same(*fit_both(again, X[:25], y[:25]), queries)


def test_a_saved_model_answers_as_before(wide, tmp_path):
    X, y, queries = wide
    for parameters in ({}, {"n_components": 2}, {"start": "within", "refine": 0}):
        model = MaPML(**QUICK, **parameters).fit(X, y)
        save(model, tmp_path / "model.safetensors")
        loaded = load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.components_, model.components_)
        np.testing.assert_array_equal(loaded.predict_proba(queries), model.predict_proba(queries))


@pytest.mark.parametrize("start", ["auto", "within"])
def test_an_interrupted_fit_is_resumed_to_the_same_model(wide, tmp_path, monkeypatch, start):
    X, y, _ = wide
    model = MaPML(**QUICK | {"max_iter": 2}, start=start, refine=2)
    whole = copy.deepcopy(model).fit(X, y)
    with monkeypatch.context() as patched:
        interrupt_round(patched, 4)
        with pytest.raises(KeyboardInterrupt):
            copy.deepcopy(model).fit(X, y, checkpoint=tmp_path)
    resumed = model.fit(X, y, checkpoint=tmp_path, resume=True)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed.latent_examples_, whole.latent_examples_)
    assert resumed.history_[0]["start"] == whole.history_[0]["start"]


def test_rows_with_fewer_features_than_rows_are_not_wide(rng):
    X, y = rng.standard_normal((12, 12)), np.arange(12) % 2
    assert not is_wide(LocalPopulation.of(X, y))
    assert is_wide(LocalPopulation.of(X[:11], y[:11]))


@pytest.mark.parametrize("start", STARTS)
def test_rounds_in_the_span_are_those_outside_of_it(wide, start):
    rows = LocalPopulation.of(*wide[:2])
    span, inside = span_of(rows.inner[:], positions_in_order(rows), start)
    outside = start_from(start, rows.inner[:], positions_in_order(rows))
    states = []
    for population, begun in ((rows, outside), (spanned(rows, span), inside)):
        generator, counts = np.random.default_rng(0), np.full(3, 4)
        state = first_state(population, counts, "random", SETTINGS, begun, generator)
        for _ in range(3):
            state = next_state(state, generator, population, SETTINGS)
        states.append(state)
    one, other = states
    np.testing.assert_allclose(span.out_of(other.latents), one.latents, atol=1e-8)
    np.testing.assert_allclose(other.spreads, one.spreads, rtol=1e-8)
    metric = one.start.fold(one.components).T @ one.start.fold(one.components)
    widened = span.widen(other.start.fold(other.components))
    np.testing.assert_allclose(widened.T @ widened, metric, atol=1e-8 * np.abs(metric).max())
    for name in ("objective", "active_share", "mean_margin", "loss", "loo_error"):
        assert other.record[name] == pytest.approx(one.record[name], rel=1e-8)


class TestSpan:
    """The basis itself."""

    @pytest.fixture(params=STARTS)
    def case(self, request, wide):
        rows = LocalPopulation.of(*wide[:2])
        numbers = np.arange(40)
        inner, positions = rows.sample(numbers), positions_of(rows, numbers)
        return rows, inner, positions, request.param

    def test_rows_are_written_in_an_orthonormal_basis_and_back(self, case):
        _, inner, positions, name = case
        span, _ = span_of(inner, positions, name)
        assert span.basis.shape == (39, 70)
        np.testing.assert_allclose(span.basis @ span.basis.T, np.eye(39), atol=1e-9)
        np.testing.assert_allclose(span.out_of(span.into(inner)), inner, atol=1e-9)

    def test_the_start_in_the_span_is_the_start(self, case):
        """For rows, and after widening for all queries."""
        _, inner, positions, name = case
        span, start = span_of(inner, positions, name)
        expected = start_from(name, inner, positions)
        np.testing.assert_allclose(
            cdist(*[start.into(span.into(inner))] * 2), cdist(*[expected.into(inner)] * 2),
            atol=1e-9,
        )  # fmt: skip
        found = span.widen(start.fold(np.eye(39)))
        metric = expected.fold(np.eye(70)).T @ expected.fold(np.eye(70))
        np.testing.assert_allclose(found.T @ found, metric, atol=1e-9 * np.abs(metric).max())

    def test_a_widened_metric_acts_on_rows_as_the_one_in_the_basis(self, case, rng):
        _, inner, positions, name = case
        span, _ = span_of(inner, positions, name)
        for rank in (3, 39, 50):
            factor = rng.standard_normal((rank, 39))
            expected = cdist(*[span.into(inner) @ factor.T] * 2)
            for wide in (span.widen(factor), span.fold(factor)):
                np.testing.assert_allclose(cdist(*[inner @ wide.T] * 2), expected, atol=1e-6)

    def test_outside_the_basis_a_folded_metric_is_nothing(self, case, rng):
        _, inner, positions, name = case
        span, _ = span_of(inner, positions, name)
        outside = np.linalg.svd(span.basis)[2][39:] / span.factors
        factor = rng.standard_normal((4, 39))
        np.testing.assert_allclose(span.fold(factor) @ outside.T, 0, atol=1e-9)
        widened = np.square(span.widen(factor) @ outside.T).sum(axis=0)
        np.testing.assert_allclose(widened, span.outside, rtol=1e-9)

    def test_spanned_rows_keep_their_classes_and_their_order(self, case):
        rows, inner, positions, name = case
        span, _ = span_of(inner, positions, name)
        within = spanned(rows, span)
        np.testing.assert_array_equal(within.codes, rows.codes)
        np.testing.assert_array_equal(within.sizes, rows.sizes)
        assert within.n_features == 39
        numbers = np.arange(40)
        np.testing.assert_allclose(span.out_of(within.sample(numbers)), inner, atol=1e-9)
