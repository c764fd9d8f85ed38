"""LMNN against metric-learn; golden/make_lmnn.py made the golden values."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from latentmetric import LMNN

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "lmnn.json").read_text())
LOAD = {"iris": load_iris, "wine": load_wine}


def lmnn_loss(X, y, components, n_targets=3):
    """The loss by its definition, margin 1, pull and push weighing the same."""
    plain = np.square(X[:, None] - X[None]).sum(axis=2)
    points = X @ components.T
    norms = np.square(points).sum(axis=1)
    squared = norms[:, None] + norms[None] - 2 * points @ points.T
    loss = 0.0
    for i in range(len(X)):
        own = np.flatnonzero((y == y[i]) & (np.arange(len(X)) != i))
        own = own[np.argsort(plain[i, own], kind="stable")[:n_targets]]
        hinges = 1 + squared[i, own][:, None] - squared[i, y != y[i]][None]
        loss += 0.5 * squared[i, own].sum() + 0.5 * np.maximum(hinges, 0).sum()
    return loss


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_the_loss_and_the_accuracy_are_as_good_as_those_of_metric_learn(name):
    X, y = LOAD[name](return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.3, random_state=0, stratify=y
    )
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    model = LMNN(push=0.5, target_neighbors=3).fit(X_train, y_train)
    in_units_of_the_rows = model.components_ / model.model_.coordinates.scale
    assert lmnn_loss(X_train, y_train, in_units_of_the_rows) <= GOLDEN[name]["loss"] * 1.001
    assert model.score(X_test, y_test) >= GOLDEN[name]["accuracy"] - 0.01


@pytest.mark.parametrize(("dtype", "exponent"), [(np.float32, 0.99), (np.float64, -0.95)])
def test_rows_of_extreme_size_give_the_metric_of_usual_ones(dtype, exponent):
    X, y = load_iris(return_X_y=True)
    X = (X / X.max()).astype(dtype)
    size = np.exp2(np.trunc(exponent * np.log2(np.finfo(dtype).max / 8)))
    usual = LMNN(max_iter=60).fit(X, y)
    extreme = LMNN(max_iter=60).fit(X * dtype(size), y)
    assert extreme.history_[-1]["objective"] == pytest.approx(
        usual.history_[-1]["objective"], rel=1e-3
    )
    np.testing.assert_allclose(
        extreme.get_mahalanobis_matrix(), usual.get_mahalanobis_matrix(), rtol=0.02, atol=0.05
    )
