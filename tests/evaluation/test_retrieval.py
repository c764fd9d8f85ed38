"""Scores of embeddings against their definitions and values of pytorch-metric-learning.

golden/make_retrieval.py made the golden values.
"""

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from golden.retrieval_searches import searches
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.evaluation import clustering_nmi, retrieval_scores
from latentmetric.evaluation.retrieval import WORKING_BYTES

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "retrieval.json").read_text())


def by_definition(queries, labels, references, reference_labels, within, ks):
    """The scores, query by query; among references at the same distance the wrong come first."""
    found = []
    for number, (query, label) in enumerate(zip(queries, labels, strict=True)):
        others = [i for i in range(len(references)) if not (within and i == number)]
        right = np.array([reference_labels[i] == label for i in others])
        n_right = int(right.sum())
        if not n_right:
            continue
        distances = [np.square(query - references[i]).sum() for i in others]
        hits = right[np.lexsort((right, distances))]
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        scores = {f"recall@{k}": float(hits[:k].any()) for k in ks}
        scores |= {f"precision@{k}": hits[:k].mean() for k in ks}
        scores["map@r"] = precision[:n_right][hits[:n_right]].sum() / n_right
        scores["r_precision"] = hits[:n_right].mean()
        scores["mrr"] = 1 / (1 + np.flatnonzero(hits)[0])
        found.append(scores)
    return {name: np.mean([scores[name] for scores in found]) for name in found[0]}


