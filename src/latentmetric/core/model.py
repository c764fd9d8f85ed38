"""A fitted model: it finds the nearest references of queries under the metric and lets them vote.

Queries are searched block by block, so memory is needed only for the answer and for one block per
thread, whatever the number of queries. Time O(n·(d·r + m·r)) for n queries, a metric of rank r and
m references.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import (
    References,
    k_nearest,
    paired_products,
    paired_squared_distances,
    row_blocks,
    squared_norms,
    zero_until,
)
from latentmetric.core.examples import Ids, joined_ids, own_ids
from latentmetric.core.parallel import (
    lazy_property,
    parallel_map,
    single_threaded_blas,
    thread_count,
)
from latentmetric.core.span import Outside
from latentmetric.core.tuning import LEAST_SHARE, TILE_ROWS
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.core.unknown import Distances, Usual, usual_from_references
from latentmetric.core.votes import (
    VOTES,
    log_votes,
    n_voters,
    temperature_from_references,
    vote,
    vote_shares,
    voting_scales,
)

REACH = {"float32": 1e12, "float64": 1e140}
"""How far queries may be from the training rows, in units of their spread: squares must fit."""


Search = Callable[[Floats, References, int], tuple[Floats, Ints]]
"""Returns squared distances and indices of each point's k nearest references, nearest first."""


