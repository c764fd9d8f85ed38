"""What MaPML() does on few rows: against the Bayes error, in seconds, and with a few rows a class.

    OPENBLAS_NUM_THREADS=1 python benchmarks/small_tables.py [--parts gaussians,seconds] [--draws 5]

gaussians
    Two classes, normal with unit variance, whose Bayes error is 20 %: mean test errors of MaPML
    and of logistic regression, as it comes and with C by cross-validation.
seconds
    Processor time of a fit beside that of a random forest of 100 trees: medians of five.
few_rows
    1, 3 and 10 training rows of each class: mean errors on the other rows beside those of nearest
    centroids, of columns as they are and standardised.
few_embeddings
    1 to 16 training rows of each class of three sets of embeddings (LATENTMETRIC_DATA): mean errors
    on at most 3,000 test rows, in at most five draws, beside what people use on so few.
grid_search
    Seconds of a grid search over eight candidates in three folds of wine.

After ± is the standard error of the difference to MaPML's error. Each row is written to
benchmarks/results/small_tables.json when it is ready; --report only prints the tables.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, chosen, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark
from scipy.stats import norm
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_sets import load_small
from threadpoolctl import threadpool_limits

from latentmetric import MaPML

NAME = "small_tables"
BAYES_ERROR = 0.2
GAUSSIAN_ROWS, GAUSSIAN_COLUMNS, N_TEST = (100, 300, 1_000), (2, 5, 10), 10_000
LOGISTIC_C = {"C": np.logspace(-4, 2, 7)}
TIMED_SETS, N_TREES, N_TIMES = ("iris", "cancer", "digits"), 100, 5
FEW_SETS, FEW_ROWS = ("digits", "iris", "wine", "cancer"), (1, 3, 10)
EMBEDDINGS, ROWS_A_CLASS, FEW_DRAWS = ("clinc150", "banking77", "imagenet200"), (1, 2, 4, 8, 16), 5
N_EMBEDDED_TEST = 3_000
GRID = {"n_latents": [1, 3, 0.1, 0.3], "n_neighbors": [3, 5]}

Array = np.ndarray[Any, Any]
Row = dict[str, Any]


def errors(models: dict[str, Any], train: tuple[Array, Array], test: tuple[Array, Array]) -> Row:
    """Test error in percent of each model."""
    return {name: 100 * (1 - model.fit(*train).score(*test)) for name, model in models.items()}


def mean_errors(draws: list[Row]) -> Row:
    """Means over the draws; of the others, with the standard error of the difference to MaPML's."""
    found = {}
    for name in draws[0]:
        differences = [draw[name] - draw["MaPML"] for draw in draws]
        mean = float(np.mean([draw[name] for draw in draws]))
        spread = float(np.std(differences) / max(len(draws) - 1, 1) ** 0.5)
        found[name] = mean if name == "MaPML" else [mean, spread]
    return found


