"""Choose how much a fit of few rows may learn: the likelihood of rows that were left out says.

Too many latent examples learn the accidents of classes that overlap, too few miss the shape of
classes that do not. Candidates differ in the start of the metric, the latent examples of a class,
the ridge, and whether latent examples have bandwidths of their own. Each is a short fit by
``quasi_newton`` to two thirds of a sample of the rows, judged by the likelihood of the labels of
the other third; error rates are too coarse a judge of few rows. One third chooses a start for many
and one for few latent examples. All three thirds choose among capacities, then among ridges for
the best few, then among bandwidths, also for fewer latent examples; what the first third finds
clearly worse is out. What is simpler wins unless it is worse by more than a little.

Time: some 25 short fits, on a number of rows that does not grow with n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from scipy.stats import entropy

from latentmetric.core.distances import squared_norms
from latentmetric.core.psd import most_discriminating
from latentmetric.core.quasi_newton import (
    BANDWIDTHS,
    KernelVote,
    Labelled,
    Objective,
    descend,
    first_temperature,
    squared_distances,
)
from latentmetric.core.span import span_of
from latentmetric.core.starts import ordered_starts, start_from
from latentmetric.core.steps import Record
from latentmetric.core.tuning import (
    DENSE_ROWS,
    EASY,
    EASY_ROWS,
    ENOUGH_UNSEEN,
    FEW_ROWS_A_FEATURE,
    FEWEST_TRIAL_ROWS,
    FINALISTS,
    MEANS_PASSES,
    MIN_JUDGED_LIKELIHOOD,
    NEAR_BASE,
    OVERLAPPING,
    OWN_BANDWIDTHS,
    PROMISING,
    SIMPLER,
    TRIAL_FOLDS,
    TRIAL_ITERATIONS,
    TRIAL_NUMBERS,
    TRIAL_ROWS,
    TRIAL_ROWS_A_CLASS,
    USUAL_SHARE,
)
from latentmetric.core.types import Floats, Ints
from latentmetric.core.unknown import Distances

CAPACITIES: tuple[int | float, ...] = (1, 3, 0.1, 0.3)
"""Latent examples of a class, as a number or a share of its rows; the fewest first."""

RIDGES = (0.1, 1.0, 10.0)
"""What holds the factor and the points where they started. The middle one is tried first."""


@dataclass(frozen=True)
class Candidate:
    """A way to fit few rows."""

    start: str = "euclidean"
    n_latents: int | float = USUAL_SHARE
    ridge: float = 1.0
    bandwidth: str = "shared"

    @property
    def complexity(self) -> int:
        """How many steps it is from the simplest one of the same start."""
        capacity = CAPACITIES.index(self.n_latents) if self.n_latents in CAPACITIES else 0
        return capacity + 2 * BANDWIDTHS.index(self.bandwidth)


@dataclass(frozen=True)
class Options:
    """What may be chosen from; a single entry is a decision of the caller."""

    starts: Sequence[str]
    capacities: Sequence[int | float]
    ridges: Sequence[float]
    bandwidths: Sequence[str]


class Trials:
    """Short fits to parts of a sample, and what they make of the rest of it.

    Rows are in inner coordinates, one class after the other. ``folds`` has the number of the part
    that each row is left out in; −1 is none.
    """

    def __init__(
        self, rows: Floats, positions: Ints, weights: Floats | None, folds: Ints,
        rank: int | None = None,
    ) -> None:  # fmt: skip
        self._rows, self._positions, self._weights = rows, positions, weights
        self._folds, self._rank = folds, rank
        self._starts_in_order = ordered_starts(rows)
        self._parts: dict[tuple[str, int], _Part] = {}
        self._starts: dict[tuple[str, int, int | float], tuple[KernelVote, Labelled]] = {}
        self.folds = np.unique(folds[folds >= 0]).tolist()
        """Those that have rows; none if every class has a single one."""
        self.base = float(entropy(np.bincount(positions, weights)))
        """The loss of always saying how frequent the classes are."""
        self.losses: dict[tuple[Candidate, int], float] = {}
        self._votes: dict[tuple[Candidate, int], KernelVote] = {}

    def cost(self, candidate: Candidate, n_folds: int = TRIAL_FOLDS) -> float:
        """The mean loss of the rows left out in the first folds, more for what is less simple."""
        for fold in self.folds[:n_folds]:
            if (candidate, fold) not in self.losses:
                self._run(candidate, fold)
        later = self._starts_in_order.index(candidate.start)
        return self._mean(candidate, n_folds) * (1 + SIMPLER * (candidate.complexity + later))

    def _mean(self, candidate: Candidate, n_folds: int = TRIAL_FOLDS) -> float:
        return float(np.mean([self.losses[candidate, fold] for fold in self.folds[:n_folds]]))

    def suits_batches(self, best: Candidate) -> bool:
        """Whether many rows are better refined in batches, which distort them, than at once.

        Not if classes overlap much, which takes a ridge, or if bandwidths of their own tell them
        apart far better.
        """
        if not self.folds:
            return False
        shared = min(
            self._mean(one)
            for one, fold in self.losses
            if fold == self.folds[-1] and one.bandwidth == "shared"
        )
        overlap = shared > OVERLAPPING * self.base
        return not overlap and self._mean(best) >= OWN_BANDWIDTHS * shared

    def rows_at_once(self, best: Candidate) -> int:
        """How many rows are always refined at once; more of classes that are easy to tell apart.

        There, batches gain little and take several times as long.
        """
        easy = not self.folds or self._mean(best) < EASY * self.base
        return EASY_ROWS if easy else DENSE_ROWS

    def different(self, capacities: Sequence[int | float]) -> list[int | float]:
        """Those that rows left out can tell from fewer latent examples."""
        sizes = np.bincount(self._positions) * (TRIAL_FOLDS - 1) // TRIAL_FOLDS
        counts = {tuple(counts_of(each, sizes)): each for each in reversed(capacities)}
        return [each for each in capacities if each in counts.values()]

    def promising(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Those that the first fold does not find clearly worse than the best."""
        costs = [self.cost(candidate, 1) for candidate in pool]
        limit = PROMISING * min(costs)
        return [one for one, cost in zip(pool, costs, strict=True) if cost <= limit]

    def best(self, pool: Sequence[Candidate]) -> Candidate:
        """The one of the lowest cost."""
        return min(self.promising(pool), key=self.cost)

    def _run(self, candidate: Candidate, fold: int) -> None:
        start, n_latents = candidate.start, candidate.n_latents
        if (start, fold) not in self._parts:
            self._parts[start, fold] = self._part(start, fold)
        part = self._parts[start, fold]
        if (start, fold, n_latents) not in self._starts:
            begun = part.begin(n_latents, self._rank)
            self._starts[start, fold, n_latents] = begun
        vote, labelled = self._starts[start, fold, n_latents]
        if vote.temperature > 0:
            ridge, bandwidth = candidate.ridge, candidate.bandwidth
            objective = Objective(labelled, vote, ridge, bandwidth)
            vote = descend(objective, TRIAL_ITERATIONS)
        self.losses[candidate, fold] = part.judge(vote)
        self._votes[candidate, fold] = vote

    def unseen(self, candidate: Candidate) -> Floats:
        """Distances of all rows under the fit that has not seen them, in units of the others'.

        The others are left out of their own latent examples.
        """
        found = []
        for fold in self.folds:
            part, vote = self._parts[candidate.start, fold], self._votes[candidate, fold]
            _, labelled = self._starts[candidate.start, fold, candidate.n_latents]
            found.append(part.away(vote).in_units_of(part.usual(vote, labelled)))
        return np.concatenate(found, axis=1)

    def unseen_by_whole_fits(self, candidate: Candidate, n_iterations: int) -> Floats:
        """Distances of rows under fits of the others that are as long as that of all.

        For few rows a feature, which a fit suits one by one: a short one says too little. Folds
        are left out until there are enough rows. With fewer rows than features, those that a fit
        has seen say nothing: the unit is T.
        """
        found: list[Floats] = []
        wide = len(self._rows) < self._rows.shape[1]
        for fold in self.folds:
            if sum(each.shape[1] for each in found) >= ENOUGH_UNSEEN:
                break
            part = self._part(candidate.start, fold)
            vote, labelled = part.begin(candidate.n_latents, self._rank)
            if vote.temperature > 0:
                objective = Objective(labelled, vote, candidate.ridge, candidate.bandwidth)
                vote = descend(objective, n_iterations)
            units = vote.temperature if wide else part.usual(vote, labelled)
            found.append(part.away(vote).in_units_of(units))
        return np.concatenate(found, axis=1)

    def _part(self, start: str, fold: int) -> _Part:
        """Rows of a fold in the coordinates of a start that is estimated without it."""
        unseen = self._folds == fold
        rows, positions, weights = self._rows, self._positions, self._weights
        of_seen = None if weights is None else weights[~unseen]
        seen, of_rows = rows[~unseen], positions[~unseen]
        outside: Floats = np.zeros(int(unseen.sum()), np.float32)
        if len(seen) < seen.shape[1]:
            span, chosen = span_of(seen, of_rows, start, of_seen)
            if self._rank is None:
                outside = span.outside.squared_norms(rows[unseen]).astype(np.float32)
            rows = span.transform(rows)
        else:
            chosen = start_from(start, seen, of_rows, of_seen)
        mapped = chosen.transform(rows).astype(np.float32)  # a trial only judges
        return _Part(
            mapped[~unseen], of_rows, of_seen, mapped[unseen], positions[unseen],
            None if weights is None else weights[unseen], outside,
        )  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """Rows to fit and rows to judge, in the coordinates of a start."""

    rows: Floats
    positions: Ints
    weights: Floats | None
    unseen: Floats
    unseen_positions: Ints
    unseen_weights: Floats | None
    outside: Floats
    """Squared distances of the unseen rows from the span of the others."""

    def begin(self, n_latents: int | float, rank: int | None) -> tuple[KernelVote, Labelled]:
        """Latent examples by k-means in every class, before anything is learned."""
        sizes = np.bincount(self.positions)
        counts = counts_of(n_latents, sizes)
        class_starts = np.concatenate(([0], np.cumsum(counts)))
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        latents = np.concatenate(
            [
                _class_means(
                    self.rows[first:end], count,
                    None if self.weights is None else self.weights[first:end],
                )
                for first, end, count in zip(bounds, bounds[1:], counts, strict=False)
            ]
        )  # fmt: skip
        components: Floats = np.eye(self.rows.shape[1], dtype=self.rows.dtype)
        vote = KernelVote.equal(components, latents, class_starts, 1.0)
        labelled = Labelled.of(self.rows, self.positions, self.weights, vote)
        if rank is not None and rank < len(components):
            components = most_discriminating(
                components, latents, class_starts, labelled.counts, rank
            )
            vote = replace(vote, components=components, points=latents @ components.T)
        return replace(vote, temperature=first_temperature(labelled, vote)), labelled

    def away(self, vote: KernelVote) -> Distances:
        """How far the unseen rows are."""
        unseen = self.unseen @ vote.components.T
        nearest = squared_distances(unseen, vote.points).min(axis=1)
        return Distances(nearest + self.outside, squared_norms(unseen) + self.outside)

    def usual(self, vote: KernelVote, labelled: Labelled) -> Floats:
        """How far the other rows are in the mean, left out of their own latent examples."""
        seen = self.rows @ vote.components.T
        left_out = labelled.left_out(seen, vote.points).min(axis=1)
        return Distances(left_out, squared_norms(seen)).means

    def judge(self, vote: KernelVote) -> float:
        """The mean loss of the labels of the rows left out."""
        if not vote.temperature > 0:
            return -float(np.log(MIN_JUDGED_LIKELIHOOD))
        shares = vote.probabilities(self.unseen)
        right = shares[np.arange(len(shares)), self.unseen_positions]
        losses = -np.log(np.maximum(right, MIN_JUDGED_LIKELIHOOD))
        return float(np.average(losses, weights=self.unseen_weights))


