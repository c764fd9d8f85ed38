"""Is one classifier better than another beyond chance? McNemar's exact test on the same rows.

Where several are compared, Holm's correction keeps the chance of any false alarm at 5 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from statistics import NormalDist

from latentmetric.core.types import Bools

SIGNIFICANCE = 0.05
"""A difference with a smaller p-value counts as more than chance."""

NORMAL_95 = 1.96
"""Standard errors on each side of a 95 % interval."""

NOT_COVERED = (
    "The test does not cover the variation of training: other training rows or another seed may "
    "change the order."
)


@dataclass(frozen=True)
class Paired:
    """Two classifiers on the same rows. Only rows that exactly one gets right tell them apart."""

    n_rows: int
    gained: int
    """Rows that only the first gets right."""
    lost: int
    """Rows that only the second gets right."""
    correction: float = 1.0
    """What the p-value is multiplied by, because other comparisons are made beside this one."""

    @property
    def fewer(self) -> float:
        """By how much the error of the first is lower; negative if it is higher."""
        return (self.gained - self.lost) / self.n_rows

    @property
    def p_value(self) -> float:
        """The chance of a difference this large between equals, by the binomial distribution."""
        from scipy.special import bdtr

        tail = bdtr(min(self.gained, self.lost), self.gained + self.lost, 0.5)
        return min(1.0, self.correction * min(1.0, 2 * float(tail)))

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
        z = NormalDist().inv_cdf(1 - SIGNIFICANCE / self.correction / 2)
        root = (z * sqrt(apart) + sqrt(z**2 * apart + 4 * size)) / (2 * size)
        rows = ceil(root**2)
        digits = int(10 ** max(0, len(str(rows)) - 2))
        return -(-rows // digits) * digits


def paired(right: Bools, other_right: Bools) -> Paired:
    """Compare two classifiers by which rows each gets right."""
    return Paired(len(right), int((right & ~other_right).sum()), int((other_right & ~right).sum()))


def holm(matches: Sequence[Paired]) -> list[Paired]:
    """The same comparisons, their p-values corrected for how many they are.

    If the best of several classifiers was selected, all pairs of them are comparisons that were
    made, not only those with the best.
    """
    corrected, least = list(matches), 0.0
    by_p = sorted(range(len(matches)), key=lambda index: matches[index].p_value)
    for rank, index in enumerate(by_p):
        p_value = matches[index].p_value
        least = max(least, (len(matches) - rank) * p_value)
        corrected[index] = replace(
            matches[index], correction=least / p_value if p_value > 0 else 1.0
        )
    return corrected
