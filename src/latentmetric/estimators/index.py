"""An approximate index over many references, which may occasionally miss a neighbour.

It uses faiss's inverted lists: references are grouped around centres, and a query searches only
the groups nearest to it. The distances of the neighbours it finds are exact, and so are their
votes: references are searched by distance and vote with their own bandwidths. A query whose groups
hold fewer references than vote is searched exactly; with bandwidths of their own, 1,024 vote.
"""

from __future__ import annotations

from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from latentmetric.core.distances import References, ranked, search
from latentmetric.core.parallel import register_lock_at_fork
from latentmetric.core.types import Floats, Ints
from latentmetric.extras import pip_install

MIN_REFERENCES = 4_096
"""Below this many, comparing with all of them is faster than using an index."""

GROUPS_PER_ROOT = 4
"""The number of groups as a multiple of the square root of the number of references."""

PROBED_SHARE = 0.05
"""The share of the groups that a query searches."""

SEED = 1234


class ApproximateIndex:
    """An index over references in groups."""

    def __init__(self, references: References) -> None:
        faiss = import_faiss()
        if _FORKED:
            faiss.omp_set_num_threads(1)
        rows = np.ascontiguousarray(references.rows, dtype=np.float32)
        n_groups = max(1, round(GROUPS_PER_ROOT * len(rows) ** 0.5))
        self._index = faiss.IndexIVFFlat(
            faiss.IndexFlatL2(rows.shape[1]), rows.shape[1], n_groups, faiss.METRIC_L2
        )
        self._index.cp.seed = SEED
        self._index.cp.min_points_per_centroid = 1
        self._index.train(rows)
        self._index.add(rows)
        self._index.nprobe = max(1, round(PROBED_SHARE * n_groups))

    def k_nearest(self, queries: Floats, references: References, k: int) -> tuple[Floats, Ints]:
        """Like ``core.distances.k_nearest``, but only among the groups that are searched."""
        import_faiss().omp_set_num_threads(1)  # blocks of queries already run in threads
        _, found = self._index.search(np.ascontiguousarray(queries, dtype=np.float32), k)
        short = np.flatnonzero((found < 0).any(axis=1))
        if len(short):  # the searched groups hold fewer than k
            found[short] = search(queries[short], references, k)[1]
        return ranked(queries, references, found)


_BUILT: WeakKeyDictionary[References, ApproximateIndex] = WeakKeyDictionary()
_BUILDING = RLock()
_FORKED: list[bool] = []
"""Not empty in a forked child, where faiss would wait for threads that only the parent has."""

register_lock_at_fork(_BUILDING, after_in_child=lambda: _FORKED.append(True))


def index_of(references: References) -> ApproximateIndex:
    """The index over these references, built once and kept as long as they exist."""
    with _BUILDING:
        built = _BUILT.get(references)
        if built is None:
            built = _BUILT[references] = ApproximateIndex(references)
    return built


def import_faiss(what: str = 'index="faiss"') -> Any:
    """Import faiss, or raise an error that says what needs it and how to install it."""
    try:
        import faiss
    except ImportError as error:
        raise ImportError(f"{what} needs faiss: {pip_install('faiss')}") from error
    return faiss
