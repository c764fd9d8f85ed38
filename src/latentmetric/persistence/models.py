"""Save a fitted estimator, or a pipeline that ends in one, to a model file, and load it again.

Everything that predictions are computed from is stored exactly, so a loaded model predicts bit for
bit as the saved one. A file is only data: its estimator is looked up in a table, its arrays are
checked against each other, and its parameters by the estimator's own checks.
"""

from __future__ import annotations

import os
from inspect import signature
from math import sqrt
from typing import Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from latentmetric.characters import shortened
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References
from latentmetric.core.model import FittedModel
from latentmetric.persistence.model_file import (
    FORMAT_VERSION,
    ModelFileError,
    check_document_size,
    read_model_file,
    write_model_file,
)
from latentmetric.persistence.pipelines import packed_pipeline, restored_pipeline
from latentmetric.persistence.values import (
    StoredArray,
    StoredLabels,
    StoredValue,
    StoredWord,
    check_label_bytes,
    check_versions,
    classes_as_json,
    classes_from_json,
    columns_from_json,
    count_from_json,
    feature_names_from_json,
    history_as_json,
    number_from_json,
    parameters_as_json,
    parameters_from_json,
    rounds_from_json,
)
from latentmetric.registry import ESTIMATORS, estimator_class
from latentmetric.validation.parameters import validated_copy

SMALLEST_SCALE = 5e-324
"""The smallest number above 0: the scale is a divisor and must not be 0."""

