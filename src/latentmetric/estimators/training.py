"""The rows of one fit: the training rows and the held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from latentmetric.core.capacity import Candidate
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.population import LocalPopulation, Population
from latentmetric.core.span import Outside, Span
from latentmetric.core.starts import Start
from latentmetric.core.steps import Record
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.protocol import LabelledRows
from latentmetric.validation.weights import RowWeights


@dataclass(frozen=True)
class TrainingData:
    """The data of one call of ``fit``."""

    classes: np.ndarray[Any, Any]
    training: Population
    """The training rows, class by class."""
    coordinates: Coordinates
    """The inner coordinates, computed from all rows."""
    rows: Any
    """All rows, which this process can slice; None if they are on a cluster."""
    codes: Any
    """The class code of each of ``rows``."""
    order: Ints | None
    """The caller's row number of each of ``rows``, if they were reordered."""
    weights: RowWeights | None
    held_out: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The numbers of the held-out rows among ``rows``."""
    span: Span | None = None
    """The basis that the training rows are written in, if they have more features than rows."""
    outside: Outside | None = None
    """The metric outside their span; None if it has none there, or there is no outside."""
    start: tuple[Start, Record] | None = None
    """The start, and what its choice measured, if round 0 does not choose it."""
    dense: bool = False
    """Whether the rows are so few that the refinement takes all of them at once."""
    chosen: Candidate = field(default_factory=Candidate)
    """What is given or chosen of start, latent examples, ridge and bandwidth."""
    n_sets: int = 1
    """Sets that the latent examples are learned in, if the refinement takes rows in batches."""
    named: LabelledRows | None = None
    """The labelled rows with their ids, if the model keeps some of these."""
    unlabelled: Floats | None = None
    """The weight of each of the caller's rows that has no label, 0 for the others."""

    def split(self, fraction: float, generator: np.random.Generator) -> TrainingData:
        """Hold out a share of every class for validation."""
        assert isinstance(self.training, LocalPopulation)
        training, held_out = self.training.hold_out(fraction, generator)
        if not len(held_out):
            raise ValueError(
                f"early_stopping holds out {fraction} of every class, which is not a single row "
                f"of the {len(self.classes)} classes in {len(self.rows)} rows; raise "
                "validation_fraction or set early_stopping=False"
            )
        return replace(self, training=training, held_out=held_out)

    def row_weights(self, numbers: Ints) -> Floats | None:
        """The weights of these rows; None if each counts as one."""
        of_rows = None if self.weights is None else self.weights.of_rows
        return None if of_rows is None else of_rows[numbers]

    def ordered(self, latents: Floats, class_starts: Ints) -> tuple[Floats, Ints, Ints]:
        """Latent examples as inner rows in the order of ``classes``, their codes, and the order."""
        codes = np.repeat(self.training.codes, np.diff(class_starts))
        order = np.argsort(codes, kind="stable")
        inner = latents[order] if self.span is None else self.span.inverse_transform(latents[order])
        return inner, codes[order], order

    def voters(self, all_rows: bool) -> Ints:
        """The numbers of the rows that vote: all rows, or only the training rows."""
        numbers = np.arange(len(self.rows))
        weights = self.row_weights(numbers)
        if weights is not None:
            numbers = np.flatnonzero(weights)
        return numbers if all_rows else np.setdiff1d(numbers, self.held_out)

    def references(self, components: Floats, all_rows: bool) -> tuple[Floats, Ints]:
        """The voting rows under a metric, in the caller's order, and their codes."""
        voters = self.voters(all_rows)
        points = InnerRows(self.rows, self.coordinates).under(components, voters)
        if self.order is None:
            return points, self.codes[voters]
        as_given = np.argsort(self.order[voters])
        return points[as_given], self.codes[voters][as_given]

    def inner_rows(self, all_rows: bool = False) -> tuple[InnerRows, Ints]:
        """All rows or the training rows, with their codes; copied only if some are left out."""
        rows, codes = self.rows, self.codes
        if not all_rows and len(self.held_out):
            numbers = self.voters(all_rows=False)
            rows, codes = rows[numbers], codes[numbers]
        return InnerRows(rows, self.coordinates), codes

    def fingerprint(self) -> dict[str, Any]:
        """Names and values that identify the training data."""
        training = self.training
        digest = blake2b(digest_size=16)
        for part in (self.coordinates.centre, *training.fingerprint_parts(), self.held_out):
            digest.update(np.ascontiguousarray(part).tobytes())
        digest.update(repr(self.classes.tolist()).encode())
        return {
            "number of training rows": int(training.sizes.sum()),
            "number of features": len(self.coordinates.centre),
            "number of classes": len(training),
            "dtype": training.dtype.name,
            "fingerprint": digest.hexdigest(),
        }
