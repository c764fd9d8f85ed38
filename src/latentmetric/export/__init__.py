"""Fitted models for other tools: faiss, vector databases, ONNX and plain scikit-learn."""

from latentmetric.export.faiss_index import FaissIndex, to_faiss
from latentmetric.export.onnx_graph import to_onnx
from latentmetric.export.query_adapter import QueryAdapter, to_query_adapter
from latentmetric.export.sklearn_pipeline import to_sklearn

__all__ = ["FaissIndex", "QueryAdapter", "to_faiss", "to_onnx", "to_query_adapter", "to_sklearn"]
