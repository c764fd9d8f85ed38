"""How well clusters found without labels agree with the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import check_array, check_consistent_length

from latentmetric.core.parallel import small_numbers_may_vanish
from latentmetric.engines.admission import refuse_remote
from latentmetric.validation.labels import checked_labels


def clustering_nmi(embeddings: Any, labels: Any, *, random_state: Any = None) -> float:
    """Normalised mutual information between the classes and as many k-means clusters.

    Parameters
    ----------
    embeddings : array-like of shape (n_samples, n_features)
        Rows to compare by Euclidean distance, such as the output of ``model.transform``.
    labels : array-like of shape (n_samples,)
        The class of each row.
    random_state : int, RandomState instance or None, default=None
        Seed of k-means. The result depends on its start: report a mean over several seeds.

    Returns
    -------
    float
        From 0, where clusters and classes are independent, to 1, where they are the same. The
        mutual information is divided by the arithmetic mean of both entropies.

    Examples
    --------
    >>> from latentmetric.evaluation import clustering_nmi
    >>> clustering_nmi([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"], random_state=0)
    1.0
    """
    given = {"embeddings": embeddings, "labels": labels}
    refuse_remote("clustering_nmi", "compute() if they fit into memory", **given)
    truth = checked_labels(labels, "labels")
    rows = check_array(embeddings, dtype=("float64", "float32"), input_name="embeddings")
    check_consistent_length(rows, truth)
    # By a power of 2, which rounds nothing: squares of huge or tiny numbers leave the floats.
    exponent = int(np.frexp(np.abs(rows).max())[1])
    clusters = KMeans(len(set(truth.tolist())), n_init=1, random_state=random_state)
    with small_numbers_may_vanish():
        found = clusters.fit_predict(np.ldexp(rows, -exponent))
        return float(normalized_mutual_info_score(truth, found))
