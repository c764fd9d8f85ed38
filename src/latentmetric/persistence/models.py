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
    Arrays,
    ModelFileError,
    check_text_bytes,
    check_texts,
    pack,
    read_model_file,
    require,
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
from latentmetric.validation.parameters import validated_copy
from latentmetric.validation.pipelines import split_pipeline

ARRAYS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "centre": (np.float64, ("features",)),
    "references": (None, ("references", "rank")),
    "codes": (np.int64, ("references",)),
    "components_": (None, ("rank", "features")),
    "similarity_": (None, ("features", "features")),
    "latent_examples_": (None, ("latents", "features")),
    "latent_labels_": (np.int64, ("latents",)),
    "latent_counts_": (np.float64, ("latents",)),
    "margins_": (np.float64, ("classes",)),
    "score_quantiles_": (np.float64, ("quantiles",)),
}
"""Dtype (None: that of the references) and axes of each array; axes of one name are as long."""

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
    estimator = model
    if isinstance(model, Pipeline):
        try:
            split_pipeline(model)
        except TypeError as error:
            raise TypeError(f"{error}; keep other pipelines with joblib or skops") from None
        *before, (name, estimator) = model.steps
        document["name"] = name
        document["parameters"] = pack_parameters(model, "the pipeline")
        document["steps"] = pack_steps(before, arrays)
    return document | {"model": _packed_estimator(estimator, arrays)}, arrays


def _packed_estimator(given: Any, arrays: Arrays) -> dict[str, Any]:
    name = type(given).__name__
    if name not in ESTIMATORS or type(given) is not estimator_class(name):
        found = "; save its best_estimator_" if hasattr(given, "best_estimator_") else ""
        raise TypeError(
            f"{type(given).__module__}.{type(given).__qualname__} cannot be saved: a model file "
            f"holds no code, so it can only be one of {', '.join(ESTIMATORS)}, or a Pipeline that "
            f"ends in one{found}"
        )
    estimator = validated_copy(given)
    estimator._voting()
    classes = estimator.classes_
    if classes.dtype.kind not in "biufU" and not all(type(one) is str for one in classes.tolist()):
        raise TypeError(
            "a model file holds labels that are integers, floats, booleans or strings, but the "
            f"classes are {classes.dtype.name}, such as {classes.tolist()[0]!r}; fit with labels "
            "converted to strings"
        )
    parameters = estimator.get_params(deep=False)
    if not isinstance(parameters.get("random_state"), int | np.integer):
        parameters["random_state"] = None
    attributes = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name != "model_"
    }
    if "latent_labels_" in attributes:
        attributes["latent_labels_"] = np.searchsorted(classes, attributes["latent_labels_"])
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


def _restored(document: dict[str, Any], arrays: Arrays, n_bytes: int) -> Any:
    """The model; raise ``ModelFileError`` unless all contents of the file are consistent."""
    try:
        check_texts(document)
        with np.errstate(all="ignore"):
            model = _restored_model(document, arrays, n_bytes)
        require(not arrays, f"the array {min(arrays, default='')!r} is not part of this model")
        return model
    except ModelFileError:
        raise
    except Exception as error:  # a file may hold anything, and so may go wrong anywhere
        raise ModelFileError(f"the model is not valid ({told(error)})") from error


def _restored_model(document: dict[str, Any], arrays: Arrays, n_bytes: int) -> Any:
    kind, stored, versions = (document[name] for name in ("estimator", "model", "versions"))
    require(
        kind in ESTIMATORS or kind == "Pipeline",
        f"the estimator {shortened(kind, 40)!r} is not one of {', '.join(ESTIMATORS)}",
    )
    are_strings = all(isinstance(version, str) for version in versions.values())
    require(are_strings, "versions are not strings")
    if kind != "Pipeline":
        require(kind == stored["estimator"], "the file holds another estimator than it says")
        return _restored_estimator(stored, arrays)
    steps, width = restore_steps(document["steps"], None, arrays, Limits.of_file(n_bytes))
    estimator = _restored_estimator(stored, arrays)
    require(
        width in (None, estimator.n_features_in_),
        f"the steps give {width} features, but the model takes {estimator.n_features_in_}",
    )
    name = document["name"]
    is_own = isinstance(name, str) and "__" not in name and name not in dict(steps)
    require(is_own, "the name of the last step is not a name of its own")
    parameters = restore_parameters("Pipeline", document["parameters"])
    return Pipeline([*steps, (name, estimator)], **parameters)


