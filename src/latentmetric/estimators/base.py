"""The base class of all estimators: fit by the steps of an algorithm, then transform and predict.

``fit`` checks the rows, partitions them by class, runs the algorithm's steps and keeps the
resulting model. Queries are checked block by block, and their nearest references vote.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Generic, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from latentmetric.core.model import FittedModel
from latentmetric.core.parallel import single_threaded_blas, thread_count
from latentmetric.core.steps import AnyState, Record, Steps
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import VOTES
from latentmetric.engines.dispatch import (
    MEMORY,
    check_in_memory,
    engine_of,
    map_blocks,
    validate,
)
from latentmetric.estimators import answering
from latentmetric.estimators.driver import held_out_model, open_checkpoints, run
from latentmetric.estimators.explaining import Explanation, explanation_of, with_row_ids
from latentmetric.estimators.progress import (
    CallbackSupportMixin,
    Listener,
    iterations,
    reading_log,
    with_callbacks,
)
from latentmetric.estimators.references import ReferencesMixin, learned
from latentmetric.estimators.training import TrainingData
from latentmetric.validation.ids import checked_ids
from latentmetric.validation.labels import predicted_dtype
from latentmetric.validation.parameters import (
    Accepted,
    Boolean,
    Integer,
    Number,
    OneOf,
    Rule,
    jobs,
    seed,
    validated_copy,
)
from latentmetric.validation.rows import float_dtypes
from latentmetric.validation.weights import row_weights


def generator_from(random_state: Any) -> np.random.Generator:
    """A generator seeded from anything that scikit-learn accepts as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint32))


