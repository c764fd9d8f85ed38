"""A fitted estimator as JSON and arrays, and back.

Everything that predictions are computed from is stored exactly. What comes back is checked by one
table of arrays, and parameters by the estimator's own checks.
"""

from __future__ import annotations

from dataclasses import fields, replace
from inspect import signature
from typing import Any

import numpy as np

from latentmetric.characters import shortened
from latentmetric.core.capacity import Candidate
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References
from latentmetric.core.examples import EXAMPLES, Ids
from latentmetric.core.model import FittedModel
from latentmetric.core.quasi_newton import BANDWIDTHS
from latentmetric.core.span import Outside
from latentmetric.core.starts import STARTS
from latentmetric.core.unknown import Usual
from latentmetric.persistence.model_file import (
    Arrays,
    Contents,
    ModelFileError,
    one_line,
    pack,
    require,
    unpack,
)
from latentmetric.registry import ESTIMATORS, estimator_class
from latentmetric.validation.parameters import Integer, count_or_share, validated_copy

ARRAYS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "centre": (np.float64, ("features",)),
    "references": (None, ("references", "rank")),
    "codes": (np.int64, ("references",)),
    "log_scales": (None, ("references",)),
    "log_weights": (None, ("references",)),
    "components_": (None, ("rank", "features")),
    "outside_factors": (None, ("features",)),
    "span_basis": (None, ("span", "features")),
    "similarity_": (None, ("features", "features")),
    "latent_examples_": (None, ("latents", "features")),
    "latent_labels_": (np.int64, ("latents",)),
    "latent_counts_": (np.float64, ("latents",)),
    "margins_": (np.float64, ("classes",)),
    "known_scores_": (np.float64, ("scored",)),
}
"""Dtype (None: that of the references) and axes of each array; axes of one name are as long."""

LIMITS = {"latent_counts_": (0, 1e27), "log_scales": (-1e20, 1e20), "log_weights": (-1e20, 1e20)}
"""The least and the largest value of arrays whose sums are computed: none overflows."""

MAX_MARGIN = 1e280
"""The largest margin, in units of the model's coordinates."""

COUNTS = ("n_features_in_", "n_iter_", "best_iter_")
OTHERS = (
    "classes_", "history_", "feature_names_in_", "columns_in_", "reference_", "n_latents_",
    "n_sets_",
)  # fmt: skip
"""Attributes that are no arrays of numbers."""

NEEDED = {
    "MaPML": ("latent_examples_", "latent_labels_", "latent_counts_", "margins_", "reference_"),
    "OASIS": ("similarity_",),
}
"""Attributes that an estimator answers from, beside those that all have."""

NAMES = {"start": STARTS, "bandwidth": BANDWIDTHS}
"""The entries of the history that are names; all others are numbers or dicts of numbers."""

TRIED = {field.name for field in fields(Candidate)} | {"fold", "loss"}
"""What the history says of each candidate that was tried."""


def pack_estimator(estimator: Any, arrays: Arrays) -> dict[str, Any]:
    """An estimator of this package as JSON; its arrays are added to ``arrays``."""
    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not estimator_class(name):
        found = "; save its best_estimator_" if hasattr(estimator, "best_estimator_") else ""
        raise TypeError(
            f"{type(estimator).__module__}.{type(estimator).__qualname__} cannot be saved: a model "
            f"file holds no code, so it can only be one of {', '.join(ESTIMATORS)}, or a Pipeline "
            f"that ends in one{found}; keep others with joblib or skops"
        )
    values = dict(vars(estimator))
    classes, model = values["classes_"], values["model_"]
    if classes.dtype.kind not in "biufU" and not all(type(one) is str for one in classes.tolist()):
        raise TypeError(
            "a model file holds labels that are integers, floats, booleans or strings, but the "
            f"classes are {classes.dtype.name}, such as {classes.tolist()[0]!r}; fit with labels "
            "converted to strings"
        )
    parameters = {key: values[key] for key in signature(type(estimator)).parameters}
    if not isinstance(parameters.get("random_state"), int | np.integer):
        parameters["random_state"] = None
    attributes = {key: values[key] for key in (*COUNTS, *OTHERS, *ARRAYS) if key in values}
    if "latent_labels_" in attributes:
        attributes["latent_labels_"] = np.searchsorted(classes, attributes["latent_labels_"])
    voting = {
        "centre": model.coordinates.centre,
        "scale": float(model.coordinates.scale),
        "temperature": float(model.temperature),
        "references": model.references.rows,
        "codes": model.codes.astype(np.int64, copy=False),
    }
    if model.usual is not None:
        voting |= {"usual_nearest": model.usual.nearest, "usual_centre": model.usual.centre}
    if model.log_scales is not None:
        voting |= {"log_scales": model.log_scales, "log_weights": model.log_weights}
    if model.row_ids is not None:
        voting |= _packed_ids(model.row_ids)
    if model.outside is not None:
        voting |= {"outside_factors": model.outside.factors, "span_basis": model.outside.basis}
    return {
        "estimator": name,
        "parameters": pack(parameters, {}, "parameters"),
        "attributes": {
            key: pack(value, arrays, key.removesuffix("_")) for key, value in attributes.items()
        },
        "voting": {key: pack(value, arrays, key) for key, value in voting.items()},
    }