def two_gaussians(n: int, n_columns: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Rows of two classes whose centres differ alike in all columns."""
    y = np.arange(n) % 2
    distance = -2 * norm.ppf(BAYES_ERROR)
    shift = distance / n_columns**0.5 * (y[:, None] - 0.5)
    return generator.standard_normal((n, n_columns)) + shift, y


def gaussians(n_draws: int) -> Iterator[Row]:
    for n, n_columns in product(GAUSSIAN_ROWS, GAUSSIAN_COLUMNS):
        draws = []
        for seed in range(n_draws):
            generator = np.random.default_rng(seed)
            train, test = (two_gaussians(size, n_columns, generator) for size in (n, N_TEST))
            models = {
                "MaPML": MaPML(random_state=seed),
                "logistic regression": LogisticRegression(),
                "C chosen": GridSearchCV(LogisticRegression(), LOGISTIC_C, cv=5),
            }
            draws.append(errors(models, train, test))
        yield {"rows": n, "columns": n_columns, **mean_errors(draws)}


def seconds(n_draws: int) -> Iterator[Row]:
    for name in TIMED_SETS:
        X, y = load_small(name)
        forest = median_seconds(
            lambda seed: RandomForestClassifier(N_TREES, random_state=seed, n_jobs=1), X, y
        )
        ours = median_seconds(lambda seed: MaPML(random_state=seed), X, y)
        yield {"set": name, "MaPML, s": ours, "random forest, s": forest, "ratio": ours / forest}


def median_seconds(make: Callable[[int], Any], X: Array, y: Array) -> float:
    """Processor seconds of a fit; the first fit of a process, which is slower, does not count."""
    make(0).fit(X, y)
    times = []
    for seed in range(N_TIMES):
        model = make(seed)
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    return float(np.median(times))


def few_rows(n_draws: int) -> Iterator[Row]:
    for name, n in product(FEW_SETS, FEW_ROWS):
        X, y = load_small(name)
        draws = []
        for seed in range(n_draws):
            train = draw_rows(y, n, np.random.default_rng(seed))
            test = np.setdiff1d(np.arange(len(y)), train)
            models = {
                "MaPML": MaPML(random_state=seed),
                "nearest centroid": NearestCentroid(),
                "standardised": make_pipeline(StandardScaler(), NearestCentroid()),
            }
            draws.append(errors(models, (X[train], y[train]), (X[test], y[test])))
        yield {"set": name, "rows a class": n, **mean_errors(draws)}


def few_embeddings(n_draws: int) -> Iterator[Row]:
    for name, n in product(EMBEDDINGS, ROWS_A_CLASS):
        split = load_benchmark(name)
        draws = []
        for seed in range(min(n_draws, FEW_DRAWS)):
            generator = np.random.default_rng(seed)
            train = draw_rows(split.y_train, n, generator)
            n_test = min(N_EMBEDDED_TEST, len(split.y_test))
            test = generator.choice(len(split.y_test), n_test, replace=False)
            models = {
                "MaPML": MaPML(random_state=seed),
                "nearest centroid": NearestCentroid(),
                "logistic regression": LogisticRegression(max_iter=1000),
                "C = 10": LogisticRegression(C=10, max_iter=1000),
                "cosine 1-NN": KNeighborsClassifier(1, metric="cosine"),
            }
            data = (split.X_train[train], split.y_train[train])
            draws.append(errors(models, data, (split.X_test[test], split.y_test[test])))
        yield {"set": name, "rows a class": n, **mean_errors(draws)}


def draw_rows(y: Array, n: int, generator: np.random.Generator) -> Array:
    """Indices of n rows of each class."""
    own = [generator.choice(np.flatnonzero(y == label), n, replace=False) for label in np.unique(y)]
    return np.sort(np.concatenate(own))


def grid_search(n_draws: int) -> Iterator[Row]:
    X, y = load_wine(return_X_y=True)
    search = GridSearchCV(MaPML(random_state=0), GRID, cv=3)
    wall, cpu = time.perf_counter(), time.process_time()
    search.fit(X, y)
    yield {
        "candidates": len(search.cv_results_["params"]),
        "seconds": time.perf_counter() - wall,
        "processor seconds": time.process_time() - cpu,
        "error of the best, %": 100 * (1 - float(search.best_score_)),
    }


PARTS = {
    "gaussians": gaussians,
    "seconds": seconds,
    "few_rows": few_rows,
    "few_embeddings": few_embeddings,
    "grid_search": grid_search,
}
"""Each takes the number of draws and yields the rows of its table."""


def stored() -> dict[str, Any]:
    path = RESULTS / f"{NAME}.json"
    return json.loads(path.read_text()) if path.exists() else {"parts": {}}


def report(parts: dict[str, list[Row]]) -> str:
    """A table for each part."""
    texts = []
    for name in (name for name in PARTS if parts.get(name)):
        cells = [[_text(value) for value in row.values()] for row in parts[name]]
        texts.append(f"## {name}\n\n{table(list(parts[name][0]), cells)}")
    return "\n\n".join(texts)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ± ".join(f"{number:.2f}" for number in value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", help=f"of {', '.join(PARTS)}; all if not given")
    parser.add_argument("--draws", type=int, default=20, help="of training rows, at least 1")
    parser.add_argument("--report", action="store_true", help="only print the tables")
    given = parser.parse_args()
    if given.draws < 1:
        parser.error(f"--draws must be at least 1, got {given.draws}")
    names = [] if given.report else chosen(given.parts, PARTS, "--parts")
    results = stored()
    if names:
        results["machine"] = machine_facts(gemm_gflops())
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # It wants a variance within classes, which a row a class does not have.
        warnings.filterwarnings("ignore", module="sklearn.neighbors._nearest_centroid")
        for name in names:
            rows: list[Row] = []
            for row in PARTS[name](given.draws):
                rows.append(row)
                print(name, row, flush=True)
                results["parts"][name] = rows
                write_json(NAME, results)
    print(report(results["parts"]))


if __name__ == "__main__":
    main()