Arrays = dict[str, np.ndarray[Any, Any]]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to a file that ``load`` reads.

    The file is in the safetensors format and holds numbers and JSON, no code. It is written
    under a temporary name in the same folder and then renamed, so that ``path`` always holds
    either the old file or the new one. If ``path`` is a symbolic link, the file it points to is
    replaced. Callbacks are not stored, nor is a ``random_state`` that is not an integer: the
    loaded model has None instead.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of this package, or a fitted ``sklearn.pipeline.Pipeline`` that ends in
        one, after standard steps: scalers, PCA and others of ``validation.pipelines.STEPS``. Other
        steps are refused by name.
    path : str or path-like
        The file to write; an existing one is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentmetric import Euclidean, load, save
    >>> model = Euclidean(n_neighbors=1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.safetensors")
    ...     load(Path(folder) / "model.safetensors").predict([[4.0]]).tolist()
    ['b']
    """
    check_is_fitted(model)
    packed = packed_pipeline(model, _packed) if isinstance(model, Pipeline) else _packed(model)
    _restored(*packed)  # fail before writing a file that could not be read
    write_model_file(path, *packed)


def _packed(model: Any) -> tuple[dict[str, Any], Arrays]:
    """The document and the arrays of a fitted estimator, after a check of its parameters."""
    name = type(model).__name__
    if name not in ESTIMATORS or type(model) is not estimator_class(name):
        found = "; save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise TypeError(
            f"{type(model).__module__}.{type(model).__qualname__} cannot be saved: a model file "
            f"holds no code, so it can only be one of {', '.join(ESTIMATORS)}, or a Pipeline that "
            f"ends in one{found}"
        )
    model = validated_copy(model)
    model._check_parameters()
    model._voting()
    return _contents(model)


def check_names(
    labels: Any, feature_names: list[str] | None, columns: dict[str, str] | None = None
) -> None:
    """Raise, before a fit, if its classes and the names of columns could not be saved."""
    classes = classes_as_json(np.unique(labels))
    names = {"feature_names": feature_names, "columns": columns}
    check_document_size({"classes": classes} | names)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a fitted estimator or pipeline from a file that ``save`` wrote.

    No code runs, whatever the file holds, and its sizes are checked before memory is allocated.
    The model predicts bit for bit as the saved one, on the same machine with the same versions
    of NumPy and its BLAS.

    Parameters
    ----------
    path : str or path-like
        A file that ``save`` wrote.

    Returns
    -------
    estimator or Pipeline
        An estimator of the class that was saved, or a pipeline of scikit-learn that ends in one.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or was written by a newer version.
    """
    document, arrays = read_model_file(path)
    try:
        return _restored(document, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error.__cause__


def _contents(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """The document and the arrays of a model file."""
    import latentmetric

    model: FittedModel = estimator.model_
    parameters, not_stored = parameters_as_json(estimator.get_params(deep=False))
    names = getattr(estimator, "feature_names_in_", None)
    document = {
        "format_version": FORMAT_VERSION,
        "estimator": type(estimator).__name__,
        "versions": {
            "latentmetric": latentmetric.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "parameters": parameters,
        "not_stored": not_stored,
        "classes": classes_as_json(estimator.classes_),
        "n_features": int(estimator.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "columns": getattr(estimator, "columns_in_", None),
        "n_references": len(model.references),
        "scale": float(model.coordinates.scale),
        "temperature": float(model.temperature),
        "n_iter": int(estimator.n_iter_),
        "best_iter": int(estimator.best_iter_),
        "history": history_as_json(estimator.history_),
    }
    arrays = {
        "centre": model.coordinates.centre,
        "references": model.references.rows,
        "reference_norms": model.references.norms,
        "reference_codes": model.codes.astype(np.int64, copy=False),
    }
    if model.components is not None:
        arrays["components"] = model.components
    for attribute, kind in estimator._stored_attributes.items():
        if not hasattr(estimator, attribute):
            continue
        value = getattr(estimator, attribute)
        if isinstance(kind, StoredArray):
            arrays[_stored_name(attribute)] = value
        elif isinstance(kind, StoredLabels):
            arrays[kind.array] = np.searchsorted(estimator.classes_, value)
        else:
            document[_stored_name(attribute)] = value
    return document, arrays


def _stored_name(attribute: str) -> str:
    return attribute.removesuffix("_")


def _restored(document: dict[str, Any], arrays: Arrays) -> Any:
    """The model; raise ``ModelFileError`` unless all contents of the file are consistent."""
    if document.get("estimator") == "Pipeline":
        return restored_pipeline(document, arrays, _restored_estimator)
    return _restored_estimator(document, arrays)


def _restored_estimator(document: dict[str, Any], arrays: Arrays) -> Any:
    name = document.get("estimator")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(
            f"the estimator {shortened(name, 40)!r} is not one of {', '.join(ESTIMATORS)}"
        )
    check_versions(document.get("versions"))
    kind = estimator_class(name)
    known = signature(kind).parameters
    estimator = kind(**parameters_from_json(document.get("parameters"), known))
    classes = classes_from_json(document.get("classes"))
    n_features = count_from_json(document.get("n_features"), "n_features", 1)
    checked = _CheckedArrays(arrays, n_features, len(classes))
    attributes = _common_attributes(document, checked, classes)
    components = None
    if "similarity_" not in kind._stored_attributes or checked.has("components"):
        components = attributes["components_"] = checked.components()
    for attribute, stored in kind._stored_attributes.items():
        value = _restored_value(attribute, stored, document, checked, attributes)
        if value is not None:
            attributes[attribute] = value
    attributes["model_"] = _model(document, checked, components, attributes)
    checked.expect_no_more()
    vars(estimator).update(attributes)
    try:
        estimator._check_parameters()
        estimator._check_against(classes, fitting=False)
        estimator._voting()
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(f"a parameter is not valid: {error}") from error
    return estimator


def _common_attributes(
    document: dict[str, Any], checked: _CheckedArrays, classes: Any
) -> dict[str, Any]:
    names = feature_names_from_json(document.get("feature_names"), checked.n_features)
    columns = columns_from_json(document.get("columns"))
    not_always = {"feature_names_in_": names, "columns_in_": columns}
    return {
        "classes_": classes,
        "n_features_in_": checked.n_features,
        "history_": rounds_from_json(document.get("history")),
        "n_iter_": count_from_json(document.get("n_iter"), "n_iter"),
        "best_iter_": count_from_json(document.get("best_iter"), "best_iter"),
    } | {name: value for name, value in not_always.items() if value is not None}


def _model(
    document: dict[str, Any], checked: _CheckedArrays, components: Any,
    attributes: dict[str, Any],
) -> FittedModel:  # fmt: skip
    scale = number_from_json(document.get("scale"), "scale", SMALLEST_SCALE)
    centre = checked.take("centre", (checked.n_features,), np.float64)
    temperature = number_from_json(document.get("temperature"), "temperature", 0)
    references, codes = checked.references(document)
    similarity = attributes["similarity_"] if components is None else None
    model = FittedModel(
        Coordinates(centre, scale), references, codes, checked.n_classes, temperature, components,
        similarity,
    )  # fmt: skip
    _check_computable(model)
    return model


def _check_computable(model: FittedModel) -> None:
    """Raise on numbers whose distances overflow in the model's dtype."""
    dtype, inner = model.dtype, model.coordinates
    largest = float(np.finfo(dtype).max)
    with np.errstate(over="ignore", under="ignore"):
        divisor = float(dtype.type(inner.scale))
    if not 0 < divisor <= largest or np.abs(inner.centre).max() > largest:
        raise ModelFileError(
            f"the scale {inner.scale:g} and the centre, up to {np.abs(inner.centre).max():g}, are "
            f"not numbers that {dtype} can compute with, which holds at most {largest:g}"
        )
    if model.reach < 1 or (model.is_metric and model.farthest > largest / inner.scale):
        what = "the metric" if model.is_metric else "the similarity"
        raise ModelFileError(
            f"{what} and the references, of norms up to {model.farthest:g}, are too large: "
            f"distances would overflow in {dtype}, which holds at most {largest:g}"
        )
    if model.similarity is not None and np.abs(model.similarity).max() > sqrt(largest):
        raise ModelFileError(
            f"the similarity holds {np.abs(model.similarity).max():g}, too large to compute with "
            f"in {dtype}"
        )


def _restored_value(
    attribute: str, kind: StoredValue, document: dict[str, Any], checked: _CheckedArrays,
    attributes: dict[str, Any],
) -> Any:  # fmt: skip
    name, classes = _stored_name(attribute), attributes["classes_"]
    if isinstance(kind, StoredWord):
        if document.get(name) not in kind.words:
            raise ModelFileError(f"{name} is not one of {', '.join(kind.words)}")
        return document[name]
    if isinstance(kind, StoredArray):
        lengths: dict[Any, Any] = {"n_features": checked.n_features, "n_classes": checked.n_classes}
        lengths["n_latents"] = len(attributes.get("latent_examples_", ()))
        shape = tuple(lengths.get(length, length) for length in kind.shape)
        return _restored_array(name, shape, kind, checked)
    beside = attributes[kind.beside]
    codes = checked.codes(kind.array, len(beside))
    if (np.diff(codes) < 0).any():
        raise ModelFileError(f"{kind.array} are not in ascending order")
    check_label_bytes(len(codes), classes.dtype, allowed=beside.nbytes)
    return classes[codes]


def _restored_array(
    name: str, shape: tuple[Any, ...], kind: StoredArray, checked: _CheckedArrays
) -> Any:
    """An array; None if the file is older than it is."""
    if kind.is_newer and not checked.has(name):
        return None if kind.instead is None else np.full(shape, kind.instead, kind.dtype)
    array = checked.take(name, shape, kind.dtype)
    if kind.least is not None and (array < kind.least).any():
        raise ModelFileError(f"{name} holds a number below {kind.least:g}")
    return array


class _CheckedArrays:
    """The arrays of a file; each can be taken once, and only if it is consistent with others."""

    def __init__(self, arrays: Arrays, n_features: int, n_classes: int) -> None:
        self._arrays = dict(arrays)
        self.n_features, self.n_classes = n_features, n_classes
        self._dtype: np.dtype[Any] | None = None
        self._rank = n_features

    def has(self, name: str) -> bool:
        """Whether the file has this array and it has not been taken yet."""
        return name in self._arrays

    def take(self, name: str, shape: tuple[int | None, ...], dtype: Any = None) -> Any:
        """An array of this shape, with None for any length, and by default of the others' dtype."""
        if name not in self._arrays:
            raise ModelFileError(f"the array {name!r} is missing")
        array = self._arrays.pop(name)
        if len(shape) != array.ndim or any(
            length not in (None, given) for length, given in zip(shape, array.shape, strict=True)
        ):
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise ModelFileError(
                f"the array {name!r} has shape {array.shape}; the others require ({wanted})"
            )
        if dtype is None:
            self._dtype = dtype = self._dtype or array.dtype
        if array.dtype != dtype or (array.dtype.kind != "f" and dtype != np.int64):
            raise ModelFileError(
                f"the array {name!r} is {array.dtype}; the others require {np.dtype(dtype)}"
            )
        if not np.isfinite(array).all():
            raise ModelFileError(f"the array {name!r} holds a value that is not finite")
        return array

    def codes(self, name: str, length: int) -> Any:
        """Class codes for ``length`` rows."""
        codes = self.take(name, (length,), np.int64)
        if length and not (codes.min() >= 0 and codes.max() < self.n_classes):
            raise ModelFileError(f"{name!r} holds a code outside the {self.n_classes} classes")
        return codes.astype(np.intp, copy=False)

    def components(self) -> Any:
        """The factor of the metric, which maps the references."""
        factor = self.take("components", (None, self.n_features))
        self._rank = len(factor)
        if not 1 <= self._rank <= self.n_features:
            raise ModelFileError(
                f"the metric has the rank {self._rank}, but {self.n_features} features allow only "
                f"1 to {self.n_features}"
            )
        return factor

    def references(self, document: dict[str, Any]) -> tuple[References, Any]:
        """The references, under the metric or the similarity, and their codes."""
        n_references = count_from_json(document.get("n_references"), "n_references", 1)
        rows = self.take("references", (n_references, self._rank))
        norms = self.take("reference_norms", (n_references,))
        codes = self.codes("reference_codes", n_references)
        return References(rows, norms), codes

    def expect_no_more(self) -> None:
        """Raise if the file has an array that was not taken."""
        if self._arrays:
            raise ModelFileError(f"the array {min(self._arrays)!r} is not part of this estimator")
