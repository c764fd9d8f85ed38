"""Recall, precision, MAP@R, R-precision and reciprocal rank of a search, from one pass over it.

Time O(n·m·d) for n queries and m references of d features. Memory O(n + m) beside the
embeddings themselves, and a fixed number of bytes for the current blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from latentmetric.core.parallel import (
    blas_threads,
    for_each,
    small_numbers_may_vanish,
    thread_count,
)
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.engines.admission import refuse_remote
from latentmetric.evaluation._ranking import WORKING_BYTES, Block, Gallery, blocks
from latentmetric.validation.labels import checked_labels, classes_and_codes
from latentmetric.validation.parameters import Boolean, Integer, Jobs


def retrieval_scores(
    queries: Any,
    query_labels: Any,
    references: Any = None,
    reference_labels: Any = None,
    *,
    k: int | Iterable[int] = 1,
    queries_in_references: bool = False,
    n_jobs: int | None = None,
) -> dict[str, float]:
    """Search each query's nearest references, and score how many of them are of its class.

    Parameters
    ----------
    queries : array-like of shape (n_queries, n_features)
        Rows to compare by Euclidean distance, such as the output of ``model.transform``. For
        cosine similarity, normalise the rows first.
    query_labels : array-like of shape (n_queries,)
        The class of each query.
    references : array-like of shape (n_references, n_features), default=None
        Rows to search. None searches among the queries; a row never finds itself.
    reference_labels : array-like of shape (n_references,), default=None
        The class of each reference; given if and only if there are references.
    k : int or iterable of int, default=1
        Ranks at which recall and precision are computed.
    queries_in_references : bool, default=False
        Whether the first ``n_queries`` references are the queries, which must not find themselves.
    n_jobs : int, default=None
        Threads. None uses as many as BLAS, -1 all processors.

    Returns
    -------
    dict of str to float
        Means over the queries, with R the number of references of the query's class:

        - ``"recall@k"``: whether one of the k nearest is of the class, for each k.
        - ``"precision@k"``: the share of the k nearest that is of the class, for each k.
        - ``"map@r"``: the precisions at those ranks up to R where one of the class is found,
          summed and divided by R.
        - ``"r_precision"``: the share of the R nearest that is of the class.
        - ``"mrr"``: 1 over the rank of the nearest one of the class.

    Notes
    -----
    A query with nothing to find (R = 0: its class has no reference other than the query) is left
    out of all means; if this holds for every query, the means are NaN.

    Among references at the same distance, those of other classes count as nearer. So the order of
    the rows does not matter, and embeddings that map all rows to one point score 0, except for
    ``"mrr"``. Squared distances are computed in float64; they count as equal if they differ by at
    most 10⁻¹² of the squared norms.

    Examples
    --------
    >>> from latentmetric.evaluation import retrieval_scores
    >>> scores = retrieval_scores([[0.0], [1.0], [5.0], [6.5]], ["a", "a", "b", "b"], k=(1, 2))
    >>> scores["recall@1"], scores["precision@2"], scores["map@r"]
    (1.0, 0.5, 1.0)
    """
    n_threads = thread_count(Jobs().check("n_jobs", n_jobs))
    rows, labels = _labelled(queries, query_labels, "queries", "query_labels")
    if references is None and reference_labels is None:
        found_rows, found_labels, within = rows, labels, True
    elif references is None or reference_labels is None:
        raise ValueError("references and reference_labels go together, but one of them is None")
    else:
        found_rows, found_labels = _labelled(
            references, reference_labels, "references", "reference_labels"
        )
        within = _check_together(rows, labels, found_rows, found_labels, queries_in_references)
    ranks = _checked_ranks(k, len(found_rows) - within)
    n_classes, codes, found_codes = _codes(labels, found_labels)
    gallery = Gallery(found_rows, found_codes, n_classes)
    n_right = gallery.class_sizes[codes] - within
    per_query = _scores_of_queries(gallery, rows, codes, n_right, within, ranks, n_threads)
    counted = n_right > 0
    return {
        name: float(values[counted].mean()) if counted.any() else float("nan")
        for name, values in per_query.items()
    }


def _scores_of_queries(
    gallery: Gallery, rows: Floats, codes: Ints, n_right: Ints, within: bool, ranks: list[int],
    n_threads: int,
) -> dict[str, Floats]:  # fmt: skip
    names = [f"recall@{k}" for k in ranks] + [f"precision@{k}" for k in ranks]
    names += ["map@r", "r_precision", "mrr"]
    scores: dict[str, Floats] = {name: np.zeros(len(rows)) for name in names}
    answerable = np.flatnonzero(n_right > 0)
    need = np.maximum(n_right[answerable], max(ranks))

    def score(block: Block) -> None:
        which = answerable[block.queries]
        own = which if within else None
        found = gallery.ranks(rows[which], codes[which], own, block.depth)
        for k in ranks:
            scores[f"recall@{k}"][which] = found.first <= k
            scores[f"precision@{k}"][which] = found.hits[:, :k].mean(axis=1)
        scores["mrr"][which] = 1 / found.first
        scores["r_precision"][which], scores["map@r"][which] = _at_r(found.hits, n_right[which])

    with blas_threads(n_threads), small_numbers_may_vanish():
        cut = blocks(need, codes[answerable], WORKING_BYTES // n_threads)
        for_each(score, list(cut), n_threads)
    return scores


def _at_r(hits: Bools, n_right: Ints) -> tuple[Floats, Floats]:
    """R-precision and average precision at R of every query."""
    ranks = np.arange(1, hits.shape[1] + 1)
    up_to_r = hits & (ranks <= n_right[:, None])
    precisions = np.cumsum(up_to_r, axis=1) / ranks
    average = np.einsum("ij,ij->i", precisions, up_to_r) / n_right
    return up_to_r.sum(axis=1) / n_right, average


def _labelled(rows: Any, labels: Any, name: str, labels_name: str) -> tuple[Floats, Any]:
    given = {name: rows, labels_name: labels}
    refuse_remote("retrieval_scores", "compute() if they fit into memory", **given)
    rows = check_array(rows, dtype="numeric", input_name=name)
    labels = checked_labels(labels, labels_name)
    if len(rows) != len(labels):
        raise ValueError(f"{name} has {len(rows)} rows, but {labels_name} has {len(labels)} labels")
    return rows, labels


def _check_together(
    rows: Floats, labels: Any, found_rows: Floats, found_labels: Any, within: bool
) -> bool:
    Boolean().check("queries_in_references", within)
    if rows.shape[1] != found_rows.shape[1]:
        raise ValueError(
            f"queries have {rows.shape[1]} features, but references have {found_rows.shape[1]}"
        )
    n = len(rows)
    if within and not (
        np.array_equal(rows, found_rows[:n]) and np.array_equal(labels, found_labels[:n])
    ):
        raise ValueError(
            f"queries_in_references says that the first {n} of the {len(found_rows)} references "
            "are the queries, but their rows or labels differ"
        )
    return bool(within)


def _checked_ranks(k: int | Iterable[int], n_found: int) -> list[int]:
    ranks = list(k) if isinstance(k, Iterable) else [k]
    if not ranks:
        raise ValueError("k must name at least one rank, got none")
    checked = sorted({Integer(1).check("k", rank) for rank in ranks})
    if checked[-1] > n_found:
        raise ValueError(f"k is {checked[-1]}, but a query can find only {n_found} references")
    return checked


def _codes(labels: Any, found_labels: Any) -> tuple[int, Ints, Ints]:
    """The number of classes, and labels as codes of all classes in order."""
    kinds = {labels.dtype.kind in "US", found_labels.dtype.kind in "US"}
    if len(kinds) > 1 and "O" not in (labels.dtype.kind, found_labels.dtype.kind):
        raise TypeError(
            f"query_labels are {labels.dtype}, but reference_labels are {found_labels.dtype}; "
            "give both as strings or both as numbers"
        )
    classes, codes = classes_and_codes(np.concatenate((labels, found_labels)))
    return len(classes), codes[: len(labels)], codes[len(labels) :]
