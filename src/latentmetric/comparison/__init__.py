"""Compare MaPML with other methods on any data: same folds, errors, seconds, and what to use."""

from latentmetric.comparison.advice import Advice, advise
from latentmetric.comparison.cross_validation import Outcome, compare
from latentmetric.comparison.methods import METHODS
from latentmetric.comparison.quick import QuickCheck, quick_check
from latentmetric.comparison.samples import sample_rows

__all__ = [
    "METHODS",
    "Advice",
    "Outcome",
    "QuickCheck",
    "advise",
    "compare",
    "quick_check",
    "sample_rows",
]
