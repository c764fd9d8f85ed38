"""Does an inner-product search in float32 find the neighbours under the learned metric?

    LATENTMETRIC_DATA=folder python benchmarks/query_adapter.py [--sets banking77,letter]

The metric is that of ``MaPML(n_latents=0.1)``; test rows (at most 1,000) search their 10 nearest
training rows (at most 15,000) in faiss, which stores float32. Recall is the share, in percent, of
found rows that are among the 10 nearest in float64, where equal distances count as found.

"exact": all stored vectors are compared. "HNSW": an approximate index, a graph with 32 links that
keeps 64 candidates. "adapter" ranks by inner products; "weight 1" stores the number as it
is, not small beside the row; "transform" stores ``transform(X)`` and ranks by Euclidean distance.

Shifted: each feature is moved by so many times its standard deviation; exact search. What
``stored`` refuses is searched, too, to see whether its limit is right.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import faiss
import numpy as np
from common import chosen, gemm_gflops, machine_facts, table, write_json
from data import load_benchmark

from latentmetric import MaPML
from latentmetric.export import QueryAdapter, query_adapter, to_query_adapter

SETS = ("banking77", "clinc150", "letter", "cifar100")
K, MOST_ROWS, MOST_QUERIES = 10, 15_000, 1_000
SHIFTS = (1, 10, 100, 1_000, 10_000, 100_000)
FACTORIES = {"exact": "Flat", "HNSW": "HNSW32"}


class Truth:
    """Squared distances in float64, and how far the K nearest reach."""

    def __init__(self, points: np.ndarray, rows: np.ndarray) -> None:
        norms = (np.square(some).sum(axis=1) for some in (points, rows))
        self.squared = np.add.outer(*norms) - 2 * points @ rows.T
        nearest = np.partition(self.squared, K - 1, axis=1)[:, K - 1 : K]
        self.reach = nearest + 1e-12 * self.squared.mean()

    def recall(self, found: np.ndarray) -> float:
        near = np.take_along_axis(self.squared, found, axis=1) <= self.reach
        return round(100 * float(np.mean(near & (found >= 0))), 2)


def searched(kind: str, rows: np.ndarray, queries: np.ndarray, measure: int) -> np.ndarray:
    rows, queries = (np.ascontiguousarray(some, dtype=np.float32) for some in (rows, queries))
    index = faiss.index_factory(rows.shape[1], FACTORIES[kind], measure)
    index.add(rows)
    if kind == "HNSW":
        index.hnsw.efSearch = 64
    return index.search(queries, K)[1]


def measured(name: str) -> Iterator[tuple[str, object]]:
    split = load_benchmark(name)
    X, y = (some[:: 1 + len(split.X_train) // MOST_ROWS] for some in (split.X_train, split.y_train))
    X, Q = X.astype(np.float64), split.X_test[:MOST_QUERIES].astype(np.float64)
    model = MaPML(n_latents=0.1, random_state=0).fit(X, y)
    adapter, product, euclid = to_query_adapter(model), faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2
    points, rows = model.transform(Q), model.transform(X)
    truth = Truth(points, rows)
    for kind in ("exact", "HNSW"):
        for what, one in (("adapter", adapter), ("adapter, weight 1", replace(adapter, weight=1))):
            found = searched(kind, one.stored(X), one.query(Q), product)
            yield f"{kind}, {what}", truth.recall(found)
        yield f"{kind}, transform", truth.recall(searched(kind, rows, points, euclid))
    spread = X.std(axis=0)
    for shift in SHIFTS:
        moved = replace(adapter, centre=adapter.centre + shift * spread)
        stored, refused = lenient(moved, X + shift * spread)
        found = searched("exact", stored, moved.query(Q + shift * spread), product)
        yield f"shifted {shift}", {"recall": truth.recall(found), "refused": refused}


def lenient(adapter: QueryAdapter, X: np.ndarray) -> tuple[np.ndarray, str | None]:
    """What is to be stored, and why ``stored`` refuses it, if it does."""
    try:
        return adapter.stored(X), None
    except ValueError as error:
        return replace(adapter, _typical=np.inf).stored(X), str(error)


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--sets", help="names separated by commas")
    names = chosen(parser.parse_args().sets, SETS, "--sets")
    faiss.omp_set_num_threads(1)
    results = {
        "machine": machine_facts(gemm_gflops()),
        "max_rounding": query_adapter.MAX_ROUNDING,
        "sets": {},
    }
    for name in names:
        results["sets"][name] = cells = dict(measured(name))
        shown = [
            [what, *((f"{cell['recall']}", "refused" if cell["refused"] else "")
                     if isinstance(cell, dict) else (f"{cell}", ""))]
            for what, cell in cells.items()
        ]  # fmt: skip
        print(f"\n{name}\n{table(['search', 'recall@10', ''], shown)}", flush=True)
        write_json("query_adapter", results)


if __name__ == "__main__":
    main()
