"""MaPML: margin preserving metric learning with latent examples.

Qian, Tang, Li, Zhu, Jin: "Large-scale Distance Metric Learning with Uncertainty", CVPR 2018.
The algorithm is in ``latentmetric.core``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from inspect import cleandoc
from typing import Any, ClassVar, Self

import numpy as np

from latentmetric.core.alternation import State, reduced
from latentmetric.core.learning import learning
from latentmetric.core.model import FittedModel
from latentmetric.core.quasi_newton import BANDWIDTHS
from latentmetric.core.refinement import Plan
from latentmetric.core.starts import STARTS
from latentmetric.core.steps import Record, Steps
from latentmetric.core.types import Floats
from latentmetric.estimators.base import ReferenceClassifier
from latentmetric.estimators.online import OnlineLatents
from latentmetric.estimators.progress import with_callbacks
from latentmetric.estimators.setup import (
    check_on_cluster,
    check_warm_start,
    choose_fit,
    first_round,
    is_warm,
    n_passes,
    n_rounds,
    settings_of,
    with_known_scores,
)
from latentmetric.estimators.training import TrainingData
from latentmetric.estimators.unlabelled import add_unlabelled, split_labels
from latentmetric.validation.parameters import (
    Accepted,
    Boolean,
    Integer,
    Number,
    OneOf,
    Or,
    Rule,
    check_keys,
    count_or_share,
    label,
)
from latentmetric.validation.weights import class_weights

AS_PUBLISHED: dict[str, Any] = {
    "weights": "uniform",
    "start": "euclidean",
    "max_iter": 10,
    "max_passes": 100,
    "refine": 0,
    "keep": "last",
}
"""The parameters with which MaPML is the algorithm of the paper, and nothing else."""

MIN_METRIC_REG, MAX_LATENT_REG, MAX_RIDGE = 1e-9, 1e15, 1e15
"""Beyond these, float32 would overflow."""

SAMPLE_WEIGHT = """\
sample_weight : array-like of shape (n_samples,), default=None
    The weight of each row, at least 0. Only ratios matter. A row of weight 2 counts as two in
    all means and sums; rows of weight 0 are left out.
