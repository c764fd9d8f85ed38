"""Alg. 1 where the rows are: classes spread over the workers of a Dask cluster.

Rows are shuffled by class once, so that each class lives with one worker. Then a round sends the
metric to the workers and brings latent examples and spreads back; rows never travel again and
never reach the client. What a round leaves with a worker is a future made from that of the round
before. So when a worker is lost, the scheduler makes its classes anew on another one, from the
chunks of the array, and the rounds so far with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from latentmetric.core.classes import OneClass, classes_of
from latentmetric.core.coordinates import Coordinates, InnerRows, peak_of
from latentmetric.core.metric import Metric
from latentmetric.core.population import Moved, first_latents_of, move_latents_of
from latentmetric.core.types import Floats, Ints

MISSING = "Dask arrays need dask.distributed: pip install 'latentmetric[dask]'"


def is_dask_array(X: Any) -> bool:
    """Told without importing Dask."""
    return type(X).__module__.split(".")[0] == "dask" and type(X).__name__ == "Array"


def active_client() -> Any:
    """The client of the moment."""
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError(MISSING) from error
    try:
        return get_client()
    except ValueError as error:
        raise RuntimeError(
            "Dask arrays are fitted on a cluster, and no client is active; start one: "
            "client = dask.distributed.Client()"
        ) from error


def answers(
    X: Any, model: Any, method: str, dtype: Any, n_columns: int | None, **keywords: Any
) -> Any:
    """A Dask array of a model's answers to rows, computed when it is asked for."""
    from dask.delayed import delayed

    X = X.rechunk({1: -1})
    options: dict[str, Any] = {"dtype": dtype, "drop_axis": 1}
    if n_columns is not None:
        options = {"dtype": dtype, "chunks": (X.chunks[0], (n_columns,))}
    shape = (0,) if n_columns is None else (0, n_columns)
    return X.map_blocks(
        _answer, model=delayed(model), method=method, keywords=keywords,
        meta=np.empty(shape, dtype), **options,
    )  # fmt: skip


def _answer(rows: Any, model: Any, method: str, keywords: dict[str, Any]) -> Any:
    answer = partial(getattr(model, method), **keywords)
    if len(rows):
        return answer(rows)
    one = answer(np.zeros((1, rows.shape[1]), dtype=rows.dtype))
    return one[:0]


def shuffle(
    X: Any, y: Any, float_dtype: Callable[[Any], np.dtype[Any]], check: Callable[[Any], None]
) -> tuple[DaskPopulation, Any]:
    """Rows to the workers, class by class: the population and its classes in order.

    ``check`` is told the classes before any row is read.
    """
    client = active_client()
    X, y = _aligned(X, y)
    n_chunks = X.numblocks[0]
    both = client.compute([*X.to_delayed().ravel().tolist(), *y.to_delayed().ravel().tolist()])
    chunks, labels = both[:n_chunks], both[n_chunks:]
    counted = client.gather(client.map(_count, labels))
    classes = np.unique(np.concatenate([names for names, _ in counted]))
    check(classes)
    sizes = np.zeros(len(classes), dtype=np.intp)
    for names, counts in counted:
        sizes[np.searchsorted(classes, names)] += counts
    workers = client.nthreads()
    owners = _owners(sizes, min(len(classes), sum(workers.values())))
    summaries = client.map(_summarise, chunks, n_rows=X.shape[0])
    addresses = [address for address, threads in workers.items() for _ in range(threads)]
    parts = []
    for part, address in zip(range(owners.max() + 1), addresses, strict=False):
        pieces = client.map(_piece, chunks, labels, classes=classes, own=owners == part)
        parts.append(
            client.submit(
                _gather, pieces, float_dtype(X.dtype), workers=[address], allow_other_workers=True
            )
        )
    del both, chunks, pieces
    dtype = float_dtype(X.dtype)
    coordinates = _coordinates(client, client.gather(summaries), parts, X.chunks[0], X.shape, dtype)
    population = DaskPopulation(client, parts, owners, sizes, coordinates, dtype)
    return population, classes


