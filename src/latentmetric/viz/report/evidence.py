"""What the report is based on: the rows, which of them are queries, and how they were classified.

The given rows are the queries. Training rows are references beside the latent examples, and what
rivals are fitted to. Time O(q·(n + m)·d) for q queries; memory O(n·d) for the rows and two copies
of them under a metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from latentmetric.characters import distinct_names
from latentmetric.core.distances import row_blocks
from latentmetric.core.model import FittedModel, Neighbors, euclidean_model
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.core.votes import VOTES, vote
from latentmetric.estimators.fitted import fitted_model, scores_of_labels
from latentmetric.estimators.inverse import NotInvertibleError, to_input_units
from latentmetric.evaluation.calibration import Calibration, calibration
from latentmetric.evaluation.rivals import K_NN, NEIGHBORS, SUPPORT, TUNED, fit_rival
from latentmetric.evaluation.sampling import sample
from latentmetric.validation.parameters import VOTING, validated_copy
from latentmetric.validation.pipelines import SplitPipeline, split_pipeline
from latentmetric.viz.report import limits
from latentmetric.viz.report.rows import Column, LabelledRows, columns_after, labelled
from latentmetric.viz.report.text import counted, distinct
from latentmetric.viz.summaries import (
    ClassErrors,
    ConfusedPair,
    check_image_shape,
    class_errors,
    confused_pairs,
    latent_codes,
)

EUCLID = "Euclid"
"""The name of a vote under the Euclidean distance."""


@dataclass(frozen=True)
class Method:
    """One way to classify the queries: a vote of references, or a rival."""

    name: str
    predicted: Ints
    about: str
    """The references that vote, or the parameters that were chosen for a rival, in words."""
    n_rows: int | None = None
    """Training rows that a rival was fitted on; None for votes."""


@dataclass(frozen=True)
class Vote(Method):
    """A vote, with what is known of each query."""

    voters: str = "own"
    """What voted: ``latent``, ``original`` or ``own`` for references only the model knows."""
    n_voters: int = 1
    """How many references vote on a query."""
    neighbors: Ints = field(kw_only=True)
    """The nearest voters of each query; training rows or latent examples."""
    distances: Floats = field(kw_only=True)
    confidence: Floats = field(kw_only=True)
    """The share of the vote that the predicted class has."""
    own_share: Floats = field(kw_only=True)
    """The share of the vote that the true class has."""


class DoubtfulLabel(NamedTuple):
    """A row whose label is unlikely, the class that the model would give it, and its share."""

    rows: LabelledRows
    row: int
    score: float
    suggested: int
    share: float


class LabelQuality(NamedTuple):
    """How many labels were judged, how many are doubtful, and the worst of them."""

    n_judged: int
    n_doubtful: int
    worst: list[DoubtfulLabel]


@dataclass(frozen=True)
class Evidence:
    """Everything the page's sections draw on."""

    model: Any
    """The estimator; of a pipeline, its last step."""
    piped: SplitPipeline
    given: LabelledRows
    originals: LabelledRows
    """The training rows, or ``given`` where there are none."""
    queries: Ints
    """Rows of ``given`` that are classified."""
    verdict: Vote
    """The vote that ``predict`` makes."""
    others: list[Method]
    """Rivals, then other votes; both need training rows."""
    latents: np.ndarray[Any, Any] | None
    """The latent examples in the units that the caller gave, where the steps can be undone."""
    why_no_latents: str
    """Why latent examples are not shown; empty if they are."""
    label_quality: LabelQuality | None
    """None where there are no latent examples to judge by."""
    image_shape: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The name of the estimator's class."""
        return type(self.model).__name__

    @cached_property
    def labels(self) -> list[str]:
        """The classes as text, in the order of their codes."""
        return distinct(self.model.classes_.tolist())

    @cached_property
    def short_labels(self) -> list[str]:
        """Labels for a narrow box, which are as different."""
        return distinct_names(self.labels, limits.MAX_OPTION)

    @cached_property
    def feature_names(self) -> list[str] | None:
        """The names of the columns that the caller gave."""
        names = self.piped.feature_names
        return None if names is None else distinct(names)

    @cached_property
    def given_names(self) -> list[str]:
        """The names of the columns that the caller gave, or their indices in words."""
        n_given = self.given.given.shape[1]
        return self.feature_names or [f"feature {index:,}" for index in range(n_given)]

    @cached_property
    def columns(self) -> list[Column]:
        """The columns that the metric sees: after the steps of a pipeline."""
        return columns_after(self.piped, self.given_names)

    @property
    def has_steps(self) -> bool:
        """Whether rows pass steps of a pipeline before the model."""
        return self.piped.steps is not None

    @property
    def has_training_rows(self) -> bool:
        """Whether the caller gave training rows."""
        return self.originals is not self.given

    @property
    def is_table(self) -> bool:
        """Whether single features mean something: they have names, or are few and no pixels."""
        few = self.originals.given.shape[1] <= limits.MAX_NAMELESS
        return self.image_shape is None and (self.feature_names is not None or few)

    @cached_property
    def latent_codes(self) -> Ints | None:
        """The class of each latent example; None if the model has none."""
        return latent_codes(self.model) if hasattr(self.model, "latent_examples_") else None

    @cached_property
    def true(self) -> Ints:
        """The true codes of the queries."""
        return self.given.codes[self.queries]

    @cached_property
    def right(self) -> Bools:
        """Which queries the model classifies correctly."""
        right: Bools = self.verdict.predicted == self.true
        return right

    @cached_property
    def confused(self) -> list[ConfusedPair]:
        """Classes that the model confuses, the most frequent pairs first."""
        return confused_pairs(self.true, self.verdict.predicted)

    @cached_property
    def errors(self) -> ClassErrors:
        """The errors of every class."""
        return class_errors(self.true, self.verdict.predicted, len(self.labels))

    @cached_property
    def calibration(self) -> Calibration:
        """How often the predicted class is right, beside its probability."""
        return calibration(self.verdict.confidence, self.right)

    @property
    def euclid(self) -> Vote | None:
        """The vote of all training rows under the Euclidean distance."""
        votes = (one for one in (self.verdict, *self.others) if isinstance(one, Vote))
        return next((v for v in votes if v.name == EUCLID and v.voters == "original"), None)

    @property
    def n_seen(self) -> int:
        """Queries that are also among the training rows: at distance 0 from one of them."""
        return 0 if self.euclid is None else int((self.euclid.distances[:, 0] == 0).sum())

    @property
    def is_test(self) -> bool:
        """Whether the queries can decide between methods: most are known to be new to the model."""
        return self.has_training_rows and self.n_seen <= limits.MAX_SEEN * len(self.queries)

    @property
    def is_metric(self) -> bool:
        """Whether the model measures distances, and not only similarities."""
        return bool(self.model.model_.is_metric)


