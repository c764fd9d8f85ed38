"""Estimators whose references and classes change after the fit; the metric stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latentmetric.core.examples import Ids
from latentmetric.core.model import FittedModel
from latentmetric.core.types import Bools, Floats
from latentmetric.engines.dispatch import labelled_queries
from latentmetric.validation.ids import checked_ids
from latentmetric.validation.labels import (
    Labels,
    checked_labels,
    find_codes,
    joined_classes,
    known_codes,
)
from latentmetric.validation.parameters import validated_copy


def learned(model: FittedModel) -> dict[str, Any]:
    """The fitted attributes that a model is."""
    components = {} if model.components is None else {"components_": model.components}
    return {"model_": model, **components}


def recoded(model: FittedModel, before: Labels, classes: Labels) -> FittedModel:
    """The model with codes that refer to ``classes``, which hold those of before."""
    codes = np.searchsorted(classes, before)[model.codes]
    return replace(model, codes=codes, n_classes=len(classes))


class ReferencesMixin:
    """Methods that change what a fitted estimator knows, all at once or not at all."""

    classes_: Labels
    model_: FittedModel

    def set_references(self, X: Any, y: Any, *, row_ids: Any = None) -> Self:
        """Let these labelled rows vote from now on; the metric does not change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The new references, with the features of the fit.
        y : array-like of shape (n_samples,)
            Labels of known classes or of new ones, which are added as by ``add_classes``.
        row_ids : array-like of shape (n_samples,), default=None
            Ids of the rows for ``explain``, as in ``fit``; None keeps none.

        Returns
        -------
        self
        """
        changing, rows, labels = self._arriving("set_references", X, y)
        ids = checked_ids(row_ids, len(rows))
        attributes: dict[str, Any] = {}
        unknown = find_codes(labels, self.classes_) < 0
        if unknown.any():
            attributes = changing._with_classes(rows[unknown], labels[unknown])
            changing.__dict__.update(attributes)
        codes = known_codes(labels, changing.classes_)
        attributes |= learned(changing.model_.with_references(rows, codes, row_ids=ids))
        if "reference_" in vars(self):
            attributes["reference_"] = "set"
        self.__dict__ = vars(self) | attributes
        return self

    def add_classes(self, X: Any, y: Any, *, row_ids: Any = None) -> Self:
        """Add new classes from their rows; the metric and all other classes do not change.

        The rows become references. In ``MaPML``, the new classes get latent examples, as many as
        ``n_latents`` says, by k-means under the metric. They are then refined, as in ``fit``, with
        the latent examples of other classes in the place of their rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of the new classes, with the features of the fit.
        y : array-like of shape (n_samples,)
            Labels of the same kind as ``classes_``, but none of them.
        row_ids : array-like of shape (n_samples,), default=None
            Ids of the rows for ``explain``, as in ``fit``.

        Returns
        -------
        self
        """
        changing, rows, labels = self._arriving("add_classes", X, y)
        ids = checked_ids(row_ids, len(rows))
        known = np.unique(labels[find_codes(labels, self.classes_) >= 0]).tolist()
        if known:
            raise ValueError(
                f"y holds {len(known)} of the model's {len(self.classes_)} classes, such as "
                f"{known[0]!r}; add_classes takes rows of new classes only, partial_fit takes rows "
                "of known ones"
            )
        attributes = changing._with_classes(rows, labels, ids)
        self.__dict__ = vars(self) | attributes
        return self

    def remove_classes(self, labels: Any) -> Self:
        """Forget classes, with their references; at least two must remain.

        Parameters
        ----------
        labels : array-like of shape (n_labels,)
            Labels that are among ``classes_``.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        gone = known_codes(checked_labels(labels, "labels"), self.classes_, "labels")
        kept = np.ones(len(self.classes_), dtype=bool)
        kept[gone] = False
        if kept.sum() < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes, but of {len(kept)} only "
                f"{kept.sum()} would remain"
            )
        self.__dict__ = vars(self) | self._without_classes(kept)
        return self

    def _arriving(self, method: str, X: Any, y: Any) -> tuple[Self, Floats, Labels]:
        """A checked copy of this estimator to change, and labelled rows to change it with."""
        check_is_fitted(self)
        changing = validated_copy(self)
        rows, labels = labelled_queries(X, y, self, f"{type(self).__name__}.{method}")
        return changing, rows, labels

    def _with_classes(
        self, rows: Floats, labels: Labels, row_ids: Ids | None = None
    ) -> dict[str, Any]:
        """The fitted attributes with new classes, whose rows become references."""
        classes = joined_classes(self.classes_, labels)
        model = recoded(self.model_, self.classes_, classes)
        more = model.with_more(rows, known_codes(labels, classes), row_ids)
        return {"classes_": classes, **learned(more)}

    def _without_classes(self, kept: Bools) -> dict[str, Any]:
        """The fitted attributes with only these classes."""
        model = self.model_.with_some(kept[self.model_.codes])
        if not len(model.references):
            raise ValueError("no reference would remain; set_references gives others")
        codes = (np.cumsum(kept) - 1)[model.codes]
        return {
            "classes_": self.classes_[kept],
            "model_": replace(model, codes=codes, n_classes=int(kept.sum())),
        }