@dataclass(frozen=True)
class Neighbors:
    """The nearest references of some rows, nearest first."""

    squared: Floats
    """Squared distances in inner coordinates; −2 times the similarity if there is no metric."""
    indices: Ints
    norms: Floats
    """The squared distance of each row to the centre; 0 if there is no metric."""

    def first(self, k: int) -> Neighbors:
        """The nearest k of them."""
        return replace(self, squared=self.squared[:, :k], indices=self.indices[:, :k])


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Labelled references under a learned metric, or under a similarity that is not a metric.

    Rows are converted to inner coordinates, mapped with the metric and compared with the
    references. Classes are integer codes; the estimator knows their labels.
    """

    coordinates: Coordinates
    references: References
    """The references, mapped with the metric or the similarity."""
    codes: Ints
    """The class code of every reference."""
    n_classes: int
    temperature: float
    """T of the kernel vote, in squared inner distances."""
    components: Floats | None
    """The factor of the metric, M = componentsᵀ components; None for a similarity."""
    similarity: Floats | None = None
    """W of the similarity xᵀWx', if that is what was learned."""
    log_scales: Floats | None = None
    """t of each reference, whose squared distances count e^t times; None if all are 0."""
    log_weights: Floats | None = None
    """b of each reference, whose vote counts e^b times; None if all are 0."""
    row_ids: Ids | None = None
    """Ids of a few rows that each reference stands for, (m, ``EXAMPLES``); None if not kept."""
    outside: Outside | None = None
    """The metric where the factor has none: outside the span of rows with more features than rows.

    None if it has none there. All references are in the span."""
    usual: Usual | None = None
    """How far known rows are; None if the references themselves are rows, and say it."""

    @classmethod
    def of_metric(
        cls, coordinates: Coordinates, components: Floats, points: Floats, codes: Ints,
        n_classes: int, temperature: float | None = None, log_scales: Floats | None = None,
        log_weights: Floats | None = None, outside: Outside | None = None,
    ) -> FittedModel:  # fmt: skip
        """A model with references at ``points`` under the metric; their spacing is T's default."""
        references = References.of(points)
        if temperature is None:
            temperature = temperature_from_references(references)
        return cls(
            coordinates, references, codes, n_classes, temperature, components, None, log_scales,
            log_weights, outside=outside,
        )  # fmt: skip

    @classmethod
    def of_similarity(
        cls, similarity: Floats, rows: InnerRows, codes: Ints, n_classes: int
    ) -> FittedModel:
        """A model that ranks these rows by their similarity to a query."""
        references = _similar(similarity, rows)
        return cls(rows.coordinates, references, codes, n_classes, 0.0, None, similarity)

    def with_references(
        self, rows: Floats, codes: Ints, temperature: float | None = None,
        row_ids: Ids | None = None,
    ) -> FittedModel:  # fmt: skip
        """The same metric with these rows, in the caller's coordinates, as references."""
        inner = InnerRows(rows, self.coordinates)
        ids = None if row_ids is None else own_ids(row_ids, np.arange(len(codes)))
        if self.components is None:
            assert self.similarity is not None
            references = _similar(self.similarity, inner)
            return replace(self, references=references, codes=codes, row_ids=ids)
        wide = self.covering(rows)
        assert wide.components is not None
        model = FittedModel.of_metric(
            self.coordinates, wide.components, inner.under(wide.components), codes,
            self.n_classes, temperature, outside=wide.outside,
        )  # fmt: skip
        return replace(model, row_ids=ids)

    def covering(self, rows: Floats) -> FittedModel:
        """The same model with a factor that measures these rows, too, which become references."""
        if self.outside is None or self.components is None:
            return self
        inner = self.coordinates.transform(rows.astype(self.dtype))
        components, outside = self.outside.cover(self.components, inner)
        n_more = len(components) - len(self.components)
        points = np.pad(self.references.rows, ((0, 0), (0, n_more)))
        references = replace(self.references, rows=points) if n_more else self.references
        return replace(self, components=components, references=references, outside=outside)

    def with_more(self, rows: Floats, codes: Ints, row_ids: Ids | None = None) -> FittedModel:
        """The same model with more references; rows are in the caller's coordinates."""
        wide = self.covering(rows)
        own, more = wide.references, wide.with_references(rows, codes, 0.0).references
        references = References(
            np.concatenate((own.rows, more.rows)),
            np.concatenate((own.norms, more.norms)),
            own.factor,
        )
        scales, weights = (  # more references have the mean of those there are
            known if known is None
            else np.append(known, np.full(len(codes), known.mean(), dtype=known.dtype))
            for known in (self.log_scales, self.log_weights)
        )  # fmt: skip
        return replace(
            wide, references=references, codes=np.concatenate((self.codes, codes)),
            log_scales=scales, log_weights=weights,
            row_ids=joined_ids(self.row_ids, len(self.codes), row_ids, len(codes)),
        )  # fmt: skip

    def with_some(self, which: Bools) -> FittedModel:
        """The same model with only some of its references."""
        scales, weights, ids = (
            None if known is None else known[which]
            for known in (self.log_scales, self.log_weights, self.row_ids)
        )
        return replace(
            self, references=self.references.some(np.flatnonzero(which)), codes=self.codes[which],
            log_scales=scales, log_weights=weights, row_ids=ids,
        )  # fmt: skip

    @property
    def is_metric(self) -> bool:
        """Whether the model measures distances, not only similarities."""
        return self.components is not None

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The dtype that answers are computed in."""
        return self.references.rows.dtype

    @property
    def n_features(self) -> int:
        """The number of features of a query."""
        return len(self.coordinates.centre)

    @lazy_property
    def farthest(self) -> float:
        """The largest norm of a reference in the space of the references."""
        return _largest_norm(self.references.rows)

    @lazy_property
    def usual_distances(self) -> Usual:
        """How far known rows are; if nothing else is known, as references are from each other."""
        return self.usual or usual_from_references(self.references)

    @lazy_property
    def reach(self) -> float:
        """How far queries may be from the training rows: ``REACH``, or less for a huge metric."""
        largest = float(np.finfo(self.dtype).max) / 16
        if self.components is None:
            gain, room = 2 * _largest_norm(self.references.rows, 1), largest
        else:
            rank, n_features = self.components.shape
            gain = sqrt(rank * n_features) * _largest_norm(self.components)
            if self.outside is not None:
                gain = max(gain, sqrt(n_features) * float(np.abs(self.outside.factors).max()))
            room = sqrt(largest) - self.farthest
        usual = REACH[self.dtype.name]
        return usual if usual * gain <= room else room / gain

    def check_reach(self, rows: Floats, start: int = 0) -> None:
        """Raise on queries so far away that their squared distances would overflow.

        ``start`` is the number of the first query among all of the caller's rows.
        """
        reach, inner = self.reach, self.coordinates
        off_centre = float(np.abs(inner.centre).max())
        if max(float(rows.max()), -float(rows.min())) + off_centre <= reach * inner.scale:
            return
        with np.errstate(over="ignore"):
            away = np.abs(rows - inner.centre) / inner.scale
        if away.max() <= reach:
            return
        row, column = np.unravel_index(np.argmax(away), away.shape)
        raise ValueError(
            f"X, row {start + row}, column {column} (counted from 0): {rows[row, column]:g} is "
            f"{away[row, column]:.1g} times the spread of the training rows away from their "
            f"centre; distances in {self.dtype} can be at most {reach:g} times; correct the row "
            "or remove it"
        )

    def points(self, rows: Floats) -> Floats:
        """Rows in the space of the references."""
        inner = self.coordinates.transform(rows.astype(self.dtype, copy=False))
        return inner if self.components is None else inner @ self.components.T

    def embedded(self, rows: Floats) -> Floats:
        """Rows mapped with the metric, in the caller's units, from the centre of the coordinates.

        Centred first, because float32 could not tell rows apart that are far from the origin.
        """
        assert self.components is not None
        dtype = np.result_type(rows, self.components)
        centre = self.coordinates.centre.astype(self.dtype)
        centred: Floats = np.subtract(rows, centre, dtype=dtype)
        return centred @ self.components.T

    def nearest(
        self, rows: Floats, k: int, n_jobs: int | None = 1, search: Search | None = None
    ) -> Neighbors:
        """The k nearest references of each row; ``search`` replaces the exact search."""
        similar = partial(k_nearest, measure=paired_products)
        look = search or (k_nearest if self.is_metric else similar)
        squared = np.empty((len(rows), k), dtype=self.dtype)
        indices = np.empty((len(rows), k), dtype=np.intp)
        norms = np.zeros(len(rows), dtype=self.dtype)
        row_bytes = max(rows.shape[1], min(len(self.references), TILE_ROWS)) * self.dtype.itemsize
        blocks = list(row_blocks(len(rows), row_bytes))  # of rows, or of their distances

        def search_block(block: slice) -> None:
            points = self.points(rows[block])
            squared[block], indices[block] = look(points, self.references, k)
            if self.is_metric:
                norms[block] = squared_norms(points)
                self._set_to_zero(squared[block], norms[block])

        with single_threaded_blas():
            parallel_map(search_block, blocks, thread_count(n_jobs) if len(blocks) > 1 else 1)
        return Neighbors(squared, indices, norms)

    def _set_to_zero(self, squared: Floats, norms: Floats) -> None:
        """Set to 0 what is 0 within rounding: blocks may map the same row a little differently."""
        squared[squared <= zero_until(norms, self.dtype)[:, None] ** 2] = 0

    def distances(self, squared: Floats) -> Floats:
        """Distances in the caller's units from the result of ``nearest``; −S for a similarity."""
        if not self.is_metric:
            return squared / 2
        return np.sqrt(squared) * squared.dtype.type(self.coordinates.scale)

    def vote(self, neighbors: Neighbors, weights: str) -> Ints:
        """The code that the neighbours of each row vote for."""
        return vote(self.codes[neighbors.indices], self._ballots(neighbors, weights))

    def n_voters(self, weights: str, n_neighbors: int) -> int:
        """How many references vote on a row."""
        own = self.log_scales is not None
        return n_voters(weights, n_neighbors, len(self.references), own)

    def _ballots(self, neighbors: Neighbors, weights: str) -> Floats:
        """The weights of the votes of neighbours."""
        kind = VOTES[weights]
        if not kind.needs_temperature or self.log_scales is None or self.log_weights is None:
            return kind.weigh(neighbors.squared, self.temperature)
        scales, indices = voting_scales(self.log_scales, self.temperature), neighbors.indices
        exponents = log_votes(neighbors.squared, scales[indices], self.log_weights[indices])
        with np.errstate(over="ignore"):  # the weight is 0 then
            ballots: Floats = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        return ballots

    def _others(self, ballots: Floats, weights: str) -> Floats | None:
        """What all references weigh that do not vote; None if they count for nothing.

        None of them weighs more than the last voter. What they weigh together is not known; as much
        as the last voter is a guess within the bound.
        """
        if not VOTES[weights].needs_temperature:
            return None
        others: Floats = LEAST_SHARE * ballots.sum(axis=1)
        if ballots.shape[1] < len(self.references):
            others = np.maximum(others, ballots[:, -1])
        return others

    def shares(self, neighbors: Neighbors, weights: str) -> Floats:
        """Each class's share of the vote, (n, C)."""
        ballots = self._ballots(neighbors, weights)
        codes = self.codes[neighbors.indices]
        return vote_shares(codes, ballots, self.n_classes, self._others(ballots, weights))

    def strongest(self, neighbors: Neighbors, weights: str, k: int) -> tuple[Neighbors, Floats]:
        """The k voters that weigh most, and their shares of the vote."""
        ballots = self._ballots(neighbors, weights)
        most, shares = _largest_shares(ballots, self._others(ballots, weights), k)
        squared: Floats = np.take_along_axis(neighbors.squared, most, axis=1)
        indices: Ints = np.take_along_axis(neighbors.indices, most, axis=1)
        return replace(neighbors, squared=squared, indices=indices), shares

    def _ballots_of_all(self, points: Floats) -> Floats:
        """The weights of the votes of all references, (n, m): nothing needs to be sorted.

        By the expanded square in float64, which is exact enough for a vote.
        """
        points = points.astype(np.float64)
        squared = self.references.in_double.comparable(points)
        squared += squared_norms(points)[:, None]
        np.maximum(squared, 0, out=squared)
        if self.log_scales is None or self.log_weights is None:
            exponents = squared / -self.temperature
        else:
            scales = voting_scales(self.log_scales, self.temperature)
            exponents = log_votes(squared, scales, self.log_weights)
        exponents -= exponents.max(axis=1, keepdims=True)
        np.exp(exponents, out=exponents)
        return exponents

    def shares_of_all(self, rows: Floats) -> Floats:
        """Each class's share of a kernel vote of all references."""
        members = self.codes[:, None] == np.arange(self.n_classes)
        shares: Floats = self._ballots_of_all(self.points(rows)) @ members.astype(np.float64)
        shares += LEAST_SHARE / self.n_classes * shares.sum(axis=1, keepdims=True)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def strongest_of_all(self, rows: Floats, k: int) -> tuple[Neighbors, Floats]:
        """As ``strongest``, if all references vote by the kernel."""
        points = self.points(rows)
        ballots = self._ballots_of_all(points)
        most, shares = _largest_shares(ballots, LEAST_SHARE * ballots.sum(axis=1), k)
        squared = paired_squared_distances(points, self.references.rows, most)
        norms = squared_norms(points)
        self._set_to_zero(squared, norms)
        return Neighbors(squared, most, norms), shares

    def scores(self, neighbors: Neighbors, rows: Floats) -> Floats:
        """How much these rows look like known ones; the similarity, if there is no metric."""
        if not self.is_metric:
            return neighbors.squared[:, 0].astype(np.float64) / -2
        return self.nearest_and_centre(neighbors, rows).scores(self.usual_distances)

    def nearest_and_centre(self, neighbors: Neighbors, rows: Floats) -> Distances:
        """Squared distances, with what is outside the span of the rows of the fit."""
        nearest, centre = neighbors.squared[:, 0], neighbors.norms
        if self.outside is not None:
            outside = np.empty_like(nearest)
            for block in row_blocks(len(rows), 4 * rows.shape[1] * self.dtype.itemsize):
                inner = self.coordinates.transform(rows[block].astype(self.dtype, copy=False))
                outside[block] = self.outside.squared_norms(inner)
            nearest, centre = nearest + outside, centre + outside
        return Distances(nearest, centre)


