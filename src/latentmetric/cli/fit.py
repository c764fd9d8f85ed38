"""``latentmetric fit``: from a file of features to a model on disk."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from latentmetric import save
from latentmetric.cli import _options as option
from latentmetric.cli._estimators import Parameters, Steps, fit_steps, joined
from latentmetric.cli._messages import INTERRUPTED, note, print_json, say
from latentmetric.cli._output import check_output
from latentmetric.cli._progress import ERRORS, measured, show_progress
from latentmetric.cli._reading import Reading, read_to_fit
from latentmetric.estimators.progress import iterations, refinement
from latentmetric.registry import ESTIMATORS

if TYPE_CHECKING:
    from latentmetric.evaluation import QuickCheck

QUICK_SECONDS = 10
"""A fit that took longer is not compared with other methods, because that might take as long."""


def fit(
    features: option.Features,
    labels: option.Labels = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")],
    reading: Reading,
    parameters: Parameters,
    steps: Steps,
    estimator: Annotated[
        str, typer.Option(metavar="NAME", help=" ".join(ESTIMATORS).lower())
    ] = "mapml",
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Save the state after each round here.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from --checkpoint.")] = False,
    no_check: Annotated[
        bool,
        typer.Option("--no-check", help="Do not compare with tuned k-NN after a quick fit."),
    ] = False,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
) -> None:
    """Learn a model from features and labels, and save it.

    Change first: --n-latents, --set label_noise=true if labels may be wrong, --set
    class_weight=balanced if small classes matter. Ctrl-C saves the best round so far (exit code
    130).
    """
    if resume and checkpoint is None:
        raise typer.BadParameter("--resume needs --checkpoint, the folder to resume from")
    model = parameters.estimator(estimator)
    check_output(out, "model", [features, labels], overwrite)
    models = "fit learns a new model and takes none"
    table = read_to_fit(features, labels, reading, steps, models)
    since = perf_counter()
    pipeline = steps.make(table)
    rows = fit_steps(pipeline, table)
    with show_progress() as progress, progress.best_round_on_interrupt():
        model.fit(
            rows, table.labels, row_ids=table.ids, checkpoint=checkpoint, resume=resume
        )  # fmt: skip
    if table.feature_names is not None and pipeline is None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    columns = {"label": table.label_name, "id": table.id_name, "key": table.key}
    if any(columns.values()):  # where later commands find these in such files
        model.columns_in_ = {role: name for role, name in columns.items() if name}
    save(joined(pipeline, model), out)
    facts = _facts(model, out, perf_counter() - since, progress.interrupted)
    facts["columns"] = table.rows.shape[1]
    check = not no_check and getattr(model, "unlabelled", None) is None and not progress.interrupted
    is_quick = facts["seconds"] <= QUICK_SECONDS
    trial = _trial(model, rows, table.labels) if check and is_quick else None
    if json:
        print_json(facts | ({} if trial is None else {"trial": asdict(trial)}))
    else:
        _show(facts, trial)
    if check and not is_quick:
        note(
            "not compared with tuned k-NN and logistic regression, because the fit took more than "
            f"{QUICK_SECONDS} s; latentmetric compare does that"
        )
    if progress.interrupted:
        raise typer.Exit(INTERRUPTED)


def _trial(model: Any, rows: Any, labels: Any) -> QuickCheck | None:
    """How others do on the same rows; None if that cannot be known. Ctrl-C ends only this."""
    from latentmetric.evaluation import quick_check

    title = "trial fits, to compare with tuned k-NN and logistic regression"
    failures = (KeyboardInterrupt, ValueError, ArithmeticError, MemoryError)
    with show_progress(title, each_round=False), suppress(*failures):
        return quick_check(model, rows, labels)
    return None


def _facts(model: Any, out: Path, seconds: float, interrupted: bool) -> dict[str, Any]:
    """What there is to say about a fit."""
    first, last = model.history_[0], model.history_[-1]
    kept = next(record for record in model.history_ if iterations(record) == model.best_iter_)
    facts = {
        "model": str(out),
        "estimator": type(model).__name__,
        "rounds": last["round"],
        "kept_round": kept["round"],
        "iterations": model.n_iter_,
        "interrupted": interrupted,
        "references": len(model.model_.references),
        "classes": len(model.classes_),
        "features": int(model.n_features_in_),
        "seconds": round(seconds, 3),
    }
    if getattr(model, "class_weight", None) is not None:
        facts["class_weight"] = model.class_weight
    facts |= {name: kept[name] for name in (*ERRORS, "loss", "refinement") if name in kept}
    return facts | ({"start": first["start"]} if "start" in first else {})


def _show(facts: dict[str, Any], trial: QuickCheck | None) -> None:
    kept = f"round {facts['kept_round']}{refinement(facts)}"
    if facts["interrupted"]:
        say(f"Interrupted after round {facts['rounds']}; {kept} was kept.")
    if facts["kept_round"] == 0 and facts["rounds"]:
        say("No round was better than round 0, so nothing that was learned is used.")
    # A fit lowers its error on training rows by its own choices.
    has_error = any(name in facts for name in ERRORS)
    doubts = ["weighted by class_weight"] if has_error and "class_weight" in facts else []
    doubts += ["no estimate for new rows"] if "loo_error" in facts else []
    doubt = f" ({', '.join(doubts)})" if doubts else ""
    made = "" if facts["features"] == facts["columns"] else f" made from {facts['columns']} columns"
    parts = [
        f"{facts['model']}: {facts['estimator']}",
        f"start {facts['start']}" if "start" in facts else "",
        kept,
        f"{measured(facts)}{doubt}",
        f"{facts['references']:,} references of {facts['classes']} classes",
        f"{facts['features']} features{made}",
        f"{facts['seconds']:.1f} s",
    ]
    say(", ".join(part for part in parts if part))
    if trial is not None:
        say(trial.words)
