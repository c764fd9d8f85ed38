"""What of a fitted estimator goes into a model file, and how it is put back.

Everything an answer is computed from is stored as it was computed, so a model that was loaded
answers bit for bit as the one that was saved. A file is data: its estimator is looked up in a
table, its arrays are checked against each other, its parameters by the estimator's own checks.
"""

from __future__ import annotations

import os
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References
from latentmetric.estimators._checks import set_attributes
from latentmetric.estimators._stored_values import (
    check_label_bytes,
    check_versions,
    classes_as_json,
    classes_from_json,
    count_from_json,
    feature_names_from_json,
    history_as_json,
    number_from_json,
    parameters_as_json,
    parameters_from_json,
    rounds_from_json,
)
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.hrsgd import HRSGD
from latentmetric.estimators.lmnn import LMNN
from latentmetric.estimators.mapml import MaPML
from latentmetric.estimators.oasis import OASIS
from latentmetric.io.model_file import (
    FORMAT_VERSION,
    ModelFileError,
    read_model_file,
    write_model_file,
)

if TYPE_CHECKING:
    from latentmetric.estimators._base import ReferenceClassifier

ESTIMATORS: dict[str, type[Any]] = {
    estimator.__name__: estimator for estimator in (MaPML, LMNN, OASIS, HRSGD, Euclidean)
}

SMALLEST_SCALE = 5e-324
"""The least number above 0: what divides must not be 0."""

Arrays = dict[str, np.ndarray[Any, Any]]


