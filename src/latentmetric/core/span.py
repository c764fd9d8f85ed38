"""Few rows with many features: everything is learned in the span of the rows.

Rows of n < d span fewer than n dimensions, and gradients of the metric and of latent examples stay
in this span. So rows are written in an orthonormal basis of it, and the metric that was learned
there is extended to all features by what it was before outside, at the cost of n features. The
rounds give exactly what they would give with all features. The refinement's steps are as long as
the dimensions of the span suggest, not the features outside of it.

Time O(n²·d) for the basis and for each metric that is extended. Memory O(n·d).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.population import LocalPopulation, Population
from latentmetric.core.psd import project_psd
from latentmetric.core.starts import Start, combining_matrix, feature_factors
from latentmetric.core.types import Floats, Ints

NEGLIGIBLE = 1e-10
"""Directions with less than this share of the largest squared singular value are rounding."""


@dataclass(frozen=True)
class Span:
    """x → B(s∘x): an inner row, each feature multiplied by a factor, in the basis B."""

    factors: Floats
    """s: the factor of each feature."""
    basis: Floats
    """B: orthonormal rows."""
    outside: float
    """The start's metric outside the span, where it is a multiple of the identity."""

    def transform(self, rows: Floats) -> Floats:
        """Inner rows in the basis."""
        return (rows * self.factors) @ self.basis.T

    def inverse_transform(self, rows: Floats) -> Floats:
        """Rows in the basis as inner rows."""
        return (rows @ self.basis) / self.factors

    def widen(self, components: Floats) -> Floats:
        """The d×d factor of a metric in the basis, for inner rows."""
        values, directions = project_psd(components.T @ components)
        root = (directions.T * np.sqrt(values)) @ directions
        outside = root.dtype.type(sqrt(self.outside))
        root -= outside * np.eye(len(root), dtype=root.dtype)
        wide = self.basis.T @ (root @ self.basis)
        wide[np.diag_indices_from(wide)] += outside
        wide *= self.factors
        return wide

    def fold(self, components: Floats) -> Floats:
        """A factor of low rank in the basis, for inner rows; nothing outside of it."""
        return (components @ self.basis) * self.factors


def is_wide(rows: Population) -> bool:
    """Whether these rows are worth writing in a basis: here, and fewer than their features."""
    return isinstance(rows, LocalPopulation) and rows.sizes.sum() < rows.n_features


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


def spanned(rows: LocalPopulation, span: Span) -> LocalPopulation:
    """The same rows and classes in the basis."""
    inside = span.transform(rows.inner[:])
    unit = Coordinates(np.zeros(len(span.basis)), 1.0)
    return LocalPopulation(inside, unit, rows.codes, rows.members, rows.radii, rows.row_weights)