def euclidean_model(rows: Floats, codes: Ints, n_classes: int) -> FittedModel:
    """A model of the Euclidean distance, with these rows as references."""
    coordinates = Coordinates.of(rows)
    identity: Floats = np.eye(rows.shape[1], dtype=rows.dtype)
    points = coordinates.transform(rows)
    return FittedModel.of_metric(coordinates, identity, points, codes, n_classes)


def _largest_shares(ballots: Floats, others: Floats | None, k: int) -> tuple[Ints, Floats]:
    """The columns of the k largest ballots of each row, and their shares of the vote."""
    total = ballots.sum(axis=1) + (0 if others is None else others)
    most = np.argsort(-ballots, axis=1, kind="stable")[:, :k]
    shares: Floats = np.take_along_axis(ballots, most, axis=1) / total[:, None]
    return most, shares


def _largest_norm(rows: Floats, order: int = 2) -> float:
    """The largest norm of a row; nothing overflows unless the norm does."""
    peak = float(np.abs(rows).max(initial=0))
    if peak == 0:
        return 0.0
    largest = 0.0
    for block in row_blocks(len(rows), 8 * rows.shape[1]):
        scaled = rows[block].astype(np.float64) / peak
        largest = max(largest, float(np.linalg.norm(scaled, order, axis=1).max()))
    return peak * largest


def _similar(similarity: Floats, rows: InnerRows) -> References:
    """References whose comparable distance to an inner row x is −2 S(x, reference).

    With norms of 0, comparing "distances" means comparing inner products.
    """
    turned = rows.under(similarity / similarity.dtype.type(rows.n_features))
    return References(turned, np.zeros(len(turned), dtype=turned.dtype))
