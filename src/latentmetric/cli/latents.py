"""``latentmetric latents``: the latent examples of a model, as a table."""

from __future__ import annotations

import numpy as np

from latentmetric.cli._output import (
    AnswersOut,
    Overwrite,
    check_answers,
    print_json,
    write_array,
    write_columns,
)
from latentmetric.cli._tables import Json, Model, load_latents

COLUMNS = ("latent", "label", "rows")
"""The columns before the features."""


def latents(
    model: Model, out: AnswersOut = None, overwrite: Overwrite = False, json: Json = False
) -> None:
    """Write the latent examples of a model, with how many rows each stands for.

    Latent examples are numbered from 0, as in the answers of neighbors. Features have their names
    if the model knows them. An .npy file holds the features alone.
    """
    check_answers(out, [model], overwrite)
    fitted = load_latents(model)
    examples = fitted.latent_examples_
    columns = dict(
        zip(
            COLUMNS,
            (np.arange(len(examples)), fitted.latent_labels_, fitted.latent_counts_),
            strict=True,
        )
    )
    if out is not None and out.suffix == ".npy":
        write_array(examples, out)
    elif out is not None or not json:
        write_columns(columns | dict(zip(_names(fitted), examples.T, strict=True)), out)
    if json:
        print_json(columns | {"features": examples})


def _names(fitted: object) -> list[str]:
    """The names of the features, told apart from the columns before them."""
    n_features = fitted.latent_examples_.shape[1]  # type: ignore[attr-defined]
    known = getattr(fitted, "feature_names_in_", None)
    names = [f"feature {number}" for number in range(n_features)] if known is None else known
    return [f"feature {name}" if name in COLUMNS else str(name) for name in names]
