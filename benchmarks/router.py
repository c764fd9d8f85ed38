"""Text intents by embeddings: which router errs, abstains, answers and learns an intent best?

    pip install semantic-router==1.1.1
    LATENTMETRIC_DATA=folder python benchmarks/router.py [--sets clinc150] [--methods MaPML,SVC]
    LATENTMETRIC_DATA=folder python benchmarks/router.py --methods MaPML --again

All methods get the same MiniLM embeddings, so the time of the encoder is nobody's. CLINC150: fitted
on its training rows, parameters chosen on its validation rows; the unknown rows are its
out-of-scope test rows. BANKING77: in each of three draws a fifth of the classes is unknown, and a
tenth of the training rows of the others is for validation. No unknown row is used to fit or to
choose. SetFit's head is its default, logistic regression with C = 1; what SetFit does before that,
fine-tuning the encoder, needs the texts.

Each cell is written to benchmarks/results/router.json when it is ready and not measured again
without --again; the tables are in router.md. Everything runs on one thread; times are those of the
processor.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, chosen, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import latentmetric
from latentmetric import MaPML

SETS = ("clinc150", "banking77")
DRAWS = 3
UNKNOWN_SHARE, VALIDATION_SHARE = 0.2, 0.1
N_NEW_INTENTS = 3
ONE_AT_A_TIME, BATCH, REPEATS = 200, 1_000, 3
ACCEPTED = 0.95
"""The share of known rows that must be accepted where the false positive rate is read."""

Rows = np.ndarray[Any, Any]
Labels = np.ndarray[Any, Any]
Parameters = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Rows to fit, to choose by and to test on, and rows of no known class."""

    X: Rows
    y: Labels
    X_val: Rows
    y_val: Labels
    X_test: Rows
    y_test: Labels
    unknown: Rows


def clinc150() -> Part:
    split = load_benchmark("clinc150")
    path = Path(os.environ["LATENTMETRIC_DATA"]) / "clinc150_embeddings.npz"
    with np.load(path) as arrays:
        held, unknown = arrays["x_val"], arrays["x_oos_test"]
        return Part(
            split.X_train, split.y_train, held.astype(np.float32), arrays["y_val"],
            split.X_test, split.y_test, unknown.astype(np.float32),
        )  # fmt: skip


def banking77(draw: int) -> Part:
    split = load_benchmark("banking77")
    classes = np.unique(split.y_train)
    n_unknown = round(UNKNOWN_SHARE * len(classes))
    late = np.random.default_rng(draw).choice(classes, n_unknown, replace=False)
    known, known_test = ~np.isin(split.y_train, late), ~np.isin(split.y_test, late)
    y = split.y_train[known]
    X, X_val, y, y_val = train_test_split(
        split.X_train[known], y, test_size=VALIDATION_SHARE, stratify=y, random_state=draw
    )
    X_test, y_test = split.X_test[known_test], split.y_test[known_test]
    return Part(X, y, X_val, y_val, X_test, y_test, split.X_test[~known_test])


# Methods


class Router(ABC):
    """A classifier with a score that is low for rows of no known class."""

    grid: tuple[Parameters, ...] = ({},)

    def __init__(self, seed: int, **parameters: Any) -> None:
        self.seed, self.parameters = seed, parameters

    @abstractmethod
    def fit(self, part: Part) -> Router:
        """Learn the routes."""

    def queries(self, X: Rows) -> Any:
        """Rows in the form in which this method takes them."""
        return X

    @abstractmethod
    def answer(self, queries: Any) -> tuple[Labels, Rows]:
        """Labels and scores."""

    def serve(self, queries: Any) -> Any:
        """What a service calls: all that is needed to answer or to abstain."""
        return self.answer(queries)

    @abstractmethod
    def n_bytes(self) -> int:
        """The size of the fitted model."""


