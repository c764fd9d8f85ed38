"""The searches behind retrieval.json: queries, their labels, references or None, their labels."""

from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler


def random_search(seed, n_queries, n_references, n_classes, spread):
    """Rows around random centres; one query, and one reference, has a class of its own."""
    generator = np.random.default_rng(seed)
    centres = generator.standard_normal((n_classes, 8))

    def draw(n_rows, lone_label):
        labels = generator.integers(2, n_classes, n_rows)
        labels[0] = lone_label
        return centres[labels] + spread * generator.standard_normal((n_rows, 8)), labels

    queries, labels = draw(n_queries, lone_label=0)
    return queries, labels, *(draw(n_references, lone_label=1) if n_references else (None, None))


def digits():
    X, y = load_digits(return_X_y=True)
    return StandardScaler().fit_transform(X[:600]), y[:600], None, None


def part_of(folder, file, n_classes, n_rows):
    """Test rows of the first classes of a benchmark's data."""
    with np.load(Path(folder) / file) as arrays:
        chosen = np.flatnonzero(arrays["y_test"] < n_classes)[:n_rows]
        rows = arrays["x_test"][chosen].astype(np.float32)
        if "scale" in arrays:
            rows = rows * arrays["scale"].astype(np.float32)
        return rows, arrays["y_test"][chosen], None, None


def searches(folder):
    """By name; those of the benchmarks' data only where its folder is known."""
    made = {
        "random, among themselves": partial(random_search, 0, 300, 0, 12, 0.7),
        "random, hard": partial(random_search, 1, 500, 0, 40, 2.0),
        "random, with references": partial(random_search, 2, 200, 400, 20, 1.0),
        "random, few references": partial(random_search, 3, 200, 25, 20, 1.0),
        "digits": digits,
    }
    if folder is not None:
        made["clinc150"] = partial(part_of, folder, "clinc150_embeddings.npz", 30, 900)
        made["cifar100"] = partial(part_of, folder, "cifar100_features.npz", 10, 1000)
    return made
