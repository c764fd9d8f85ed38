"""The refinement against plain functions that read like the formulas of its module."""

import copy
import dataclasses

import numpy as np
import pytest
from helpers import make_blobs
from scipy.special import logsumexp

from latentmetric.core import refinement
from latentmetric.core.nearby import RowSubset
from latentmetric.core.population import LocalPopulation, positions_of
from latentmetric.core.refinement import (
    CERTAIN_LIKELIHOOD,
    FACTOR_RATE,
    FIRST_DECAY,
    MIN_GRADIENT_SHARE,
    POINT_RATE,
    SECOND_DECAY,
    Adam,
    Batch,
    Gradient,
    Moments,
    Plan,
    draw_batches,
    gradient,
    pairs_of_latents,
    preimages,
    refine,
)
from latentmetric.core.starts import Start, start_from
from latentmetric.core.tuning import DISTORTION, WRONG_LABELS_EXPONENT

N_ROWS, N_POINTS, RANK, N_FEATURES, T = 9, 8, 3, 5, 1.3


@dataclasses.dataclass
class Problem:
    """Labelled rows and points in sets, each row with the point of each set that contains it."""

    rows: np.ndarray
    labels: np.ndarray
    own: np.ndarray
    """(rows, sets)."""
    stretch: np.ndarray
    """Of the squared distances of each row to its own points, (rows, sets)."""
    factor: np.ndarray
    points: np.ndarray
    of_points: np.ndarray
    of_sets: np.ndarray
    temperature: float = T

    def with_changes(self, **changes):
        return dataclasses.replace(self, **changes)


@pytest.fixture
def problem(rng):
    of_points, of_sets = np.array([0, 0, 0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 0, 1, 0, 1])
    labels = np.arange(N_ROWS) % 3
    own = [[rng.choice(np.flatnonzero((of_points == label) & (of_sets == number)))
            for number in range(2)] for label in labels]  # fmt: skip
    return Problem(
        rng.standard_normal((N_ROWS, N_FEATURES)), labels, np.array(own),
        rng.uniform(1, 4, (N_ROWS, 2)), rng.standard_normal((RANK, N_FEATURES)),
        rng.standard_normal((N_POINTS, RANK)), of_points, of_sets,
    )  # fmt: skip


def log_likelihood(problem, number, of_set):
    """log P(y | x) of a row, left out of its own point, over all points of one set."""
    exponents, same = [], []
    for point in np.flatnonzero(problem.of_sets == of_set):
        away = problem.factor @ problem.rows[number] - problem.points[point]
        squared = away @ away
        if point == problem.own[number, of_set]:
            squared *= problem.stretch[number, of_set]
        exponents.append(-squared / problem.temperature)
        same.append(problem.of_points[point] == problem.labels[number])
    return logsumexp(np.array(exponents)[same]) - logsumexp(exponents)


def plain_loss(problem, exponent=0.0):
    """−log P(y | x), summed over rows and sets; its gradient times P**exponent is the other's."""
    total = 0.0
    for number in range(len(problem.rows)):
        for of_set in np.unique(problem.of_sets):
            value = log_likelihood(problem, number, of_set)
            total += (1 - np.exp(exponent * value)) / exponent if exponent else -value
    return total


def batch_of(problem, exponent=0.0):
    """All points of each set are near every row."""
    sets = [np.flatnonzero(problem.of_sets == number) for number in np.unique(problem.of_sets)]
    near = np.tile(sets, (len(problem.rows), 1, 1))
    own = near == problem.own[:, :, None]
    stretch = np.where(own, problem.stretch[:, :, None], 1).astype(problem.rows.dtype)
    same = problem.of_points[near] == problem.labels[:, None, None]
    return Batch(
        problem.factor, problem.points, near, same, stretch, problem.temperature, exponent
    )  # fmt: skip


def found(problem, exponent=0.0):
    return gradient(problem.rows, batch_of(problem, exponent))


def central(loss, place, step=1e-5):
    """The gradient by central differences."""
    steps = step * np.eye(len(place))
    return [(loss(place + by) - loss(place - by)) / (2 * step) for by in steps]


