"""How well embeddings find and cluster rows of a class, and whether to trust probabilities."""

from latentmetric.evaluation.calibration import calibration_error
from latentmetric.evaluation.retrieval import clustering_nmi
from latentmetric.evaluation.retrieval import retrieval_scores

__all__ = ["calibration_error", "clustering_nmi", "retrieval_scores"]
