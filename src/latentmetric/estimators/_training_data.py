"""Where the rows of a fit come from: memory, a file or a Dask cluster. Checked once, here."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.core.parallel import thread_count
from latentmetric.core.population import LocalPopulation, Population
from latentmetric.core.types import Ints
from latentmetric.engines.dask import is_dask_array, shuffle
from latentmetric.estimators._inputs import float_dtype
from latentmetric.estimators._progress import ReadingLog
from latentmetric.io.rows import as_row_file, is_lazy
from latentmetric.io.sorting import sorted_by_class

if TYPE_CHECKING:
    from latentmetric.estimators.mapml import MaPML


@dataclass(frozen=True)
class TrainingData:
    """What one call of ``fit`` works on."""

    rows: Any
    """An array, or rows in a file; None where no single process holds them."""
    codes: Ints
    classes: Any
    training: Population
    held_out: Ints
    generator: np.random.Generator
    order: Ints | None
    """The caller's number of each row where they were laid out anew."""

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


def training_data(model: MaPML, X: Any, y: Any, generator: np.random.Generator) -> TrainingData:
    """The rows, wherever they are."""
    if is_dask_array(X):
        return _distribute(model, X, y, generator)
    return _read(model, X, y, generator) if is_lazy(X) else _take(model, X, y, generator)


def _distribute(model: MaPML, X: Any, y: Any, generator: np.random.Generator) -> TrainingData:
    """Rows on the workers of a Dask cluster."""
    for name, value in (("early_stopping", True), ("reference", "original")):
        if getattr(model, name) == value:
            raise ValueError(
                f"{name}={value!r} would bring rows of a Dask array to one machine; fit with "
                "the default"
            )

    def check(classes: Any) -> None:
        model._classes_and_codes(np.repeat(classes, 3))  # as labels: some occur repeatedly
        model._check_against_data(X.shape[1], classes)

    training, classes = shuffle(X, y, float_dtype, check)
    _forget_names(model, int(X.shape[1]))
    nowhere = np.empty(0, dtype=np.intp)
    return TrainingData(None, nowhere, classes, training, nowhere, generator, None)


def _forget_names(model: MaPML, n_features: int) -> None:
    """Neither files nor Dask arrays name their features."""
    model.n_features_in_ = n_features
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_


def _take(model: MaPML, X: Any, y: Any, generator: np.random.Generator) -> TrainingData:
    """Rows in memory."""
    rows, codes, classes = model._validated_training_data(X, y)
    model._check_against_data(rows.shape[1], classes)
    return _prepare(model, rows, codes, classes, None, generator)


def _read(model: MaPML, X: Any, y: Any, generator: np.random.Generator) -> TrainingData:
    """Rows in a file: once through it, to lay them out by class."""
    file = as_row_file(X)
    if y is None or len(y) != len(file) or len(file) < 2:
        n_labels = "none" if y is None else len(y)
        raise ValueError(f"X has {len(file)} rows, y has {n_labels}; both need the same, >= 2")
    classes, codes = model._classes_and_codes(y)
    model._check_against_data(file.shape[1], classes)
    told = ReadingLog(type(model).__name__, model.verbose)
    rows, order = sorted_by_class(file, codes, float_dtype(file.dtype), told)
    _forget_names(model, file.shape[1])
    return _prepare(model, rows, codes[order], classes, order, generator)


def _prepare(
    model: MaPML, rows: Any, codes: Ints, classes: Any, order: Ints | None,
    generator: np.random.Generator,
) -> TrainingData:  # fmt: skip
    """Sort by class and part with the held-out rows."""
    training = LocalPopulation.of(rows, codes, thread_count(model.n_jobs))
    held_out = np.empty(0, dtype=np.intp)
    if model.early_stopping:
        training, held_out = training.hold_out(model.validation_fraction, generator)
        if not len(held_out):
            raise ValueError(
                f"early_stopping holds out {model.validation_fraction} of every class, which is "
                f"no row of any of the {len(classes)} classes in {len(rows)} rows; raise "
                "validation_fraction or set early_stopping=False"
            )
    return TrainingData(rows, codes, classes, training, held_out, generator, order)
