"""What the report is based on: the rows, which of them are queries, and how they were classified.

With training rows, the given rows are the queries, and the training rows are references beside the
latent examples, and what rivals are fitted to. Without them, the given rows are split into both,
and the page says so. Time O(q·(n + m)·d) for q queries; memory O(n·d) for the rows and two copies
of them under a metric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from latentmetric.core.distances import row_blocks
from latentmetric.core.model import FittedModel, Neighbors, euclidean_model
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.core.votes import n_voters
from latentmetric.estimators.fitted import fitted_model, scores_of_labels
from latentmetric.estimators.inverse import NotInvertibleError, to_input_units
from latentmetric.evaluation.calibration import Calibration, calibration
from latentmetric.evaluation.rivals import fit_rival
from latentmetric.evaluation.sampling import hold_out, sample
from latentmetric.validation.parameters import VOTING, validated_copy
from latentmetric.validation.pipelines import SplitPipeline, split_pipeline
from latentmetric.viz.report import limits
from latentmetric.viz.report.pictures import check_image_shape
from latentmetric.viz.report.rows import Column, LabelledRows, Row, columns_after, labelled
from latentmetric.viz.report.text import counted, distinct
from latentmetric.viz.summaries import (
    ClassErrors,
    ConfusedPair,
    class_errors,
    confused_pairs,
    latent_codes,
)

EUCLID = "Euclid"
"""The name of a vote under the Euclidean distance."""

SVC = "tuned SVC"

RIVALS = {
    "tuned k\N{NON-BREAKING HYPHEN}NN": "tuned-k-NN",
    "logistic regression": "logistic-regression",
    SVC: "SVC",
}
"""What one would use instead: names on the page, and in ``latentmetric.evaluation.rivals``."""


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

    @property
    def references(self) -> str:
        """How many references of which kind voted, in words."""
        kinds = {"latent": "latent example", "original": "original row", "own": "stored row"}
        return counted(self.n_references, kinds[self.voters])


@dataclass(frozen=True)
class Baseline:
    """A rival, tuned and fitted on training rows alone, and what it said about the queries."""

    name: str
    predicted: Ints
    n_rows: int
    """Training rows that it was fitted on."""
    chosen: str
    """The parameters that were chosen, in words."""


@dataclass(frozen=True)
class DoubtfulLabel:
    """A row whose label is unlikely."""

    row: int
    training: bool
    """Whether it is one of ``originals``, and not of ``given``."""
    code: int
    score: float
    likelier: int
    """The class that the model would give the row."""
    share: float
    """That class's share of the vote."""


@dataclass(frozen=True)
class LabelQuality:
    """How many labels were judged, how many are doubtful, and the worst of them."""

    n_judged: int
    n_doubtful: int
    worst: list[DoubtfulLabel]


@dataclass(frozen=True)
class Evidence:
    """Everything the page's sections draw on."""

    model: Any
    """The estimator; of a pipeline, its last step."""
    voting: Any
    """A copy of it whose parameters of the vote are checked."""
    piped: SplitPipeline
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
    latents: np.ndarray[Any, Any] | None
    """The latent examples in the units that the caller gave, where the steps can be undone."""
    why_no_latents: str
    """Why latent examples are not shown; empty if they are."""
    baselines: list[Baseline]
    """Rivals that were fitted to the training rows; none without training rows."""
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
    def feature_names(self) -> list[str] | None:
        """The names of the columns that the caller gave."""
        names = self.piped.feature_names
        return None if names is None else distinct(names)

    @cached_property
    def columns(self) -> list[Column]:
        """The columns that the metric sees: after the steps of a pipeline."""
        return columns_after(self.piped, self.feature_names, self.given.given.shape[1])

    @property
    def has_steps(self) -> bool:
        """Whether rows pass steps of a pipeline before the model."""
        return self.piped.steps is not None

    @property
    def is_table(self) -> bool:
        """Whether single features mean something: they have names, or are few and no pixels."""
        few = self.originals.given.shape[1] <= limits.MAX_NAMELESS
        return self.image_shape is None and (self.feature_names is not None or few)

    @property
    def latent_model(self) -> Any:
        """The model if it has latent examples, else None."""
        return self.model if hasattr(self.model, "latent_examples_") else None

    @cached_property
    def latent_codes(self) -> Ints | None:
        """The class of each latent example."""
        return None if self.latent_model is None else latent_codes(self.model)

    def latent_row(self, latent: int) -> Row | None:
        """A latent example in the units that the caller gave; None if these are not known."""
        return None if self.latents is None else self.latents[latent]

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
        """How reliable the probabilities of the predicted classes are."""
        return calibration(self.verdict.confidence, self.right)

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
    has_training_rows = X_train is not None
    if has_training_rows != (y_train is not None):
        missing = "y_train" if y_train is None else "X_train"
        raise ValueError(f"X_train and y_train belong together, but {missing} is missing")
    given = originals = labelled(piped, X, y, row_names)
    if image_shape is not None:
        image_shape = tuple(image_shape)
        check_image_shape(image_shape, given.given.shape[1])
    if has_training_rows:
        originals = labelled(piped, X_train, y_train, train_names, "_train")
        queries = np.sort(sample(given.codes, max_queries, generator))
        references = np.arange(len(originals))
    else:
        queries, references = hold_out(given.codes, max_queries, generator)
    rows, voting = given.rows[queries], validated_copy(estimator, VOTING)
    on_start("votes")
    votes, verdict = _votes(voting, rows, given.codes[queries], originals, references)
    baselines: list[Baseline] = []
    n_classes = len(np.unique(originals.codes))
    for name, rival_name in RIVALS.items():
        if not has_training_rows or quick or n_classes < 2:
            break
        if name == SVC and n_classes > limits.MAX_SVC_CLASSES:
            continue
        on_start(name)
        rival = fit_rival(
            rival_name, originals.rows, originals.codes, n_jobs=voting.n_jobs, bounded=True
        )
        predicted = rival.pipeline.predict(rows)
        baselines.append(Baseline(name, predicted, rival.n_rows, rival.chosen))
    quality = None
    if hasattr(estimator, "latent_counts_"):
        on_start("doubtful labels")
        quality = _label_quality(voting, given, originals, generator)
    latents, why_not = None, ""
    if hasattr(estimator, "latent_examples_"):
        try:
            latents = to_input_units(piped, estimator.latent_examples_)
        except NotInvertibleError as error:
            why_not = str(error)
    return Evidence(
        model=estimator,
        voting=voting,
        piped=piped,
        given=given,
        originals=originals,
        queries=queries,
        has_training_rows=has_training_rows,
        references=references,
        votes=votes,
        verdict=verdict,
        latents=latents,
        why_no_latents=why_not,
        baselines=baselines,
        label_quality=quality,
        image_shape=image_shape,
    )


