"""The agreement of clusters and classes."""

import numpy as np
import pytest

from latentmetric.evaluation import clustering_nmi


def mutual_information(left, right):
    """By definition, in nats; that of a labelling with itself is its entropy."""
    total = 0.0
    for a in set(left):
        for b in set(right):
            both = np.mean((left == a) & (right == b))
            if both:
                total += both * np.log(both / np.mean(left == a) / np.mean(right == b))
    return total


def test_clusters_equal_to_the_classes_score_1(rng):
    y = np.repeat(["a", "b", "c"], 30)
    X = rng.standard_normal((90, 2)) + 50 * np.unique(y, return_inverse=True)[1][:, None]
    assert clustering_nmi(X, y, random_state=0) == pytest.approx(1)


def test_scores_follow_the_definition_where_clusters_and_classes_cross():
    """Clusters are left and right; three rows of four have the class of their side."""
    X = np.repeat([[0.0], [100.0]], 40, axis=0)
    y = np.tile([0, 0, 0, 1], 20)
    y[40:] = 1 - y[40:]
    side = np.repeat([0, 1], 40)
    entropies = mutual_information(y, y), mutual_information(side, side)
    expected = mutual_information(y, side) / np.mean(entropies)
    assert clustering_nmi(X, y, random_state=0) == pytest.approx(expected)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clustering_nmi(np.zeros((3, 1)), [0, 1])
    with pytest.raises(ValueError, match="NaN"):
        clustering_nmi([[np.nan], [1.0]], [0, 1])
