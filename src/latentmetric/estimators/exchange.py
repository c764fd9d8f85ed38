"""A fitted MaPML from latent examples that were learned elsewhere, and what it takes to go back.

Nothing is learned: rows tell the coordinates, the rows of each latent example, the margins and the
thresholds. Time O(n·d·r + n·m/C·r) for n rows, m latent examples and a metric of rank r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latentmetric.core.coordinates import InnerRows
from latentmetric.core.distances import References, k_nearest, squared_norms
from latentmetric.core.likelihood import left_out_distances
from latentmetric.core.model import FittedModel
from latentmetric.core.refinement import preimages
from latentmetric.core.starts import Start
from latentmetric.core.tuning import JUDGED_ROWS
from latentmetric.core.types import Floats, Ints
from latentmetric.core.unknown import Distances
from latentmetric.engines.dispatch import check_in_memory, validate
from latentmetric.engines.protocol import Partition
from latentmetric.estimators.fitted import check_latents, fitted_model
from latentmetric.estimators.mapml import MaPML
from latentmetric.estimators.progress import reading_log


@dataclass(frozen=True)
class LearnedLatents:
    """Latent examples of C classes under a metric, in the units of the caller's rows."""

    points: Floats
    """(m, r): sorted by class. A row x is compared with them at components @ x."""
    sizes: Ints
    """(C,): how many of them each class has; at least one."""
    temperature: float
    """T of the kernel vote, in squared units of the rows; 0 means from their spacing."""
    components: Floats | None = None
    """(r, d): the factor of the metric; None for the Euclidean one."""
    counts: Floats | None = None
    """(m,): the rows of each latent example, if they are known."""
    spreads: Floats | None = None
    """(C,): E[D²(x, z)] of each class in squared units of the rows, if it is known."""
    log_scales: Floats | None = None
    """(m,): t of each, whose squared distances count e^t times; None if all are 0."""
    log_weights: Floats | None = None
    """(m,): b of each, whose vote counts e^b times; None if all are 0."""

    @property
    def n_features(self) -> int:
        """The number of features of a row."""
        return int((self.points if self.components is None else self.components).shape[1])

    @property
    def codes(self) -> Ints:
        """The class of each latent example."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def reordered(self, positions: Ints) -> LearnedLatents:
        """The same with class c at position ``positions[c]``."""
        order = np.argsort(positions[self.codes], kind="stable")
        scales, weights = (
            None if known is None else known[order] for known in (self.log_scales, self.log_weights)
        )
        return LearnedLatents(
            self.points[order], self.sizes[np.argsort(positions)], self.temperature,
            self.components, log_scales=scales, log_weights=weights,
        )  # fmt: skip


def to_estimator(learned: LearnedLatents, X: Any, y: Any) -> MaPML:
    """A fitted MaPML with these latent examples; rows of all their classes say what it needs."""
    check_in_memory("to_estimator", "arrays in memory", X=X, y=y)
    sizes, estimator = learned.sizes.tolist(), MaPML(start="euclidean")
    labelled = validate(X, y, estimator)
    n_classes, width = len(labelled.classes), learned.n_features
    if (n_classes, estimator.n_features_in_) != (len(sizes), width):
        raise ValueError(
            f"latent examples of {len(sizes)} classes were learned with {width} features, but "
            f"y has {n_classes} classes and X has {estimator.n_features_in_} features; pass "
            "rows of every class, as the network that was trained gives them"
        )
    named = dict(zip(labelled.classes.tolist(), sizes, strict=True))
    estimator.n_latents = sizes[0] if len(set(sizes)) == 1 else named
    partition = labelled.engine.partition(labelled, 1, reading_log("MaPML", 0))
    attributes = _attributes(learned, partition, labelled.classes)
    attributes["n_latents_"] = estimator.n_latents
    estimator.__dict__.update(attributes)
    return estimator


def _attributes(
    learned: LearnedLatents, partition: Partition, classes: np.ndarray[Any, Any]
) -> dict[str, Any]:
    """What ``fit`` would set."""
    into, rows = partition.population.coordinates, np.asarray(partition.rows)
    assert partition.codes is not None
    components = learned.components
    n_features, dtype = rows.shape[1], rows.dtype
    factor: Floats = (np.eye(n_features) if components is None else components).astype(dtype)
    inner, codes = InnerRows(rows, into).under(factor), partition.codes
    latents = _in_row_space(learned, rows, factor, codes)
    of_latents = learned.codes
    degree = learned.temperature / into.unit or None
    points = InnerRows(latents, into).under(factor)
    scales, weights = (
        None if known is None else known.astype(dtype)
        for known in (learned.log_scales, learned.log_weights)
    )  # fmt: skip
    model = FittedModel.of_metric(
        into, factor, points, of_latents, len(classes), degree, scales, weights
    )
    own, squared = _own(inner, codes, points, of_latents)
    counts = np.bincount(own, minlength=len(points))
    spreads = np.bincount(codes, squared) / np.bincount(codes)
    some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), JUDGED_ROWS)).astype(np.intp))
    starts = np.concatenate(([0], np.cumsum(learned.sizes)))
    away = left_out_distances(inner[some], codes[some], model.references, starts, counts)
    known = Distances(away, squared_norms(inner[some]))
    usual = known.usual()
    return {
        "classes_": classes,
        "components_": factor,
        "latent_examples_": latents,
        "latent_labels_": classes[of_latents],
        "latent_counts_": counts.astype(np.float64),
        "n_sets_": 1,
        "margins_": (1 + spreads) * into.unit,
        "known_scores_": np.sort(known.scores(usual)),
        "reference_": "latent",
        "history_": [{"round": 0, "seconds": {}}],
        "n_iter_": 0,
        "best_iter_": 0,
        "model_": replace(model, usual=usual),
    }


def _in_row_space(learned: LearnedLatents, rows: Floats, factor: Floats, codes: Ints) -> Floats:
    """Latent examples in the space of the rows.

    Where the metric has a rank below the number of features, many rows are mapped to one point: the
    one nearest to the mean of the rows of the latent example is taken.
    """
    points: Floats = learned.points.astype(rows.dtype)
    if learned.components is None:
        return points
    own, _ = _own(rows @ factor.T, codes, points, learned.codes)
    sums, counts = np.zeros((len(points), rows.shape[1])), np.bincount(own, minlength=len(points))
    np.add.at(sums, own, rows)
    means = np.broadcast_to(rows.mean(axis=0, dtype=np.float64), sums.shape).copy()
    np.divide(sums, counts[:, None], out=means, where=counts[:, None] > 0)
    start = Start.euclidean(rows.shape[1], rows.dtype)
    return preimages(means.astype(rows.dtype), start, factor, points)


def _own(points: Floats, codes: Ints, latents: Floats, of_latents: Ints) -> tuple[Ints, Floats]:
    """The nearest latent example of each row's class, and its squared distance in float64."""
    own, squared = np.empty(len(points), dtype=np.intp), np.empty(len(points))
    for code in np.unique(codes):
        rows, members = np.flatnonzero(codes == code), np.flatnonzero(of_latents == code)
        nearest, indices = k_nearest(points[rows], References.of(latents[members]), 1)
        own[rows], squared[rows] = members[indices[:, 0]], nearest[:, 0]
    return own, squared


def from_estimator(model: Any) -> LearnedLatents:
    """The latent examples of a fitted MaPML under its metric."""
    check_latents(model)
    fitted = fitted_model(model)
    codes = np.searchsorted(model.classes_, model.latent_labels_)
    sizes = np.bincount(codes, minlength=len(model.classes_))
    if not sizes.all():
        missing = model.classes_[sizes == 0].tolist()
        raise ValueError(
            f"{len(missing)} of {len(sizes)} classes have no latent examples, such as "
            f"{missing[0]!r}; add rows of them with partial_fit, or remove_classes"
        )
    if model.reference_ != "latent":
        fitted = fitted.with_references(model.latent_examples_, codes)
    unit = fitted.coordinates.unit
    points = model.latent_examples_ @ model.components_.T
    return LearnedLatents(
        points, sizes, fitted.temperature * unit, model.components_,
        model.latent_counts_, np.maximum(model.margins_ - unit, 0),
        fitted.log_scales, fitted.log_weights,
    )  # fmt: skip
