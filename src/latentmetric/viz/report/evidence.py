"""What the report is based on: the rows, which of them are queries, and how they were classified.

With training rows, the given rows are the queries, and the training rows are references beside the
latent examples. Without them, the given rows are split into both, and the page says so. Time
O(q·(n + m)·d) for q queries; memory O(n·d) for the rows and two copies of them under a metric.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from latentmetric.core.model import FittedModel, euclidean_model
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import n_voters
from latentmetric.engines.admission import in_this_process, refuse_remote
from latentmetric.estimators.fitted import fitted_model
from latentmetric.estimators.undoing import CannotUndoError, in_given_units
from latentmetric.io.rows import is_lazy
from latentmetric.validation.labels import checked_labels
from latentmetric.validation.parameters import VOTING, plain
from latentmetric.validation.pipelines import Piped
from latentmetric.viz.clusters import latent_codes
from latentmetric.viz.report.markup import shown

EUCLID = "Euclid"
"""The name of a vote under the Euclidean distance."""

SHOWN_NEIGHBORS = 5
"""Nearest neighbours of each query that are kept for the page."""


@dataclass(frozen=True)
class LabelledRows:
    """Rows with codes of classes the model knows."""

    rows: Floats
    """After the steps of a pipeline: what distances are measured between."""
    given: np.ndarray[Any, Any]
    """In the units that the caller gave; the same as ``rows`` without steps."""
    codes: Ints
    numbers: Ints
    """The index of each row in the caller's array."""
    names: list[str] | None
    left_out: int
    """The number of the caller's rows whose labels the model does not know."""
    unknown_label: str = ""
    """One of the labels that the model does not know."""

    def __len__(self) -> int:
        return len(self.rows)


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
    not_shown: str = ""
    """Why latent examples are not shown, if so."""

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
) -> Evidence:
    """Check all input, then choose the queries and classify them in every way."""
    piped = Piped.of(model)
    fitted_model(piped.estimator)
    if (X_train is None) != (y_train is None):
        missing = "y_train" if y_train is None else "X_train"
        raise ValueError(f"X_train and y_train belong together, but {missing} is missing")
    given = labelled(piped, X, y, row_names, ("X", "y", "row_names"))
    if X_train is None:
        originals = given
        queries, references = hold_out(given.codes, max_queries, generator)
    else:
        names = ("X_train", "y_train", "train_names")
        originals = labelled(piped, X_train, y_train, train_names, names)
        queries = np.sort(sample(given.codes, max_queries, generator))
        references = np.arange(len(originals))
    estimator = piped.estimator
    votes, verdict = _votes(estimator, given.rows[queries], originals, references)
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
    )


def _in_given_units(piped: Piped) -> tuple[np.ndarray[Any, Any] | None, str]:
    """The latent examples as the caller would give them, or why that cannot be."""
    try:
        return in_given_units(piped, piped.estimator.latent_examples_), ""
    except CannotUndoError as error:
        return None, str(error)


def labelled(
    piped: Piped, X: Any, y: Any, names: Any, called: tuple[str, str, str]
) -> LabelledRows:
    """Rows and labels as the model knows them; rows of unknown classes are left out."""
    model = piped.estimator
    refuse_remote("a report", "compute() if it fits into memory", **{called[0]: X, called[1]: y})
    if piped.steps is not None:
        X = _as_given(piped, X)
    rows = in_this_process(piped.prepared(X), model, "a report")
    given = rows if piped.steps is None else np.asarray(X)
    labels = checked_labels(y, called[1])
    _check_length(called[1], len(labels), called[0], len(rows))
    if names is not None:
        _check_length(called[2], len(names), called[0], len(rows))
    known, codes = _codes(model, labels)
    if not known.any():
        raise ValueError(
            f"{called[1]} holds none of the {len(model.classes_)} classes of the model: it has "
            f"{labels.tolist()[0]!r}, the model knows {model.classes_.tolist()[0]!r}"
        )
    numbers = np.flatnonzero(known)
    all_known = len(numbers) == len(rows)
    return LabelledRows(
        rows if all_known else rows[numbers],
        given if all_known else given[numbers],
        codes[numbers],
        numbers,
        None if names is None else [shown(names[number], 160) for number in numbers],
        len(rows) - len(numbers),
        "" if all_known else shown(labels[~known][0]),
    )


def _as_given(piped: Piped, X: Any) -> Any:
    """Rows in memory, with the columns that the steps were fitted with, in their order."""
    names = piped.feature_names
    if names is not None and hasattr(X, "columns"):
        return X[names]
    return np.asarray(X) if is_lazy(X) else X


def _check_length(name: str, length: int, of: str, expected: int) -> None:
    if length != expected:
        raise ValueError(f"{name} has {length} entries, but {of} has {expected} rows")


def _codes(model: Any, labels: Any) -> tuple[Any, Ints]:
    """Which labels the model knows, and the index of each in ``classes_``."""
    place = {label: code for code, label in enumerate(model.classes_.tolist())}
    codes = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    return codes >= 0, codes


def sample(codes: Ints, n_rows: int, generator: np.random.Generator) -> Ints:
    """A stratified sample of at most ``n_rows`` rows, with each class at least once if possible."""
    return np.argsort(_ranks(codes, generator), kind="stable")[:n_rows]


def hold_out(codes: Ints, max_queries: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """A quarter of the rows as queries, the rest as references; no class loses all its rows."""
    ranks = _ranks(codes, generator)
    sizes = np.bincount(codes)[codes]
    ranks[ranks * sizes > sizes - 1.5] = np.inf  # the last row of its class
    n_queries = min(max_queries, max(1, len(codes) // 4), int(np.isfinite(ranks).sum()))
    if not n_queries:
        return np.arange(len(codes))[:max_queries], np.empty(0, dtype=np.intp)
    queries = np.sort(np.argsort(ranks, kind="stable")[:n_queries])
    return queries, np.setdiff1d(np.arange(len(codes)), queries)


def _ranks(codes: Ints, generator: np.random.Generator) -> Floats:
    """A random rank for each row within its class, from 0 to less than 1."""
    shuffled = generator.permutation(len(codes))
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    sizes = np.bincount(codes)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    ranks = np.empty(len(codes))
    ranks[by_class] = (np.arange(len(codes)) - starts) / np.repeat(sizes, sizes)
    return ranks


def _votes(
    estimator: Any, queries: Floats, originals: LabelledRows, references: Ints
) -> tuple[list[Vote], Vote]:
    """The votes of Euclid and of the model, and the one among them that ``predict`` makes."""
    model: FittedModel = estimator.model_
    cast = partial(_cast, estimator, queries)
    codes, name = originals.codes[references], type(estimator).__name__
    comparable = len(np.unique(codes)) > 1
    has_latents = hasattr(estimator, "latent_examples_")
    own_name = name if estimator.learns else EUCLID
    votes: list[Vote] = []
    verdict = None
    if comparable and estimator.learns:
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
    estimator: Any, queries: Floats, model: FittedModel, name: str, voters: str,
    numbers: Ints | None = None,
) -> Vote:  # fmt: skip
    """Let the references of a model vote; ``numbers`` are their rows in ``originals``."""
    estimator, n_references = plain(estimator, VOTING), len(model.references)
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
        int(np.count_nonzero(neighbors.squared[:, 0] == 0)),
    )
