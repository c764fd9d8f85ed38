"""``latentmetric latents``: the latent examples of a model, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from latentmetric.cli._errors import note
from latentmetric.cli._output import (
    AnswersOut,
    Overwrite,
    check_answers,
    print_json,
    write_array,
    write_columns,
)
from latentmetric.cli._tables import Json, Model, load_latents
from latentmetric.estimators.undoing import CannotUndoError, in_given_units
from latentmetric.validation.pipelines import Piped

COLUMNS = ("latent", "label", "rows")
"""The columns before the features."""


def latents(
    model: Model, out: AnswersOut = None, overwrite: Overwrite = False, json: Json = False
) -> None:
    """Write the latent examples of a model, with how many rows each stands for.

    The rows are those counted in the fit, before the last pass of the refinement. Latent
    examples are numbered from 0, as in the answers of neighbors. Features have their names if
    the model knows them. Those of a pipeline are in the units that fit was given, where its
    steps can be undone; a note says if not. An .npy file holds the features alone.
    """
    check_answers(out, [model], overwrite)
    piped = load_latents(model)
    fitted = piped.estimator
    examples, names = _examples(piped)
    columns = dict(
        zip(
            COLUMNS,
            (np.arange(len(examples)), fitted.latent_labels_, _whole(fitted.latent_counts_)),
            strict=True,
        )
    )
    if out is not None and out.suffix == ".npy":
        write_array(examples, out)
    elif out is not None or not json:
        write_columns(columns | dict(zip(names, map(_column, examples.T), strict=True)), out)
    if json:
        print_json(columns | {"features": examples})


def _whole(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers of rows without a point; with sample weights they are not always whole."""
    return counts.astype(np.int64) if (counts % 1 == 0).all() else counts


def _examples(piped: Piped) -> tuple[np.ndarray[Any, Any], list[str]]:
    """The latent examples, in the units given if possible, and the names of their features."""
    examples, known = piped.estimator.latent_examples_, piped.feature_names
    try:
        examples = in_given_units(piped, examples)
    except CannotUndoError as error:
        note(f"latent examples are as they are after the steps: {error}")
        known = None
    names = known or [f"feature {number}" for number in range(examples.shape[1])]
    return examples, [f"feature {name}" if name in COLUMNS else name for name in names]


def _column(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A column of numbers as such, also among columns of words."""
    if values.dtype.kind != "O" or any(isinstance(value, str) for value in values):
        return values
    return values.astype(np.float64)