class ModelRouter(Router):
    """A classifier in scikit-learn's conventions."""

    @abstractmethod
    def make(self) -> Any:
        """The model, not fitted."""

    def fit(self, part: Part) -> Router:
        self.model = self.make().fit(part.X, part.y)
        return self

    def n_bytes(self) -> int:
        return len(pickle.dumps(self.model))


class OurRouter(ModelRouter):
    def fit(self, part: Part) -> Router:
        super().fit(part)
        self.threshold = self.model.reject_threshold(1 - ACCEPTED)
        return self

    def make(self) -> Any:
        return MaPML(random_state=self.seed)

    def answer(self, queries: Any) -> tuple[Labels, Rows]:
        return self.model.predict(queries), self.model.score_samples(queries)

    def serve(self, queries: Any) -> Any:
        return self.model.predict(queries, reject_below=self.threshold, reject_label=-1)

    def add(self, X: Rows, label: int) -> None:
        self.model.add_classes(X, np.full(len(X), label))

    def n_bytes(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            latentmetric.save(self.model, Path(folder) / "model")
            return (Path(folder) / "model").stat().st_size


class Linear(ModelRouter):
    """Logistic regression; its score is the logarithm of the sum of the exponentiated logits."""

    grid = tuple({"C": C} for C in (1, 10, 100))

    def make(self) -> Any:
        return LogisticRegression(max_iter=1000, **self.parameters)

    def answer(self, queries: Any) -> tuple[Labels, Rows]:
        logits = self.model.decision_function(queries)
        return self.model.classes_[logits.argmax(axis=1)], logsumexp(logits, axis=1)


class SetFitHead(Linear):
    """The head that SetFit puts on its encoder by default."""

    grid = ({},)

    def make(self) -> Any:
        return LogisticRegression()


class Kernel(ModelRouter):
    """RBF-SVC; its score is the largest value of its decision function."""

    grid = tuple({"C": C, "gamma": gamma} for C, gamma in product((1, 10), (0.3, 1)))

    def make(self) -> Any:
        return SVC(break_ties=True, **self.parameters)

    def answer(self, queries: Any) -> tuple[Labels, Rows]:
        values = self.model.decision_function(queries)
        return self.model.classes_[values.argmax(axis=1)], values.max(axis=1)


class Neighbors(ModelRouter):
    """Cosine k-NN; its score is minus the mean distance to the k neighbours."""

    grid = tuple({"n_neighbors": k} for k in (1, 3, 5, 10, 20))

    def make(self) -> Any:
        return KNeighborsClassifier(metric="cosine", **self.parameters)

    def answer(self, queries: Any) -> tuple[Labels, Rows]:
        distances, found = self.model.kneighbors(queries)
        votes = np.zeros((len(queries), len(self.model.classes_)))
        np.add.at(votes, (np.arange(len(queries))[:, None], self.model._y[found]), 1)
        return self.model.classes_[votes.argmax(axis=1)], -distances.mean(axis=1)


class Centroids(ModelRouter):
    """Nearest centroid; the rows have length 1. Its score is minus the distance."""

    def make(self) -> Any:
        return NearestCentroid()

    def answer(self, queries: Any) -> tuple[Labels, Rows]:
        distances = euclidean_distances(queries, self.model.centroids_)
        return self.model.classes_[distances.argmin(axis=1)], -distances.min(axis=1)


class SemanticRouter(Router):
    """semantic-router as it comes; confidences are calibrated on the validation rows.

    A text is the number of a row, which the encoder looks up.
    """

    def fit(self, part: Part) -> Router:
        from semantic_router import IndexedRouter

        logging.getLogger("semantic_router").setLevel(logging.ERROR)
        self.encoder = lookup_encoder()
        routes = [self.route(part.X[part.y == label], label) for label in np.unique(part.y)]
        self.router = IndexedRouter(self.encoder, routes, **self.parameters)
        self.router.fit(self.queries(part.X_val), [str(label) for label in part.y_val])
        return self

    def route(self, X: Rows, label: int) -> Any:
        from semantic_router import Route

        return Route(name=str(label), utterances=self.queries(X))

    def queries(self, X: Rows) -> Any:
        rows = self.encoder.rows
        rows.extend(X)
        return [str(number) for number in range(len(rows) - len(X), len(rows))]

    def answer(self, queries: Any) -> tuple[Labels, Rows]:
        """Scores before calibration: it keeps their order, but may overflow and tie them."""
        calibrator, self.router.calibrator = self.router.calibrator, None
        choices = [self.router(text) for text in queries]
        self.router.calibrator = calibrator
        labels = np.array([int(choice.name) for choice in choices])
        return labels, np.array([choice.confidence for choice in choices])

    def serve(self, queries: Any) -> Any:
        """A batch only has ``evaluate``, which chooses a route for each text."""
        if len(queries) == 1:
            return self.router(queries[0])
        return self.router.evaluate(queries, [None] * len(queries))

    def add(self, X: Rows, label: int) -> None:
        self.router.add(self.route(X, label))

    def n_bytes(self) -> int:
        """Of the vectors; its own files have the texts, which it encodes again."""
        return self.router.index.index.nbytes


class ChosenSemanticRouter(SemanticRouter):
    grid = tuple(
        {"top_k": k, "aggregation": how} for k, how in ((5, "max"), (5, "sum"), (20, "sum"))
    )


def lookup_encoder() -> Any:
    from semantic_router.encoders import DenseEncoder

    class Lookup(DenseEncoder):
        name: str = "rows by number"
        rows: list[Any]

        def __call__(self, docs: list[Any]) -> list[Any]:
            return [self.rows[int(text)] for text in docs]

    return Lookup(rows=[])


METHODS: dict[str, type[Router]] = {
    "MaPML": OurRouter,
    "logistic regression": Linear,
    "SetFit's head": SetFitHead,
    "SVC": Kernel,
    "cosine k-NN": Neighbors,
    "nearest centroid": Centroids,
    "semantic-router": SemanticRouter,
    "semantic-router chosen": ChosenSemanticRouter,
}
REPEATED = ("MaPML",)
"""Methods that draw random numbers, so that CLINC150 is measured with several seeds."""


# Measurements


def choose(kind: type[Router], part: Part, seed: int) -> Parameters:
    """The parameters with the lowest error on the validation rows; the first of several."""
    if len(kind.grid) == 1:
        return kind.grid[0]

    def error(parameters: Parameters) -> float:
        router = kind(seed, **parameters).fit(part)
        return float(np.mean(router.answer(router.queries(part.X_val))[0] != part.y_val))

    return min(kind.grid, key=error)


def cpu_seconds(action: Callable[[], Any], repeats: int = 1) -> float:
    """Of the processor, all threads together; the least of some repeats."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


def measure(kind: type[Router], part: Part, seed: int) -> dict[str, Any]:
    parameters = choose(kind, part, seed)
    router = kind(seed, **parameters)
    fit_seconds = cpu_seconds(lambda: router.fit(part))
    labels, known = router.answer(router.queries(part.X_test))
    _, unknown = router.answer(router.queries(part.unknown))
    is_known = np.repeat([True, False], [len(known), len(unknown)])
    one, batch = router.queries(part.X_test[:ONE_AT_A_TIME]), router.queries(part.X_test[:BATCH])
    singly = cpu_seconds(
        lambda: [router.serve(one[row : row + 1]) for row in range(len(one))], REPEATS
    )
    together = cpu_seconds(lambda: router.serve(batch), REPEATS)
    return {
        "error": 100 * float(np.mean(labels != part.y_test)),
        "auroc": 100 * float(roc_auc_score(is_known, np.concatenate((known, unknown)))),
        "fpr95": 100 * float(np.mean(unknown >= np.quantile(known, 1 - ACCEPTED))),
        "microseconds_one": 1e6 * singly / len(one),
        "microseconds_batch": 1e6 * together / len(batch),
        "bytes": router.n_bytes(),
        "fit_seconds": fit_seconds,
        "milliseconds_new": 1e3 * new_intent_seconds(kind(seed, **parameters), part, fit_seconds),
        "chosen": parameters,
    }


def new_intent_seconds(router: Router, part: Part, refit_seconds: float) -> float:
    """Seconds to add a class to a router that was fitted without it, or of a fit to all."""
    if not hasattr(router, "add"):
        return refit_seconds
    late = np.random.default_rng(0).choice(np.unique(part.y), N_NEW_INTENTS, replace=False)
    early, held = ~np.isin(part.y, late), ~np.isin(part.y_val, late)
    rest = Part(
        part.X[early], part.y[early], part.X_val[held], part.y_val[held], *[part.X_test[:0]] * 3
    )
    router.fit(rest)
    return float(
        np.median(
            [
                cpu_seconds(lambda label=label: router.add(part.X[part.y == label], label))
                for label in late
            ]
        )
    )


def parts(name: str, method: str) -> Iterator[tuple[int, Part]]:
    """Each draw's number, which is also the seed, and its rows."""
    for draw in range(DRAWS if name == "banking77" or method in REPEATED else 1):
        yield draw, banking77(draw) if name == "banking77" else clinc150()


def cell(name: str, method: str) -> dict[str, list[Any]]:
    with threadpool_limits(1):
        found = [measure(METHODS[method], part, draw) for draw, part in parts(name, method)]
    return {key: [figures[key] for figures in found] for key in found[0]}


# Report

COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "error, %": lambda cell: mean(cell["error"]),
    "AUROC, %": lambda cell: mean(cell["auroc"]),
    "FPR95, %": lambda cell: mean(cell["fpr95"], 1),
    "µs a query": lambda cell: f"{np.mean(cell['microseconds_one']):,.0f}",
    "µs, by 1,000": lambda cell: f"{np.mean(cell['microseconds_batch']):,.0f}",
    "model, MB": lambda cell: f"{np.mean(cell['bytes']) / 1e6:.1f}",
    "new intent, ms": lambda cell: f"{np.mean(cell['milliseconds_new']):,.0f}",
}


