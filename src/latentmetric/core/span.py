"""Few rows with many features: everything is learned in the span of the rows.

Rows of n < d span fewer than n dimensions, and gradients of the metric and of latent examples stay
in this span. So rows are written in an orthonormal basis of it, at the cost of n features. The
rounds give exactly what they would give with all features. The refinement's steps are as long as
the dimensions of the span suggest, not the features outside of it.

Outside the span, the metric is what it was at the start. That adds the same to all distances of a
row from latent examples, which are in the span, so it is left out of the factor and of the votes.
It is kept as a number for each feature: it tells how unusual a row is, and references that are
added later need it.

Time O(n²·d) for the basis. Memory O(n·d).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.linalg import null_space, qr, svd

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import squared_norms
from latentmetric.core.population import LocalPopulation, Population
from latentmetric.core.starts import Start, combining_matrix, feature_factors
from latentmetric.core.types import Floats, Ints

NEGLIGIBLE = 1e-10
"""Directions with less than this share of the largest squared singular value are rounding."""


@dataclass(frozen=True)
class Outside:
    """The metric outside the span of the rows: ‖w∘x‖² of what is left of x, Euclidean but for w."""

    factors: Floats
    """w: the factor of each feature."""
    basis: Floats
    """Orthonormal rows: the span of the rows w∘x."""

    def rest(self, rows: Floats) -> Floats:
        """w∘x of inner rows, less the part in the span."""
        scaled: Floats = rows * self.factors
        scaled -= (scaled @ self.basis.T) @ self.basis
        return scaled

    def squared_norms(self, rows: Floats) -> Floats:
        """The squared distance of inner rows from the span; 0 within rounding is 0."""
        away, whole = squared_norms(self.rest(rows)), squared_norms(rows * self.factors)
        away[away <= NEGLIGIBLE * whole] = 0
        return away

    def directions(self, rows: Floats) -> Floats:
        """An orthonormal basis of what these inner rows add to the span."""
        n_features = self.basis.shape[1]
        if len(rows) + len(self.basis) >= n_features:
            return null_space(self.basis).T.astype(self.basis.dtype)
        rows = rows[self.squared_norms(rows) > 0]
        if not len(rows):
            return self.basis[:0]
        _, lengths, found = svd(self.rest(rows), full_matrices=False)
        basis: Floats = found[lengths**2 > NEGLIGIBLE * lengths[:1] ** 2]
        basis -= (basis @ self.basis.T) @ self.basis  # of rows hardly outside, rounding is left
        orthonormal: Floats = qr(basis.T, mode="economic")[0].T
        return orthonormal

    def cover(self, components: Floats, rows: Floats) -> tuple[Floats, Outside | None]:
        """A factor that measures these inner rows, too, and what is then outside; None: nothing."""
        more = self.directions(rows)
        wide = np.concatenate((components, more * self.factors))
        basis = np.concatenate((self.basis, more))
        return wide, Outside(self.factors, basis) if len(basis) < len(self.factors) else None


@dataclass(frozen=True)
class Span:
    """x → B(s∘x): an inner row, each feature multiplied by a factor, in the basis B."""

    factors: Floats
    """s: the factor of each feature."""
    basis: Floats
    """B: orthonormal rows."""
    share: float
    """The start's metric outside the span, where it is a multiple of the identity."""

    @property
    def outside(self) -> Outside:
        """The start's metric outside the span, for inner rows."""
        return Outside(self.factors * self.factors.dtype.type(sqrt(self.share)), self.basis)

    def transform(self, rows: Floats) -> Floats:
        """Inner rows in the basis."""
        return (rows * self.factors) @ self.basis.T

    def inverse_transform(self, rows: Floats) -> Floats:
        """Rows in the basis as inner rows."""
        return (rows @ self.basis) / self.factors

    def fold(self, components: Floats) -> Floats:
        """A factor in the basis, for inner rows; nothing outside of it."""
        return (components @ self.basis) * self.factors


def span_of(
    rows: Floats, positions: Ints, start: str, weights: Floats | None = None
) -> tuple[Span, Start]:
    """The span of these inner rows under the start of this name, and the start in it."""
    factors = feature_factors(start, rows, positions, weights)
    scaled = rows * factors
    values, vectors = np.linalg.eigh(scaled.astype(np.float64) @ scaled.T)
    kept = values > NEGLIGIBLE * values[-1]
    precise: Floats = np.eye(1, rows.shape[1])  # any direction, if all rows are equal
    if kept.any():
        precise = (vectors[:, kept] / np.sqrt(values[kept])).T @ scaled
    basis = precise.astype(rows.dtype)
    found = combining_matrix(start, scaled @ precise.T, positions, rows.shape[1], weights)
    if found is None:
        return Span(factors, basis, 1.0), Start(start, np.ones(len(basis), dtype=rows.dtype))
    turn, outside = found
    return Span(factors, basis, outside), Start(start, turn.astype(rows.dtype))


def spanned(rows: Population, sample: Floats, span: Span) -> LocalPopulation:
    """The same classes with their rows in the basis; ``sample`` is all inner rows as drawn."""
    unit, ends = Coordinates(np.zeros(len(span.basis)), 1.0), np.cumsum(rows.sizes)
    members = np.split(np.arange(len(sample)), ends[:-1])
    order = np.arange(len(sample), dtype=np.float64)
    return LocalPopulation(span.transform(sample), unit, rows.codes, members, order, rows.weights)
