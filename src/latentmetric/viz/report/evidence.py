"""What the report is based on: the rows, which of them are queries, and how they were classified.

With training rows, the given rows are the queries, and the training rows are references beside the
latent examples, and what rivals are fitted to. Without them, the given rows are split into both,
and the page says so. Time O(q·(n + m)·d) for q queries; memory O(n·d) for the rows and two copies
of them under a metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.model import FittedModel, Neighbors, euclidean_model
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.core.votes import n_voters
from latentmetric.estimators.fitted import fitted_model
from latentmetric.estimators.undoing import CannotUndoError, in_given_units
from latentmetric.evaluation.sampling import hold_out, sample
from latentmetric.validation.parameters import VOTING, validated_copy
from latentmetric.validation.pipelines import Piped
from latentmetric.viz.clusters import latent_codes
from latentmetric.viz.report.baselines import Baseline, fitted_baselines
from latentmetric.viz.report.doubtful import Doubts, find_doubts
from latentmetric.viz.report.rows import LabelledRows, labelled

EUCLID = "Euclid"
"""The name of a vote under the Euclidean distance."""

MOST_SEEN = 0.5
"""If more of the queries than this share are training rows, they are no test."""

SHOWN_NEIGHBORS = 5
"""Nearest neighbours of each query that are kept for the page."""


@dataclass(frozen=True)
class Vote:
    """One way to classify the queries, and its results."""

    name: str
    voters: str
    """What voted: ``latent``, ``original`` or ``own`` for references only the model knows."""
    n_references: int
    predicted: Ints
    neighbors: Ints
    """The nearest voters of each query; rows of ``originals`` or latent examples."""
    distances: Floats
    confidence: Floats
    """The share of the vote that the predicted class of each query has."""
    own_share: Floats
    """The share of the vote that the true class of each query has."""
    at_zero: int
    """Queries at distance 0 from a voter: most likely the same row."""


@dataclass(frozen=True)
class Evidence:
    """Everything the page's sections draw on."""

    model: Any
    """The estimator; of a pipeline, its last step."""
    piped: Piped
    given: LabelledRows
    originals: LabelledRows
    """The training rows, or ``given`` where there are none."""
    queries: Ints
    """Rows of ``given`` that are classified."""
    has_training_rows: bool
    references: Ints
    """Rows of ``originals`` that vote, under the Euclidean distance and under the metric."""
    votes: list[Vote]
    verdict: Vote
    """The vote that the tables show: the one ``predict`` makes."""
    latent_codes: Ints | None
    """The class of each latent example."""
    shown_latents: np.ndarray[Any, Any] | None
    """The latent examples in the units that the caller gave, where the steps can be undone."""
    not_shown: str
    """Why latent examples are not shown; empty if they are."""
    baselines: list[Baseline]
    """Rivals that were fitted to the training rows; none without training rows."""
    doubts: Doubts | None
    """Labels that are unlikely; None where there are no latent examples to judge by."""

    @property
    def latent_model(self) -> Any:
        """The model if it has latent examples, else None."""
        return self.model if hasattr(self.model, "latent_examples_") else None

    def latent_row(self, latent: int) -> np.ndarray[Any, Any] | None:
        """A latent example in the units that the caller gave; None if these are not known."""
        if self.shown_latents is None:
            return None
        row: np.ndarray[Any, Any] = self.shown_latents[latent]
        return row

    @property
    def true(self) -> Ints:
        """The true codes of the queries."""
        return self.given.codes[self.queries]

    @property
    def right(self) -> Bools:
        """Which queries the model classifies correctly."""
        right: Bools = self.verdict.predicted == self.true
        return right

    @property
    def n_seen(self) -> int:
        """Queries that are also among the training rows; known only where these were given."""
        if not self.has_training_rows:
            return 0
        euclid = (vote for vote in self.votes if vote.name == EUCLID and vote.voters == "original")
        return next((vote.at_zero for vote in euclid), 0)

    @property
    def is_test(self) -> bool:
        """Whether the queries can decide between methods: most are known to be new to the model."""
        return self.has_training_rows and self.n_seen <= MOST_SEEN * len(self.queries)

    def vote_called(self, name: str) -> Vote | None:
        """Another vote than the verdict, by its name."""
        others = (vote for vote in self.votes if vote is not self.verdict)
        return next((vote for vote in others if vote.name == name), None)

    @property
    def is_metric(self) -> bool:
        """Whether the model measures distances, and not only similarities."""
        return bool(self.model.model_.is_metric)