def mean(values: list[float], digits: int = 2) -> str:
    """The mean of the draws, ± its standard error."""
    text = f"{np.mean(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ± {np.std(values, ddof=1) / len(values) ** 0.5:.{digits}f}"


def report(cells: dict[str, Any]) -> str:
    found = ["# Routers of text intents"]
    for name in SETS:
        rows = [
            [method, *[show(cells[name][method]) for show in COLUMNS.values()]]
            for method in METHODS
            if method in cells.get(name, {})
        ]
        found += [f"## {name}", table(["method", *COLUMNS], rows)]
    return "\n\n".join(found) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", help=f"of {', '.join(SETS)}; both if not given")
    parser.add_argument("--methods", help=f"of {', '.join(METHODS)}; all if not given")
    parser.add_argument("--again", action="store_true", help="measure the chosen cells again")
    parser.add_argument("--report", action="store_true", help="only write the tables")
    options = parser.parse_args()
    path = RESULTS / "router.json"
    if not path.exists():
        write_json("router", {"cells": {}})
    names = chosen(options.sets, SETS, "--sets")
    methods = chosen(options.methods, METHODS, "--methods")
    for name, method in [] if options.report else product(names, methods):
        if options.again or method not in json.loads(path.read_text())["cells"].get(name, {}):
            figures = cell(name, method)
            results = json.loads(path.read_text())  # another process may have written meanwhile
            results["machine"] = machine_facts(gemm_gflops())
            results["cells"].setdefault(name, {})[method] = figures
            write_json("router", results)
            print(name, method, figures, flush=True)
    results = json.loads(path.read_text())
    path.with_suffix(".md").write_text(report(results["cells"]))
    print(report(results["cells"]))


if __name__ == "__main__":
    main()
