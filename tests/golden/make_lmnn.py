"""How lmnn.json was made: metric-learn's LMNN, its loss and its accuracy on three small data sets.

metric-learn 0.7.0 does not run on scikit-learn 1.9, so use an environment of its own:

    python -m venv old && old/bin/pip install metric-learn==0.7.0 scikit-learn==1.4.2 "numpy<2"
    old/bin/python tests/golden/make_lmnn.py

Rows are standardised, targets are the 3 nearest Euclidean neighbours of the same class, pull and
push weigh the same. metric-learn may run as long as it likes; its best learning rate is taken.
"""

import json
from pathlib import Path

import numpy as np
from metric_learn import LMNN
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler


def lmnn_loss(X, y, components, n_targets=3):
    """(1/2) Σ D²(i, j) + (1/2) Σ [1 + D²(i, j) − D²(i, l)]₊, by the definition."""
    plain = np.square(X[:, None] - X[None]).sum(axis=2)
    points = X @ components.T
    squared = np.square(points[:, None] - points[None]).sum(axis=2)
    loss = 0.0
    for i in range(len(X)):
        own = np.flatnonzero((y == y[i]) & (np.arange(len(X)) != i))
        own = own[np.argsort(plain[i, own], kind="stable")[:n_targets]]
        others = squared[i, y != y[i]]
        loss += 0.5 * squared[i, own].sum()
        loss += 0.5 * np.maximum(1 + squared[i, own][:, None] - others[None], 0).sum()
    return loss


def main():
    golden = {}
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.3, random_state=0, stratify=y
        )
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
        best = None
        for rate in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3):
            model = LMNN(n_neighbors=3, learn_rate=rate, max_iter=1000, regularization=0.5)
            model.fit(X_train, y_train)
            loss = lmnn_loss(X_train, y_train, model.components_)
            knn = KNeighborsClassifier(3).fit(model.transform(X_train), y_train)
            accuracy = knn.score(model.transform(X_test), y_test)
            print(name, rate, loss, accuracy, flush=True)
            if best is None or loss < best["loss"]:
                best = {"loss": loss, "accuracy": accuracy, "learn_rate": rate}
        golden[name] = best
    path = Path(__file__).with_name("lmnn.json")
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
