"""``latentmetric fit``: from a file of features to a model on disk."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric import save
from latentmetric.cli._errors import INTERRUPTED
from latentmetric.cli._output import Overwrite, check_output, print_json
from latentmetric.cli._parameters import (
    DEFAULT_ESTIMATOR,
    Estimator,
    make_estimator,
    takes_parameters,
)
from latentmetric.cli._progress import followed, keeping_the_best
from latentmetric.cli._tables import Features, Json, Labels, read_table, reads_tables
from latentmetric.io import Choice


@takes_parameters
@reads_tables
def fit(
    features: Features,
    labels: Labels = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")],
    estimator: Annotated[Estimator, typer.Option(help="Estimator to fit.")] = DEFAULT_ESTIMATOR,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder to keep the state of the fit in after each round (MaPML)."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint, if there is one.")
    ] = False,
    overwrite: Overwrite = False,
    json: Json = False,
    choice: Choice,
    parameters: dict[str, Any],
) -> None:
    """Learn a model from features and labels, and save it.

    Ctrl-C ends the fit after the current round and saves the best one so far; the exit code is
    then 130. A second Ctrl-C ends at once and leaves an existing file unchanged. With --checkpoint
    a fit that was killed can be resumed, to the same model.
    """
    kept = _checkpoint_options(estimator, checkpoint, resume)
    model = make_estimator(estimator, parameters)
    check_output(out, "model", [features, labels, *_checkpoint_files(checkpoint)], overwrite)
    table = read_table(features, labels, choice)
    since = perf_counter()
    with followed() as follower, keeping_the_best(follower):
        model.fit(table.rows, table.labels, **kept)
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    save(model, out)
    _report(model, out, perf_counter() - since, follower.interrupted, json)
    if follower.interrupted:
        raise typer.Exit(INTERRUPTED)


def _checkpoint_options(
    estimator: Estimator, checkpoint: Path | None, resume: bool
) -> dict[str, Any]:
    """The arguments of ``fit`` about checkpoints."""
    if checkpoint is None:
        if resume:
            raise typer.BadParameter("--resume needs --checkpoint, the folder to resume from")
        return {}
    if estimator != DEFAULT_ESTIMATOR:
        raise typer.BadParameter(f"--checkpoint is for mapml, not for {estimator.value}")
    return {"checkpoint": checkpoint, "resume": resume}


def _checkpoint_files(folder: Path | None) -> list[Path]:
    """What a fit that is resumed would read."""
    return [] if folder is None else list(folder.glob("checkpoint.*"))


def _report(model: Any, out: Path, seconds: float, interrupted: bool, json: bool) -> None:
    kept = getattr(model, "best_iter_", model.history_[-1]["round"])
    facts = {
        "model": str(out),
        "estimator": type(model).__name__,
        "rounds": model.history_[-1]["round"],
        "kept_round": kept,
        "interrupted": interrupted,
        "references": len(model._references),
        "classes": len(model.classes_),
        "features": int(model.n_features_in_),
        "seconds": round(seconds, 3),
    }
    errors = {record["round"]: record.get("validation_error") for record in model.history_}
    if errors.get(kept) is not None:
        facts["validation_error"] = errors[kept]
    if json:
        print_json(facts)
        return
    if interrupted:
        typer.echo(f"Interrupted after round {facts['rounds']}; round {kept} was kept.")
    error = f", validation error {errors[kept]:.2%}" if errors.get(kept) is not None else ""
    typer.echo(
        f"{out}: {type(model).__name__}, round {kept}{error}, {facts['references']:,} references "
        f"of {facts['classes']} classes, {facts['features']} features, {seconds:.1f} s"
    )
