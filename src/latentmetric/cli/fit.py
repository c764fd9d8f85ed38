"""``latentmetric fit``: from a file of features to a model on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from latentmetric import save
from latentmetric.cli._errors import INTERRUPTED, in_words, note
from latentmetric.cli._output import (
    Overwrite,
    check_output,
    print_json,
    refuse_what_is_read,
    say,
)
from latentmetric.cli._parameters import (
    DEFAULT_ESTIMATOR,
    Estimator,
    make_estimator,
    takes_parameters,
)
from latentmetric.cli._preparing import Preparation, fitted_steps, joined, prepares
from latentmetric.cli._progress import ERRORS, followed, judged, keeping_the_best
from latentmetric.cli._tables import (
    Features,
    Json,
    Labels,
    note_rare_labels,
    read_table,
    reads_tables,
)
from latentmetric.estimators.progress import iterations, refinement
from latentmetric.io import Choice, Table
from latentmetric.persistence.checkpoints import FILE_NAME
from latentmetric.persistence.models import check_names

if TYPE_CHECKING:
    from latentmetric.evaluation import QuickCheck

QUICK_SECONDS = 10
"""A fit that took longer is not compared with other methods, because that might take as long."""

TOO_LONG = (
    f"not compared with k-NN and logistic regression, because the fit took more than "
    f"{QUICK_SECONDS} s; latentmetric compare does that"
)

NO_ESTIMATE = " (no estimate for new rows)"
"""Beside the error on training rows, which a fit lowers by its own choices."""


@takes_parameters
@prepares
@reads_tables
def fit(
    features: Features,
    labels: Labels = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")],
    estimator: Annotated[Estimator, typer.Option(help="Estimator to fit.")] = DEFAULT_ESTIMATOR,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder to keep the state of the fit in after each round."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint, if there is one.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Say whether k-NN or logistic regression would do better, if that takes seconds.",
        ),
    ] = True,
    overwrite: Overwrite = False,
    json: Json = False,
    choice: Choice,
    preparation: Preparation,
    parameters: dict[str, Any],
) -> None:
    """Learn a model from features and labels, and save it.

    Ctrl-C ends the fit after the current round and saves the best one so far; the exit code is
    then 130. A second Ctrl-C ends at once and leaves an existing file unchanged. With --checkpoint
    a fit that was killed can be resumed, to the same model. With --impute, --normalize or --one-hot
    the model is a pipeline: all commands then prepare their rows in the same way.

    After a quick fit, one line says how k-NN and logistic regression do beside it, on rows that a
    second, smaller fit has not seen. The saved model does not depend on it; --no-check leaves it
    out.
    """
    if resume and checkpoint is None:
        raise typer.BadParameter("--resume needs --checkpoint, the folder to resume from")
    model = make_estimator(estimator, parameters)
    check_output(out, "model", [features, labels, *_checkpoint_files(checkpoint)], overwrite)
    if checkpoint is not None:
        advice = "name another folder with --checkpoint"
        refuse_what_is_read(checkpoint, checkpoint / FILE_NAME, [features, labels], advice)
    table = read_table(
        features, labels, preparation.choice(choice), models="fit learns a new model and takes none"
    )
    columns = _columns(table)
    check_names(table.labels, table.feature_names, columns)
    note_rare_labels(table.labels)
    since = perf_counter()
    steps, rows = fitted_steps(preparation, table)
    with followed() as follower, keeping_the_best(follower):
        model.fit(rows, table.labels, checkpoint=checkpoint, resume=resume)
    if table.feature_names is not None and steps is None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    if columns:
        model.columns_in_ = columns
    _save(joined(steps, model), out)
    facts = _facts(model, out, perf_counter() - since, follower.interrupted)
    facts["columns"] = table.rows.shape[1]
    beside = None
    check = check and getattr(model, "unlabelled", None) is None and not follower.interrupted
    quick = facts["seconds"] <= QUICK_SECONDS
    if check and quick:
        beside = _beside_others(model, rows, table.labels)
    _report(model, facts, beside, json)
    if check and not quick:
        note(TOO_LONG)
    if follower.interrupted:
        raise typer.Exit(INTERRUPTED)


def _columns(table: Table) -> dict[str, str]:
    """The names by which later commands find the labels and the ids in files like this one."""
    names = {"label": table.label_name, "id": table.id_name}
    return {role: name for role, name in names.items() if name}


def _beside_others(model: Any, rows: Any, labels: Any) -> QuickCheck | None:
    """How others do on the same rows; None if that cannot be known. Ctrl-C ends only this."""
    from latentmetric.evaluation import quick_check

    with (
        followed(each_round=False) as follower,
        suppress(KeyboardInterrupt, ValueError, ArithmeticError, MemoryError),
    ):
        follower.begin("trial fits, to compare with k-NN and logistic regression")
        return quick_check(model, rows, labels)
    return None


def _save(model: Any, out: Path) -> None:
    """Save a model, and if that fails, elsewhere: a fit may have taken long."""
    try:
        save(model, out)
    except OSError as error:
        elsewhere = _saved_elsewhere(model)
        if elsewhere is None:
            raise
        message = f"{in_words(error)}; the model was saved as {elsewhere} instead"
        raise OSError(message) from error


def _saved_elsewhere(model: Any) -> Path | None:
    """Where the model is now: in the current folder, or else in that for temporary files."""
    for folder in (Path.cwd, tempfile.gettempdir):
        with suppress(OSError):
            descriptor, name = tempfile.mkstemp(".safetensors", "latentmetric-", folder())
            os.close(descriptor)
            try:
                save(model, name)
            except BaseException:
                os.unlink(name)
                raise
            return Path(name)
    return None


def _checkpoint_files(folder: Path | None) -> list[Path]:
    """What a fit that is resumed would read."""
    return [] if folder is None else [folder / FILE_NAME]


def _facts(model: Any, out: Path, seconds: float, interrupted: bool) -> dict[str, Any]:
    """What there is to say about a fit."""
    kept = _kept(model)
    facts = {
        "model": str(out),
        "estimator": type(model).__name__,
        "rounds": model.history_[-1]["round"],
        "kept_round": kept["round"],
        "iterations": model.n_iter_,
        "interrupted": interrupted,
        "references": len(model.model_.references),
        "classes": len(model.classes_),
        "features": int(model.n_features_in_),
        "seconds": round(seconds, 3),
    } | _judgement(kept)
    if "start" in model.history_[0]:
        facts["start"] = model.history_[0]["start"]
    return facts


def _report(model: Any, facts: dict[str, Any], beside: QuickCheck | None, json: bool) -> None:
    if json:
        trial = {} if beside is None else {"trial": asdict(beside)}
        print_json(facts | trial)
        return
    kept = _name(_kept(model))
    if facts["interrupted"]:
        say(f"Interrupted after round {facts['rounds']}; {kept} was kept.")
    if facts["kept_round"] == 0 and facts["rounds"]:
        say("No round was better than round 0, so nothing that was learned is used.")
    errors = f", {found}" if (found := judged(facts)) else ""
    if "loo_error" in facts:
        errors += NO_ESTIMATE
    start = f", start {facts['start']}" if "start" in facts else ""
    say(
        f"{facts['model']}: {facts['estimator']}{start}, {kept}{errors}, "
        f"{facts['references']:,} references of {facts['classes']} classes, "
        f"{_width(facts)}, {facts['seconds']:.1f} s"
    )
    if beside is not None:
        say(beside.words)


def _width(facts: Mapping[str, Any]) -> str:
    """How wide the rows are; the steps of a pipeline may make several features of a column."""
    features, columns = facts["features"], facts["columns"]
    made = "" if features == columns else f" made from {columns} columns"
    return f"{features} features{made}"


def _kept(model: Any) -> Mapping[str, Any]:
    """The record of the round that was kept."""
    found: Mapping[str, Any] = next(
        record for record in model.history_ if iterations(record) == model.best_iter_
    )
    return found


def _name(record: Mapping[str, Any]) -> str:
    return f"round {record['round']}{refinement(record)}"


def _judgement(record: Mapping[str, Any]) -> dict[str, float]:
    """What the round that was kept was judged by."""
    return {name: record[name] for name in (*ERRORS, "loss") if name in record}