class DaskPopulation:
    """Rows by class on the workers; see ``core.population.Population``."""

    def __init__(
        self, client: Any, parts: list[Any], owners: Ints, sizes: Ints, coordinates: Coordinates,
        dtype: np.dtype[Any],
    ) -> None:  # fmt: skip
        self._client = client
        self.coordinates, self.dtype = coordinates, dtype
        self.n_features = len(coordinates.centre)
        self._parts = client.map(_by_class, parts, coordinates=coordinates)
        own_codes = [np.flatnonzero(owners == part) for part in range(len(parts))]
        radii = np.empty(len(sizes))
        for codes, means in zip(
            own_codes, client.gather(client.map(_mean_radii, self._parts)), strict=True
        ):
            radii[codes] = means
        self._mean_radii = radii
        self.codes = np.argsort(radii, kind="stable")
        self.sizes: Ints = sizes[self.codes]
        positions = np.argsort(self.codes)
        self._positions = [positions[codes] for codes in own_codes]
        """Of every part's classes, in the order the part has them."""
        self._last: tuple[Any, list[Any]] = (None, [])

    def __len__(self) -> int:
        return len(self.codes)

    def fingerprint_parts(self) -> list[Floats | Ints]:
        """See ``Population``."""
        checksums = np.empty(len(self), dtype=np.int64)
        found = self._client.gather(self._client.map(_checksums, self._parts))
        for positions, own in zip(self._positions, found, strict=True):
            checksums[positions] = own
        return [self._mean_radii, checksums, self.codes, self.sizes]

    def first_latents(
        self, starts: Sequence[Ints | int], class_starts: Ints, n_threads: int
    ) -> Floats:
        """See ``Population``."""
        counts = np.diff(class_starts)
        futures = [
            self._client.submit(_first, part, [starts[position] for position in own], counts[own])
            for part, own in zip(self._parts, self._positions, strict=True)
        ]
        return self._together(futures, class_starts).latents

    def move_latents(
        self, latents: Floats, class_starts: Ints, metric: Metric, latent_reg: float,
        max_passes: int, n_threads: int,
    ) -> Moved:  # fmt: skip
        """See ``Population``."""
        last, before = self._last
        if last is not latents:
            before = [self._of_part(own, latents, class_starts) for own in self._positions]
        futures = [
            self._client.submit(_move, part, own, metric.components, latent_reg, max_passes)
            for part, own in zip(self._parts, before, strict=True)
        ]
        return self._together(futures, class_starts)

    def _of_part(self, own: Ints, latents: Floats, class_starts: Ints) -> _Share:
        places = [latents[class_starts[position] : class_starts[position + 1]] for position in own]
        starts = np.cumsum([0, *map(len, places)])
        return _Share(np.concatenate(places), starts, np.zeros(len(own)), 0)

    def _together(self, futures: list[Any], class_starts: Ints) -> Moved:
        """What the parts found, class by class in the order of the population."""
        shares = self._client.gather(futures)
        latents = np.empty((class_starts[-1], self.n_features), dtype=self.dtype)
        spreads = np.empty(len(self))
        for own, share in zip(self._positions, shares, strict=True):
            spreads[own] = share.spreads
            for place, position in enumerate(own):
                mine = slice(share.class_starts[place], share.class_starts[place + 1])
                latents[class_starts[position] : class_starts[position + 1]] = share.latents[mine]
        self._last = (latents, futures)
        return Moved(latents, spreads, max(share.passes for share in shares))


@dataclass(frozen=True)
class _Share:
    """The latent examples of one part's classes."""

    latents: Floats
    class_starts: Ints
    spreads: Floats
    passes: int


@dataclass(frozen=True)
class _Raw:
    """The rows of one part as they came, and the numbers of each of its classes' rows."""

    rows: Floats
    members: list[Ints]

    def __sizeof__(self) -> int:
        return int(self.rows.nbytes)


@dataclass(frozen=True)
class _Ready:
    """The classes of one part, ready for Alg. 1."""

    classes: list[OneClass]
    mean_radii: list[float]
    n_bytes: int

    def __sizeof__(self) -> int:
        return self.n_bytes


@dataclass(frozen=True)
class _Summary:
    """What the coordinates need to know of a chunk."""

    sums: Floats
    low: Floats
    high: Floats
    first_bad: tuple[int, int, float] | None


def _aligned(X: Any, y: Any) -> tuple[Any, Any]:
    """Chunks of whole rows, and labels in chunks of the same rows."""
    from dask.array import from_array

    if X.ndim != 2 or y is None or getattr(y, "ndim", 1) != 1:
        shapes = f"{X.ndim} and {'none' if y is None else getattr(y, 'ndim', 1)}"
        raise ValueError(f"X must have two dimensions and y one, got {shapes}")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    X = _without_empty_chunks(X).rechunk({1: -1})
    if not is_dask_array(y):
        y = from_array(np.asarray(y), chunks=-1)  # type: ignore[no-untyped-call]
    elif np.isnan(y.shape[0]):
        y = y.compute_chunk_sizes()
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, y has {y.shape[0]}; both need the same")
    if X.shape[0] < 2:
        raise ValueError(f"X has {X.shape[0]} rows; at least 2 are needed")
    return X, _without_empty_chunks(y).rechunk((X.chunks[0],))


