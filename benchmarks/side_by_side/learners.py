"""How each method of peers.py is built: a function that makes something with fit and predict.

This file runs in the environment of its method, so it imports only NumPy, and the libraries inside
the functions. Parameters are each library's defaults, except for what a function says; the solver
of sklvq and the rates of pytorch-metric-learning were chosen on training rows that were held out.
Random numbers start from 0. "3-NN" is scikit-learn's k-NN with three neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NEIGHBOURS = 3

SOLVER = "waypoint-gradient-descent"

EPOCHS = 20
BATCH = 256
EMBEDDING_FEATURES = 128
RATES = {"ProxyNCALoss": (1e-3, 1e-1), "SoftTripleLoss": (1e-2, 1e-1)}
"""Adam's learning rates of the layer and of the proxies."""


# latentmetric


def mapml() -> Any:
    from latentmetric import MaPML

    return MaPML(random_state=0, n_jobs=1)


def mapml_as_published() -> Any:
    from latentmetric import MaPML

    return MaPML.as_published(random_state=0, n_jobs=1)


def latentmetric_lmnn() -> Any:
    from latentmetric import LMNN

    return LMNN(random_state=0, n_jobs=1)


# scikit-learn


def three_nearest(*before: Any, **parameters: Any) -> Any:
    """The steps before, then 3-NN."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    return make_pipeline(*before, KNeighborsClassifier(NEIGHBOURS, **parameters))


def sklearn_brute() -> Any:
    return three_nearest(algorithm="brute")


def sklearn_tree() -> Any:
    return three_nearest(algorithm="ball_tree")


def sklearn_lda() -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return three_nearest(LinearDiscriminantAnalysis())


def sklearn_nca() -> Any:
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    return three_nearest(NeighborhoodComponentsAnalysis(random_state=0))


def sklearn_logistic() -> Any:
    """On standardised rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression())


def sklearn_svc() -> Any:
    """On rows as they are; its kernel's width follows their variance."""
    from sklearn.svm import SVC

    return SVC()


# metric-learn


def metric_learn(name: str) -> Callable[[], Any]:
    def build() -> Any:
        import metric_learn

        return three_nearest(getattr(metric_learn, name)(random_state=0))

    return build


# sklvq


def sklvq_gmlvq() -> Any:
    """On standardised rows, with the solver that was faster and better than the default."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklvq import GMLVQ

    return make_pipeline(StandardScaler(), GMLVQ(random_state=0, solver_type=SOLVER))


# pytorch-metric-learning


class LinearEmbedding:
    """A linear layer trained with a loss that has proxies of its own; rows of length one."""

    def __init__(self, loss: str) -> None:
        from pytorch_metric_learning import losses

        self._loss, self._rates = getattr(losses, loss), RATES[loss]

    def fit(self, X: np.ndarray, y: np.ndarray) -> LinearEmbedding:
        import torch

        torch.manual_seed(0)
        size = min(X.shape[1], EMBEDDING_FEATURES)
        self._layer = torch.nn.Linear(X.shape[1], size)
        loss = self._loss(num_classes=int(y.max()) + 1, embedding_size=size)
        parts = zip((self._layer, loss), self._rates, strict=True)
        groups = [{"params": part.parameters(), "lr": rate} for part, rate in parts]
        self._train(torch.from_numpy(X), torch.from_numpy(y), loss, torch.optim.Adam(groups))
        return self

    def _train(self, rows: Any, labels: Any, loss: Any, optimizer: Any) -> None:
        import torch

        for _ in range(EPOCHS):
            for batch in torch.randperm(len(rows)).split(BATCH):
                optimizer.zero_grad()
                loss(self._layer(rows[batch]), labels[batch]).backward()
                optimizer.step()

    def transform(self, X: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            return torch.nn.functional.normalize(self._layer(torch.from_numpy(X))).numpy()


def pytorch_metric_learning(loss: str) -> Callable[[], Any]:
    """Standardised rows, a linear layer, 3-NN on what it gives."""

    def build() -> Any:
        import torch
        from sklearn.preprocessing import StandardScaler

        torch.set_num_threads(1)
        # A first optimiser imports for two seconds; that is not training.
        torch.optim.Adam([torch.zeros(1, requires_grad=True)]).step()
        return three_nearest(StandardScaler(), LinearEmbedding(loss))

    return build


# faiss


class FlatIndex:
    """Exact search; the majority of three, or the nearest if all three differ."""

    def __init__(self) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._make = faiss.IndexFlatL2

    def fit(self, X: np.ndarray, y: np.ndarray) -> FlatIndex:
        self._index, self._labels = self._make(X.shape[1]), y
        self._index.add(X)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        _, found = self._index.search(X, NEIGHBOURS)
        first, second, third = self._labels[found].T
        return np.where(second == third, second, first)


LEARNERS: dict[str, Callable[[], Any]] = {
    "MaPML": mapml,
    "MaPML as published": mapml_as_published,
    "latentmetric LMNN": latentmetric_lmnn,
    "scikit-learn 3-NN brute": sklearn_brute,
    "scikit-learn 3-NN tree": sklearn_tree,
    "scikit-learn LDA": sklearn_lda,
    "scikit-learn NCA": sklearn_nca,
    "scikit-learn logistic regression": sklearn_logistic,
    "scikit-learn SVC": sklearn_svc,
    "metric-learn LMNN": metric_learn("LMNN"),
    "metric-learn NCA": metric_learn("NCA"),
    "metric-learn ITML": metric_learn("ITML_Supervised"),
    "metric-learn MMC": metric_learn("MMC_Supervised"),
    "sklvq GMLVQ": sklvq_gmlvq,
    "pytorch-metric-learning ProxyNCA": pytorch_metric_learning("ProxyNCALoss"),
    "pytorch-metric-learning SoftTriple": pytorch_metric_learning("SoftTripleLoss"),
    "faiss 3-NN": FlatIndex,
}
"""The methods by name."""
