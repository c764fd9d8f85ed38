"""The rows of one fit: those that train, and those held out to judge it."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.population import LocalPopulation, Population
from latentmetric.core.types import Floats, Ints
from latentmetric.engines.protocol import Partition


@dataclass(frozen=True)
class TrainingData:
    """What one call of ``fit`` works on."""

    classes: np.ndarray[Any, Any]
    partition: Partition
    training: Population
    """The rows that train, class by class."""
    held_out: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """Numbers of the others among the rows of the partition."""

    @classmethod
    def held_out_of(
        cls, classes: np.ndarray[Any, Any], partition: Partition, fraction: float,
        generator: np.random.Generator,
    ) -> TrainingData:  # fmt: skip
        """A share of every class judges."""
        population = partition.population
        assert isinstance(population, LocalPopulation)
        training, held_out = population.hold_out(fraction, generator)
        if not len(held_out):
            raise ValueError(
                f"early_stopping holds out {fraction} of every class, which is no row of any of "
                f"the {len(classes)} classes in {len(partition.rows)} rows; raise "
                "validation_fraction or set early_stopping=False"
            )
        return cls(classes, partition, training, held_out)

    @property
    def coordinates(self) -> Coordinates:
        """Those of all rows."""
        return self.training.coordinates

    @property
    def rows(self) -> Any:
        """Rows this process can slice."""
        return self.partition.rows

    @property
    def codes(self) -> Ints:
        """The class of each of ``rows``."""
        assert self.partition.codes is not None
        return self.partition.codes

    def voters(self, everyone: bool) -> Ints:
        """Numbers of the rows that may vote."""
        numbers = np.arange(len(self.rows))
        return numbers if everyone else np.setdiff1d(numbers, self.held_out)

    @property
    def judges(self) -> tuple[Floats, Ints]:
        """The rows held out, and their codes."""
        return self.rows[self.held_out], self.codes[self.held_out]

    def fingerprint(self) -> dict[str, Any]:
        """What tells this data from other, in words and numbers."""
        training = self.training
        digest = blake2b(digest_size=16)
        for part in (training.coordinates.centre, *training.fingerprint_parts(), self.held_out):
            digest.update(np.ascontiguousarray(part).tobytes())
        digest.update(repr(self.classes.tolist()).encode())
        return {
            "number of training rows": int(training.sizes.sum()),
            "number of features": training.n_features,
            "number of classes": len(training),
            "dtype": training.dtype.name,
            "fingerprint": digest.hexdigest(),
        }

    def references(self, components: Floats, everyone: bool) -> tuple[Floats, Ints]:
        """The rows that vote, under a metric and in the caller's order, and their codes."""
        voters, order = self.voters(everyone), self.partition.order
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
    def trainers(self) -> tuple[InnerRows, Ints]:
        """The rows that train, and their codes; copied only where some are held out."""
        if not len(self.held_out):
            return self.inner, self.codes
        numbers = self.voters(everyone=False)
        return InnerRows(self.rows[numbers], self.coordinates), self.codes[numbers]