def restore_estimator(stored: dict[str, Any], contents: Contents) -> Any:
    """The estimator that ``pack_estimator`` stored, checked."""
    name = stored["estimator"]
    require(
        name in ESTIMATORS,
        f"the estimator {shortened(name, 40)!r} is not one of {', '.join(ESTIMATORS)}",
    )
    kind, parameters = estimator_class(name), unpack(stored["parameters"], contents)
    if name == "MaPML":
        parameters.pop("index", None)  # of earlier versions, which searched approximately with it
    unknown = [key for key in parameters if key not in signature(kind).parameters]
    require(not unknown, f"the parameter {shortened(unknown[:1], 40)} is unknown")
    attributes, voting = unpack(stored["attributes"], contents), unpack(stored["voting"], contents)
    attributes.pop("score_quantiles_", None)  # of the score of earlier versions
    lacking = [needed for needed in NEEDED.get(name, ()) if needed not in attributes]
    require(not lacking, f"a {name} lacks {', '.join(lacking)}")
    _check_attributes(attributes)
    _check_arrays(attributes | voting)
    classes = attributes["classes_"]
    if "latent_labels_" in attributes:
        codes = attributes["latent_labels_"]
        contents.spend(len(codes) * classes.itemsize, "labels as wide as the longest")
        attributes["latent_labels_"] = classes[codes]
    estimator = kind(**parameters)
    if name == "MaPML":  # earlier versions did not choose
        attributes.setdefault("n_latents_", estimator.n_latents)
        attributes.setdefault("n_sets_", 1)
    model = replace(_restore_model(attributes, voting), row_ids=_restore_ids(voting, contents))
    vars(estimator).update(attributes, model_=model)
    try:
        validated_copy(estimator)
        if name == "MaPML":
            count_or_share("n_latents_", attributes["n_latents_"])
            Integer(1, len(attributes["latent_labels_"])).check("n_sets_", attributes["n_sets_"])
        estimator._check_against(classes, fitting=False)
        estimator._voting()
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelFileError(f"a parameter is not valid: {one_line(error)}") from error
    return estimator


def _packed_ids(ids: Ids) -> dict[str, Any]:
    """Ids as UTF-8, "s" before text and "i" before a number, and the bytes of each; 0 for none."""
    marked = ["" if one is None else f"{'s' if isinstance(one, str) else 'i'}{one}"
              for one in ids.ravel().tolist()]  # fmt: skip
    encoded = [text.encode("utf-8", "surrogatepass") for text in marked]
    lengths = np.array([len(text) for text in encoded], dtype=np.int64).reshape(ids.shape)
    return {"row_ids": np.frombuffer(b"".join(encoded), np.uint8), "id_lengths": lengths}


def _restore_ids(voting: dict[str, Any], contents: Contents) -> Ids | None:
    """The ids that ``_packed_ids`` stored, checked; None if there are none."""
    if "row_ids" not in voting:
        return None
    content, lengths = voting["row_ids"], voting["id_lengths"]
    require(
        lengths.shape == (len(voting["references"]), EXAMPLES) and lengths.dtype == np.int64
        and content.ndim == 1 and content.dtype == np.uint8
        and lengths.min() >= 0 and lengths.max() <= len(content) == lengths.sum(),
        "the ids of rows are not those of the references",
    )  # fmt: skip
    contents.spend(64 * lengths.size + 4 * len(content), "the ids of rows")
    ids, held, end = np.full(lengths.size, None, dtype=object), content.tobytes(), 0
    for number, length in enumerate(lengths.ravel().tolist()):
        text = held[end : end + length].decode("utf-8", "surrogatepass")
        end += length
        if text:
            require(text[0] in "si", "an id of a row is neither text nor a number")
            ids[number] = text[1:] if text[0] == "s" else int(text[1:])
    return ids.reshape(lengths.shape)


def _check_attributes(attributes: dict[str, Any]) -> None:
    """Raise unless the attributes that are no arrays of numbers are what they must be."""
    classes, names = attributes["classes_"], attributes.get("feature_names_in_", np.array([]))
    columns = attributes.get("columns_in_", {})
    words, counts = [*names.tolist(), *columns, *columns.values()], [attributes[n] for n in COUNTS]
    require(
        attributes.keys() <= {*COUNTS, *OTHERS, *ARRAYS}
        and all(type(count) is int and 0 <= count < 2**63 for count in counts)
        and len(classes) >= 2 and np.array_equal(np.unique(classes), classes)
        and len(names) in (0, attributes["n_features_in_"])
        and all(isinstance(word, str) for word in words)
        and attributes.get("reference_", "set") in ("latent", "original", "set")
        and attributes["history_"]
        and all(type(record["round"]) is int for record in attributes["history_"])
        and all(_is_measured(*one) for record in attributes["history_"] for one in record.items()),
        "the classes, names, counts or rounds are not those of a fitted estimator",
    )  # fmt: skip


