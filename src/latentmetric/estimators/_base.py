"""What every estimator here can do once it has a metric and references: transform, search, vote.

Queries are brought under the metric and searched block by block, so a prediction needs memory
for the answers and one block per thread, whatever the number of rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.distances import References, k_nearest, row_blocks
from latentmetric.core.parallel import blas_threads, for_each, thread_count
from latentmetric.core.types import Floats, Ints
from latentmetric.core.votes import (
    KERNEL_NEIGHBORS,
    temperature_from_references,
    vote,
    vote_shares,
    vote_weights,
)
from latentmetric.engines.dask import answers, is_dask_array
from latentmetric.estimators._checks import (
    check_choice,
    check_integer,
    check_known_labels,
    check_n_jobs,
    check_real,
    set_attributes,
)
from latentmetric.estimators._inputs import (
    as_floats,
    is_of_kind,
    no_overflow,
    plain_labels,
    refuse_sparse,
    sorted_classes,
)
from latentmetric.estimators._plots import ModelPlots
from latentmetric.io.rows import as_row_file, is_lazy

REACH = {"float32": 1e12, "float64": 1e140}
"""How far queries may be from the training rows, in units of their spread: squares must fit."""


class ReferenceClassifier(
    ModelPlots, ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """k-NN with labelled references under a learned metric.

    A subclass's ``fit`` sets ``classes_``, ``components_``, ``_coordinates``, ``_references``
    (under the metric), ``_reference_codes`` and ``_temperature``.
    """

    n_neighbors: int
    weights: str
    n_jobs: int | None
    classes_: np.ndarray[Any, Any]
    components_: Floats
    _coordinates: Coordinates
    _references: References
    _reference_codes: Ints
    _temperature: float

    def transform(self, X: Any) -> Floats:
        """Bring rows under the metric, where Euclidean distances are the learned ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, rank of the metric)
        """
        check_is_fitted(self)
        dtype, rank = self.components_.dtype, len(self.components_)
        transformed: Floats = (
            answers(X, self, "transform", dtype, rank)
            if is_dask_array(X)
            else self._by_block(X, lambda rows: rows @ self.components_.T)
        )
        return transformed

    def predict(
        self, X: Any, *, reject_below: float | None = None, reject_label: Any = None
    ) -> np.ndarray[Any, Any]:
        """The class that the nearest references of each row vote for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        reject_below : float, default=None
            Rows with a lower score of ``score_samples`` get ``reject_label``. None rejects no row.
        reject_label : label, default=None
            What rejected rows are called: of the kind of the classes, but none of them.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        dtype = self._checked_label_dtype(reject_below, reject_label)
        elected: np.ndarray[Any, Any] = (
            answers(
                X, self, "predict", dtype, None,
                reject_below=reject_below, reject_label=reject_label,
            )
            if is_dask_array(X)
            else self._by_block(X, lambda rows: self._elected(rows, reject_below, reject_label))
        )  # fmt: skip
        return elected

    def score_samples(self, X: Any) -> Floats:
        """How much each row is like the references: minus the distance to the nearest one.

        A row of none of the known classes tends to have a lower score. Choose the score below
        which ``predict`` rejects a row on rows that were not given to ``fit``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            In the units of ``kneighbors``.
        """
        check_is_fitted(self)
        scores: Floats = (
            answers(X, self, "score_samples", self._references.rows.dtype, None)
            if is_dask_array(X)
            else self._by_block(X, lambda rows: self._scores(self._nearest(rows, 1)[0]))
        )
        return scores

    def predict_proba(self, X: Any) -> Floats:
        """Each class's share of the vote, columns in the order of ``classes_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        n_classes = len(self.classes_)
        shares: Floats = (
            answers(X, self, "predict_proba", np.float64, n_classes)
            if is_dask_array(X)
            else self._by_block(X, lambda rows: vote_shares(*self._ballots(rows), n_classes))
        )
        return shares

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Floats, Ints] | Ints:
        """The nearest references of each row under the learned metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n_neighbors : int, default=None
            How many; None takes the parameter of the estimator.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        indices : ndarray of shape (n_samples, n_neighbors)
            Rows of the references: of ``latent_examples_``, or of the rows given to ``fit`` or
            ``set_references`` where these are the references.
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        check_integer("n_neighbors", k, 1)
        if k > len(self._references):
            raise ValueError(
                f"n_neighbors is {k}, but the model holds only {len(self._references)} references"
            )
        found: list[tuple[Floats, Ints]] = [
            self._nearest(rows, k) for rows in self._query_blocks(X)
        ]
        squared, indices = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if not return_distance:
            return indices
        return self._as_distances(squared), indices

    def get_mahalanobis_matrix(self) -> Floats:
        """The metric M, with D²(x, x') = (x − x')ᵀ M (x − x').

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def set_references(self, X: Any, y: Any) -> Self:
        """Vote with these labelled rows from now on; the metric stays as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels the model was fitted with.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        refuse_sparse(X)
        with no_overflow():
            rows, labels = validate_data(self, X, plain_labels(y), reset=False, dtype="numeric")
        rows = as_floats(rows, X)
        check_known_labels(labels, self.classes_)
        self._check_reach(rows)
        return self._vote_with(rows, np.searchsorted(self.classes_, labels))

    def _vote_with(self, rows: Floats, codes: Ints) -> Self:
        references = self._as_references(InnerRows(rows, self._coordinates))
        found = {
            "_references": references,
            "_temperature": temperature_from_references(references),
            "_reference_codes": codes,
        }
        set_attributes(self, found)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, which ``latentmetric.load`` reads.

        The file is in the safetensors format and holds numbers and JSON, no code. It is written
        beside ``path`` and then renamed, so that whatever happens there is either the old file or
        the new one. Where ``path`` is a symbolic link, the file it points to is replaced.
        Callbacks are not stored, nor is a ``random_state`` that is not an integer: the loaded
        model has None in its place.

        Parameters
        ----------
        path : str or path-like
        """
        from latentmetric.estimators._saving import save

        save(self, path)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validated_training_data(self, X: Any, y: Any) -> tuple[Floats, Ints, Any]:
        """Rows as floats, labels as codes 0 … C − 1, and the classes in order."""
        refuse_sparse(X)
        with no_overflow():
            rows, labels = validate_data(
                self, X, plain_labels(y), dtype="numeric", ensure_min_samples=2, multi_output=True
            )
        rows = as_floats(rows, X)
        classes, codes = self._classes_and_codes(labels)
        return rows, codes, classes

    def _classes_and_codes(self, labels: Any) -> tuple[Any, Ints]:
        classes, codes = sorted_classes(column_or_1d(labels, warn=True))
        check_classification_targets(labels)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes to tell apart, "
                f"but y holds only 1 class: {classes.tolist()[0]!r}"
            )
        return classes, codes

    def _validated_queries(self, X: Any, start: int = 0) -> Floats:
        """Rows as floats; ``start`` is the number of the first of them in the caller's file."""
        refuse_sparse(X)
        with no_overflow():
            rows = validate_data(self, X, reset=False, dtype="numeric")
        rows = as_floats(rows, X)
        self._check_reach(rows, start)
        return rows

    def _check_reach(self, rows: Floats, start: int = 0) -> None:
        """Refuse rows so far out that their squared distances are not among the floats."""
        dtype, inner = self._references.rows.dtype, self._coordinates
        reach = REACH[dtype.name]
        centre = float(np.abs(inner.centre).max())
        if max(float(rows.max()), -float(rows.min())) + centre <= reach * inner.scale:
            return
        with np.errstate(over="ignore"):
            away = np.abs(rows - inner.centre) / inner.scale
        if away.max() <= reach:
            return
        row, column = np.unravel_index(np.argmax(away), away.shape)
        raise ValueError(
            f"X, row {start + row}, column {column} (counted from 0): {rows[row, column]:g} is "
            f"{away[row, column]:.1g} times the spread of the training rows away from their "
            f"centre; distances in {dtype} reach to {reach:g} times; mend the row or leave it out"
        )

    def _query_blocks(self, X: Any) -> Iterator[Floats]:
        """Rows of a file a block at a time, others as they are."""
        if not is_lazy(X):
            yield self._validated_queries(X)
            return
        file = as_row_file(X)
        for block in row_blocks(len(file), file.shape[1] * file.dtype.itemsize // 8):
            yield self._validated_queries(file[block], block.start)

    def _by_block(self, X: Any, answer: Callable[[Floats], Any]) -> Any:
        answers = [answer(rows) for rows in self._query_blocks(X)]
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def _ballots(self, rows: Floats) -> tuple[Ints, Floats]:
        """Codes of each row's nearest references, nearest first, and their weights."""
        return self._ballots_of(*self._voters(rows))

    def _voters(self, rows: Floats) -> tuple[Floats, Ints]:
        """Squared inner distances and numbers of the references that vote on each row."""
        self._check_voting_parameters()
        reach = KERNEL_NEIGHBORS if self.weights == "kernel" else self.n_neighbors
        return self._nearest(rows, min(reach, len(self._references)))

    def _ballots_of(self, squared: Floats, indices: Ints) -> tuple[Ints, Floats]:
        weights = vote_weights(squared, self.weights, self._temperature)
        return self._reference_codes[indices], weights

    def _elected(self, rows: Floats, reject_below: float | None, reject_label: Any) -> Any:
        squared, indices = self._voters(rows)
        elected = self.classes_[vote(*self._ballots_of(squared, indices))]
        if reject_below is None:
            return elected
        elected = elected.astype(self._checked_label_dtype(reject_below, reject_label))
        elected[~(self._scores(squared) >= reject_below)] = reject_label
        return elected

    def _checked_label_dtype(self, reject_below: float | None, reject_label: Any) -> np.dtype[Any]:
        """The dtype of predictions, some of which may be rejected."""
        known: np.dtype[Any] = self.classes_.dtype
        if reject_below is None:
            if reject_label is not None:
                raise ValueError(f"reject_label={reject_label!r} needs reject_below, a score")
            return known
        check_real("reject_below", reject_below, -inf)
        if reject_label is None or reject_label in self.classes_.tolist():
            example = -1 if known.kind in "biuf" else "unknown"
            raise ValueError(
                "reject_label must be a label that is none of the model's classes, such as "
                f"{example!r}, got {reject_label!r}"
            )
        if not is_of_kind(reject_label, self.classes_):
            raise TypeError(
                f"reject_label must be of the kind of the classes, which are {known}, "
                f"got {reject_label!r} of type {type(reject_label).__name__}"
            )
        dtype = np.result_type(known, np.asarray(reject_label).dtype)
        if (self.classes_.astype(dtype).astype(known) != self.classes_).any():
            raise ValueError(
                f"reject_label={reject_label!r} and the classes, which are {known}, have no "
                f"common dtype that holds them all: {dtype} would round some; choose another label"
            )
        return dtype

    def _scores(self, squared: Floats) -> Floats:
        """Scores of rows with these squared distances of their nearest references."""
        return -self._as_distances(squared[:, 0])

    def _check_voting_parameters(self) -> None:
        """They may change after ``fit``, so they are checked when they are used."""
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_choice("weights", self.weights, ("uniform", "distance", "kernel"))
        check_n_jobs(self.n_jobs)

    def _nearest(self, rows: Floats, k: int) -> tuple[Floats, Ints]:
        """Squared distances in inner coordinates, and references, of each row's k nearest."""
        dtype = self._references.rows.dtype
        squared = np.empty((len(rows), k), dtype=dtype)
        indices = np.empty((len(rows), k), dtype=np.intp)

        def search_block(block: slice) -> None:
            queries = self._coordinates.into(rows[block].astype(dtype, copy=False))
            squared[block], indices[block] = self._search(queries, k)

        n_threads = thread_count(self.n_jobs)
        with blas_threads(n_threads):
            blocks = list(row_blocks(len(rows), rows.shape[1] * dtype.itemsize))
            for_each(search_block, blocks, n_threads)
        return squared, indices

    def _search(self, queries: Floats, k: int) -> tuple[Floats, Ints]:
        """The same for one block of queries in inner coordinates."""
        return k_nearest(queries @ self.components_.T, self._references, k)

    def _as_distances(self, squared: Floats) -> Floats:
        """What ``_nearest`` measures, in the caller's units."""
        return np.sqrt(squared) * squared.dtype.type(self._coordinates.scale)

    def _as_references(self, rows: InnerRows) -> References:
        """Rows ready to be searched."""
        return References.of(rows.under(self.components_))


def generator_from(random_state: Any) -> np.random.Generator:
    """A generator seeded by what scikit-learn takes for ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(2**32, dtype=np.uint32))
