"""How well embeddings serve to find rows of the same class, and to tell classes apart."""

from latentmetric.evaluation.clustering import clustering_nmi
from latentmetric.evaluation.retrieval import retrieval_scores

__all__ = ["clustering_nmi", "retrieval_scores"]
