"""Save a fitted estimator, or a pipeline that ends in one, to a model file, and load it again.

Everything that predictions are computed from is stored exactly, so a loaded model predicts bit for
bit as the saved one. A file is only data: its estimator is looked up in a table, its arrays are
checked against each other, and its parameters by the estimator's own checks.
"""

from __future__ import annotations

import os
from inspect import signature
from math import isfinite, sqrt
from typing import Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from latentmetric.characters import shortened
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References, squared_norms
from latentmetric.core.model import FittedModel
from latentmetric.core.starts import STARTS
from latentmetric.persistence.model_file import (
    FORMAT_VERSION,
    Array,
    Arrays,
    ModelFileError,
    check_document_size,
    check_text_bytes,
    pack,
    read_model_file,
    told,
    unpack,
    write_model_file,
)
from latentmetric.persistence.steps import (
    Limits,
    pack_parameters,
    pack_steps,
    restore_parameters,
    restore_steps,
)
from latentmetric.registry import ESTIMATORS, estimator_class
from latentmetric.validation.parameters import plain
from latentmetric.validation.pipelines import Piped

SHAPES: dict[str, tuple[str, ...]] = {
    "centre": ("features",),
    "components_": ("rank", "features"),
    "similarity_": ("features", "features"),
    "references": ("references", "rank"),
    "codes": ("references",),
    "latent_examples_": ("latents", "features"),
    "latent_labels_": ("latents",),
    "latent_counts_": ("latents",),
    "margins_": ("classes",),
    "score_quantiles_": ("quantiles",),
}
"""The shape of each array; those that share the name of a length have the same length."""

OF_THE_MODEL = ("references", "components_", "similarity_", "latent_examples_")
"""Arrays in the dtype that the model computes in; other floats are float64."""

NEEDED = {
    "MaPML": ("latent_examples_", "latent_labels_", "latent_counts_", "margins_", "reference_"),
    "OASIS": ("similarity_",),
}
"""Attributes that an estimator answers from, beside those that all have."""


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
    document, arrays = _packed(model)
    _restored(document, dict(arrays), sum(array.nbytes for array in arrays.values()))
    write_model_file(path, document, arrays)


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
        return _restored(document, arrays, os.path.getsize(path))
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error.__cause__


def check_names(
    labels: Any, feature_names: list[str] | None, columns: dict[str, str] | None = None
) -> None:
    """Raise, before a fit, if its classes and the names of columns could not be saved."""
    classes = pack(_storable(np.unique(labels)), {}, "classes")
    check_document_size({"classes": classes, "feature_names": feature_names, "columns": columns})


