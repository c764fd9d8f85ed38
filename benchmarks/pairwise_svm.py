"""RBF-SVM, one against one, with the kernel from matrix products.

scikit-learn's SVC computes kernel entries one by one, pair of classes by pair of classes. Here each
entry is computed once, by BLAS, and libsvm solves the same problem for each pair. Time O(n²·d) for
the kernel, plus the solver; memory O(m²) for the m rows of the two largest classes, and for each
class the square of its rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from latentmetric.core.distances import squared_norms
from latentmetric.core.types import Floats, Ints

BLOCK_ENTRIES = 10**7
"""Decisions held at a time: queries times pairs of classes."""

CACHE_MEGABYTES = 1000


def rbf(left: Floats, right: Floats, gamma: float) -> Floats:
    """exp(−γ·D²) of all rows of ``left`` with all rows of ``right``."""
    squared = left @ right.T
    squared *= -2
    squared += squared_norms(left)[:, None]
    squared += squared_norms(right)
    np.maximum(squared, 0, out=squared)
    squared *= -gamma
    return np.exp(squared, out=squared)


class PairwiseSVM:
    """One SVM for each pair of classes; they vote, and on ties the sum of decisions counts.

    Parameters
    ----------
    C, gamma : float
        As in scikit-learn's SVC.
    """

    def __init__(self, C: float, gamma: float) -> None:
        self.C, self.gamma = C, gamma

    def fit(self, X: Floats, codes: Ints) -> PairwiseSVM:
        """Codes are 0, 1, … for the classes; each class has a row."""
        self._centre = X.mean(axis=0)
        n_classes = int(codes.max()) + 1
        self._rows = [X[codes == code] - self._centre for code in range(n_classes)]
        self._coefficients = [np.zeros((len(own), n_classes), own.dtype) for own in self._rows]
        self._intercepts = np.zeros((n_classes, n_classes), X.dtype)
        own_kernels = [rbf(own, own, self.gamma) for own in self._rows]
        for first in range(n_classes):
            for second in range(first + 1, n_classes):
                self._fit_pair(first, second, own_kernels)
        return self

    def _fit_pair(self, first: int, second: int, own_kernels: list[Floats]) -> None:
        """Positive decisions are for ``second``."""
        cross = rbf(self._rows[first], self._rows[second], self.gamma)
        n_first, n_second = cross.shape
        kernel = np.empty((n_first + n_second,) * 2)
        kernel[:n_first, :n_first], kernel[:n_first, n_first:] = own_kernels[first], cross
        kernel[n_first:, :n_first], kernel[n_first:, n_first:] = cross.T, own_kernels[second]
        labels = np.repeat([0, 1], [n_first, n_second])
        model = SVC(C=self.C, kernel="precomputed", cache_size=CACHE_MEGABYTES).fit(kernel, labels)
        weights = np.zeros(len(kernel))
        weights[model.support_] = model.dual_coef_[0]
        self._coefficients[first][:, second] = weights[:n_first]
        self._coefficients[second][:, first] = weights[n_first:]
        self._intercepts[first, second] = self._intercepts[second, first] = model.intercept_[0]

    def predict(self, X: Floats) -> Ints:
        """Codes of the classes."""
        step = max(1, BLOCK_ENTRIES // len(self._rows) ** 2)
        blocks = [self._scores(X[i : i + step]).argmax(axis=1) for i in range(0, len(X), step)]
        return np.concatenate(blocks)

    def _scores(self, X: Floats) -> Floats:
        """Votes, plus less than a half of one for the sum of the decisions."""
        queries = X - self._centre
        parts: Any = [
            rbf(queries, own, self.gamma) @ coefficients
            for own, coefficients in zip(self._rows, self._coefficients, strict=True)
        ]
        parts = np.stack(parts, axis=1)
        decisions = parts + parts.transpose(0, 2, 1) + self._intercepts
        n_classes = len(self._rows)
        sign = np.tri(n_classes, k=-1) - np.tri(n_classes, k=-1).T
        margins = decisions * sign.astype(decisions.dtype)
        total = margins.sum(axis=2)
        return (margins > 0).sum(axis=2) + total / (3 * (np.abs(total) + 1))