class ReferenceClassifier(
    ReferencesMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    ClassifierMixin,
    TransformerMixin,
    BaseEstimator,
    Generic[AnyState],
):
    """k-NN with labelled references under a learned metric.

    A subclass defines a rule for each of its own parameters, provides the steps of its algorithm,
    and turns a state into a model.
    """

    _parameter_rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "weights": OneOf(VOTES),
        "n_jobs": Accepted(jobs),
        "random_state": Accepted(seed),
        "verbose": Integer(0, or_bool=True),
        "early_stopping": Boolean(),
        "validation_fraction": Number(0, 0.9, open_low=True),
    }
    """The rule of each parameter that an estimator may have; subclasses add their own."""

    _learns: ClassVar[bool] = True
    """Whether the estimator learns; if not, the metric is Euclidean."""

    _votes_with_rows: ClassVar[bool] = False
    """Whether all rows vote, so that a fit must have them in memory."""

    _in_squared_units: ClassVar[tuple[str, ...]] = ()
    """What a state measures in units of its coordinates, and ``history_`` in those of the data."""

    n_neighbors: int
    weights: str
    n_jobs: int | None
    random_state: Any
    verbose: int
    classes_: np.ndarray[Any, Any]
    components_: Floats
    model_: FittedModel
    history_: list[Record]

    @abstractmethod
    def _steps(self, data: TrainingData) -> Steps[AnyState]:
        """The algorithm, ready to run on these rows."""

    @abstractmethod
    def _fitted_model(self, data: TrainingData, state: AnyState, all_rows: bool) -> FittedModel:
        """The model of a state; with ``all_rows``, held-out rows are references, too."""

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, *, row_ids: Any = None,
        checkpoint: str | os.PathLike[str] | None = None, resume: bool = False,
        keep_on_interrupt: bool = False,
    ) -> Self:  # fmt: skip
        """Learn from labelled rows. A fit that fails leaves the estimator unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows: an array, a data frame, a memory map, a ``RowFile`` or a Dask array.
        y : array-like of shape (n_samples,)
            The label of each row: numbers, Booleans or strings, of at least two classes.
        row_ids : array-like of shape (n_samples,), default=None
            An id or a text for each row, strings or integers, for ``explain``. The model keeps
            those of the three rows nearest to each latent example, or those of all rows that vote.
        checkpoint : path, default=None
            A folder for the state of the fit, in one file that is replaced after each round. If
            it cannot be written, the fit continues and warns once.
        resume : bool, default=False
            Continue from the checkpoint, if there is one. The model is the same as that of a fit
            that was never interrupted. Raises if the data or the parameters differ.
        keep_on_interrupt : bool, default=False
            On KeyboardInterrupt, end with the best round so far, if there is one, instead of
            raising.

        Returns
        -------
        self
        """
        return self._fit(X, y, None, row_ids, checkpoint, resume, keep_on_interrupt)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, row_ids: Any, checkpoint: Any = None,
        resume: bool = False, keep_on_interrupt: bool = False,
    ) -> Self:  # fmt: skip
        fitting = validated_copy(self)
        keep = Boolean().check("keep_on_interrupt", keep_on_interrupt)
        generator, checkpoints = generator_from(fitting.random_state), None
        if Boolean().check("resume", resume) or checkpoint is not None:
            checkpoints = open_checkpoints(fitting, checkpoint, resume, generator)
        with single_threaded_blas():
            data = fitting._training_data(X, y, sample_weight, row_ids, generator)
            steps = fitting._steps(data)
            listener = Listener(self, steps.limit, X, y)
            attributes = run(fitting, data, steps, generator, listener, checkpoints, keep)
            of_latents = attributes.get("reference_") == "latent"
            attributes["model_"] = with_row_ids(attributes["model_"], data, of_latents)
        # All at once: an interrupt finds the estimator as it was or as it will be.
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = kept | attributes
        return self

    def _check_combinations(self) -> None:
        """Raise on checked parameters that do not fit each other."""

    def _check_against(self, classes: np.ndarray[Any, Any], *, fitting: bool = True) -> None:
        """Raise on parameters that do not fit the features, and in a fit the classes."""

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, row_ids: Any, generator: np.random.Generator
    ) -> TrainingData:
        """Checked rows by class; with early stopping, some of them are held out."""
        caller = f"{type(self).__name__}.fit"
        check_in_memory(caller, "row_ids.compute()", row_ids=row_ids)
        if self._votes_with_rows:
            check_in_memory(caller, "X.compute() if it fits, or fit MaPML", X=X)
        labelled = validate(X, y, self)
        self._check_against(labelled.classes)
        ids = checked_ids(row_ids, labelled.rows.shape[0])
        if self._votes_with_rows:
            rows = labelled.engine.gather(labelled.rows, caller)
            labelled = replace(labelled, engine=MEMORY, rows=rows)
        class_weight = getattr(self, "class_weight", None)
        if sample_weight is not None or class_weight is not None:
            weights = row_weights(sample_weight, class_weight, labelled.codes, labelled.classes)
            labelled = replace(labelled, weights=weights)
        named = None if ids is None else replace(labelled, ids=ids)
        progress = reading_log(type(self).__name__, self.verbose)
        partition = labelled.engine.partition(labelled, thread_count(self.n_jobs), progress)
        population = partition.population
        data = TrainingData(
            labelled.classes, population, population.coordinates, partition.rows, partition.codes,
            partition.order, partition.weights, named=named,
        )  # fmt: skip
        if not getattr(self, "early_stopping", False):
            return data
        return data.split(self.validation_fraction, generator)

    def _attributes(
        self, data: TrainingData, state: AnyState, history: list[Record], *, final: bool
    ) -> dict[str, Any]:
        """The fitted attributes; ``final`` if no further step follows."""
        if len(data.held_out):
            model, _ = held_out_model(self, data, state)
            if final:
                complete = self._fitted_model(data, state, all_rows=True)
                model = replace(complete, temperature=model.temperature)
        else:
            model = self._fitted_model(data, state, all_rows=False)
        features = ("n_features_in_", "feature_names_in_")
        return {
            **learned(model),
            **{name: getattr(self, name) for name in features if hasattr(self, name)},
            "classes_": data.classes,
            "history_": list(history),
            "n_iter_": iterations(history[-1]),
            "best_iter_": iterations(state.record),
        }

    def transform(self, X: Any) -> Floats:
        """Map rows to the space in which Euclidean distances are the learned ones.

        Its origin is the mean of the rows passed to ``fit``: the result is
        ``(X - mean) @ components_.T``, so it is as precise far from 0 as near it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the features of the fit.

        Returns
        -------
        ndarray of shape (n_samples, rank of the metric)
        """
        check_is_fitted(self)
        dtype: Any = self.components_.dtype
        if not engine_of(X).in_process:
            dtype = np.result_type(dtype, float_dtypes(X.dtype)[0])
        rank = len(self.components_)
        transformed: Floats = map_blocks(partial(answering.embedded, self), X, self, dtype, rank)
        return transformed

    def predict(
        self, X: Any, *, reject_below: float | None = None, reject_label: Any = None
    ) -> np.ndarray[Any, Any]:
        """The class that the nearest references of each row vote for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify, with the features of the fit.
        reject_below : float, default=None
            Rows with a lower score of ``score_samples`` get ``reject_label``. None rejects no row.
        reject_label : label, default=None
            The label of rejected rows: of the same kind as the classes, but not one of them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        voting = self._voting()
        dtype = predicted_dtype(voting.classes_, reject_below, reject_label)
        block = partial(answering.labels, voting, reject_below, reject_label, dtype)
        predicted: np.ndarray[Any, Any] = map_blocks(block, X, voting, dtype)
        return predicted

    def predict_proba(self, X: Any) -> Floats:
        """Each class's share of the vote, columns in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify, with the features of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        voting = self._voting()
        block, n_classes = partial(answering.shares, voting), len(voting.classes_)
        shares: Floats = map_blocks(block, X, voting, np.float64, n_classes)
        return shares

    def score_samples(self, X: Any) -> Floats:
        """How much each row looks like rows of known classes; others tend to score lower.

        The score is D²(x, centre) / c − D²(x, nearest reference) / r under the learned metric. The
        centre is the mean of the rows passed to ``fit``; c and r are the means of these distances
        over known rows that the references are not made of (c at least 2r). So rows of known
        classes score about 0 in the mean, in any unit. The score of a similarity (``OASIS``) is
        that of the nearest reference. To choose ``reject_below`` of ``predict``, use rows that
        were not passed to ``fit``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the features of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
            With fewer rows than features in the fit of ``MaPML``, the part of a row outside their
            span counts here, but not in ``kneighbors``.
        """
        ready = self._ready()
        scores: Floats = map_blocks(partial(answering.scores, ready), X, ready, np.float64)
        return scores

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Floats, Ints] | Ints:
        """The nearest references of each row under the learned metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows whose neighbours to find, with the features of the fit.
        n_neighbors : int, default=None
            The number of neighbours; None means ``n_neighbors`` of the estimator, or all
            references if there are fewer.
        return_distance : bool, default=True
            Whether to return the distances as well.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        indices : ndarray of shape (n_samples, n_neighbors)
            Row numbers of the references: in ``latent_examples_``, or in the rows passed to
            ``fit`` or ``set_references`` if these are the references.
        """
        ready = self._ready()
        n_references = len(ready.model_.references)
        given = min(ready.n_neighbors, n_references) if n_neighbors is None else n_neighbors
        k = Integer(1).check("n_neighbors", given)
        if k > n_references:
            raise ValueError(
                f"n_neighbors is {k}, but the model holds only {n_references} references"
            )
        found = map_blocks(partial(answering.neighbors, ready, k), X, ready, np.float64, 2 * k)
        indices: Ints = found[:, k:].astype(np.intp)
        if not return_distance:
            return indices
        return found[:, :k].astype(ready.model_.dtype), indices

    def explain(self, X: Any, n_voters: int | None = 5) -> Explanation:
        """Why each row gets its class: the references that voted, and their shares of the vote.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to explain, with the features of the fit.
        n_voters : int, default=5
            How many references to show for each row: those with the largest shares. None shows all
            that vote.

        Returns
        -------
        Explanation
            References, labels, distances and shares of the vote, and ids of rows that the
            references stand for, if ``fit`` was given ``row_ids``.
        """
        voting = self._voting()
        check_in_memory(f"{type(self).__name__}.explain", "X[:100].compute()", X=X)
        model = voting.model_
        k = model.n_voters(voting.weights, voting.n_neighbors)
        if n_voters is not None:
            k = min(k, Integer(1).check("n_voters", n_voters))
        found = map_blocks(partial(answering.reasons, voting, k), X, voting, np.float64, 3 * k)
        return explanation_of(found, model, voting.classes_)

    def get_mahalanobis_matrix(self) -> Floats:
        """The metric M, with D²(x, x') = (x − x')ᵀ M (x − x').

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _ready(self, *names: str) -> Self:
        """A copy to answer with, which no other thread changes.

        Parameters are checked again when they are used, because they may change after ``fit``:
        ``names`` in addition to those of any search.
        """
        if "model_" not in vars(self):
            check_is_fitted(self)
        return validated_copy(self, ("n_jobs", *names))

    def _voting(self) -> Self:
        """A checked copy to vote with, which no other thread changes."""
        return self._ready("n_neighbors", "weights")