def versions_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The version of the format of a model file, and of the libraries that wrote it."""
    document, _ = read_model_file(path)
    return {name: document.get(name) for name in ("format_version", "versions")}


def _packed(model: Any) -> tuple[dict[str, Any], Arrays]:
    import latentmetric

    arrays: Arrays = {}
    document: dict[str, Any] = {
        "estimator": type(model).__name__,
        "format_version": FORMAT_VERSION,
        "versions": {
            "latentmetric": latentmetric.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }
    if isinstance(model, Pipeline):
        Piped.of(model)
        *before, (name, model_itself) = model.steps
        document["name"] = name
        document["parameters"] = pack_parameters(model, "the pipeline")
        document["steps"] = pack_steps(before, arrays)
        model = model_itself
    return document | {"model": _packed_estimator(model, arrays)}, arrays


def _packed_estimator(given: Any, arrays: Arrays) -> dict[str, Any]:
    name = type(given).__name__
    if name not in ESTIMATORS or type(given) is not estimator_class(name):
        found = "; save its best_estimator_" if hasattr(given, "best_estimator_") else ""
        raise TypeError(
            f"{type(given).__module__}.{type(given).__qualname__} cannot be saved: a model file "
            f"holds no code, so it can only be one of {', '.join(ESTIMATORS)}, or a Pipeline that "
            f"ends in one{found}"
        )
    estimator = plain(given)
    estimator.check_parameters()
    estimator.check_voting()
    parameters = estimator.get_params(deep=False)
    if not isinstance(parameters.get("random_state"), int | np.integer):
        parameters["random_state"] = None
    attributes = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name != "model_"
    }
    _storable(estimator.classes_)
    if "latent_labels_" in attributes:
        attributes["latent_labels_"] = np.searchsorted(
            estimator.classes_, attributes["latent_labels_"]
        )
    model: FittedModel = estimator.model_
    voting = {
        "centre": model.coordinates.centre,
        "scale": float(model.coordinates.scale),
        "temperature": float(model.temperature),
        "references": model.references.rows,
        "codes": model.codes.astype(np.int64, copy=False),
    }
    return {
        "estimator": name,
        "parameters": pack(parameters, {}, "parameters"),
        "attributes": {
            name: pack(value, arrays, name.removesuffix("_")) for name, value in attributes.items()
        },
        "voting": {name: pack(value, arrays, name) for name, value in voting.items()},
    }


def _storable(classes: Array) -> Array:
    """The classes; raise ``TypeError`` if a model file cannot hold them."""
    values = classes.tolist()
    if classes.dtype.kind in "biufU" or all(type(value) is str for value in values):
        return classes
    raise TypeError(
        f"a model file holds labels that are integers, floats, booleans or strings, but the "
        f"classes are {classes.dtype.name}, such as {values[0]!r}; fit with labels converted to "
        "strings"
    )


def _restored(document: dict[str, Any], arrays: Arrays, n_bytes: int) -> Any:
    """The model; raise ``ModelFileError`` unless all contents of the file are consistent."""
    try:
        versions = document["versions"]
        if not all(isinstance(version, str) for version in versions.values()):
            raise ModelFileError("the versions are not strings by name")
        model = _restored_model(document, arrays, n_bytes)
    except ModelFileError:
        raise
    except Exception as error:  # a file may hold anything, and so may go wrong anywhere
        raise ModelFileError(f"the model is not valid ({told(error)})") from error
    if arrays:
        raise ModelFileError(f"the array {min(arrays)!r} is not part of this model")
    return model


def _restored_model(document: dict[str, Any], arrays: Arrays, n_bytes: int) -> Any:
    if document["estimator"] != "Pipeline":
        if document["model"]["estimator"] != document["estimator"]:
            raise ModelFileError("the file holds another estimator than it says")
        return _restored_estimator(document["model"], arrays)
    steps, width = restore_steps(document["steps"], None, arrays, Limits.of_file(n_bytes))
    estimator = _restored_estimator(document["model"], arrays)
    if width not in (None, estimator.n_features_in_):
        raise ModelFileError(
            f"the steps give {width} features, but the model takes {estimator.n_features_in_}"
        )
    name = document["name"]
    if not isinstance(name, str) or "__" in name or name in dict(steps):
        raise ModelFileError("the name of the last step is not a name of its own")
    parameters = restore_parameters("Pipeline", document["parameters"])
    return Pipeline([*steps, (name, estimator)], **parameters)


def _restored_estimator(stored: dict[str, Any], arrays: Arrays) -> Any:
    name = stored["estimator"]
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(
            f"the estimator {shortened(name, 40)!r} is not one of {', '.join(ESTIMATORS)}"
        )
    kind = estimator_class(name)
    parameters = unpack(stored["parameters"], {})
    unknown = parameters.keys() - signature(kind).parameters.keys()
    if unknown:
        raise ModelFileError(f"the parameter {shortened(min(unknown), 40)!r} is unknown")
    seed = parameters.get("random_state")
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
        raise ModelFileError("random_state is not a seed from 0 to 2**32 - 1")
    estimator = kind(**parameters)
    attributes, voting = unpack(stored["attributes"], arrays), unpack(stored["voting"], arrays)
    lacking = [needed for needed in NEEDED.get(name, ()) if needed not in attributes]
    if lacking or not all(key.isidentifier() and key.endswith("_") for key in attributes):
        raise ModelFileError(f"{name} does not have its attributes, such as {lacking}")
    _check_attributes(attributes)
    _check_arrays(attributes | voting)
    if "latent_labels_" in attributes:
        attributes["latent_labels_"] = _labels(attributes)
    vars(estimator).update(attributes)
    estimator.model_ = _model(attributes, voting)
    try:
        estimator.check_parameters()
        estimator.check_against(attributes["classes_"], fitting=False)
        estimator.check_voting()
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(f"a parameter is not valid: {error}") from error
    return estimator


def _check_attributes(attributes: dict[str, Any]) -> None:
    """Raise unless the attributes that are no arrays of numbers are what they must be."""
    for name in ("n_features_in_", "n_iter_", "best_iter_"):
        if type(attributes[name]) is not int or not 0 <= attributes[name] < 2**63:
            raise ModelFileError(f"{name} is not a count")
    classes = attributes["classes_"]
    if len(classes) < 2 or not np.array_equal(np.unique(classes), classes):
        raise ModelFileError("the classes are not at least two distinct labels in ascending order")
    names = attributes.get("feature_names_in_")
    if names is not None and (
        names.shape != (attributes["n_features_in_"],)
        or not all(isinstance(name, str) for name in names)
    ):
        raise ModelFileError(
            f"the feature names are not {attributes['n_features_in_']} strings, one a feature"
        )
    columns = attributes.get("columns_in_", {})
    if not all(isinstance(word, str) for pair in columns.items() for word in pair):
        raise ModelFileError("the columns are not names by name")
    if attributes.get("reference_", "latent") not in ("latent", "original", "set"):
        raise ModelFileError("reference_ is not one of latent, original, set")
    _check_history(attributes["history_"])


def _check_history(history: Any) -> None:
    """Raise unless the history has for each round its number, seconds by part and measurements."""
    if not isinstance(history, list) or not history:
        raise ModelFileError("the history holds no round")
    for record in history:
        if type(record["round"]) is not int or record["round"] < 0:
            raise ModelFileError("the history has a round without its number")
        if record.get("start", STARTS[0]) not in STARTS:
            raise ModelFileError(f"the start of a round is not one of {', '.join(STARTS)}")
        if not all(map(isfinite, record["seconds"].values())):
            raise ModelFileError("the seconds of a round are not numbers by name")
        measured = [value for name, value in record.items() if name != "start"]
        numbers = [
            number
            for value in measured
            for number in (value.values() if isinstance(value, dict) else [value])
        ]
        if any(type(number) not in (int, float) or abs(number) > 1e309 for number in numbers):
            raise ModelFileError("a round of the history holds something that is not a number")


def _check_arrays(arrays: dict[str, Any]) -> None:
    """Raise unless all arrays are finite and have shapes and dtypes that fit each other."""
    n_features = arrays["n_features_in_"]
    lengths = {"features": n_features, "classes": len(arrays["classes_"]), "quantiles": 101}
    dtype = arrays["references"].dtype
    for name, array in arrays.items():
        is_float = isinstance(array, np.ndarray) and array.dtype.kind == "f"
        if (is_float or name in SHAPES) and not np.isfinite(array).all():
            raise ModelFileError(f"the array {name!r} holds a value that is not finite")
        if name not in SHAPES:
            continue
        wanted = tuple(lengths.setdefault(key, length)
                       for key, length in zip(SHAPES[name], array.shape, strict=False))  # fmt: skip
        if array.ndim != len(SHAPES[name]) or array.shape != wanted:
            raise ModelFileError(
                f"the array {name!r} has shape {array.shape}; the others require {wanted}"
            )
        kind = dtype if name in OF_THE_MODEL else np.dtype(np.float64)
        if name in ("codes", "latent_labels_"):
            kind = np.dtype(np.int64)
            if array.min(initial=0) < 0 or array.max(initial=0) >= lengths["classes"]:
                raise ModelFileError(f"{name!r} holds a code outside the classes")
        if array.dtype != kind:
            raise ModelFileError(f"the array {name!r} is {array.dtype}; it must be {kind}")
    rank = lengths["rank"]
    if dtype not in (np.float32, np.float64) or not lengths["references"] or rank < 1:
        raise ModelFileError("the model has no references of float32 or float64")
    if rank > n_features or ("components_" not in arrays and rank != n_features):
        raise ModelFileError(f"the metric has the rank {rank}, but there are {n_features} features")
    if arrays.get("reference_") == "latent" and lengths["latents"] != lengths["references"]:
        raise ModelFileError(
            f"the {lengths['latents']} latent examples are not the {lengths['references']} "
            "references"
        )
    if (arrays.get("latent_counts_", np.zeros(1)) < 0).any():
        raise ModelFileError("latent_counts_ holds a number below 0")


def _labels(attributes: dict[str, Any]) -> Array:
    """The labels of the latent examples, which are stored as codes."""
    codes, classes = attributes["latent_labels_"], attributes["classes_"]
    if (np.diff(codes) < 0).any():
        raise ModelFileError("the labels of the latent examples are not in ascending order")
    if classes.dtype.kind == "U":
        width = classes.dtype.itemsize // 4
        check_text_bytes(len(codes), width, attributes["latent_examples_"].nbytes)
    labels: Array = classes[codes]
    return labels


def _model(attributes: dict[str, Any], voting: dict[str, Any]) -> FittedModel:
    scale, temperature = float(voting["scale"]), float(voting["temperature"])
    if not (isfinite(scale) and scale > 0 and isfinite(temperature) and temperature >= 0):
        raise ModelFileError("scale and temperature are not finite numbers above 0")
    rows, components = voting["references"], attributes.get("components_")
    norms = squared_norms(rows)
    similarity = None
    if components is None:
        norms, similarity = np.zeros_like(norms), attributes["similarity_"]
    model = FittedModel(
        Coordinates(voting["centre"], scale), References(rows, norms),
        voting["codes"].astype(np.intp, copy=False), len(attributes["classes_"]), temperature,
        components, similarity,
    )  # fmt: skip
    _check_computable(model, attributes)
    return model


def _check_computable(model: FittedModel, attributes: dict[str, Any]) -> None:
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
    if "latent_examples_" in attributes:
        model.check_reach(attributes["latent_examples_"])
    for name in ("similarity_", "margins_", "latent_counts_"):
        peak = float(np.abs(attributes.get(name, 0)).max())
        if peak > sqrt(largest):
            raise ModelFileError(f"{name} holds {peak:g}, too large to compute with in {dtype}")