"""


def _passes(name: str, value: Any) -> int:
    """A number of passes, or False for none."""
    is_false = isinstance(value, bool | np.bool_) and not value
    return Integer(0).check(name, 0 if is_false else value)


class MaPML(OnlineLatents):
    """Metric and latent examples, learned together, for nearest-neighbour classification.

    The rows of a class are treated as noisy observations of a few clean latent examples. Rounds
    alternate between learning a Mahalanobis metric from active triplets of latent examples, with a
    margin that grows with each class's spread, and moving the latent examples by k-means under this
    metric. Then a refinement makes the labels of the rows likelier. A query is compared with the
    latent examples only.

    With at most 20,000 rows of few features, cross-validation on a sample of them chooses what is
    "auto": the start of the metric, the number of latent examples, the ridge and the bandwidths.
    The refinement then takes all rows at once, without rounds before it, unless more than 1,500 can
    do without ridge and bandwidths (2,000 if classes are easy to tell apart). Where candidates are
    nearly as good, another ``random_state`` may choose another one.

    Results do not depend on a common scale or a shift of the features, the order of the rows or the
    names of the classes, unless distances tie exactly. With ``start="euclidean"``, they do not
    depend on a rotation of the features either, but the scale of the features relative to each
    other matters.

    Parameters
    ----------
    n_latents : "auto", int, float or dict, default="auto"
        The number of latent examples of each class (int), or their share of its rows (float, τ in
        the paper). A dict gives the number for each class. A class has at least one and at most as
        many as it has rows. With weights, a share refers to weight: a class whose rows weigh twice
        as much has twice as many. "auto": few rows choose among 1, 3, 0.1 and 0.3; many take 0.15.
        From 64 rows for each feature or 30,000 rows on, the refinement learns them as two sets that
        vote together; of fewer than 30,000 rows, these are 0.3.
    n_neighbors : int, default=3
        The number of nearest references that vote, unless ``weights="kernel"``.
    reference : {"latent", "original"}, default="latent"
        What votes: the latent examples, or all rows passed to ``fit`` ("MaPML-O"). It takes
        effect in ``fit``; ``set_references`` changes what votes afterwards.
    weights : {"uniform", "distance", "kernel"}, default="kernel"
        "uniform": one vote per neighbour, with ties going to the class of the nearest. "distance":
        votes weighted by inverse distance. "kernel": votes of the nearest 40 references, or after a
        refinement of few rows of all up to 1,024, weighted by exp(−D²/T). T comes from the
        refinement; without refinement, from the spacing of the references; with
        ``early_stopping``, from the held-out rows.
    start : {"auto", "euclidean", "standardized", "within", "denoised"}, default="auto"
        The metric that the rounds start from. "euclidean": as in the paper. "standardized":
        Euclidean after each feature is divided by its standard deviation. "within": the inverse of
        the covariance within classes, shrunk halfway to its diagonal. "denoised", for noisy rows:
        Euclidean after each principal direction is shortened to what similar rows have in common.
        "auto" tries them on a sample of at most 3,000 rows, of few rows together with the other
        choices, and takes the one that best predicts rows it has not seen, the simpler one on ties.
    max_iter : "auto" or int, default="auto"
        The number of rounds (K). With 0, the refinement follows the start. "auto": 5 for many
        rows, 0 for few.
    max_passes : int, default=3
        The largest number of k-means passes (Alg. 1) per round.
    n_steps : int, default=10_000
        Steps of stochastic gradient descent per round, one triplet each (S).
    metric_reg : float, default=1.7
        The regularisation λ, which keeps the metric near that of the previous round, in units of
        the features' mean variance.
    latent_reg : float, default=0.0
        The regularisation γ, which keeps each latent example near its place in the previous round,
        as a number of rows.
    max_norm : float, default=None
        The bound δ on the metric's Frobenius norm, in units of that of the metric of the start.
        None means no bound.
    target_neighbors : int, default=3
        The number of nearest latent examples of its own class from which an anchor's target is
        drawn.
    impostors : int, default=5
        The number of nearest latent examples of other classes from which an anchor's impostor is
        drawn.
    n_components : int, default=None
        The largest rank of the metric. None means no limit.
    init : {"auto", "random", "spaced"}, default="auto"
        How to choose the rows at which latent examples start: drawn at random, or evenly spaced by
        their distance from the centre. "auto": "random" for many rows, "spaced" for few.
    refine : "auto" or int, default="auto"
        The number of passes over the rows after the rounds. They adjust latent examples and metric
        together to make the labels more likely under the kernel vote. "auto": 3, or 6 from 30,000
        rows or 64 rows for each feature on; from 256,000 rows on 3, each over a part of them. Few
        rows are refined at once, by at most 7 iterations of L-BFGS for each pass. 0 or False means
        no refinement, as in the paper, and then nothing but the start is chosen.
    ridge : "auto" or float, default="auto"
        What holds the metric and the latent examples where the refinement of few rows found them:
        the loss that it costs to change either by as much as it measures. "auto" chooses among 0.1,
        1 and 10. Many rows need none.
    bandwidth : {"auto", "shared", "class", "latent"}, default="auto"
        Whether all latent examples vote with the same bandwidth and weight, or those of each class,
        or each latent example has its own. They are learned in the refinement of few rows; in that
        of many rows, all are the same.
    label_noise : bool, default=False
        Whether some labels may be wrong. In the refinement, rows with unlikely labels then count
        less. It costs a little accuracy if all labels are right.
    class_weight : dict or "balanced", default=None
        Weights of the classes, which multiply ``sample_weight``. A class that a dict leaves out has
        the weight 1. "balanced" gives all classes the same weight, however many rows they have.
    unlabelled : label, default=None
        The value of ``y`` that marks rows without a label, such as -1. After the fit on the others,
        these rows join the latent examples of their predicted classes, weighted by the predicted
        probability. None means that all rows have labels.
    keep : {"best", "last"}, default="best"
        Which round or pass to return: the one under which the labels of the training rows are most
        likely, each row left out of its own latent example (on a sample of at most 2,048 rows), or
        the last one. The refinement starts from the best round in the same sense. Where trials
        chose how to fit few rows, it is the last one: rows left out have judged it.
    early_stopping : bool, default=False
        Whether to hold out ``validation_fraction`` of every class and return the round or pass with
        the lowest error on it. Without refinement, the fit stops when this error no longer falls.
        Round 0 is a candidate: the metric of the start, with ``n_components`` at that rank, or with
        ``warm_start`` that of the last fit. Fewer rows are left to learn from: on small data, do
        without.
    validation_fraction : float, default=0.1
        Share of every class's rows held out for ``early_stopping``.
    warm_start : bool, default=False
        Start from the metric and the latent examples of the last fit, and ignore ``start`` and
        ``n_latents``. Of two sets, the second is drawn anew. With ``early_stopping``, set
        ``random_state``: the same rows are then held out as in the last fit, which would otherwise
        have learned from some of them.
    n_jobs : int, default=None
        The number of threads. None means as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        The seed of the random draws. The same seed gives the same model, bit for bit with the
        same number of threads on the same machine.
    verbose : int, default=0
        1 logs a line per round.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    latent_examples_ : ndarray of shape (n_latents, n_features)
        The latent examples z, in the space of the features, sorted by class.
    latent_labels_ : ndarray of shape (n_latents,)
        The class of each latent example.
    latent_counts_ : ndarray of shape (n_latents,)
        The number of rows of its class nearest to each latent example, as counted before the last
        pass of the refinement moved it; with ``sample_weight``, their weight. In two sets, half of
        that: each row has a nearest one in both.
    n_latents_ : int, float or dict
        What ``n_latents`` is, or was chosen to be.
    n_sets_ : int
        The number of sets that the latent examples were learned in. In each class, those of one set
        follow those of the other, until ``partial_fit`` adds some or drops those without rows.
    components_ : ndarray of shape (rank, n_features)
        The factor of the metric: ``M = components_.T @ components_``. With fewer rows than
        features, it covers the span of the rows; see "Few rows with many features" in the
        documentation.
    margins_ : ndarray of shape (n_classes,)
        The margin of each class, 1 + E[D²(x, z)], in squared units of the features; the 1 is
        the features' mean variance.
    known_scores_ : ndarray of shape (n_scored,)
        What new rows like those of the fit score, ascending: from rows that the fit did not learn
        from, or that short fits had not seen; see ``reject_threshold``. Not there if rows vote; a
        fit on a cluster has them only with ``keep="best"``.
    history_ : list of dict
        For each round: objective, active share of the triplets, norm and rank of the metric, mean
        margin, passes of k-means, seconds by part; with ``keep="best"`` the leave-one-out loss and
        error, with ``early_stopping`` the validation error and loss. Passes of the refinement have
        a number "refinement" and no objective. Round 0 has the name of the start, and with "auto"
        the loss and the error of each start; for few rows what was chosen and, as "tried", the loss
        of each candidate on each fold.
    n_iter_ : int
        The number of rounds run, passes of the refinement included.
    best_iter_ : int
        The round that was kept.
    reference_ : str
        What votes: "latent", "original", or "set" after ``set_references``.
    model_ : FittedModel
        Metric, references and temperature as an immutable ``latentmetric.core.model.FittedModel``.
    n_features_in_ : int
        The number of features of the rows passed to ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows passed to ``fit`` had feature names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from latentmetric import MaPML
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = MaPML(random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.95)
    True
    >>> len(X_train) > 2 * len(model.latent_examples_)
    True
    """

    _parameter_rules: ClassVar[dict[str, Rule]] = {
        **ReferenceClassifier._parameter_rules,
        "n_latents": Or("auto", Accepted(count_or_share)),
        "reference": OneOf(("latent", "original")),
        "start": OneOf(("auto", *STARTS)),
        "max_iter": Or("auto", Integer(0)),
        "max_passes": Integer(1),
        "n_steps": Integer(1),
        "metric_reg": Number(MIN_METRIC_REG),
        "latent_reg": Number(0, MAX_LATENT_REG),
        "max_norm": Or(None, Number(0, open_low=True)),
        "target_neighbors": Integer(1),
        "impostors": Integer(1),
        "n_components": Or(None, Integer(1)),
        "init": OneOf(("auto", "random", "spaced")),
        "refine": Or("auto", Accepted(_passes)),
        "ridge": Or("auto", Number(0, MAX_RIDGE)),
        "bandwidth": OneOf(("auto", *BANDWIDTHS)),
        "label_noise": Boolean(),
        "class_weight": Or(None, Accepted(class_weights)),
        "unlabelled": Or(None, Accepted(label)),
        "keep": OneOf(("best", "last")),
        "warm_start": Boolean(),
    }
    _in_squared_units: ClassVar[tuple[str, ...]] = ("objective", "mean_margin")

    def __init__(
        self,
        n_latents: int | float | Mapping[Any, int] | str = "auto",
        *,
        n_neighbors: int = 3,
        reference: str = "latent",
        weights: str = "kernel",
        start: str = "auto",
        max_iter: int | str = "auto",
        max_passes: int = 3,
        n_steps: int = 10_000,
        metric_reg: float = 1.7,
        latent_reg: float = 0.0,
        max_norm: float | None = None,
        target_neighbors: int = 3,
        impostors: int = 5,
        n_components: int | None = None,
        init: str = "auto",
        refine: int | str = "auto",
        ridge: float | str = "auto",
        bandwidth: str = "auto",
        label_noise: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        unlabelled: Any = None,
        keep: str = "best",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_latents = n_latents
        self.n_neighbors = n_neighbors
        self.reference = reference
        self.weights = weights
        self.start = start
        self.max_iter = max_iter
        self.max_passes = max_passes
        self.n_steps = n_steps
        self.metric_reg = metric_reg
        self.latent_reg = latent_reg
        self.max_norm = max_norm
        self.target_neighbors = target_neighbors
        self.impostors = impostors
        self.n_components = n_components
        self.init = init
        self.refine = refine
        self.ridge = ridge
        self.bandwidth = bandwidth
        self.label_noise = label_noise
        self.class_weight = class_weight
        self.unlabelled = unlabelled
        self.keep = keep
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def as_published(
        cls, n_latents: int | float | Mapping[Any, int] = 0.1, **parameters: Any
    ) -> Self:
        """MaPML exactly as in the paper: from the Euclidean metric, 10 rounds, 3-NN, no refinement.

        Parameters
        ----------
        n_latents : int, float or dict, default=0.1
            As in ``MaPML``.
        **parameters
            Other parameters of ``MaPML``; they override those of the paper.

        Returns
        -------
        MaPML
            Not fitted yet.

        Examples
        --------
        >>> from latentmetric import MaPML
        >>> MaPML.as_published(n_latents=0.05).max_iter
        10
        """
        return cls(n_latents, **(AS_PUBLISHED | parameters))

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(  # noqa: D102 - its docstring is that of the base class with one parameter more
        self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any = None,
        checkpoint: str | os.PathLike[str] | None = None, resume: bool = False,
        keep_on_interrupt: bool = False,
    ) -> Self:  # fmt: skip
        return self._fit(X, y, sample_weight, row_ids, checkpoint, resume, keep_on_interrupt)

    fit.__doc__ = cleandoc(ReferenceClassifier.fit.__doc__ or "").replace(
        "row_ids : array", f"{SAMPLE_WEIGHT}row_ids : array", 1
    )

    def _check_against(self, classes: np.ndarray[Any, Any], *, fitting: bool = True) -> None:
        """Raise on parameters that do not fit the features, and in a fit the classes."""
        if self.n_components is not None:
            Integer(1, self.n_features_in_).check("n_components", self.n_components)
        if fitting and isinstance(self.n_latents, Mapping):
            check_keys("n_latents", self.n_latents, classes.tolist(), every=True)
        if fitting and is_warm(self):
            check_warm_start(self, classes)

    def _ready(self, *names: str) -> Self:
        ready = super()._ready(*names)
        if self.reference_ not in (self.reference, "set"):
            raise ValueError(
                f"reference={self.reference!r} was set after fit, which used "
                f"reference={self.reference_!r}; fit again, or choose what votes with "
                "set_references"
            )
        return ready

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, row_ids: Any, generator: np.random.Generator
    ) -> TrainingData:
        check_on_cluster(self, X, y, sample_weight)
        of_unlabelled = None
        if self.unlabelled is not None:
            y, sample_weight, of_unlabelled = split_labels(self, y, sample_weight)
        data = super()._training_data(X, y, sample_weight, row_ids, generator)
        return choose_fit(self, replace(data, unlabelled=of_unlabelled), generator)

    def _steps(self, data: TrainingData) -> Steps[State]:
        settings, chosen = settings_of(self, data.dense), data.chosen
        plan = Plan(
            n_passes(self, data), self.latent_reg, settings.exponent, settings.n_threads,
            data.dense, chosen.ridge, chosen.bandwidth, data.n_sets,
        )  # fmt: skip
        first = first_round(self, data, settings)
        return learning(data.training, settings, n_rounds(self, data), plan, first)

    def _fitted_model(self, data: TrainingData, state: State, all_rows: bool) -> FittedModel:
        components = state.start.fold(reduced(state, settings_of(self).final_rank))
        if data.span is not None:
            components = data.span.fold(components)
        votes: tuple[Floats | None, Floats | None] = (None, None)
        outside = data.outside
        if self.reference == "original":
            if outside is not None and all_rows:
                held_out = data.coordinates.transform(data.rows[data.held_out])
                components, outside = outside.cover(components, held_out)
            points, codes = data.references(components, all_rows)
            temperature = None
        else:
            latents, codes, order = data.ordered(state.latents, state.class_starts)
            points, temperature = latents @ components.T, state.temperature or None
            if len(state.log_scales):
                votes = state.log_scales[order], state.log_weights[order]
        return FittedModel.of_metric(
            data.coordinates, components, points, codes, len(data.classes), temperature, *votes,
            outside,
        )  # fmt: skip

    def _attributes(
        self, data: TrainingData, state: State, history: list[Record], *, final: bool
    ) -> dict[str, Any]:
        attributes = super()._attributes(data, state, history, final=final)
        latents, codes, order = data.ordered(state.latents, state.class_starts)
        margins = (1 + state.spreads)[np.argsort(data.training.codes)]
        counts = state.counts[order] / state.n_sets
        if data.weights is not None:
            counts = counts * data.weights.units[codes]
        attributes |= {
            "latent_examples_": data.coordinates.inverse_transform(latents),
            "latent_labels_": data.classes[codes],
            "latent_counts_": counts,
            "margins_": margins * data.coordinates.unit,
            "reference_": self.reference,
            "n_latents_": data.chosen.n_latents,
            "n_sets_": state.n_sets,
        }
        model, scores = with_known_scores(self, data, state, attributes["model_"])
        if scores is not None:
            attributes |= {"model_": model, "known_scores_": scores}
        if not final or data.unlabelled is None:
            return attributes
        weights = data.unlabelled if data.order is None else data.unlabelled[data.order]
        return add_unlabelled(self, attributes, data.rows, weights)
