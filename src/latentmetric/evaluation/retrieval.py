"""How well embeddings find and cluster the rows of a class.

All scores of a search come from one pass over it: time O(n·m·d) for n queries and m references of
d features. Memory: a copy of the references in float64, and a fixed number of bytes for the current
blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import check_array

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References, squared_norms
from latentmetric.core.parallel import parallel_map, single_threaded_blas, thread_count
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.engines.dispatch import check_in_memory
from latentmetric.validation.labels import checked_labels, classes_and_codes, kind_of
from latentmetric.validation.parameters import Boolean, Integer, jobs

WORKING_BYTES = 256 * 2**20
"""Bytes that the blocks of all threads take together, as long as one query each fits."""

ARRAYS = 7
"""Arrays of 8 bytes a query and reference that are held at once."""

REL_TOL = 1e-12
"""Squared distances tie if they differ by at most this share of the squared norms."""


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
    n_threads = thread_count(jobs("n_jobs", n_jobs))
    rows, labels = _labelled("retrieval_scores", queries=queries, query_labels=query_labels)
    if references is None and reference_labels is None:
        found_rows, found_labels, within = rows, labels, True
    elif references is None or reference_labels is None:
        raise ValueError("references and reference_labels go together, but one of them is None")
    else:
        found_rows, found_labels = _labelled(
            "retrieval_scores", references=references, reference_labels=reference_labels
        )
        within = Boolean().check("queries_in_references", queries_in_references)
        _check_together(rows, labels, found_rows, found_labels, within)
    ks = _checked_ks(k, len(found_rows) - within)
    classes, all_codes = classes_and_codes(np.concatenate((labels, found_labels)))
    codes, found_codes = np.split(all_codes, [len(labels)])
    n_right = np.bincount(found_codes, minlength=len(classes))[codes] - within
    # Queries of classes of a size are sorted as deep as each other.
    answerable = np.argsort(n_right, kind="stable")[np.count_nonzero(n_right == 0) :]
    coordinates = Coordinates.of(found_rows)
    gallery = References.of(coordinates.transform(found_rows.astype(np.float64)))

    def score(block: slice) -> dict[str, Floats]:
        which = answerable[block]
        right = codes[which, None] == found_codes
        depth, own = max(int(n_right[which].max()), ks[-1]), which if within else None
        some = coordinates.transform(rows[which].astype(np.float64))
        hits, first_rank = nearest_hits(some, gallery, right, own, depth)
        return search_scores(hits, first_rank, n_right[which], ks)

    if not len(answerable):
        names = search_scores(np.empty((0, 1), bool), answerable, answerable, ks)
        return dict.fromkeys(names, float("nan"))
    size = max(1, WORKING_BYTES // (n_threads * 8 * ARRAYS * len(found_rows)))
    blocks = [slice(start, start + size) for start in range(0, len(answerable), size)]
    with single_threaded_blas():
        parts = parallel_map(score, blocks, n_threads)
    return {name: float(np.concatenate([part[name] for part in parts]).mean()) for name in parts[0]}


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
    rows, truth = _labelled("clustering_nmi", embeddings=embeddings, labels=labels)
    rows = rows.astype(np.result_type(rows, np.float32), copy=False)
    # By a power of 2, which rounds nothing: squares of huge or tiny numbers leave the floats.
    exponent = int(np.frexp(np.abs(rows).max())[1])
    clusters = KMeans(len(set(truth.tolist())), n_init=1, random_state=random_state)
    found = clusters.fit_predict(np.ldexp(rows, -exponent))
    return float(normalized_mutual_info_score(truth, found))


def _labelled(caller: str, **given: Any) -> tuple[Floats, Any]:
    """Rows and labels, checked; ``given`` holds both under the names that messages use."""
    (name, rows), (labels_name, labels) = given.items()
    check_in_memory(caller, "compute() if they fit into memory", **given)
    rows = check_array(rows, dtype="numeric", input_name=name)
    labels = checked_labels(labels, labels_name)
    if len(rows) != len(labels):
        raise ValueError(f"{name} has {len(rows)} rows, but {labels_name} has {len(labels)} labels")
    return rows, labels


def _check_together(
    rows: Floats, labels: Any, found_rows: Floats, found_labels: Any, within: bool
) -> None:
    if rows.shape[1] != found_rows.shape[1]:
        raise ValueError(
            f"queries have {rows.shape[1]} features, but references have {found_rows.shape[1]}"
        )
    kind, found_kind = kind_of(labels), kind_of(found_labels)
    if kind != found_kind:
        raise TypeError(f"query_labels are {kind}, but reference_labels are {found_kind}")
    n = len(rows)
    if within and not (
        np.array_equal(rows, found_rows[:n]) and np.array_equal(labels, found_labels[:n])
    ):
        raise ValueError(
            f"queries_in_references says that the first {n} of the {len(found_rows)} references "
            "are the queries, but their rows or labels differ"
        )


def _checked_ks(k: int | Iterable[int], n_found: int) -> list[int]:
    """The ranks to score at, ascending."""
    given = k if isinstance(k, Iterable) else [k]
    ks = sorted({Integer(1).check("k", rank) for rank in given})
    if not ks:
        raise ValueError("k must name at least one rank, got none")
    if ks[-1] > n_found:
        raise ValueError(f"k is {ks[-1]}, but a query can find only {n_found} references")
    return ks


def nearest_hits(
    queries: Floats, references: References, right: Bools, own: Ints | None, depth: int
) -> tuple[Bools, Ints]:
    """Whether each of the nearest ``depth`` references is right, and the rank of the first right.

    ``right`` (n, m) says which references are of the query's class, ``own`` which one is the query
    itself, which it does not find. In a tie, references of other classes are nearer.
    """
    distances = references.comparable(queries)
    norms = squared_norms(queries)[:, None] + references.norms
    distances += right * (REL_TOL * norms + np.finfo(np.float64).tiny)
    if own is not None:
        itself = np.arange(len(own)), own
        right[itself], distances[itself] = False, np.inf
    first = np.where(right, distances, np.inf).min(axis=1, keepdims=True)
    first_rank = 1 + (distances < first).sum(axis=1)
    nearest = np.argpartition(distances, depth - 1, axis=1)[:, :depth]
    order = np.take_along_axis(distances, nearest, axis=1).argsort(axis=1)
    return np.take_along_axis(right, np.take_along_axis(nearest, order, axis=1), 1), first_rank


def search_scores(hits: Bools, first_rank: Ints, n_right: Ints, ks: list[int]) -> dict[str, Floats]:
    """The scores of each query; ``n_right`` references are of its class."""
    ranks = np.arange(1, hits.shape[1] + 1)
    up_to_r = hits & (ranks <= n_right[:, None])
    precisions = np.where(up_to_r, hits.cumsum(axis=1), 0) / ranks
    return {
        **{f"recall@{k}": hits[:, :k].any(axis=1) for k in ks},
        **{f"precision@{k}": hits[:, :k].sum(axis=1) / k for k in ks},
        "map@r": precisions.sum(axis=1) / n_right,
        "r_precision": up_to_r.sum(axis=1) / n_right,
        "mrr": 1 / first_rank,
    }