def _without_empty_chunks(X: Any) -> Any:
    """Selections leave chunks without rows behind."""
    sizes = tuple(size for size in X.chunks[0] if size)
    return X if len(sizes) in (0, X.numblocks[0]) else X.rechunk({0: sizes})


def _owners(sizes: Ints, n_parts: int) -> Ints:
    """The part of every class: the largest first, each to the part with the fewest rows."""
    owners = np.empty(len(sizes), dtype=np.intp)
    loads = np.zeros(n_parts, dtype=np.intp)
    for code in np.argsort(-sizes, kind="stable"):
        owners[code] = np.argmin(loads)
        loads[owners[code]] += sizes[code]
    return owners


def _coordinates(
    client: Any, summaries: list[_Summary], parts: list[Any], chunk_sizes: Any, shape: Any,
    dtype: np.dtype[Any],
) -> Coordinates:  # fmt: skip
    """As ``Coordinates.of`` would find them for all rows."""
    for start, summary in zip(np.cumsum([0, *chunk_sizes]), summaries, strict=False):
        if summary.first_bad is not None:
            row, column, value = summary.first_bad
            raise ValueError(
                f"Input X contains NaN or infinity: row {start + row}, column {column} is {value}"
            )
    centre = np.sum([summary.sums for summary in summaries], axis=0)
    high = np.max([summary.high for summary in summaries], axis=0)
    low = np.min([summary.low for summary in summaries], axis=0)
    peak = peak_of(centre, low, high, dtype)
    if peak == 0:
        return Coordinates(centre, 1.0)
    unit = Coordinates(centre, peak)
    total = sum(client.gather(client.map(_sum_of_radii, parts, unit=unit)))
    return Coordinates(centre, peak * float(np.sqrt(total / shape[0] / shape[1])))


def _count(labels: Any) -> tuple[Any, Ints]:
    names, counts = np.unique(labels, return_counts=True)
    return names, counts


def _summarise(rows: Any, n_rows: int) -> _Summary:
    sums = np.divide(rows, n_rows, dtype=np.float64).sum(axis=0)
    bad = None
    if not np.isfinite(sums).all():
        found = np.argwhere(~np.isfinite(rows))
        if len(found):
            row, column = found[0].tolist()
            bad = (row, column, float(rows[row, column]))
    return _Summary(sums, rows.min(axis=0), rows.max(axis=0), bad)


def _piece(rows: Any, labels: Any, classes: Any, own: Any) -> tuple[Any, Ints]:
    """The rows of a chunk that belong to one part, and their codes."""
    codes = np.searchsorted(classes, labels)
    mine = own[codes]
    return rows[mine], codes[mine]


def _gather(pieces: list[tuple[Any, Ints]], dtype: np.dtype[Any]) -> _Raw:
    codes = np.concatenate([codes for _, codes in pieces])
    rows = np.concatenate([rows for rows, _ in pieces]).astype(dtype, copy=False)
    names = np.unique(codes)
    bounds = np.searchsorted(codes[np.argsort(codes, kind="stable")], names[1:])
    return _Raw(rows, np.split(np.argsort(codes, kind="stable"), bounds))


def _sum_of_radii(part: _Raw, unit: Coordinates) -> float:
    return float(unit.radii(part.rows).sum())


def _by_class(part: _Raw, coordinates: Coordinates) -> _Ready:
    radii = coordinates.radii(part.rows)
    classes = classes_of(InnerRows(part.rows, coordinates), part.members, radii)
    means = [float(np.sort(radii[members]).mean()) for members in part.members]
    return _Ready(classes, means, part.rows.nbytes)


def _checksums(part: _Ready) -> list[int]:
    return [rows.checksum() for rows in part.classes]


def _mean_radii(part: _Ready) -> list[float]:
    return part.mean_radii


def _first(part: _Ready, starts: list[Ints | int], counts: Ints) -> _Share:
    class_starts = np.concatenate(([0], np.cumsum(counts)))
    latents = first_latents_of(part.classes, starts, class_starts, n_threads=1)
    return _Share(latents, class_starts, np.zeros(len(counts)), 0)


def _move(
    part: _Ready, before: _Share, components: Floats, latent_reg: float, max_passes: int
) -> _Share:
    moved = move_latents_of(
        part.classes, before.latents, before.class_starts, Metric(components), latent_reg,
        max_passes, n_threads=1,
    )  # fmt: skip
    return _Share(moved.latents, before.class_starts, moved.spreads, moved.passes)