def _restored_estimator(stored: dict[str, Any], arrays: Arrays) -> Any:
    name = stored["estimator"]
    kind = estimator_class(name)
    parameters = unpack(stored["parameters"], {})
    unknown = [key for key in parameters if key not in signature(kind).parameters]
    require(not unknown, f"the parameter {shortened(unknown[:1], 40)} is unknown")
    seed = parameters.get("random_state")
    is_seed = seed is None or (type(seed) is int and 0 <= seed < 2**32)
    require(is_seed, "random_state is not a seed from 0 to 2**32 - 1")
    attributes, voting = unpack(stored["attributes"], arrays), unpack(stored["voting"], arrays)
    lacking = [needed for needed in NEEDED.get(name, ()) if needed not in attributes]
    require(not lacking, f"a {name} lacks {', '.join(lacking)}")
    named = all(key.isidentifier() and key.endswith("_") and key[0] != "_" for key in attributes)
    require(named, "an attribute does not have the name of one")
    _check_attributes(attributes)
    _check_arrays(attributes | voting)
    if "latent_labels_" in attributes:
        _check_latents(attributes)
        attributes["latent_labels_"] = attributes["classes_"][attributes["latent_labels_"]]
    estimator = kind(**parameters)
    vars(estimator).update(attributes, model_=_model(attributes, voting))
    try:
        validated_copy(estimator)
        estimator._check_against(attributes["classes_"], fitting=False)
        estimator._voting()
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(f"a parameter is not valid: {told(error)}") from error
    return estimator


def _check_attributes(attributes: dict[str, Any]) -> None:
    """Raise unless the attributes that are no arrays of numbers are what they must be."""
    for name in ("n_features_in_", "n_iter_", "best_iter_"):
        value = attributes[name]
        require(type(value) is int and 0 <= value < 2**63, f"{name} is not a count")
    classes, n_features = attributes["classes_"], attributes["n_features_in_"]
    is_sorted = len(classes) >= 2 and np.array_equal(np.unique(classes), classes)
    require(is_sorted, "the classes are not at least two distinct labels in ascending order")
    if "feature_names_in_" in attributes:
        names = attributes["feature_names_in_"].tolist()
        are_names = [type(name) for name in names] == [str] * n_features
        require(are_names, f"the feature names are not {n_features} strings")
    words = [word for pair in attributes.get("columns_in_", {}).items() for word in pair]
    require(all(isinstance(word, str) for word in words), "the columns are not names by name")
    is_known = attributes.get("reference_", "set") in ("latent", "original", "set")
    require(is_known, "reference_ is not one of latent, original, set")
    history = attributes["history_"]
    require(isinstance(history, list) and history, "the history holds no round")
    for record in history:
        _check_record(record)


def _check_record(record: dict[str, Any]) -> None:
    """Raise unless a round of the history has its number, seconds by part and measurements."""
    has_number = type(record["round"]) is int and record["round"] >= 0
    require(has_number, "the history has a round without its number")
    is_known = record.get("start", STARTS[0]) in STARTS
    require(is_known, f"the start of a round is not one of {', '.join(STARTS)}")
    require(all(map(isfinite, record["seconds"].values())), "the seconds of a round are not finite")
    by_start = [record.get(name, {}).keys() for name in ("start_losses", "start_errors")]
    are_starts = by_start[0] == by_start[1] <= {*STARTS}
    require(are_starts, "the losses and errors of the starts are not by start")
    for name, value in record.items():
        is_dict = name in ("seconds", "start_losses", "start_errors")
        for number in value.values() if is_dict else [value]:
            is_number = type(number) is float or (type(number) is int and abs(number) < 2**63)
            require(name == "start" or is_number, "a round holds something that is not a number")