def gather(
    model: Any,
    X: Any,
    y: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    row_names: Any = None,
    train_names: Any = None,
    image_shape: tuple[int, ...] | None = None,
    max_queries: int,
    generator: np.random.Generator,
    quick: bool = False,
    on_start: Callable[[str], None] = lambda step: None,
) -> Evidence:
    """Check all input, then choose the queries and classify them in every way."""
    piped = split_pipeline(model)
    estimator = piped.estimator
    fitted_model(estimator)
    if (X_train is None) != (y_train is None):
        missing = "y_train" if y_train is None else "X_train"
        raise ValueError(f"X_train and y_train belong together, but {missing} is missing")
    given = originals = labelled(piped, X, y, row_names)
    if image_shape is not None:
        image_shape = tuple(image_shape)
        check_image_shape(image_shape, given.given.shape[1])
    if X_train is not None:
        originals = labelled(piped, X_train, y_train, train_names, "_train")
    queries = np.sort(sample(given.codes, max_queries, generator))
    rows, voting = given.rows[queries], validated_copy(estimator, VOTING)
    training = None if X_train is None else originals
    on_start("votes")
    verdict, votes, near = _votes(voting, rows, given.codes[queries], training)
    rivals = []
    if training is not None and not quick:
        rivals = _rivals(rows, training, near, voting.n_jobs, on_start)
    quality = None
    if hasattr(estimator, "latent_counts_"):
        on_start("doubtful labels")
        quality = _label_quality(voting, given, originals)
    latents, why_not = None, ""
    if hasattr(estimator, "latent_examples_"):
        try:
            latents = to_input_units(piped, estimator.latent_examples_)
        except NotInvertibleError as error:
            why_not = str(error)
    return Evidence(
        estimator, piped, given, originals, queries, verdict, [*rivals, *votes],
        latents, why_not, quality, image_shape,
    )  # fmt: skip


def _rivals(
    queries: Floats, training: LabelledRows, near: Neighbors | None, n_jobs: Any,
    on_start: Callable[[str], None],
) -> list[Method]:  # fmt: skip
    """Rivals that are tuned and fitted on the training rows; ``near`` are Euclid's neighbours."""
    n_classes = len(np.unique(training.codes))
    rivals = []
    for name in TUNED:
        if n_classes < 2 or (name == SUPPORT and n_classes > limits.MAX_SVC_CLASSES):
            continue
        on_start(name)
        rival = fit_rival(name, training.rows, training.codes, n_jobs=n_jobs, bounded=True)
        scaling, classifier = rival.pipeline
        if name == K_NN and near is not None and scaling == "passthrough":
            some = near.first(classifier.n_neighbors)
            ballots = VOTES[classifier.weights].weigh(some.squared, 0)
            predicted = vote(training.codes[some.indices], ballots)
        else:
            predicted = rival.pipeline.predict(queries)
        shown = name.replace("-", "\N{NON-BREAKING HYPHEN}")
        rivals.append(Method(shown, predicted, rival.chosen, rival.n_rows))
    return rivals