def counts_of(n_latents: int | float, sizes: Ints) -> Ints:
    """The latent examples of classes of these sizes."""
    counts = np.full(len(sizes), n_latents) if isinstance(n_latents, int) else n_latents * sizes
    clipped: Ints = np.clip(np.rint(counts), 1, np.maximum(sizes, 1)).astype(np.intp)
    return clipped


def _class_means(rows: Floats, n_means: int, weights: Floats | None) -> Floats:
    """k-means from evenly spaced rows."""
    if n_means == 1:
        return np.average(rows, axis=0, weights=weights)[None].astype(rows.dtype)
    means = rows[np.arange(n_means) * len(rows) // n_means]
    for _ in range(MEANS_PASSES):
        nearest = squared_distances(rows, means).argmin(axis=1)
        members = (nearest == np.arange(n_means)[:, None]).astype(rows.dtype)
        if weights is not None:
            members *= weights.astype(rows.dtype)
        counts = members.sum(axis=1)
        filled = counts > 0
        means[filled] = (members @ rows)[filled] / counts[filled, None]
    return means


def sample_size(n_rows: int, n_features: int, n_classes: int) -> int:
    """How many rows the trials run on."""
    enough = max(FEWEST_TRIAL_ROWS, TRIAL_NUMBERS // n_features, TRIAL_ROWS_A_CLASS * n_classes)
    return min(n_rows, enough, TRIAL_ROWS)


def has_few_rows(n_rows: int, n_features: int) -> bool:
    """Whether short fits do not tell how far new rows are."""
    return n_rows < FEW_ROWS_A_FEATURE * n_features


def draw_folds(positions: Ints, generator: np.random.Generator, n_folds: int = TRIAL_FOLDS) -> Ints:
    """The fold of each row, equally many of each class; −1 for the only row of a class."""
    folds: Ints = np.full(len(positions), -1)
    first = 0
    for position in np.unique(positions):
        members = np.flatnonzero(positions == position)
        if len(members) > 1:
            spread = (first + np.arange(len(members))) % n_folds
            folds[members] = generator.permutation(spread)
            first += len(members)
    return folds


def choose(trials: Trials, options: Options) -> tuple[Candidate, Record]:
    """The best candidate, and what was tried with its loss."""
    if not trials.folds:  # nothing can be judged, so nothing is learned
        best = Candidate(
            "euclidean" if "euclidean" in options.starts else options.starts[0],
            options.capacities[0],
            options.ridges[-1],
            options.bandwidths[0],
        )
        return best, asdict(best) | {"tried": []}
    middle = len(options.ridges) // 2
    ridge, bandwidth = options.ridges[middle], options.bandwidths[0]
    of_capacities: list[Candidate] = []
    for n_latents in reversed(trials.different(options.capacities)):
        starts = options.starts
        if len(of_capacities) % 2:  # that of the next larger one
            starts = [of_capacities[0].start]
        pool = [Candidate(start, n_latents, ridge, bandwidth) for start in starts]
        best = min(pool, key=lambda candidate: trials.cost(candidate, 1))
        of_capacities.insert(0, best)
    if min(trials.losses.values()) > NEAR_BASE * trials.base:
        # No start tells classes apart: columns without a common unit are not left as they are.
        of_capacities = [
            replace(one, start=options.starts[0]) if one.start == "euclidean" else one
            for one in of_capacities
        ]
    finalists = sorted(trials.promising(of_capacities), key=trials.cost)[:FINALISTS]
    best = trials.best([replace(one, ridge=r) for one in finalists for r in options.ridges])
    pool = [replace(best, bandwidth=b) for b in options.bandwidths]
    if len(pool) > 1:
        # Of classes that scatter differently, fewer latent examples are enough with bandwidths.
        fewer = [one for one in of_capacities if one.complexity < best.complexity]
        fewer = [replace(one, bandwidth="class") for one in fewer]
        pool += [one for one in fewer if trials.cost(one, 1) < trials.cost(best, 1)]
    best = trials.best(pool)
    tried = [
        asdict(candidate) | {"loss": loss, "fold": fold}
        for (candidate, fold), loss in trials.losses.items()
    ]
    return best, asdict(best) | {"tried": tried}