def _is_measured(name: str, value: Any) -> bool:
    """Whether the history may hold this value under this name."""
    if name == "tried":
        return all(one.keys() == TRIED and all(map(_is_measured, one, one.values()))
                   for one in value)  # fmt: skip
    if isinstance(value, dict):
        return all(type(number) in (int, float) for number in value.values())
    return value in NAMES[name] if name in NAMES else type(value) in (int, float)


def _check_arrays(values: dict[str, Any]) -> None:
    """Raise unless all arrays are finite and have shapes and dtypes that fit each other."""
    n_features, dtype = values["n_features_in_"], values["references"].dtype
    lengths = {"features": n_features, "classes": len(values["classes_"])}
    if "components_" not in values:
        lengths["rank"] = n_features
    for name, (kind, axes) in ARRAYS.items():
        if name not in values:
            continue
        array, kind = values[name], kind or dtype
        pairs = zip(axes, array.shape, strict=False)
        wanted = tuple(lengths.setdefault(axis, length) for axis, length in pairs)
        low, high = LIMITS.get(name, (-np.inf, np.inf))
        if kind is np.int64:
            low, high = 0, lengths["classes"] - 1
        require(
            array.shape == wanted and array.ndim == len(axes) and array.dtype == kind
            and np.isfinite(array).all() and ((array >= low) & (array <= high)).all(),
            f"{name!r}, {array.dtype} of shape {array.shape}, does not fit the others, or its "
            "numbers are too large",
        )  # fmt: skip
    labels, is_latent = values.get("latent_labels_", ()), values.get("reference_") == "latent"
    require(
        dtype in (np.float32, np.float64) and lengths["references"]
        and np.any(values.get("components_", 1)) and (np.diff(labels) >= 0).all()
        and (not is_latent or np.array_equal(labels, values["codes"])),
        "the references are not of the metric and the latent examples",
    )  # fmt: skip


def _restore_outside(voting: dict[str, Any]) -> Outside | None:
    """The metric outside the span of the rows, if the model has one."""
    if "outside_factors" not in voting:
        return None
    factors, basis = voting["outside_factors"], voting["span_basis"]
    is_basis = len(basis) <= len(factors) and np.abs(basis).max(initial=0) < 2
    is_basis = is_basis and np.allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-3)
    require(is_basis, "span_basis has rows that are not orthonormal")
    return Outside(factors, basis)


def _restore_model(attributes: dict[str, Any], voting: dict[str, Any]) -> FittedModel:
    """The model that votes; its distances must not overflow in its dtype."""
    scale, temperature = float(voting["scale"]), float(voting["temperature"])
    usual = [float(voting[name]) for name in ("usual_nearest", "usual_centre") if name in voting]
    is_valid = np.isfinite(temperature) and temperature >= 0
    is_valid = is_valid and all(0 < value < np.inf for value in (scale, *usual))
    require(is_valid, "scale, temperature and usual distances are not finite numbers above 0")
    coordinates, rows = Coordinates(voting["centre"], scale), voting["references"]
    codes, n_classes = voting["codes"].astype(np.intp, copy=False), len(attributes["classes_"])
    if "components_" in attributes:
        votes = voting.get("log_scales"), voting.get("log_weights")
        require((votes[0] is None) == (votes[1] is None), "log_scales and log_weights are a pair")
        model = FittedModel.of_metric(
            coordinates, attributes["components_"], rows, codes, n_classes, temperature, *votes,
            _restore_outside(voting),
        )  # fmt: skip
    else:
        references = References(rows, np.zeros(len(rows), dtype=rows.dtype))
        model = FittedModel(
            coordinates, references, codes, n_classes, temperature, None, attributes["similarity_"]
        )
    if usual:
        model = replace(model, usual=Usual(*usual))
    largest = float(np.finfo(model.dtype).max)
    distances = [scale, np.abs(voting["centre"]).max()]
    if model.is_metric:
        distances.append(model.farthest * scale)
    require(
        model.dtype.type(scale) > 0 and max(distances) <= largest and model.reach >= 1,
        f"distances would overflow in {model.dtype}: the scale {scale:g}, the metric or the "
        "references are too large or too small",
    )
    margins = np.abs(attributes.get("margins_", 0.0)).max()
    require(margins <= MAX_MARGIN * coordinates.unit, f"the margin {margins:g} is too large")
    if "latent_examples_" in attributes:
        model.check_reach(attributes["latent_examples_"])
    return model