def gather(
    model: Any,
    X: Any,
    y: Any,
    X_train: Any,
    y_train: Any,
    row_names: Any,
    train_names: Any,
    max_queries: int,
    generator: np.random.Generator,
    baselines: bool = True,
    about_to: Callable[[str], None] = lambda step: None,
) -> Evidence:
    """Check all input, then choose the queries and classify them in every way."""
    piped = Piped.of(model)
    fitted_model(piped.estimator)
    _check_pair(X_train, y_train)
    given = labelled(piped, X, y, row_names, ("X", "y", "row_names"))
    if X_train is None:
        originals = given
        queries, references = hold_out(given.codes, max_queries, generator)
    else:
        names = ("X_train", "y_train", "train_names")
        originals = labelled(piped, X_train, y_train, train_names, names)
        queries = np.sort(sample(given.codes, max_queries, generator))
        references = np.arange(len(originals))
    estimator, rows = piped.estimator, given.rows[queries]
    about_to("votes")
    votes, verdict = _votes(estimator, rows, given.codes[queries], originals, references)
    fitted: list[Baseline] = []
    if baselines and X_train is not None and len(np.unique(originals.codes)) > 1:
        n_jobs = validated_copy(estimator, VOTING).n_jobs
        fitted = fitted_baselines(originals.rows, originals.codes, rows, n_jobs, about_to)
    doubts = None
    if hasattr(estimator, "latent_counts_"):
        about_to("doubtful labels")
        doubts = find_doubts(
            validated_copy(estimator, VOTING), _with_latents(estimator), given, originals,
            X_train is not None, generator,
        )  # fmt: skip
    has_latents = hasattr(estimator, "latent_examples_")
    shown_latents, not_shown = _in_given_units(piped) if has_latents else (None, "")
    return Evidence(
        estimator,
        piped,
        given,
        originals,
        queries,
        X_train is not None,
        references,
        votes,
        verdict,
        latent_codes(estimator) if has_latents else None,
        shown_latents,
        not_shown,
        fitted,
        doubts,
    )


def _check_pair(X_train: Any, y_train: Any) -> None:
    if (X_train is None) != (y_train is None):
        missing = "y_train" if y_train is None else "X_train"
        raise ValueError(f"X_train and y_train belong together, but {missing} is missing")


def _in_given_units(piped: Piped) -> tuple[np.ndarray[Any, Any] | None, str]:
    """The latent examples as the caller would give them, or why that cannot be."""
    try:
        return in_given_units(piped, piped.estimator.latent_examples_), ""
    except CannotUndoError as error:
        return None, str(error)


def _votes(
    estimator: Any, queries: Floats, true: Ints, originals: LabelledRows, references: Ints
) -> tuple[list[Vote], Vote]:
    """The votes of Euclid and of the model, and the one among them that ``predict`` makes."""
    model: FittedModel = estimator.model_
    cast = partial(_cast, estimator, queries, true)
    codes, name = originals.codes[references], type(estimator).__name__
    comparable = len(np.unique(codes)) > 1
    has_latents = hasattr(estimator, "latent_examples_")
    own_name = name if estimator._learns else EUCLID
    votes: list[Vote] = []
    verdict = None
    if comparable and estimator._learns:
        euclid = euclidean_model(originals.rows[references], codes, model.n_classes)
        votes.append(cast(euclid, EUCLID, "original", references))
    if has_latents:
        votes.append(cast(_with_latents(estimator), name, "latent"))
        verdict = votes[-1] if estimator.reference_ == "latent" else None
    if comparable:
        voting = model.with_references(originals.rows[references], codes)
        called = f"{name}-O" if has_latents else own_name
        votes.append(cast(voting, called, "original", references))
        verdict = verdict or votes[-1]
    if verdict is None:
        verdict = cast(model, own_name, "own")
        votes.append(verdict)
    return votes, verdict


def _with_latents(estimator: Any) -> FittedModel:
    model: FittedModel = estimator.model_
    if estimator.reference_ == "latent":
        return model
    return model.with_references(estimator.latent_examples_, latent_codes(estimator))


def _cast(
    estimator: Any, queries: Floats, true: Ints, model: FittedModel, name: str, voters: str,
    numbers: Ints | None = None,
) -> Vote:  # fmt: skip
    """Let the references of a model vote; ``numbers`` are their rows in ``originals``."""
    estimator, n_references = validated_copy(estimator, VOTING), len(model.references)
    k = n_voters(estimator.weights, estimator.n_neighbors, n_references)
    neighbors = model.nearest(queries, k, estimator.n_jobs)
    nearest = neighbors.first(SHOWN_NEIGHBORS)
    return Vote(
        name,
        voters,
        n_references,
        model.vote(neighbors, estimator.weights),
        nearest.indices if numbers is None else numbers[nearest.indices],
        model.distances(nearest.squared),
        *_shares(model, neighbors, estimator.weights, true),
        int(np.count_nonzero(neighbors.squared[:, 0] == 0)),
    )


def _shares(
    model: FittedModel, neighbors: Neighbors, weights: str, true: Ints
) -> tuple[Floats, Floats]:
    """The largest share of each vote and that of the true class; a block of queries at a time."""
    largest, own = np.empty(len(true)), np.empty(len(true))
    for block in row_blocks(len(true), 8 * model.n_classes):
        some = Neighbors(neighbors.squared[block], neighbors.indices[block])
        shares = model.shares(some, weights)
        largest[block] = shares.max(axis=1)
        own[block] = np.take_along_axis(shares, true[block, None], axis=1)[:, 0]
    return np.minimum(largest, 1), np.minimum(own, 1)
