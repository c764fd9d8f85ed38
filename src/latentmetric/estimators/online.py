"""What MaPML can do after the fit: take more rows and classes, judge labels, set thresholds.

The metric stays. Changes are computed as fitted attributes, which the estimator takes over at once,
so an interrupt leaves it as it was. Latent examples of classes that are not concerned keep every
bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.stats import beta
from sklearn.utils.validation import check_is_fitted

from latentmetric.core.alternation import State
from latentmetric.core.coordinates import InnerRows
from latentmetric.core.distances import References, squared_norms
from latentmetric.core.examples import Ids, filled_ids, ids_of, nearest_rows
from latentmetric.core.growing import ClassLatents, Growth, Standing, grow, refine_new
from latentmetric.core.model import FittedModel
from latentmetric.core.tuning import ADDED_ITERATIONS, WRONG_LABELS_EXPONENT
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.core.votes import temperature_from_references
from latentmetric.engines.dispatch import check_in_memory
from latentmetric.estimators.base import ReferenceClassifier, generator_from
from latentmetric.estimators.fitted import scores_of_labels
from latentmetric.estimators.references import learned, recoded
from latentmetric.estimators.setup import requested_counts, usual_passes
from latentmetric.validation.ids import checked_ids
from latentmetric.validation.labels import (
    Labels,
    checked_labels,
    classes_and_codes,
    joined_classes,
    known_codes,
)
from latentmetric.validation.parameters import Boolean, Number, validated_copy
from latentmetric.validation.weights import MIN_WEIGHT, checked_weights

Attributes = dict[str, Any]

FEWEST_REJECTED = 10
"""Rows below a threshold; fewer give only a rough one."""


class OnlineLatents(ReferenceClassifier[State]):
    """New rows and classes, membership, doubtful labels and thresholds."""

    init: str
    latent_reg: float
    unlabelled: Any
    max_passes: int
    latent_examples_: Floats
    latent_labels_: Labels
    latent_counts_: Floats
    n_sets_: int
    margins_: Floats
    known_scores_: Floats
    reference_: str

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *,
        forget: float = 1.0, row_ids: Any = None,
    ) -> Self:  # fmt: skip
        """Update the latent examples with more rows of known classes; the metric does not change.

        Each latent example moves like the mean of all its rows, including those of ``fit``. A class
        gets new latent examples, at rows far from those it has, as long as it has fewer than
        ``n_latents`` asks for, given the rows seen so far. If other references vote, the rows join
        them. If the estimator is not fitted yet, the first call is a ``fit``, which learns the
        metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            More rows, with the features of the fit.
        y : array-like of shape (n_samples,)
            Their labels, all of them among ``classes_``.
        classes : array-like of shape (n_classes,), default=None
            All classes, for the first call; later calls may leave it out. Classes without rows in
            the first call get their latent examples when their first rows arrive.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row, on the same scale in each call and in ``fit``, where rows
            without weights count as 1. Rows of weight 0 are left out.
        forget : float, default=1.0
            The factor by which the weight of the earlier rows of a class is multiplied before new
            rows of that class are added. Below 1, the model follows data that change over time.
        row_ids : array-like of shape (n_samples,), default=None
            Ids of the rows for ``explain``, as in ``fit``. Latent examples keep the ids that they
            have; those that have none get the ids of the rows nearest to them.

        Returns
        -------
        self
        """
        forget = Number(0, 1, open_low=True).check("forget", forget)
        caller = f"{type(self).__name__}.partial_fit"
        check_in_memory(caller, "sample_weight.compute()", sample_weight=sample_weight)
        if not hasattr(self, "model_"):
            return self._first_fit(X, y, classes, sample_weight, row_ids)
        changing, rows, labels = self._arriving("partial_fit", X, y)
        ids, weights = checked_ids(row_ids, len(rows)), None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, len(rows))
            counts = weights > 0
            rows, labels, weights = rows[counts], labels[counts], weights[counts]
            ids = None if ids is None else ids[counts]
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r:.60} is not the same as on the last call to partial_fit, "
                f"which was: {self.classes_.tolist()!r:.60}; add_classes takes rows of new classes"
            )
        codes = known_codes(labels, self.classes_)
        with np.errstate(under="ignore"):
            attributes = grown(changing, rows, codes, self.classes_, weights, forget, ids)
            if self.reference_ == "latent":
                attributes["model_"] = rescale_temperature(attributes["model_"], self.model_)
        self.__dict__ = vars(self) | attributes
        return self

    def _first_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any, row_ids: Any) -> Self:
        """``fit``, with the classes that have no rows yet."""
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        caller = f"{type(self).__name__}.partial_fit"
        check_in_memory(caller, "X.compute() and y.compute() if they fit into memory", X=X, y=y)
        every, _ = classes_and_codes(checked_labels(classes, "classes"))
        labels = checked_labels(y)
        _refuse_marked(labels, self.unlabelled, "partial_fit")
        known_codes(labels, every)
        joined = joined_classes(np.unique(labels), every)
        fitting = validated_copy(self)
        for name in ("n_latents", "class_weight"):  # without the classes that have no rows yet
            by_class = getattr(fitting, name)
            if isinstance(by_class, Mapping):
                present = set(labels.tolist()) | (set(by_class) - set(joined.tolist()))
                setattr(fitting, name, {key: by_class[key] for key in by_class if key in present})
        fitted = fitting._fit(X, y, sample_weight, row_ids)
        model, margins = with_classes(fitted, joined)
        attributes = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
        attributes |= {"classes_": joined, "margins_": margins, "model_": model}
        self.__dict__ = vars(self) | attributes
        return self

    def _arriving(self, method: str, X: Any, y: Any) -> tuple[Self, Floats, Labels]:
        changing, rows, labels = super()._arriving(method, X, y)
        _refuse_marked(labels, changing.unlabelled, method)
        return changing, rows, labels

    def _with_classes(
        self, rows: Floats, labels: Labels, row_ids: Ids | None = None
    ) -> dict[str, Any]:
        classes = joined_classes(self.classes_, labels)
        return grown(self, rows, known_codes(labels, classes), classes, row_ids=row_ids)

    def _without_classes(self, kept: Bools) -> dict[str, Any]:
        stays = kept[np.searchsorted(self.classes_, self.latent_labels_)]
        return super()._without_classes(kept) | {
            "latent_examples_": self.latent_examples_[stays],
            "latent_labels_": self.latent_labels_[stays],
            "latent_counts_": self.latent_counts_[stays],
            "margins_": self.margins_[kept],
        }

    def apply(self, X: Any) -> Ints:
        """The index of the latent example nearest to each row, in ``latent_examples_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the features of the fit.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        ready = self._ready()
        if ready.reference_ != "latent":
            codes = known_codes(ready.latent_labels_, ready.classes_)
            ready.model_ = ready.model_.with_references(ready.latent_examples_, codes, 0.0)
        indices: Any = ready.kneighbors(X, 1, return_distance=False)
        nearest: Ints = indices[:, 0]
        return nearest

    def label_scores(self, X: Any, y: Any, *, training: bool = True) -> Floats:
        """How likely the given label of each row is: low scores are doubtful labels.

        The score is the share of the vote for the label's class, with the row left out of the
        nearest latent example of that class, in each set if there are several.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows passed to ``fit``, or others.
        y : array-like of shape (n_samples,)
            Labels to judge, of known classes.
        training : bool, default=True
            Whether these are the rows that the model was fitted on. Other rows are not left out of
            any latent example.

        Returns
        -------
        ndarray of shape (n_samples,)
            Between 0 and 1.
        """
        training = Boolean().check("training", training)
        ready = self._ready()
        _, rows, labels = self._arriving("label_scores", X, y)
        codes = known_codes(labels, self.classes_)
        return scores_of_labels(ready, rows, codes, training)

    def reject_threshold(self, share: float) -> float:
        """A value of ``reject_below`` that rejects about this share of rows like those of ``fit``.

        It comes from the rows held out by ``early_stopping``, or else from rows that the refinement
        learns from only at its end; if there are fewer than 5,120 rows, from those that the short
        fits had not seen that choose how to fit, or with few rows for each feature, from those that
        longer fits had not seen. If nothing is chosen, such as by ``warm_start``, or with
        ``keep="last"`` in batches, it comes from training rows, and more new rows are rejected than
        the share says.

        From n rows, the share has a standard error of sqrt(share · (1 − share) / n): of 512 rows
        1 % for a share of 5 %, of 150 rows 1.8 %. n is ``len(known_scores_)``. If the share is
        fewer than 10 of these rows, a warning says what may be rejected instead.

        Parameters
        ----------
        share : float
            Between 0 and 1.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        share = Number(0, 1).check("share", share)
        if self.reference_ != "latent":
            raise ValueError(
                "thresholds are known only for latent examples, but other references vote; choose "
                "reject_below from score_samples of rows that are not among them"
            )
        if not hasattr(self, "known_scores_"):
            raise ValueError(
                "this model has no thresholds: it was saved by an earlier version, or fitted on a "
                'cluster with keep="last", where no rows were read to choose them; fit it again'
            )
        n_scored = len(self.known_scores_)
        if share * n_scored < FEWEST_REJECTED:
            expected = share * n_scored
            low, high = beta.interval(0.9, expected + 0.5, n_scored - expected + 0.5)
            warnings.warn(
                f"a share of {share:g} is {expected:.2g} of the {n_scored} rows that the "
                f"threshold comes from: by chance alone, it may reject {100 * low:.1f} to "
                f"{100 * high:.1f} % of new rows; choose reject_below from score_samples of more "
                f"rows, or ask for at least {min(1, FEWEST_REJECTED / n_scored):.2g}",
                stacklevel=2,
            )
        # By "weibull", the mean share of new rows below the threshold is the share asked for.
        return float(np.quantile(self.known_scores_, share, method="weibull"))


def _refuse_marked(labels: Labels, mark: Any, method: str) -> None:
    """Raise if any row has no label, for methods that take labelled rows only."""
    n_marked = 0 if mark is None else np.count_nonzero(labels == mark)
    if n_marked:
        raise ValueError(
            f"{n_marked} of {len(labels)} labels are {mark!r}, which marks rows without a "
            f"label (unlabelled={mark!r}); {method} takes labelled rows only, leave the others out"
        )


def with_classes(estimator: Any, classes: Labels) -> tuple[FittedModel, Floats]:
    """The model and the margins of an estimator for more classes, which hold its own."""
    model = recoded(estimator.model_, estimator.classes_, classes)
    margins = np.full(len(classes), model.coordinates.unit)
    margins[np.searchsorted(classes, estimator.classes_)] = estimator.margins_
    return model, margins


def grown(
    estimator: Any, rows: Floats, codes: Ints, classes: Labels, weights: Floats | None = None,
    forget: float = 1.0, row_ids: Ids | None = None,
) -> Attributes:  # fmt: skip
    """The fitted attributes of MaPML with more rows, whose codes refer to ``classes``.

    These are all classes, those of the model and those that are new. If latent examples vote, the
    new ones do, too; otherwise the rows join the references. ``weights`` are above 0.
    """
    growth = _growth(estimator, forget)
    # The same for every class: together or one by one, they get the same latent examples.
    seed = int(generator_from(estimator.random_state).integers(2**63))
    model, margins = with_classes(estimator, classes)
    model = model.covering(rows)
    components, into, unit = model.components, model.coordinates, model.coordinates.unit
    assert components is not None
    of_latents = np.searchsorted(classes, estimator.latent_labels_)
    votes_of = _votes_by_class(estimator, model)
    parts, votes, present = {}, {}, np.unique(codes)
    known = np.isin(present, of_latents)
    standing = [] if known.all() else _standing(estimator, model, ~np.isin(of_latents, codes))
    # New classes come last: they meet the others where those will be.
    for code in (*present[known].tolist(), *present[~known].tolist()):
        own, new = of_latents == code, codes == code
        latents = _latents_of(estimator, model, own, margins[code])
        of_rows = None if weights is None else np.maximum(weights[new], MIN_WEIGHT)
        weight = np.count_nonzero(new) if of_rows is None else float(of_rows.sum())
        n_rows = forget * float(latents.counts.sum()) + weight
        most = _most_latents(estimator, classes[[code]].tolist(), n_rows)
        inside = into.transform(rows[new].astype(model.dtype))
        points = inside @ components.T
        part = grow(inside, points, latents, most, growth, np.random.default_rng(seed), of_rows)
        votes[code] = votes_of(code, len(part))
        if standing:
            if not own.any():
                part = refine_new(inside, points, part, votes[code], standing, growth, of_rows)
            standing.append(Standing.of(part, votes[code]))
        parts[code], margins[code] = part, (1 + part.spread) * unit
    ends = np.searchsorted(of_latents, np.arange(1, len(classes)))

    def joined(old: Any, new: Iterable[Any]) -> Any:
        """Replace what belongs to the latent examples of these classes."""
        by_class = np.split(old, ends)
        for code, of_class in zip(parts, new, strict=True):
            by_class[code] = of_class
        return np.concatenate(by_class)

    of_latents = joined(of_latents, [np.full(len(part), code) for code, part in parts.items()])
    if estimator.reference_ == "latent":
        voting, places = model.references, [part.points for part in parts.values()]
        references = References(
            joined(voting.rows, places), joined(voting.norms, map(squared_norms, places))
        )
        before, model = model, replace(model, references=references, codes=of_latents)
        if model.log_scales is not None:
            scales, heights = zip(*votes.values(), strict=True)
            model = replace(
                model, log_scales=joined(model.log_scales, scales),
                log_weights=joined(model.log_weights, heights),
            )  # fmt: skip
        if model.row_ids is not None:
            old = [_kept_ids(estimator, before, code, len(part)) for code, part in parts.items()]
            model = replace(model, row_ids=joined(model.row_ids, old))
        if row_ids is not None:
            of_new = nearest_rows(references, model.codes, model.points(rows), codes)[1]
            model = replace(model, row_ids=filled_ids(model.row_ids, ids_of(row_ids, of_new)))
    else:
        model = model.with_more(rows, codes, row_ids)
    positions = [into.inverse_transform(part.positions) for part in parts.values()]
    return {
        "classes_": classes,
        "latent_examples_": joined(estimator.latent_examples_, positions),
        "latent_labels_": classes[of_latents],
        "latent_counts_": joined(
            estimator.latent_counts_, [part.counts for part in parts.values()]
        ),
        "margins_": margins,
        **learned(model),
    }


def _growth(estimator: Any, forget: float) -> Growth:
    """The parameters of Alg. 1 and of the refinement, from those of the estimator."""
    n_iterations = ADDED_ITERATIONS * usual_passes(estimator)
    model = estimator.model_
    return Growth(
        estimator.latent_reg, estimator.max_passes, forget, n_iterations,
        WRONG_LABELS_EXPONENT if estimator.label_noise else 0.0, model.temperature,
        model.usual_distances.nearest,
    )  # fmt: skip


def _latents_of(estimator: Any, model: FittedModel, own: Bools, margin: float) -> ClassLatents:
    """The latent examples of the class that owns these, of which there may be none."""
    components, into = model.components, model.coordinates
    assert components is not None
    if not own.any():
        return ClassLatents.none(components)
    inner = into.transform(estimator.latent_examples_[own].astype(model.dtype))
    spread = max(0.0, margin / into.unit - 1)
    return ClassLatents(inner, inner @ components.T, estimator.latent_counts_[own], spread)


def _most_latents(estimator: Any, label: list[Any], n_rows: float) -> int:
    """How many latent examples the class of this label may have, if it has so many rows."""
    requested = estimator.n_latents_ if estimator.n_latents == "auto" else estimator.n_latents
    share = None if isinstance(requested, Mapping) else float(requested) * n_rows
    return int(requested_counts(requested, label, [share])[0])


def _votes_by_class(estimator: Any, model: FittedModel) -> Callable[[int, int], Floats]:
    """The log bandwidths and log weights of so many latent examples of a class.

    Those that stood for rows come first and keep theirs, more get the mean.
    """
    if estimator.reference_ != "latent" or model.log_scales is None:
        return lambda code, n_latents: np.zeros((2, n_latents), model.dtype)
    known = np.array((model.log_scales, model.log_weights))
    mean = known.mean(axis=1, keepdims=True)

    def votes(code: int, n_latents: int) -> Floats:
        own = known[:, (model.codes == code) & (estimator.latent_counts_ > 0)][:, :n_latents]
        more = np.repeat(mean, n_latents - own.shape[1], axis=1)
        return np.concatenate((own, more), axis=1)

    return votes


def _kept_ids(estimator: Any, model: FittedModel, code: int, n_latents: int) -> Ids:
    """The ids of so many latent examples of a class: those that stood for rows come first."""
    assert model.row_ids is not None
    own = model.row_ids[(model.codes == code) & (estimator.latent_counts_ > 0)][:n_latents]
    return np.concatenate((own, np.full((n_latents - len(own), *own.shape[1:]), None)))


def _standing(estimator: Any, model: FittedModel, kept: Bools) -> list[Standing]:
    """The latent examples that stay; none if new ones are not refined."""
    if estimator.reference_ != "latent" or not (estimator.refine and model.temperature > 0):
        return []
    which = slice(None) if kept.all() else kept  # a copy only if it must be
    votes = np.zeros((2, np.count_nonzero(kept)), model.dtype)
    if model.log_scales is not None and model.log_weights is not None:
        votes[:] = model.log_scales[which], model.log_weights[which]
    counts, codes = estimator.latent_counts_[which], model.codes[which]
    examples = estimator.latent_examples_[which].astype(model.dtype, copy=False)
    positions = InnerRows(examples, model.coordinates)
    shares = counts / np.bincount(codes, counts)[codes]
    return [Standing(positions, model.references.rows[which], votes, shares)]


def rescale_temperature(model: FittedModel, before: FittedModel) -> FittedModel:
    """The model with the temperature of the one before, in units of the references' spacing."""
    old = temperature_from_references(before.references)
    new = temperature_from_references(model.references)
    if not old > 0:
        return replace(model, temperature=new)
    return replace(model, temperature=before.temperature * (new / old))