def _check_arrays(values: dict[str, Any]) -> None:
    """Raise unless all arrays are finite and have shapes and dtypes that fit each other."""
    for name, value in values.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            require(np.isfinite(value).all(), f"{name!r} holds a value that is not finite")
    n_features, dtype = values["n_features_in_"], values["references"].dtype
    require(dtype in (np.float32, np.float64), f"the references are {dtype}, not floats")
    lengths = {"features": n_features, "classes": len(values["classes_"]), "quantiles": 101}
    for name, (kind, axes) in ARRAYS.items():
        if name not in values:
            continue
        array = values[name]
        pairs = zip(axes, array.shape, strict=False)
        wanted = tuple(lengths.setdefault(axis, length) for axis, length in pairs)
        require(
            array.shape == wanted and array.ndim == len(axes),
            f"{name!r} has shape {array.shape}; the others require {wanted}",
        )
        kind = kind or dtype
        require(array.dtype == kind, f"{name!r} is {array.dtype}, not {np.dtype(kind)}")
        if kind is np.int64:
            outside = (array < 0) | (array >= lengths["classes"])
            require(not outside.any(), f"{name!r} holds a code outside the classes")
    rank = lengths["rank"]
    require(
        (1 if "components_" in values else n_features) <= rank <= n_features,
        f"the metric has the rank {rank}, but there are {n_features} features",
    )
    require(lengths["references"], "the model has no references")
    n_latents = lengths.get("latents")
    require(
        values.get("reference_") != "latent" or n_latents == lengths["references"],
        f"the {n_latents} latent examples are not the {lengths['references']} references",
    )


def _check_latents(attributes: dict[str, Any]) -> None:
    """Raise unless latent examples are sorted by class and count rows; a class may have none."""
    codes, classes = attributes["latent_labels_"], attributes["classes_"]
    require((np.diff(codes) >= 0).all(), "latent_labels_ are not in ascending order")
    require((attributes["latent_counts_"] >= 0).all(), "latent_counts_ holds a number below 0")
    if classes.dtype.kind == "U":
        width = classes.dtype.itemsize // 4
        check_text_bytes(len(codes), width, attributes["latent_examples_"].nbytes)


def _model(attributes: dict[str, Any], voting: dict[str, Any]) -> FittedModel:
    scale, temperature = float(voting["scale"]), float(voting["temperature"])
    is_valid = isfinite(scale) and scale > 0 and isfinite(temperature) and temperature >= 0
    require(is_valid, "scale and temperature are not finite numbers above 0")
    rows, components = voting["references"], attributes.get("components_")
    norms, similarity = squared_norms(rows), None
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
    largest, off_centre = float(np.finfo(dtype).max), np.abs(inner.centre).max()
    divisor = float(dtype.type(inner.scale))
    require(
        0 < divisor <= largest and off_centre <= largest,
        f"the scale {inner.scale:g} and the centre, up to {off_centre:g}, are not numbers that "
        f"{dtype} can compute with",
    )
    fits = not model.is_metric or model.farthest <= largest / inner.scale
    require(
        model.reach >= 1 and fits,
        f"the metric or similarity and the references, of norms up to {model.farthest:g}, are too "
        f"large: distances would overflow in {dtype}",
    )
    if "latent_examples_" in attributes:
        model.check_reach(attributes["latent_examples_"])
    limits = {"similarity_": sqrt(largest), "margins_": 1e305, "latent_counts_": 1e30}
    for name, limit in limits.items():
        peak = float(np.abs(attributes.get(name, 0)).max())
        require(peak <= limit, f"{name} holds {peak:g}, too large to compute with in {dtype}")
