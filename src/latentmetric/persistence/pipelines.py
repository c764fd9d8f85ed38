"""A pipeline in a model file: the document of its last step, and the steps before it.

The file's own "estimator" is "Pipeline", so that a library that knows only estimators refuses the
file instead of leaving the steps out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline

from latentmetric.persistence.cells import Arrays
from latentmetric.persistence.model_file import ModelFileError
from latentmetric.persistence.steps import (
    packed_parameters,
    packed_steps,
    restored_parameters,
    restored_steps,
)
from latentmetric.validation.pipelines import Piped

Packed = tuple[dict[str, Any], Arrays]


def packed_pipeline(pipeline: Pipeline, pack: Callable[[Any], Packed]) -> Packed:
    """The document and the arrays of a fitted pipeline; ``pack`` gives those of its estimator."""
    Piped.of(pipeline)
    *before, (name, last) = pipeline.steps
    document, own = pack(last)
    arrays: Arrays = {}
    try:
        parameters = packed_parameters(pipeline)
    except TypeError as error:
        raise TypeError(f"the pipeline: {error}") from error
    steps = packed_steps(before, "", arrays)
    return {
        "format_version": document["format_version"],
        "estimator": "Pipeline",
        "versions": document["versions"],
        "parameters": parameters,
        "steps": steps,
        "name": name,
        "model": document,
    }, arrays | own


def restored_pipeline(
    document: dict[str, Any], arrays: Arrays, restore: Callable[[dict[str, Any], Arrays], Any]
) -> Pipeline:
    """The pipeline; ``restore`` gives its estimator. Raise ``ModelFileError`` on anything odd."""
    arrays = dict(arrays)
    try:
        parameters = restored_parameters("Pipeline", document.get("parameters"))
        steps, width = restored_steps(document.get("steps"), None, arrays)
    except ModelFileError:
        raise
    except (
        ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    ) as error:  # fmt: skip
        told = " ".join(str(error).split())[:200]
        raise ModelFileError(f"the steps are not valid ({type(error).__name__}: {told})") from error
    if not isinstance(document.get("model"), dict):
        raise ModelFileError("the document has steps, but no model")
    estimator = restore(document["model"], arrays)
    if width not in (None, estimator.n_features_in_):
        raise ModelFileError(
            f"the steps give {width} features, but the model takes {estimator.n_features_in_}"
        )
    name = document.get("name")
    if not isinstance(name, str) or "__" in name or name in dict(steps):
        raise ModelFileError("the name of the last step is not a name of its own")
    return Pipeline([*steps, (name, estimator)], **parameters)
