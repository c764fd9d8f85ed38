"""What becomes of a fitted MaPML when classes and rows come and go; its metric stays.

Everything here returns fitted attributes, which the estimator takes over at once, so an interrupt
leaves it as it was. Latent examples of classes that are not concerned keep every bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from latentmetric.core.alternation import class_margins
from latentmetric.core.distances import References, squared_norms
from latentmetric.core.growing import ClassLatents, Growth, grow
from latentmetric.core.model import FittedModel
from latentmetric.core.types import Bools, Floats, Ints
from latentmetric.core.votes import temperature_from_references
from latentmetric.validation.weights import LEAST

Labels = np.ndarray[Any, Any]
Attributes = dict[str, Any]


def n_latents_of(requested: Any, n_rows: float, label: Any) -> int:
    """The number of latent examples of a class with this many rows, at least 1."""
    if isinstance(requested, Mapping):
        if label not in requested:
            raise ValueError(
                f"n_latents has no number for the class {label!r}, only for {len(requested)} "
                "others; add it with set_params"
            )
        return int(requested[label])
    if isinstance(requested, Integral):
        return int(requested)
    return max(1, round(float(requested) * n_rows))


def recoded(model: FittedModel, before: Labels, classes: Labels) -> FittedModel:
    """The model with codes that refer to ``classes``, which hold those of before."""
    codes = np.searchsorted(classes, before)[model.codes]
    return replace(model, codes=codes, n_classes=len(classes))


@dataclass(frozen=True)
class Arrivals:
    """Rows that arrive after a fit, and how the latent examples of their classes grow."""

    rows: Floats
    codes: Ints
    """Their codes in ``classes``."""
    classes: Labels
    """All classes, those of the model and those that are new."""
    growth: Growth
    seed: int
    """The same for every class: together or one by one, they get the same latent examples."""
    weights: Floats | None = None
    """The weights of the rows, all above 0; None if each counts as one."""


def grown(estimator: Any, arriving: Arrivals) -> Attributes:
    """The fitted attributes of MaPML with these rows.

    If latent examples vote, the new ones do, too; otherwise the rows join the references.
    """
    classes, before = arriving.classes, estimator.classes_
    model = recoded(estimator.model_, before, classes)
    into, unit = model.coordinates, model.coordinates.unit
    of_latents = np.searchsorted(classes, estimator.latent_labels_)
    margins = np.full(len(classes), unit)
    margins[np.searchsorted(classes, before)] = estimator.margins_
    parts = {}
    for code in np.unique(arriving.codes).tolist():
        own = np.flatnonzero(of_latents == code)
        latents = _class_latents(estimator, model, own, max(0.0, margins[code] / unit - 1))
        parts[code] = grown_class(estimator.n_latents, model, arriving, code, latents)
        margins[code] = float(class_margins(np.array([parts[code].spread]))[0]) * unit
    join = _Join(of_latents, parts)
    if estimator.reference_ == "latent":
        rows, norms = model.references.rows, model.references.norms
        points = [part.points for part in parts.values()]
        references = References(join(rows, points), join(norms, map(squared_norms, points)))
        model = replace(model, references=references, codes=join.codes)
    else:
        model = model.with_more(arriving.rows, arriving.codes)
    places = [into.out_of(part.places) for part in parts.values()]
    return {
        "classes_": classes,
        "latent_examples_": join(estimator.latent_examples_, places),
        "latent_labels_": classes[join.codes],
        "latent_counts_": join(estimator.latent_counts_, [part.counts for part in parts.values()]),
        "margins_": margins,
        "model_": model,
    }


def _class_latents(estimator: Any, model: FittedModel, own: Ints, spread: float) -> ClassLatents:
    """The latent examples of one class, by their numbers."""
    components = model.components
    assert components is not None
    if not len(own):
        return ClassLatents.none(components)
    places = model.coordinates.into(estimator.latent_examples_[own].astype(model.dtype))
    return ClassLatents(places, places @ components.T, estimator.latent_counts_[own], spread)


def grown_class(
    n_latents: Any, model: FittedModel, arriving: Arrivals, code: int, latents: ClassLatents
) -> ClassLatents:
    """The latent examples of one class with its new rows."""
    assert model.components is not None
    own = arriving.codes == code
    rows = arriving.rows[own].astype(model.dtype)
    weights = None if arriving.weights is None else np.maximum(arriving.weights[own], LEAST)
    added = len(rows) if weights is None else float(weights.sum())
    n_rows = arriving.growth.forget * float(latents.counts.sum()) + added
    most = n_latents_of(n_latents, n_rows, arriving.classes[[code]].tolist()[0])
    inner = model.coordinates.into(rows)
    generator = np.random.default_rng(arriving.seed)
    return grow(inner, model.components, latents, most, arriving.growth, generator, weights)


class _Join:
    """Replaces what belongs to the latent examples of some classes, and sorts all by class."""

    def __init__(self, of_latents: Ints, parts: Mapping[int, ClassLatents]) -> None:
        self._kept = np.flatnonzero(~np.isin(of_latents, list(parts)))
        added = [np.full(len(part), code) for code, part in parts.items()]
        codes = np.concatenate((of_latents[self._kept], *added))
        self._order = np.argsort(codes, kind="stable")
        self.codes: Ints = codes[self._order]

    def __call__(self, old: Any, new: Iterable[Any]) -> Any:
        return np.concatenate((old[self._kept], *new))[self._order]


def without_classes(estimator: Any, kept: Bools) -> Attributes:
    """The fitted attributes of MaPML with only these of its classes."""
    of_latents = np.searchsorted(estimator.classes_, estimator.latent_labels_)
    stays = kept[of_latents]
    return {
        "latent_examples_": estimator.latent_examples_[stays],
        "latent_labels_": estimator.latent_labels_[stays],
        "latent_counts_": estimator.latent_counts_[stays],
        "margins_": estimator.margins_[kept],
    }


def respaced(model: FittedModel, before: FittedModel) -> FittedModel:
    """The model with the temperature of the one before, in units of the references' spacing."""
    old = temperature_from_references(before.references)
    new = temperature_from_references(model.references)
    if not old > 0:
        return replace(model, temperature=new)
    return replace(model, temperature=before.temperature * (new / old))
