"""MaPML: margin preserving metric learning with latent examples.

Qian, Tang, Li, Zhu, Jin: "Large-scale Distance Metric Learning with Uncertainty", CVPR 2018.
The class drives; what it computes is in ``latentmetric.core``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from math import inf
from numbers import Integral
from typing import Any, Self

import numpy as np

from latentmetric.core.alternation import Settings, State, first_state, next_state, state_from
from latentmetric.core.coordinates import InnerRows
from latentmetric.core.distances import References
from latentmetric.core.parallel import blas_threads, thread_count
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import (
    KERNEL_NEIGHBORS,
    temperature_from_held_out,
    temperature_from_references,
    vote,
)
from latentmetric.estimators._base import ReferenceClassifier, generator_from
from latentmetric.estimators._checkpoints import Checkpoints
from latentmetric.estimators._checks import (
    check_bool,
    check_choice,
    check_counts_by_class,
    check_integer,
    check_real,
    check_verbose,
    set_attributes,
    unchanged_on_failure,
)
from latentmetric.estimators._compat import CallbackSupportMixin, with_callbacks
from latentmetric.estimators._index import MIN_REFERENCES, ApproximateIndex, import_faiss
from latentmetric.estimators._plots import LatentPlots
from latentmetric.estimators._rounds import Rounds
from latentmetric.estimators._training_data import TrainingData, training_data

MAX_PASSES = 100
"""Passes of Alg. 1 a round, if rows still change their latent examples then."""

MIN_METRIC_REG = 1e-9
"""With less, steps would be so long that the metric leaves what float32 holds."""


class MaPML(LatentPlots, CallbackSupportMixin, ReferenceClassifier):
    """Metric and latent examples, learned together, for nearest-neighbour classification.

    Rows are taken for noisy observations of a few clean latent examples of their class. Rounds
    alternate between learning a Mahalanobis metric from active triplets of latent examples, with
    a margin that grows with each class's spread, and moving the latent examples under it. The
    k-NN vote then compares a query with the latent examples only.

    Results do not depend on the scale, place or rotation of the features, the order of the rows
    or the names of the classes, but where rows or classes tie exactly.

    Parameters
    ----------
    latent_ratio : float, int or dict, default=0.1
        Latent examples of a class: a float is their share of its rows (τ in the paper), an int
        their number for every class, a dict the number for each class. A class has at least one
        and at most as many as it has rows.
    n_neighbors : int, default=3
        Nearest references that vote, unless ``weights="kernel"``.
    reference : {"latent", "original"}, default="latent"
        What votes: the latent examples, or all rows given to ``fit`` ("MaPML-O"). It acts in
        ``fit``; ``set_references`` changes what votes afterwards.
    weights : {"uniform", "distance", "kernel"}, default="uniform"
        One vote a neighbour, a tie going to the nearest neighbour's class; votes by inverse
        distance; or votes by exp(−D²/T) of the nearest 20 references, with T found from the
        spacing of the references, or on the held-out rows with ``early_stopping``.
    index : {"exact", "faiss"}, default="exact"
        How references are searched: all of them, or by an approximate index of faiss where they
        are many, which may miss a neighbour now and then (extra ``faiss``).
    max_iter : int, default=10
        Rounds (K). 0 leaves the Euclidean metric with its own latent examples.
    n_steps : int, default=10_000
        Steps of stochastic gradient descent a round, one triplet each (S).
    metric_reg : float, default=1.7
        Strength λ that holds the metric near that of the round before, in units of the
        features' mean variance.
    latent_reg : float, default=0.0
        Strength γ that holds each latent example near its place of the round before, in rows.
    max_norm : float, default=None
        Bound δ on the metric's Frobenius norm, in units of that of the Euclidean metric. None
        sets no bound.
    target_neighbors : int, default=3
        Nearest latent examples of its own class among which an anchor's p is drawn.
    impostors : int, default=5
        Nearest violators of other classes among which an anchor's q is drawn.
    n_components : int, default=None
        Largest rank of the metric. None sets no limit.
    init : {"random", "k-means++"}, default="random"
        How the rows at which latent examples start are drawn.
    early_stopping : bool, default=False
        Hold out ``validation_fraction`` of every class, stop when the error on it no longer
        falls, and return the best round, the Euclidean round 0 included.
    validation_fraction : float, default=0.1
        Share of every class's rows held out for ``early_stopping``.
    warm_start : bool, default=False
        Start from the metric and the latent examples of the last fit, whatever ``latent_ratio``
        says, instead of the Euclidean metric.
    n_jobs : int, default=None
        Threads. None is as many as BLAS uses, -1 all processors.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The same seed gives the same model, to the last bit for the same
        number of threads on the same machine.
    verbose : int, default=0
        1 logs a line a round.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    latent_examples_ : ndarray of shape (n_latents, n_features)
        The latent examples z, in the space of the features, class by class.
    latent_labels_ : ndarray of shape (n_latents,)
    components_ : ndarray of shape (rank, n_features)
        The factor of the metric: M = components_.T @ components_.
    margins_ : ndarray of shape (n_classes,)
        The margin of each class, 1 + E[D²(x, z)], in squared units of the features; the 1 is
        the features' mean variance.
    history_ : list of dict
        For each round: objective, active share of the triplets, norm and rank of the metric,
        mean margin, passes of k-means, validation error with ``early_stopping``, seconds a part.
    n_iter_ : int
        Rounds run.
    best_iter_ : int
        The round that was kept: the last one without ``early_stopping``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the rows given to ``fit`` had feature names that are all strings.

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
    >>> len(X_train), len(model.latent_examples_)
    (1347, 134)
    """

    def __init__(
        self,
        latent_ratio: float | int | Mapping[Any, int] = 0.1,
        *,
        n_neighbors: int = 3,
        reference: str = "latent",
        weights: str = "uniform",
        index: str = "exact",
        max_iter: int = 10,
        n_steps: int = 10_000,
        metric_reg: float = 1.7,
        latent_reg: float = 0.0,
        max_norm: float | None = None,
        target_neighbors: int = 3,
        impostors: int = 5,
        n_components: int | None = None,
        init: str = "random",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.latent_ratio = latent_ratio
        self.n_neighbors = n_neighbors
        self.reference = reference
        self.weights = weights
        self.index = index
        self.max_iter = max_iter
        self.n_steps = n_steps
        self.metric_reg = metric_reg
        self.latent_reg = latent_reg
        self.max_norm = max_norm
        self.target_neighbors = target_neighbors
        self.impostors = impostors
        self.n_components = n_components
        self.init = init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any, *, checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False, keep_on_interrupt: bool = False,
    ) -> Self:  # fmt: skip
        """Learn the metric and the latent examples.

        A fit that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        checkpoint : path, default=None
            A folder to keep the state of the fit in, replaced as a whole after each round. Where
            it cannot be written the fit goes on and warns once.
        resume : bool, default=False
            Go on from the checkpoint, if there is one, to the same model as that of a fit that
            was never interrupted. Other data or parameters than its own are refused.
        keep_on_interrupt : bool, default=False
            On KeyboardInterrupt end with the best round so far, if there is one, instead.

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            self._check_parameters()
            self._check_index()
            check_bool("resume", resume)
            check_bool("keep_on_interrupt", keep_on_interrupt)
            generator = generator_from(self.random_state)
            checkpoints = None
            if checkpoint is not None:
                checkpoints = Checkpoints(checkpoint, resume)
                checkpoints.begin(self, generator)
            elif resume:
                raise ValueError("resume=True needs checkpoint, the folder to go on from")
            settings = self._settings()
            with blas_threads(settings.n_threads):
                data = training_data(self, X, y, generator)
                run = Rounds(self, data, settings, checkpoints, keep_on_interrupt)
                attributes = run.attributes(X, y)
        set_attributes(self, attributes)
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.latent_ratio, Mapping):
            if isinstance(self.latent_ratio, Integral):
                check_integer("latent_ratio as a number of latent examples", self.latent_ratio, 1)
            else:
                check_real("latent_ratio", self.latent_ratio, 0, 1, open_low=True)
        self._check_voting_parameters()
        check_choice("reference", self.reference, ("latent", "original"))
        check_choice("index", self.index, ("exact", "faiss"))
        check_integer("max_iter", self.max_iter, 0)
        check_integer("n_steps", self.n_steps, 1)
        check_real("metric_reg", self.metric_reg, MIN_METRIC_REG)
        check_real("latent_reg", self.latent_reg, 0)
        if self.max_norm is not None:
            check_real("max_norm", self.max_norm, 0, open_low=True)
        check_integer("target_neighbors", self.target_neighbors, 1)
        check_integer("impostors", self.impostors, 1)
        check_choice("init", self.init, ("random", "k-means++"))
        check_bool("early_stopping", self.early_stopping)
        check_real("validation_fraction", self.validation_fraction, 0, 0.9, open_low=True)
        check_bool("warm_start", self.warm_start)
        check_verbose(self.verbose)

    def _check_index(self) -> None:
        check_choice("index", self.index, ("exact", "faiss"))
        if self.index == "faiss":
            import_faiss()

    def _check_against_data(self, n_features: int, classes: Any) -> None:
        """What can be checked only once the data is known."""
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1, n_features)
        if isinstance(self.latent_ratio, Mapping):
            check_counts_by_class("latent_ratio", self.latent_ratio, classes.tolist())
        if not self._continues():
            return
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"warm_start needs the classes of the last fit: it had {len(self.classes_)}, "
                f"from {self.classes_[0]!r} to {self.classes_[-1]!r}, y has {len(classes)}, "
                f"from {classes[0]!r} to {classes[-1]!r}; set warm_start=False"
            )
        if n_features != self.latent_examples_.shape[1]:
            raise ValueError(
                f"warm_start needs the features of the last fit: X has {n_features}, "
                f"it had {self.latent_examples_.shape[1]}; set warm_start=False"
            )

    def _settings(self) -> Settings:
        return Settings(
            n_steps=self.n_steps,
            metric_reg=self.metric_reg,
            latent_reg=self.latent_reg,
            max_norm=inf if self.max_norm is None else self.max_norm,
            target_neighbors=self.target_neighbors,
            impostors=self.impostors,
            n_components=self.n_components,
            max_passes=MAX_PASSES,
            n_threads=thread_count(self.n_jobs),
        )

    def _next_state(self, state: State | None, data: TrainingData, settings: Settings) -> State:
        """The state after this one; the first is round 0, or the last fit's under warm_start."""
        if state is not None:
            return next_state(state, data.training, settings, data.generator)
        if self._continues():
            return self._last_state(data, settings)
        counts = self._latent_counts(data)
        return first_state(data.training, counts, self.init, settings, data.generator)

    def _continues(self) -> bool:
        return self.warm_start and hasattr(self, "components_")

    def _last_state(self, data: TrainingData, settings: Settings) -> State:
        """Where the last fit ended, with the rows of this one."""
        dtype = data.training.dtype
        latents = data.training.coordinates.into(self.latent_examples_.astype(dtype))
        of_class = [latents[self.latent_labels_ == data.classes[c]] for c in data.training.codes]
        return state_from(
            data.training,
            self.components_.astype(dtype),
            np.concatenate(of_class),
            np.cumsum([0, *map(len, of_class)]),
            settings,
            data.generator,
        )

    def _latent_counts(self, data: TrainingData) -> Ints:
        """How many latent examples the class at each position has."""
        sizes = data.training.sizes
        if isinstance(self.latent_ratio, Mapping):
            classes = data.classes.tolist()
            by_class = [self.latent_ratio[classes[code]] for code in data.training.codes]
            asked = np.array(by_class, dtype=np.intp)
        elif isinstance(self.latent_ratio, Integral):
            asked = np.full(len(sizes), int(self.latent_ratio))
        else:
            asked = np.rint(float(self.latent_ratio) * sizes).astype(np.intp)
        counts: Ints = np.clip(asked, 1, sizes)
        return counts

    def _measured(self, data: TrainingData, state: State) -> dict[str, Any]:
        """The record of a round in the units of the data, with its validation error."""
        unit = data.training.coordinates.unit
        record = dict(state.record)
        record["objective"] *= unit
        record["mean_margin"] *= unit
        if self.early_stopping:
            model = self._with(self._attributes(data, state, [record]))
            labels, weights = model._ballots(data.rows[data.held_out])
            wrong = vote(labels, weights) != data.codes[data.held_out]
            record["validation_error"] = float(wrong.mean())
        return record

    def _attributes(
        self, data: TrainingData, state: State, history: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The fitted attributes of a state; classes in the order of ``classes_``."""
        coordinates = data.training.coordinates
        positions = np.argsort(data.training.codes)
        parts = np.split(state.latents, state.class_starts[1:-1])
        latents = np.concatenate([parts[position] for position in positions])
        codes = np.repeat(np.arange(len(parts)), [len(parts[position]) for position in positions])
        attributes = {
            "classes_": data.classes,
            "components_": state.components,
            "latent_examples_": coordinates.out_of(latents),
            "latent_labels_": data.classes[codes],
            "margins_": (1 + state.spreads[positions]) * coordinates.unit,
            "history_": list(history),
            "n_iter_": history[-1]["round"],
            "best_iter_": state.round,
            "_coordinates": coordinates,
            "_references": References.of(latents @ state.components.T),
            "_reference_codes": codes,
        }
        if self.reference == "original":
            voters = np.setdiff1d(np.arange(len(data.rows)), data.held_out)
            attributes |= self._original_references(data, state, voters)
        attributes["_temperature"] = self._temperature_of(data, attributes)
        return attributes

    def _original_references(
        self, data: TrainingData, state: State, voters: Ints
    ) -> dict[str, Any]:
        inner = InnerRows(data.rows, data.training.coordinates)
        points, codes = inner.under(state.components, voters), data.codes[voters]
        if data.order is not None:
            as_given = np.argsort(data.order[voters])
            points, codes = points[as_given], codes[as_given]
        return {"_references": References.of(points), "_reference_codes": codes}

    def _temperature_of(self, data: TrainingData, attributes: dict[str, Any]) -> float:
        if not len(data.held_out) or self.weights != "kernel":
            return temperature_from_references(attributes["_references"])
        model = self._with(attributes)
        reach = min(KERNEL_NEIGHBORS, len(model._references))
        distances, indices = model._nearest(data.rows[data.held_out], reach)
        correct = model._reference_codes[indices] == data.codes[data.held_out, None]
        return temperature_from_held_out(distances, correct)

    def _nearest(self, rows: Floats, k: int) -> tuple[Floats, Ints]:
        self._check_index()
        if self._asks_index():
            built = getattr(self, "_built", None)
            if built is None or built.references is not self._references:
                self._built = ApproximateIndex(self._references)
        return super()._nearest(rows, k)

    def _search(self, queries: Floats, k: int) -> tuple[Floats, Ints]:
        if self._asks_index():
            return self._built.k_nearest(queries @ self.components_.T, k)
        return super()._search(queries, k)

    def _asks_index(self) -> bool:
        return self.index == "faiss" and len(self._references) >= MIN_REFERENCES

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_built"}

    def _with(self, attributes: dict[str, Any]) -> Self:
        """A copy of this estimator with these attributes."""
        model = copy(self)
        set_attributes(model, attributes)
        return model
