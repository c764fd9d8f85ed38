"""The rows of one fit: the training rows and the held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.population import LocalPopulation, Population
from latentmetric.core.span import Span
from latentmetric.core.starts import Start
from latentmetric.core.steps import Record
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.protocol import Partition


@dataclass(frozen=True)
class TrainingData:
    """The data of one call of ``fit``."""

    classes: np.ndarray[Any, Any]
    partition: Partition
    training: Population
    """The training rows, class by class."""
    held_out: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The numbers of the held-out rows among the rows of the partition."""
    span: Span | None = None
    """The basis that the training rows are written in, if they have more features than rows."""
    start: tuple[Start, Record] | None = None
    """With a basis, the start in it, and what its choice measured."""

    @classmethod
    def held_out_of(
        cls, classes: np.ndarray[Any, Any], partition: Partition, fraction: float,
        generator: np.random.Generator,
    ) -> TrainingData:  # fmt: skip
        """Hold out a share of every class for validation."""
        population = partition.population
        assert isinstance(population, LocalPopulation)
        training, held_out = population.hold_out(fraction, generator)
        if not len(held_out):
            raise ValueError(
                f"early_stopping holds out {fraction} of every class, which is not a single row "
                f"of the {len(classes)} classes in {len(partition.rows)} rows; raise "
                "validation_fraction or set early_stopping=False"
            )
        return cls(classes, partition, training, held_out)

    @property
    def coordinates(self) -> Coordinates:
        """The inner coordinates, computed from all rows."""
        return self.partition.population.coordinates

    @property
    def rows(self) -> Any:
        """The rows, which this process can slice."""
        return self.partition.rows

    @property
    def codes(self) -> Ints:
        """The class code of each of ``rows``."""
        assert self.partition.codes is not None
        return self.partition.codes

    def ordered(self, latents: Floats, class_starts: Ints) -> tuple[Floats, Ints, Ints]:
        """Latent examples as inner rows in the order of ``classes``, their codes, and the order."""
        codes = np.repeat(self.training.codes, np.diff(class_starts))
        order = np.argsort(codes, kind="stable")
        ordered = latents[order]
        inner = ordered if self.span is None else self.span.out_of(ordered)
        return inner, codes[order], order

    def voters(self, all_rows: bool) -> Ints:
        """The numbers of the rows that vote: all rows, or only the training rows."""
        weights = self.partition.weights
        numbers = np.arange(len(self.rows))
        if weights is not None and weights.of_rows is not None:
            numbers = np.flatnonzero(weights.of_rows)
        return numbers if all_rows else np.setdiff1d(numbers, self.held_out)

    @property
    def validation_rows(self) -> tuple[Floats, Ints]:
        """The held-out rows and their codes."""
        return self.rows[self.held_out], self.codes[self.held_out]

    @property
    def validation_weights(self) -> Floats | None:
        """The weights of the held-out rows; None if each counts as one."""
        weights = self.partition.weights
        of_rows = None if weights is None else weights.of_rows
        return None if of_rows is None else of_rows[self.held_out]

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

    def references(self, components: Floats, all_rows: bool) -> tuple[Floats, Ints]:
        """The voting rows under a metric, in the caller's order, and their codes."""
        voters, order = self.voters(all_rows), self.partition.order
        points, codes = self.inner.under(components, voters), self.codes[voters]
        if order is not None:
            as_given = np.argsort(order[voters])
            points, codes = points[as_given], codes[as_given]
        return points, codes

    @property
    def inner(self) -> InnerRows:
        """All rows in inner coordinates."""
        return InnerRows(self.rows, self.coordinates)

    @property
    def training_rows(self) -> tuple[InnerRows, Ints]:
        """The training rows and their codes; copied only if some rows are held out."""
        if not len(self.held_out):
            return self.inner, self.codes
        numbers = self.voters(all_rows=False)
        return InnerRows(self.rows[numbers], self.coordinates), self.codes[numbers]