@st.composite
def small_searches(draw):
    """Points on a small grid, where many distances tie, or anywhere; classes of any size."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.integers(4, 60)), draw(st.integers(4, 60))
    n_classes, grid = draw(st.integers(1, 9)), draw(st.booleans())
    rows = [
        generator.integers(0, 4, (size, 2)).astype(float)
        if grid
        else generator.standard_normal((size, 2)) * 1e-3 + 5
        for size in sizes
    ]
    labels = [generator.integers(0, n_classes, size) for size in sizes]
    for some in labels:
        some[:2] = 0
    return rows[0], labels[0], rows[1], labels[1]


@pytest.mark.parametrize("n_bytes", [1, WORKING_BYTES])
@given(search=small_searches())
def test_scores_follow_the_definition(n_bytes, search):
    queries, labels, references, reference_labels = search
    ks = (1, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("latentmetric.evaluation.retrieval.WORKING_BYTES", n_bytes)
        among_themselves = retrieval_scores(queries, labels, k=ks)
        among_others = retrieval_scores(queries, labels, references, reference_labels, k=ks)
    expected = by_definition(queries, labels, queries, labels, True, ks)
    assert among_themselves == pytest.approx(expected, abs=1e-12)
    expected = by_definition(queries, labels, references, reference_labels, False, ks)
    assert among_others == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", GOLDEN)
def test_scores_agree_with_golden_values(name):
    known = searches(os.environ.get("LATENTMETRIC_DATA"))
    if name not in known:
        pytest.skip("LATENTMETRIC_DATA does not name a folder with the data of the benchmarks")
    scores = retrieval_scores(*known[name](), k=(1, 5))
    assert {key: scores[key] for key in GOLDEN[name]} == pytest.approx(GOLDEN[name], abs=1e-6)


def test_queries_among_more_references_do_not_find_themselves(rng):
    X, y = rng.standard_normal((90, 3)), rng.integers(0, 6, 90)
    scores = retrieval_scores(X[:40], y[:40], X, y, k=2, queries_in_references=True)
    assert scores == pytest.approx(by_definition(X[:40], y[:40], X, y, True, (2,)), abs=1e-12)
    with_themselves = retrieval_scores(X[:40], y[:40], X, y)
    assert with_themselves["recall@1"] == with_themselves["mrr"] == 1


def test_neither_the_order_of_rows_nor_threads_nor_names_of_classes_matter(rng):
    X, y = rng.integers(0, 3, (120, 3)).astype(float), rng.integers(0, 5, 120)
    scores = retrieval_scores(X, y, k=(1, 4))
    order = rng.permutation(len(X))
    assert retrieval_scores(X[order], y[order], k=(1, 4)) == pytest.approx(scores, abs=1e-12)
    names = np.array(["e", "d", "c", "b", "a"])
    assert retrieval_scores(X, names[y], k=(4, 1), n_jobs=3) == pytest.approx(scores, abs=1e-12)


def test_scale_and_position_do_not_matter(rng):
    X, y = rng.standard_normal((100, 4)), rng.integers(0, 5, 100)
    scores = retrieval_scores(X, y)
    assert retrieval_scores(X * 1e200, y) == pytest.approx(scores, abs=1e-12)
    assert retrieval_scores(X * 1e-200, y) == pytest.approx(scores, abs=1e-12)
    assert retrieval_scores(X + 1000, y) == pytest.approx(scores, abs=1e-12)
    whole = rng.integers(0, 200, (80, 5))
    scores = retrieval_scores(whole.astype(float), y[:80])
    assert retrieval_scores(whole.astype(np.uint8), y[:80]) == pytest.approx(scores, abs=1e-12)


def test_identical_embeddings_score_zero(rng):
    scores = retrieval_scores(np.full((50, 8), 0.3), np.arange(50) % 2, k=(1, 10))
    n_others = 25
    assert scores.pop("mrr") == pytest.approx(1 / (n_others + 1))
    assert set(scores.values()) == {0.0}


def test_queries_with_nothing_to_find_are_left_out():
    X, y = np.array([[0.0], [1.0], [9.0], [0.1]]), np.array(["a", "a", "alone", "b"])
    assert retrieval_scores(X[:3], y[:3])["recall@1"] == 1
    assert retrieval_scores(X[:3], y[:3], X[3:], y[3:])["recall@1"] != 0
    assert all(np.isnan(list(retrieval_scores(X[:3], y[:3], X[3:], y[3:]).values())))


@pytest.mark.parametrize("spread", [1, 0])
def test_memory_is_bounded_where_a_class_is_large_and_where_all_rows_tie(spread):
    n_rows, n_large = 20_000, 15_000
    generator = np.random.default_rng(0)
    X = spread * generator.standard_normal((n_rows, 2)).astype(np.float32)
    y = np.maximum(np.arange(n_rows) - n_large, 0) // 10
    chosen = np.r_[:200, n_rows - 2000 : n_rows]
    tracemalloc.start()
    try:
        retrieval_scores(X[chosen], y[chosen], X, y, n_jobs=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * WORKING_BYTES < 0.9 * len(chosen) * n_rows * 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_labels": [0, 0, 1]}, "queries has 4 rows, but query_labels has 3 labels"),
        ({"references": None}, "go together"),
        ({"references": np.ones((3, 5))}, "queries have 2 features, but references have 5"),
        ({"k": 4}, "k is 4, but a query can find only 3 references"),
        ({"k": ()}, "at least one"),
        ({"queries_in_references": True}, "first 4 of the 3 references"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_input_is_refused(changes, message):
    given_input = {
        "queries": np.zeros((4, 2)), "query_labels": [0, 0, 1, 1],
        "references": np.ones((3, 2)), "reference_labels": [0, 0, 1],
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        retrieval_scores(**given_input | changes)


def test_labels_of_two_kinds_and_ranks_of_the_wrong_type_are_refused():
    X = np.zeros((2, 1))
    with pytest.raises(TypeError, match="query_labels are numbers, but reference_labels are text"):
        retrieval_scores(X, [0, 1], X, ["0", "1"])
    with pytest.raises(TypeError, match="must be of one kind, but y holds int and str"):
        retrieval_scores(X, np.array([0, "1"], dtype=object))
    with pytest.raises(TypeError, match=r"k must be an integer, got 1\.5"):
        retrieval_scores(X, [0, 0], k=1.5)
    with pytest.raises(ValueError, match="k is 2, but a query can find only 1 references"):
        retrieval_scores(X, [0, 0], k=2)


def mutual_information(left, right):
    """By definition, in nats; that of a labelling with itself is its entropy."""
    total = 0.0
    for a in set(left):
        for b in set(right):
            both = np.mean((left == a) & (right == b))
            if both:
                total += both * np.log(both / np.mean(left == a) / np.mean(right == b))
    return total


def test_scores_follow_the_definition_where_clusters_and_classes_cross():
    """Clusters are left and right; three rows of four have the class of their side."""
    X = np.repeat([[0.0], [100.0]], 40, axis=0)
    y = np.tile([0, 0, 0, 1], 20)
    y[40:] = 1 - y[40:]
    side = np.repeat([0, 1], 40)
    entropies = mutual_information(y, y), mutual_information(side, side)
    expected = mutual_information(y, side) / np.mean(entropies)
    assert clustering_nmi(X, y, random_state=0) == pytest.approx(expected)
