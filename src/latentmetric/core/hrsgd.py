"""HR-SGD: mini-batch descent on random triplets, with a coin that decides on every update.

Qian, Jin, Yi, Zhang and Zhu, "Efficient distance metric learning by adaptive sampling and
mini-batch stochastic gradient descent (SGD)", Machine Learning 99 (2015). For a triplet (o, p, q)
with A = Δq Δqᵀ − Δp Δpᵀ the loss is a smooth hinge of the gap z = ⟨A, M⟩ = D²(o, q) − D²(o, p):

    ℓ(z) = log(1 + exp(−L (z − 1))) / L,    −ℓ'(z) = 1 / (1 + exp(L (z − 1))) between 0 and 1.

What an iteration does, as implemented here:

1. draw b triplets, and one of them at random (the R of the name);
2. toss a coin that shows heads with probability −ℓ'(z) of that triplet: a triplet that already
   keeps its margin rarely causes an update;
3. on heads, M ← Π(M + η G), with a direction G from the whole mini-batch and the projection to the
   PSD cone; on tails, nothing: the gaps of the other triplets are not even computed.

With g = 1/b Σ −ℓ'(zᵢ) Aᵢ, minus the mini-batch's mean gradient, and p̄ = 1/b Σ −ℓ'(zᵢ), which is
the probability of heads before a triplet is drawn, there are two directions:

- ``damped``: G = g. Before the coin is tossed an iteration moves M by p̄·g on average, so that it
  slows down as the margins are kept.
- ``unbiased``: G = g / p̄. An iteration then moves M by g on average, as without a coin. G is a mean
  of the Aᵢ, weighted by −ℓ'(zᵢ), so it is no longer than the longest of them, however unlikely the
  update was. Dividing by the drawn triplet's own probability would be unbiased, too, but such a
  step could be arbitrarily long.

The descent starts from the identity. Its result is the average of the metrics after each iteration,
which is PSD because each of them is.

Time O(d²) per iteration without an update and O(d²·b + d³/3) with one (see ``psd``); memory four
d×d matrices, two more if b > d, the triplets drawn at once, and a batch of them as vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.psd import PSDMatrix
from latentmetric.core.random_triplets import first_record, steps_of
from latentmetric.core.steps import Record, Steps
from latentmetric.core.triplets import Triplets
from latentmetric.core.tuning import SHARPNESS
from latentmetric.core.types import Floats, Ints

UPDATES = ("damped", "unbiased")
"""The directions of an update; see above."""


@dataclass(frozen=True)
class Settings:
    """What an iteration does."""

    learning_rate: float
    batch_size: int
    unbiased: bool = False
    """Whether a step is divided by the mini-batch's probability of an update."""


@dataclass
class State:
    """The metric after some of the iterations, and the sum of the metrics so far."""

    metric: PSDMatrix
    total: Floats
    n_summed: int = 0
    n_here: int = 0
    """Iterations since the last update, not yet in the total."""
    record: Record = field(default_factory=first_record)
    finished: bool = False

    @classmethod
    def begin(cls, n_features: int) -> State:
        """The identity."""
        return cls(PSDMatrix(np.eye(n_features), floor=1.0), np.zeros((n_features, n_features)))

    @property
    def average(self) -> Floats:
        """The mean of the metrics after each iteration; before the first, the metric itself."""
        if self.n_summed + self.n_here == 0:
            return self.metric.matrix
        return (self.total + self.n_here * self.metric.matrix) / (self.n_summed + self.n_here)

    def run(
        self, rows: InnerRows, triplets: Triplets, settings: Settings,
        generator: np.random.Generator,
    ) -> tuple[Floats, int]:  # fmt: skip
        """Run one iteration per whole batch; return the drawn triplets' losses and the updates.

        The triplet that weights the coin is a uniform sample of its batch, so the mean of these
        losses estimates the objective.
        """
        size, n_batches = settings.batch_size, len(triplets) // settings.batch_size
        drawn = generator.integers(size, size=n_batches)
        coins = generator.random(n_batches)
        losses, n_updates = np.empty(n_batches), 0
        for number in range(n_batches):
            batch, one = triplets[number * size : (number + 1) * size], int(drawn[number])
            excess = SHARPNESS * (1 - self._gaps(_vectors(rows, batch[one : one + 1]))[0])
            losses[number] = np.logaddexp(0, excess) / SHARPNESS  # the smooth hinge
            if coins[number] < expit(excess):
                self._update(rows, batch, settings)
                n_updates += 1
            self.n_here += 1
        return losses, n_updates

    def _gaps(self, vectors: Floats) -> Floats:
        """D²(o, q) − D²(o, p) from vectors as ``_vectors`` stacks them."""
        squared: Floats = np.einsum("ij,ij->i", vectors @ self.metric.matrix, vectors)
        half = len(vectors) // 2
        return squared[:half] - squared[half:]

    def _update(self, rows: InnerRows, batch: Triplets, settings: Settings) -> None:
        """Take a step along the mean gradient of a batch, and project."""
        self.total += self.n_here * self.metric.matrix
        self.n_summed += self.n_here
        self.n_here = 0
        rate = settings.learning_rate / settings.batch_size
        nearer, farther, slopes = self._weighted(_vectors(rows, batch), rate)
        longer = len(batch) / slopes if settings.unbiased else 1.0
        if len(batch) <= rows.n_features:
            self.metric.update(longer**0.5 * nearer, longer**0.5 * farther)
        else:
            self.metric.update_by(longer * (nearer.T @ nearer), longer * (farther.T @ farther))

    def _weighted(self, vectors: Floats, rate: float) -> tuple[Floats, Floats, float]:
        """Δq and Δp times the roots of their weights in the gradient, and the sum of the slopes.

        The sum is positive where it is used: an update needs a triplet with a positive slope.
        """
        slopes = expit(SHARPNESS * (1 - self._gaps(vectors)))
        weights = rate * slopes
        vectors *= np.sqrt(np.concatenate((weights, weights)))[:, None]
        return vectors[: len(weights)], vectors[len(weights) :], float(slopes.sum())


def steps(
    rows: InnerRows, codes: Ints, n_steps: int, n_parts: int, settings: Settings
) -> Steps[State]:
    """HR-SGD on ``n_steps`` random triplets, in ``n_parts`` steps."""

    def learn(
        state: State, unit_rows: InnerRows, triplets: Triplets, generator: np.random.Generator
    ) -> tuple[Floats, int]:
        return state.run(unit_rows, triplets, settings, generator)

    start = State.begin(rows.n_features)
    return steps_of(
        learn, start, lambda state: state.average, rows, codes, n_steps, n_parts,
        settings.batch_size,
    )  # fmt: skip


def _vectors(rows: InnerRows, triplets: Triplets) -> Floats:
    """Δq of every triplet, stacked on Δp of every triplet, in float64."""
    ends = rows[np.concatenate((triplets.impostors, triplets.targets))].astype(np.float64)
    anchors = rows[triplets.anchors]
    ends -= np.concatenate((anchors, anchors))
    return ends
