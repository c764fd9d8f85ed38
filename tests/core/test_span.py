"""Few rows with many features: learning in the span of the rows gives what it gives without."""

import numpy as np
import pytest
from helpers import make_blobs
from scipy.spatial.distance import cdist

from latentmetric.core.alternation import Settings, first_state, next_state
from latentmetric.core.population import LocalPopulation, positions_of
from latentmetric.core.span import span_of, spanned
from latentmetric.core.starts import STARTS, start_from

SETTINGS = Settings(
    n_steps=300, metric_reg=1.7, latent_reg=0.0, max_norm=np.inf, target_neighbors=3, impostors=3,
    n_components=None, max_passes=3, n_threads=1, judged=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def wide():
    """40 rows of 70 features, of which two tell the classes apart, and 100 queries."""
    X, y = make_blobs(40, 3, 70)
    return X, y, make_blobs(100, 3, 70, seed=1)[0]


def positions_in_order(rows):
    """The position of the class of every row."""
    positions = np.empty(rows.sizes.sum(), dtype=int)
    for position, members in enumerate(rows.members):
        positions[members] = position
    return positions


def whole_metric(components, outside):
    """M of all features: that of the factor, and the one outside the span."""
    projection = np.eye(outside.basis.shape[1]) - outside.basis.T @ outside.basis
    rest = outside.factors[:, None] * projection * outside.factors
    return components.T @ components + rest


@pytest.mark.parametrize("start", STARTS)
def test_rounds_in_the_span_are_those_outside_of_it(wide, start):
    rows = LocalPopulation.of(*wide[:2])
    span, inside = span_of(rows.inner[:], positions_in_order(rows), start)
    outside = start_from(start, rows.inner[:], positions_in_order(rows))
    states = []
    sample = rows.sample(np.arange(40))
    for population, begun in ((rows, outside), (spanned(rows, sample, span), inside)):
        generator, counts = np.random.default_rng(0), np.full(3, 4)
        state = first_state(population, counts, "random", SETTINGS, begun, generator)
        for _ in range(3):
            state = next_state(state, generator, population, SETTINGS)
        states.append(state)
    one, other = states
    np.testing.assert_allclose(span.inverse_transform(other.latents), one.latents, atol=1e-8)
    np.testing.assert_allclose(other.spreads, one.spreads, rtol=1e-8)
    metric = one.start.fold(one.components).T @ one.start.fold(one.components)
    found = whole_metric(span.fold(other.start.fold(other.components)), span.outside)
    np.testing.assert_allclose(found, metric, atol=1e-8 * np.abs(metric).max())
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
        np.testing.assert_allclose(span.inverse_transform(span.transform(inner)), inner, atol=1e-9)

    def test_a_folded_metric_acts_on_rows_as_the_one_in_the_basis(self, case, rng):
        _, inner, positions, name = case
        span, _ = span_of(inner, positions, name)
        for rank in (3, 39, 50):
            factor = rng.standard_normal((rank, 39))
            expected = cdist(*[span.transform(inner) @ factor.T] * 2)
            folded = span.fold(factor)
            np.testing.assert_allclose(cdist(*[inner @ folded.T] * 2), expected, atol=1e-6)

    def test_outside_the_basis_a_folded_metric_is_nothing(self, case, rng):
        _, inner, positions, name = case
        span, _ = span_of(inner, positions, name)
        outside = np.linalg.svd(span.basis)[2][39:] / span.factors
        factor = rng.standard_normal((4, 39))
        np.testing.assert_allclose(span.fold(factor) @ outside.T, 0, atol=1e-9)
        np.testing.assert_allclose(span.outside.squared_norms(outside), span.share, rtol=1e-9)
        assert not span.outside.squared_norms(inner).any()

    @pytest.mark.parametrize(("n_more", "n_directions"), [(1, 1), (20, 10), (31, 31), (100, 31)])
    def test_a_factor_that_covers_more_rows_measures_them_by_the_whole_metric(
        self, case, rng, n_more, n_directions
    ):
        _, inner, positions, name = case
        span, _ = span_of(inner, positions, name)
        factor, more = span.fold(rng.standard_normal((30, 39))), rng.standard_normal((n_more, 70))
        more[n_more // 2 :] = more[: n_more - n_more // 2]  # some of them twice
        whole = np.linalg.cholesky(whole_metric(factor, span.outside) + 1e-12 * np.eye(70)).T
        rows = np.concatenate((inner, more))
        components, rest = span.outside.cover(factor, more)
        assert len(components) == 30 + n_directions
        expected = cdist(*[rows @ whole.T] * 2)
        np.testing.assert_allclose(cdist(*[rows @ components.T] * 2), expected, atol=1e-4)
        queries = rng.standard_normal((5, 70))
        squared = cdist(queries @ components.T, rows @ components.T) ** 2
        if rest is not None:
            squared += rest.squared_norms(queries)[:, None]
        np.testing.assert_allclose(
            np.sqrt(squared), cdist(queries @ whole.T, rows @ whole.T), atol=1e-4
        )

    def test_rows_hardly_outside_keep_the_basis_orthonormal(self, case, rng):
        _, inner, positions, name = case
        inner = inner.astype(np.float32)
        outside = span_of(inner, positions, name)[0].outside
        sizes = np.logspace(-5, 0, 8)[:, None]
        more = (inner[:8] + sizes * rng.standard_normal((8, 70))).astype(np.float32)
        for rows in (more[:2], more, 100 * more + 1):
            _, outside = outside.cover(inner[:0], rows)
            gram = outside.basis @ outside.basis.T
            np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-4)