def _votes(
    estimator: Any, queries: Floats, true: Ints, originals: LabelledRows, references: Ints
) -> tuple[list[Vote], Vote]:
    """The votes of Euclid and of the model, and the one among them that ``predict`` makes."""
    model: FittedModel = estimator.model_
    rows, codes = originals.rows[references], originals.codes[references]
    comparable = len(np.unique(codes)) > 1
    name = type(estimator).__name__
    own_name = name if estimator._learns else EUCLID
    has_latents = hasattr(estimator, "latent_examples_")
    votes: list[Vote] = []
    verdict = None
    if comparable and estimator._learns:
        euclid = euclidean_model(rows, codes, model.n_classes)
        votes.append(_vote(estimator, queries, true, euclid, EUCLID, "original", references))
    if has_latents:
        votes.append(_vote(estimator, queries, true, _latent_voters(estimator), name, "latent"))
        verdict = votes[-1] if estimator.reference_ == "latent" else None
    if comparable:
        by_rows = model.with_references(rows, codes)
        called = f"{name}-O" if has_latents else own_name
        votes.append(_vote(estimator, queries, true, by_rows, called, "original", references))
        verdict = verdict or votes[-1]
    if verdict is None:
        verdict = _vote(estimator, queries, true, model, own_name, "own")
        votes.append(verdict)
    return votes, verdict


def _latent_voters(estimator: Any) -> FittedModel:
    """The model with the latent examples as its references."""
    model: FittedModel = estimator.model_
    if estimator.reference_ == "latent":
        return model
    return model.with_references(estimator.latent_examples_, latent_codes(estimator))


def _vote(
    estimator: Any, queries: Floats, true: Ints, model: FittedModel, name: str, voters: str,
    references: Ints | None = None,
) -> Vote:  # fmt: skip
    """Let the references of a model vote; ``references`` are their rows in ``originals``."""
    n_references, weights = len(model.references), estimator.weights
    k = n_voters(weights, estimator.n_neighbors, n_references)
    neighbors = model.nearest(queries, k, estimator.n_jobs)
    nearest = neighbors.first(limits.N_NEIGHBORS)
    confidence, own_share = np.empty(len(true)), np.empty(len(true))
    for block in row_blocks(len(true), 8 * model.n_classes):
        some = Neighbors(neighbors.squared[block], neighbors.indices[block])
        shares = np.minimum(model.shares(some, weights), 1)
        confidence[block] = shares.max(axis=1)
        own_share[block] = np.take_along_axis(shares, true[block, None], axis=1)[:, 0]
    return Vote(
        name,
        voters,
        n_references,
        predicted=model.vote(neighbors, weights),
        neighbors=nearest.indices if references is None else references[nearest.indices],
        distances=model.distances(nearest.squared),
        confidence=confidence,
        own_share=own_share,
        at_zero=int(np.count_nonzero(neighbors.squared[:, 0] == 0)),
    )


def _label_quality(
    estimator: Any, given: LabelledRows, originals: LabelledRows, generator: np.random.Generator
) -> LabelQuality:
    """Judge labels: those of training rows with each row left out of its own latent example."""
    n_judged, n_doubtful, found = 0, 0, []
    pools = [(originals, True)] + ([(given, False)] if given is not originals else [])
    for rows, training in pools:
        judged = np.sort(sample(rows.codes, limits.MAX_JUDGED, generator))
        scores = scores_of_labels(estimator, rows.rows[judged], rows.codes[judged], training)
        doubtful = np.flatnonzero(scores < limits.DOUBTFUL_SCORE)
        n_judged += len(judged)
        n_doubtful += len(doubtful)
        worst = doubtful[np.argsort(scores[doubtful], kind="stable")][: limits.MAX_DOUBTFUL]
        found += [(float(scores[index]), training, int(judged[index])) for index in worst]
    model = _latent_voters(estimator)
    k = n_voters(estimator.weights, estimator.n_neighbors, len(model.references))
    listed = []
    for score, training, row in sorted(found)[: limits.MAX_DOUBTFUL]:
        rows = originals if training else given
        code = int(rows.codes[row])
        shares = model.shares(model.nearest(rows.rows[[row]], k), estimator.weights)[0]
        shares[code] = 0
        likelier = int(shares.argmax())
        share = float(shares[likelier])
        listed.append(DoubtfulLabel(row, training, code, score, likelier, share))
    return LabelQuality(n_judged, n_doubtful, listed)