@pytest.mark.parametrize("exponent", [0.0, WRONG_LABELS_EXPONENT, 2.0])
def test_the_gradient_is_that_of_the_plain_loss(problem, exponent):
    slopes = found(problem, exponent)

    def of_factor(flat):
        moved = problem.with_changes(factor=flat.reshape(problem.factor.shape))
        return plain_loss(moved, exponent)

    def of_points(flat):
        moved = problem.with_changes(points=flat.reshape(problem.points.shape))
        return plain_loss(moved, exponent)

    for loss, place, slope in (
        (of_factor, problem.factor, slopes.components), (of_points, problem.points, slopes.points)
    ):  # fmt: skip
        np.testing.assert_allclose(slope.ravel(), central(loss, place.ravel()), atol=1e-6)
        assert np.linalg.norm(slope) > 0.1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [0.0, WRONG_LABELS_EXPONENT])
def test_a_row_among_points_of_another_label_has_a_finite_gradient(dtype, exponent):
    """Its label is so unlikely that exp(−D²/T) of its own point is 0 beside the others."""
    rows, factor = np.zeros((1, 2), dtype), np.eye(2, dtype=dtype)
    points = np.array([[100, 0], [0.5, 0]], dtype)
    batch = Batch(
        factor, points, np.array([[[0, 1]]]), np.array([[[True, False]]]),
        np.ones((1, 1, 2), dtype), 0.1, exponent,
    )  # fmt: skip
    slopes = gradient(rows, batch)
    expected = np.array([[2000, 0], [-10, 0]]) * (1 if exponent == 0 else 0)
    np.testing.assert_allclose(slopes.points, expected, rtol=1e-5)


def begun_at(problem, n_rows=N_ROWS):
    """Adam before its first step."""
    moments = Moments.zero(problem.factor, problem.points, n_rows)
    return Adam(problem.factor, problem.points, moments)


def unit_of(factor):
    """How much a factor stretches in the mean, and more if its rank is low."""
    rank, n_features = factor.shape
    return np.sqrt(np.square(factor).sum() / rank * np.sqrt(n_features / rank))


class PlainAdam:
    """Adam with one second moment for the factor and one for each point, number by number."""

    def __init__(self, factor, points):
        self.unit = unit_of(factor)
        self.factor, self.points = factor.copy(), points.copy()
        self.of_factor = [np.zeros_like(factor), 0.0, 0]
        self.of_points = [[np.zeros_like(point), 0.0, 0] for point in points]

    @staticmethod
    def unbiased(slope, moments, square):
        """The new moments: mean slope and root of the mean square, both without bias."""
        first, second, steps = moments
        moments[0] = FIRST_DECAY * first + (1 - FIRST_DECAY) * slope
        moments[1] = SECOND_DECAY * second + (1 - SECOND_DECAY) * square
        moments[2] = steps + 1
        root = np.sqrt(moments[1] / (1 - SECOND_DECAY ** moments[2]))
        return moments[0] / (1 - FIRST_DECAY ** moments[2]), root

    def step(self, of_factor, of_points, which, share):
        length = FACTOR_RATE * share * self.unit * np.sqrt(len(self.factor))
        mean, root = self.unbiased(of_factor, self.of_factor, np.square(of_factor).sum())
        self.factor -= length * mean / (root or 1)
        found = [
            self.unbiased(slope, self.of_points[point], np.square(slope).mean())
            for slope, point in zip(of_points, which, strict=True)
        ]
        least = MIN_GRADIENT_SHARE * np.mean([root for _, root in found])
        for (mean, root), point in zip(found, which, strict=True):
            length = POINT_RATE * share * self.unit
            self.points[point] -= length * mean / (max(root, least) or 1)


@pytest.mark.parametrize("size", [1e-18, 1e-21, 1e-25, 1e-38])
def test_gradients_too_small_to_be_squared_move_a_point_no_farther_than_others(size):
    points = np.ones((3, 4), dtype=np.float32)
    factor = np.eye(4, dtype=np.float32)
    adam = Adam(factor, points, Moments.zero(factor, points, 3))
    slopes = np.array([1e-3, 1e-3, size], dtype=np.float32)[:, None] * np.ones((3, 4), np.float32)
    for _ in range(50):
        adam.step(Gradient(np.zeros_like(factor), slopes), np.arange(3), 1.0)
    quiet, usual = np.abs(adam.points - points).max(axis=1)[[2, 0]]
    assert 0 <= quiet <= 1e-10 < usual


