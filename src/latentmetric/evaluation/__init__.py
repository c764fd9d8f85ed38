"""How well embeddings find rows of the same class, and how well they cluster by class."""

from latentmetric.evaluation.clustering import clustering_nmi
from latentmetric.evaluation.retrieval import retrieval_scores

__all__ = ["clustering_nmi", "retrieval_scores"]
