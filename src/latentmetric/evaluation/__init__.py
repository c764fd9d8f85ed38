"""Scores of embeddings and probabilities; methods compared on the same folds; what to use."""

from latentmetric.evaluation.advice import Advice, QuickCheck, advise, quick_check
from latentmetric.evaluation.calibration import calibration_error
from latentmetric.evaluation.comparison import METHODS, Outcome, compare
from latentmetric.evaluation.retrieval import clustering_nmi, retrieval_scores

__all__ = [
    "METHODS",
    "Advice",
    "Outcome",
    "QuickCheck",
    "advise",
    "calibration_error",
    "clustering_nmi",
    "compare",
    "quick_check",
    "retrieval_scores",
]