def _votes(
    estimator: Any, queries: Floats, true: Ints, training: LabelledRows | None
) -> tuple[Vote, list[Method], Neighbors | None]:
    """The vote that ``predict`` makes; those of Euclid, latent examples and training rows.

    Also the training rows nearest to each query by Euclid, as many as tuned k-NN may need.
    """
    model: FittedModel = estimator.model_
    name = type(estimator).__name__
    own_name = name if estimator._learns else EUCLID
    has_latents = hasattr(estimator, "latent_examples_")
    votes: list[Vote] = []
    near = None

    def add(voters: FittedModel, called: str, kind: str, k: int = 1) -> Neighbors:
        k = max(k, voters.n_voters(estimator.weights, estimator.n_neighbors))
        found = voters.nearest(queries, min(k, len(voters.references)), estimator.n_jobs)
        votes.append(_vote(estimator, found, true, voters, called, kind))
        return found

    if training is not None and estimator._learns:
        euclid = euclidean_model(training.rows, training.codes, model.n_classes)
        near = add(euclid, EUCLID, "original", NEIGHBORS[-1])
    if has_latents:
        add(_latent_voters(estimator), name, "latent")
    if training is not None:
        by_rows = model.with_references(training.rows, training.codes)
        add(by_rows, f"{name}-O" if has_latents else own_name, "original")
    elif not has_latents or estimator.reference_ != "latent":
        add(model, own_name, "own")
    by_latents = has_latents and estimator.reference_ == "latent"
    verdict = next(one for one in reversed(votes) if not by_latents or one.voters == "latent")
    return verdict, [one for one in votes if one is not verdict], near


def _latent_voters(estimator: Any) -> FittedModel:
    """The model with the latent examples as its references."""
    model: FittedModel = estimator.model_
    if estimator.reference_ == "latent":
        return model
    return model.with_references(estimator.latent_examples_, latent_codes(estimator))


def _vote(
    estimator: Any, found: Neighbors, true: Ints, model: FittedModel, name: str, voters: str
) -> Vote:
    """Let the references of a model vote that were found nearest."""
    weights = estimator.weights
    k = model.n_voters(weights, estimator.n_neighbors)
    neighbors = found.first(k)
    nearest = neighbors.first(limits.N_NEIGHBORS)
    confidence, own_share = np.empty(len(true)), np.empty(len(true))
    for block in row_blocks(len(true), 8 * model.n_classes):
        some = replace(
            neighbors, squared=neighbors.squared[block], indices=neighbors.indices[block]
        )
        shares = np.minimum(model.shares(some, weights), 1)
        confidence[block] = shares.max(axis=1)
        own_share[block] = np.take_along_axis(shares, true[block, None], axis=1)[:, 0]
    kinds = {"latent": "latent example", "original": "original row", "own": "stored row"}
    return Vote(
        name,
        model.vote(neighbors, weights),
        counted(len(model.references), kinds[voters]),
        voters=voters,
        n_voters=k,
        neighbors=nearest.indices,
        distances=model.distances(nearest.squared),
        confidence=confidence,
        own_share=own_share,
    )


def _label_quality(estimator: Any, given: LabelledRows, originals: LabelledRows) -> LabelQuality:
    """Judge labels: those of training rows with each row left out of its own latent example."""
    pools = [originals] if given is originals else [originals, given]
    found = []
    for rows in pools:
        scores = scores_of_labels(estimator, rows.rows, rows.codes, rows is originals)
        doubtful = np.flatnonzero(scores < limits.DOUBTFUL_SCORE)
        found += [(float(scores[row]), rows is given, int(row)) for row in doubtful]
    model = _latent_voters(estimator)
    k = model.n_voters(estimator.weights, estimator.n_neighbors)
    worst = []
    for score, is_given, row in sorted(found)[: limits.MAX_DOUBTFUL]:
        rows = given if is_given else originals
        shares = model.shares(model.nearest(rows.rows[[row]], k), estimator.weights)[0]
        shares[rows.codes[row]] = 0
        suggested = int(shares.argmax())
        worst.append(DoubtfulLabel(rows, row, score, suggested, float(shares[suggested])))
    return LabelQuality(sum(map(len, pools)), len(found), worst)