def save(model: ReferenceClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file."""
    check_is_fitted(model)
    if type(model) is not ESTIMATORS.get(type(model).__name__):
        raise TypeError(
            f"{type(model).__module__}.{type(model).__qualname__} cannot be saved: a model file "
            f"holds no code, so it can only be one of {', '.join(ESTIMATORS)}"
        )
    model._check_parameters()
    document, arrays = _contents(model)
    _restored(document, arrays)  # what is written can be read
    write_model_file(path, document, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """A fitted estimator from a file that its ``save`` wrote.

    No code runs, whatever the file holds, and its sizes are checked before memory is taken. The
    model answers bit for bit as the one that was saved, on the same machine with the same
    versions of NumPy and its BLAS.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    MaPML, LMNN, OASIS, HRSGD or Euclidean
        Whichever was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, is no model, or was written by a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentmetric import Euclidean, load
    >>> model = Euclidean(n_neighbors=1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model.safetensors")
    ...     load(Path(folder) / "model.safetensors").predict([[4.0]]).tolist()
    ['b']
    """
    document, arrays = read_model_file(path)
    try:
        return _restored(document, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error.__cause__


def _contents(model: Any) -> tuple[dict[str, Any], Arrays]:
    """The document and the arrays of a model file."""
    import latentmetric

    parameters, not_stored = parameters_as_json(model.get_params(deep=False))
    names = getattr(model, "feature_names_in_", None)
    document = {
        "format_version": FORMAT_VERSION,
        "estimator": type(model).__name__,
        "versions": {
            "latentmetric": latentmetric.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "parameters": parameters,
        "not_stored": not_stored,
        "classes": classes_as_json(model.classes_),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "n_references": len(model._references),
        "scale": float(model._coordinates.scale),
        "temperature": float(model._temperature),
        "n_iter": int(model.n_iter_),
        "history": history_as_json(model.history_),
    }
    arrays = {
        "centre": model._coordinates.centre,
        "references": model._references.rows,
        "reference_norms": model._references.norms,
        "reference_codes": model._reference_codes.astype(np.int64, copy=False),
    }
    if hasattr(model, "components_"):
        arrays["components"] = model.components_
    if isinstance(model, OASIS):
        arrays["similarity"] = model.similarity_
    if isinstance(model, MaPML):
        document["best_iter"] = int(model.best_iter_)
        arrays["latent_examples"] = model.latent_examples_
        arrays["latent_codes"] = np.searchsorted(model.classes_, model.latent_labels_)
        arrays["margins"] = model.margins_
    return document, arrays


def _restored(document: dict[str, Any], arrays: Arrays) -> Any:
    """The estimator, if all that the file says fits together."""
    name = document.get("estimator")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(
            f"the estimator {str(name)[:40]!r} is not one of {', '.join(ESTIMATORS)}"
        )
    check_versions(document.get("versions"))
    estimator = ESTIMATORS[name]
    known = signature(estimator).parameters
    model = estimator(**parameters_from_json(document.get("parameters"), known))
    classes = classes_from_json(document.get("classes"))
    n_features = count_from_json(document.get("n_features"), "n_features", 1)
    checked = _CheckedArrays(arrays, n_features, len(classes))
    attributes = _common_attributes(document, checked, classes)
    if estimator is OASIS:
        attributes |= _similarity(checked)
    else:
        attributes["components_"] = checked.components()
    if estimator is MaPML:
        attributes |= _latents(document, checked, classes)
    attributes |= checked.references(document)
    checked.expect_no_more()
    set_attributes(model, attributes)
    try:
        model._check_parameters()
        if estimator is MaPML:
            model._check_against_data(n_features, classes)
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(f"a parameter is not valid: {error}") from error
    return model


def _common_attributes(
    document: dict[str, Any], checked: _CheckedArrays, classes: Any
) -> dict[str, Any]:
    n_features = checked.n_features
    names = feature_names_from_json(document.get("feature_names"), n_features)
    scale = number_from_json(document.get("scale"), "scale", SMALLEST_SCALE)
    centre = checked.take("centre", (n_features,), np.float64)
    return {
        "classes_": classes,
        "n_features_in_": n_features,
        "history_": rounds_from_json(document.get("history")),
        "n_iter_": count_from_json(document.get("n_iter"), "n_iter"),
        "_coordinates": Coordinates(centre, scale),
        "_temperature": number_from_json(document.get("temperature"), "temperature", 0),
    } | ({} if names is None else {"feature_names_in_": names})


def _similarity(checked: _CheckedArrays) -> dict[str, Any]:
    """OASIS is a metric if it has a factor, else a similarity only."""
    is_metric = checked.has("components")
    components = {"components_": checked.components()} if is_metric else {}
    shape = (checked.n_features, checked.n_features)
    similarity = checked.take("similarity", shape)
    return components | {"similarity_": similarity, "_fitted_metric": is_metric}


def _latents(document: dict[str, Any], checked: _CheckedArrays, classes: Any) -> dict[str, Any]:
    latents = checked.take("latent_examples", (None, checked.n_features))
    codes = checked.codes("latent_codes", len(latents))
    if not np.array_equal(np.unique(codes), np.arange(len(classes))) or (np.diff(codes) < 0).any():
        raise ModelFileError("the latent examples are not one or more of each class, in order")
    check_label_bytes(len(codes), classes.dtype, allowed=latents.nbytes)
    return {
        "latent_examples_": latents,
        "latent_labels_": classes[codes],
        "margins_": checked.take("margins", (len(classes),), np.float64),
        "best_iter_": count_from_json(document.get("best_iter"), "best_iter"),
    }


class _CheckedArrays:
    """The arrays of a file, each given out once and only if it fits to the others."""

    def __init__(self, arrays: Arrays, n_features: int, n_classes: int) -> None:
        self._arrays = dict(arrays)
        self.n_features, self._n_classes = n_features, n_classes
        self._dtype: np.dtype[Any] | None = None
        self._rank = n_features

    def has(self, name: str) -> bool:
        """Whether the file has this array, and it was not taken yet."""
        return name in self._arrays

    def take(self, name: str, shape: tuple[int | None, ...], dtype: Any = None) -> Any:
        """An array of this shape, None being any length, and by default of the others' dtype."""
        if name not in self._arrays:
            raise ModelFileError(f"the array {name!r} is missing")
        array = self._arrays.pop(name)
        if len(shape) != array.ndim or any(
            length not in (None, given) for length, given in zip(shape, array.shape, strict=True)
        ):
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise ModelFileError(
                f"the array {name!r} has shape {array.shape}; the others ask for ({wanted})"
            )
        if dtype is None:
            self._dtype = dtype = self._dtype or array.dtype
        if array.dtype != dtype or (name not in _CODES and array.dtype.kind != "f"):
            raise ModelFileError(
                f"the array {name!r} is {array.dtype}; the others ask for {np.dtype(dtype)}"
            )
        if not np.isfinite(array).all():
            raise ModelFileError(f"the array {name!r} holds a value that is not finite")
        return array

    def codes(self, name: str, length: int) -> Any:
        """Numbers of classes, one for each of as many rows."""
        codes = self.take(name, (length,), np.int64)
        if length and not (codes.min() >= 0 and codes.max() < self._n_classes):
            raise ModelFileError(f"{name!r} holds a code beyond the {self._n_classes} classes")
        return codes.astype(np.intp, copy=False)

    def components(self) -> Any:
        """The factor of the metric, under which the references are."""
        factor = self.take("components", (None, self.n_features))
        self._rank = len(factor)
        return factor

    def references(self, document: dict[str, Any]) -> dict[str, Any]:
        """Rows under the metric, or under the similarity where there is no metric."""
        n_references = count_from_json(document.get("n_references"), "n_references", 1)
        rows = self.take("references", (n_references, self._rank))
        norms = self.take("reference_norms", (n_references,))
        codes = self.codes("reference_codes", n_references)
        return {"_references": References(rows, norms), "_reference_codes": codes}

    def expect_no_more(self) -> None:
        """Raise if an array was not asked for."""
        if self._arrays:
            raise ModelFileError(f"the array {min(self._arrays)!r} belongs to no such estimator")


_CODES = ("reference_codes", "latent_codes")
