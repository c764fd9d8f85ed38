"""Is one classifier better than another beyond chance? McNemar's exact test on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

from latentmetric.core.types import Bools

SIGNIFICANCE = 0.05
"""A difference with a smaller p-value counts as more than chance."""

NORMAL_95 = 1.96
"""Standard errors on each side of a 95 % interval."""


@dataclass(frozen=True)
class Paired:
    """Two classifiers on the same rows. Only rows that exactly one gets right tell them apart."""

    n_rows: int
    gained: int
    """Rows that only the first gets right."""
    lost: int
    """Rows that only the second gets right."""

    @property
    def fewer(self) -> float:
        """By how much the error of the first is lower; negative if it is higher."""
        return (self.gained - self.lost) / self.n_rows

    @property
    def p_value(self) -> float:
        """The chance of a difference this large between equals, by the binomial distribution."""
        from scipy.stats import binomtest

        apart = self.gained + self.lost
        return float(binomtest(self.gained, apart).pvalue) if apart else 1.0

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance would make."""
        return self.p_value < SIGNIFICANCE

    @property
    def interval(self) -> tuple[float, float]:
        """Agresti and Min's 95 % interval of ``fewer``: half a row is added to each case."""
        n_rows, gained, lost = self.n_rows + 2, self.gained + 0.5, self.lost + 0.5
        middle = (gained - lost) / n_rows
        spread = sqrt((gained + lost) / n_rows - middle**2) / sqrt(n_rows)
        return middle - NORMAL_95 * spread, middle + NORMAL_95 * spread

    @property
    def rows_to_tell(self) -> int | None:
        """How many rows would show a difference of this size; None if there is none.

        By the normal distribution with Edwards' correction, without which a few rows would seem to
        be enough where the exact test asks for more.
        """
        if self.gained == self.lost:
            return None
        apart = (self.gained + self.lost) / self.n_rows
        size = abs(self.fewer)
        root = (NORMAL_95 * sqrt(apart) + sqrt(NORMAL_95**2 * apart + 4 * size)) / (2 * size)
        rows = ceil(root**2)
        digits = int(10 ** max(0, len(str(rows)) - 2))
        return -(-rows // digits) * digits


def paired(right: Bools, other_right: Bools) -> Paired:
    """Compare two classifiers by which rows each gets right."""
    return Paired(len(right), int((right & ~other_right).sum()), int((other_right & ~right).sum()))