def test_steps_are_those_of_adam_and_other_points_stay(problem, rng):
    adam = begun_at(problem)
    plain = PlainAdam(problem.factor, problem.points)
    for step in range(12):
        which = np.sort(rng.choice(N_POINTS - 1, size=3, replace=False))
        of_factor = 10.0**step * rng.standard_normal((RANK, N_FEATURES))
        of_points = 10.0**-step * rng.standard_normal((3, RANK))
        share = 1 - step / 20
        adam.step(Gradient(of_factor, of_points), which, share)
        plain.step(of_factor, of_points, which, share)
        if step == 5:  # the moments carry over to the next pass
            adam = Adam(adam.components, adam.points, adam.moments)
    np.testing.assert_allclose(adam.components, plain.factor, rtol=1e-10)
    np.testing.assert_allclose(adam.points, plain.points, rtol=1e-10)
    np.testing.assert_array_equal(adam.points[-1], problem.points[-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_preimages_lie_at_the_points_and_move_no_further_than_they_must(rng, dtype):
    factor = np.linalg.qr(rng.standard_normal((6, 4)))[0].T.astype(dtype)
    factor *= np.array([[1.0], [0.8], [2.0], [0.5]], dtype)
    latents = rng.standard_normal((9, 6)).astype(dtype)
    points = rng.standard_normal((9, 4)).astype(dtype)
    moved = preimages(latents, Start.euclidean(6, dtype), factor, points)
    assert moved.dtype == dtype
    np.testing.assert_allclose(moved @ factor.T, points, atol=3e-3)
    shortest = (points - latents @ factor.T) @ np.linalg.pinv(factor).T
    np.testing.assert_allclose(moved - latents, shortest, atol=5e-3)
    undecided = np.linalg.svd(factor)[2][4:]
    np.testing.assert_allclose((moved - latents) @ undecided.T, 0, atol=1e-5)


SIZES = [(1, 1, 1, 220), (1000, 1, 50, 220), (60_000, 1, 256, 235), (1_281_167, 1, 1282, 1000),
         (60_000, 100, 60, 1000)]  # fmt: skip


@pytest.mark.parametrize(("n_rows", "reach", "size", "n_steps"), SIZES)
def test_batches_are_large_enough_for_few_steps_and_small_enough_for_many(
    rng, n_rows, reach, size, n_steps
):
    batches = draw_batches(n_rows, reach, rng)
    assert [len(batch) for batch in batches] == [size] * n_steps
    drawn, whole = np.concatenate(batches), size * n_steps // n_rows
    orders = drawn[: whole * n_rows].reshape(whole, n_rows)
    np.testing.assert_array_equal(np.sort(orders, axis=1), [np.arange(n_rows)] * whole)
    rest = drawn[whole * n_rows :]
    assert len(np.unique(rest)) == len(rest)


def test_a_part_of_the_rows_is_refined_as_if_there_were_no_others(monkeypatch):
    monkeypatch.setattr(refinement, "BATCH", 45)
    monkeypatch.setattr(refinement, "MOST_STEPS", 1)
    asked = []

    class Watched(LocalPopulation):
        def gradient(self, numbers, *rest):
            asked.append(numbers)
            return super().gradient(numbers, *rest)

    X, y = make_blobs(90, 3, 4)
    begun = Refinement()
    begun.rows = Watched.of(X, y)
    for done in (0, 1):
        refined = begun.refined(done)
        numbers, asked[:] = np.unique(np.concatenate(asked)), []
        visited = RowSubset(2, done).numbers(begun.rows.sizes)
        assert len(visited) == 45
        assert np.isin(numbers, visited).all()
        np.testing.assert_array_equal(refined.counts, np.full(12, 7))


def test_pairs_share_a_latent_example(rng):
    own = np.array([3, 0, 0, 5, 3, 0, 3, 3])
    pairs = pairs_of_latents(own, rng)
    np.testing.assert_array_equal(own[pairs], np.sort(own)[:, None] * [1, 1])
    for column in pairs.T:
        np.testing.assert_array_equal(np.sort(column), np.arange(len(own)))
    np.testing.assert_array_equal(pairs[pairs[:, 0] == pairs[:, 1]], [[3, 3]])


class Refinement:
    """Rows, a metric and few enough latent examples that all of them are near every row."""

    temperature = 0.08

    def __init__(self, start="euclidean", data=None, n_sets=1):
        X, y = data or make_blobs(90, 3, 4)
        self.n_sets = n_sets
        self.rows = LocalPopulation.of(X, y)
        generator = np.random.default_rng(3)
        numbers = np.arange(len(X))
        self.inner, self.labels = self.rows.sample(numbers), positions_of(self.rows, numbers)
        self.start = start_from(start, self.inner, self.labels)
        components = np.eye(4)[:3] + 0.1 * generator.standard_normal((3, 4))
        self.components = components.astype(X.dtype)
        self.class_starts = n_sets * np.array([0, 5, 9, 12])
        self.of_latents = np.repeat(np.arange(3), np.diff(self.class_starts))
        self.latents = np.concatenate(
            [
                self.inner[self.labels == label][: n_sets * many]
                for label, many in enumerate((5, 4, 3))
            ]
        )
        self.moments = Moments.zero(self.components, self.points, len(X), n_sets)

    @property
    def points(self):
        return self.start.transform(self.latents) @ self.components.T

    def refined(self, done=0, n_passes=2, latent_reg=0.0, exponent=0.0, n_threads=1, kept_out=None):
        return refine(
            self.rows, self.start, self.components, self.latents, self.class_starts,
            np.full(len(self.latents), 7), self.temperature, self.moments, done,
            Plan(n_passes, latent_reg, exponent, n_threads, n_sets=self.n_sets),
            np.random.default_rng(7), kept_out,
        )  # fmt: skip

    def as_problem(self):
        """The rows in the coordinates of the start."""
        rows = self.start.transform(self.inner)
        squared = np.square((rows @ self.components.T)[:, None] - self.points[None]).sum(axis=2)
        of_sets = np.concatenate([np.repeat(np.arange(self.n_sets), many) for many in (5, 4, 3)])
        own = []
        for number in range(self.n_sets):
            other = (self.labels[:, None] != self.of_latents) | (of_sets != number)
            own.append(np.argmin(np.where(other, np.inf, squared), axis=1))
        own = np.transpose(own)
        counts = np.bincount(own.ravel(), minlength=len(self.latents))
        stretch = np.array([(c / (c - 1)) ** 2 if c > 1 else 4.0 for c in counts])[own]
        return Problem(
            rows, self.labels, own, stretch, self.components, self.points, self.of_latents,
            of_sets, self.temperature,
        )  # fmt: skip


def plain_pass(problem, done, n_passes, latent_reg, exponent):
    """A pass, row by row and point by point."""
    sets = np.unique(problem.of_sets)
    likelihood = np.exp(
        [
            min(log_likelihood(problem, row, of_set) for of_set in sets)
            for row in range(len(problem.rows))
        ]
    )
    adam = PlainAdam(problem.factor, problem.points)
    generator = np.random.default_rng(7)
    pairs = pairs_of_latents(problem.own[:, 0], generator)
    batches = draw_batches(len(problem.rows), 1.0, generator)
    for number, drawn in enumerate(batches):
        active = [row for row in drawn if likelihood[row] < CERTAIN_LIKELIHOOD]
        if not active:
            continue
        moved = problem.with_changes(factor=adam.factor, points=adam.points)
        of_class = [pairs[problem.labels[pairs[:, 0]] == problem.labels[row]] for row in active]
        which = generator.integers([len(some) for some in of_class])
        first, second = np.array([some[one] for some, one in zip(of_class, which, strict=True)]).T
        rows = moved.rows[active] + DISTORTION * (moved.rows[first] - moved.rows[second])
        slopes = gradient(rows, batch_of(moved, exponent).part(active))
        of_factor, of_points = slopes.components, slopes.points.copy()
        away = adam.points - problem.points
        share = len(drawn) / len(problem.rows)
        of_points += 2 * latent_reg * share / problem.temperature * away
        left = (1 + np.cos(np.pi * (done + number / len(batches)) / n_passes)) / 2
        every = np.arange(len(problem.points))
        adam.step(of_factor / len(drawn), of_points / len(drawn), every, left)
    return adam, np.mean(likelihood < CERTAIN_LIKELIHOOD)


@pytest.mark.parametrize(
    ("start", "done", "n_passes", "latent_reg", "exponent", "n_sets"),
    [
        ("euclidean", 0, 1, 0.0, 0.0, 1), ("standardized", 1, 3, 0.0, 0.0, 2),
        ("within", 0, 2, 5.0, 0.0, 2), ("euclidean", 1, 2, 0.0, WRONG_LABELS_EXPONENT, 1),
    ],
)  # fmt: skip
def test_a_pass_is_what_the_formulas_say(start, done, n_passes, latent_reg, exponent, n_sets):
    problem, begun = Refinement(start, n_sets=n_sets).as_problem(), Refinement(start, n_sets=n_sets)
    adam, active_share = plain_pass(problem, done, n_passes, latent_reg, exponent)
    refined = begun.refined(done, n_passes, latent_reg, exponent)
    assert np.abs(refined.components - begun.components).max() > 0.01
    np.testing.assert_allclose(refined.components, adam.factor, rtol=1e-6, atol=1e-9)
    points = begun.start.transform(refined.latents) @ refined.components.T
    np.testing.assert_allclose(points, adam.points, atol=1e-3)
    moves = begun.start.transform(refined.latents) - begun.start.transform(begun.latents)
    undecided = np.linalg.svd(refined.components)[2][3:]
    np.testing.assert_allclose(moves @ undecided.T, 0, atol=1e-9)
    assert refined.active_share == active_share
    assert 0.1 < active_share < 1
    away = (problem.rows @ problem.factor.T)[:, None] - problem.points[problem.own]
    squared = np.square(away).sum(axis=2)
    spreads = [squared[problem.labels == label].mean() for label in range(3)]
    np.testing.assert_allclose(refined.spreads, spreads)
    counts = np.bincount(problem.own.ravel(), minlength=12 * n_sets)
    np.testing.assert_array_equal(refined.counts, counts)


def test_a_pass_leaves_the_state_it_began_from_alone():
    begun = Refinement()
    first = begun.refined()
    begun.components, begun.latents = first.components, first.latents
    begun.moments = first.moments
    before = copy.deepcopy((begun.components, begun.latents, begun.moments))
    second = begun.refined(done=1)
    assert second.moments.n_steps == 2 * first.moments.n_steps > 0
    after = begun.components, begun.latents, *vars(begun.moments).values()
    for part, copied in zip(after, (*before[:2], *vars(before[2]).values()), strict=True):
        np.testing.assert_array_equal(part, copied)


def test_the_number_of_threads_changes_no_bit_of_a_pass():
    data = make_blobs(2000, 3, 4)
    one, other = Refinement(data=data).refined(), Refinement(data=data).refined(n_threads=3)
    np.testing.assert_array_equal(one.components, other.components)
    np.testing.assert_array_equal(one.latents, other.latents)


def test_nothing_is_learned_from_rows_that_are_kept_out():
    asked = []

    class Watched(LocalPopulation):
        def gradient(self, numbers, *arguments):
            asked.append(numbers)
            return super().gradient(numbers, *arguments)

    begun, kept_out = Refinement(), np.arange(0, 90, 7)
    begun.rows = Watched.of(*make_blobs(90, 3, 4))
    begun.refined()
    assert np.isin(kept_out, np.concatenate(asked)).any()
    asked.clear()
    begun.refined(kept_out=kept_out)
    assert not np.isin(kept_out, np.concatenate(asked)).any()


def test_a_pass_over_rows_that_are_all_certain_changes_nothing():
    X, y = make_blobs(90, 3, 4)
    begun = Refinement(data=(1e-3 * X + y[:, None], y))
    refined = begun.refined()
    assert refined.active_share == 0
    assert refined.moments.n_steps == 0
    np.testing.assert_array_equal(refined.components, begun.components)
    np.testing.assert_allclose(refined.latents, begun.latents, rtol=1e-12)


@pytest.mark.parametrize(
    ("start", "dtype", "latent_reg"),
    [("within", np.float32, 1e39), ("denoised", np.float64, 1e6), ("euclidean", np.float64, 1e300)],
)
def test_a_huge_pull_keeps_the_points(start, dtype, latent_reg):
    X, y = make_blobs(90, 3, 4)
    begun = Refinement(start, (X.astype(dtype), y))
    free, held = begun.refined(n_passes=1), begun.refined(n_passes=1, latent_reg=latent_reg)
    points = [
        begun.start.transform(refined.latents) @ refined.components.T for refined in (free, held)
    ]
    assert np.abs(points[0] - begun.points).max() > 0.1
    np.testing.assert_allclose(points[1], begun.points, atol=0.01)
