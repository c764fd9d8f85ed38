"""``latentmetric info``, ``export``, ``report`` and ``demo``: what a model holds and does."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from latentmetric.characters import distinct_names, percent
from latentmetric.cli import _options as option
from latentmetric.cli._estimators import joined
from latentmetric.cli._messages import note, print_json, print_table, say
from latentmetric.cli._output import check_output, without_objects
from latentmetric.cli._progress import show_progress
from latentmetric.cli._reading import STANDARD_INPUT, Reading, load_model, read_for
from latentmetric.core.examples import are_missing
from latentmetric.persistence.models import versions_of
from latentmetric.persistence.replacing import replacing
from latentmetric.viz.summaries import candidates, latents_in_words

SHOWN = (
    "objective", "active_share", "rank", "mean_margin", "impostors", "validation_error", "loss",
    "loo_error",
)  # fmt: skip
"""What of each round fits on a line; --json has everything."""

MAX_CLASSES = 10
"""Classes that are named; --json has all."""


def info(model: option.Model, json: option.Json = False) -> None:
    """Show what a model file holds: estimator, data, parameters, rounds."""
    loaded = load_model(model)
    fitted = loaded.estimator
    steps = [] if loaded.steps is None else loaded.steps.steps
    components, first = fitted.model_.components, fitted.history_[0]
    row_ids = fitted.model_.row_ids
    facts = {
        "file": str(model),
        "bytes": model.stat().st_size,
        **versions_of(model),
        "estimator": type(fitted).__name__,
        "features": int(loaded.first.n_features_in_),
        "feature_names": loaded.feature_names,
        "steps": [{"name": name, "step": " ".join(str(step).split())} for name, step in steps],
        "classes": fitted.classes_.tolist(),
        "references": len(fitted.model_.references),
        "latent_examples": len(getattr(fitted, "latent_examples_", ())),
        "row_ids": None if row_ids is None else int((~are_missing(row_ids)).sum()),
        "rank": None if components is None else len(components),
        "iterations": fitted.n_iter_,
        "kept_iteration": fitted.best_iter_,
        "parameters": fitted.get_params(),
        "history": fitted.history_,
    }
    about_start = ("start", "n_latents", "ridge", "bandwidth", "start_losses", "start_errors")
    facts |= {name: first[name] for name in about_start if name in first}
    if json:
        print_json(facts)
    else:
        _show(facts)


def _show(facts: dict[str, Any]) -> None:
    """Print the facts, a line each, and a table of the rounds."""
    history, losses = facts.pop("history"), facts.pop("start_losses", {})
    errors, names, classes = facts.pop("start_errors", {}), facts["feature_names"], facts["classes"]
    shown = ", ".join(distinct_names(classes[:MAX_CLASSES], 40))
    facts["classes"] = f"{len(classes):,}: {shown}{', …' if len(classes) > MAX_CLASSES else ''}"
    facts["feature_names"] = f"{names[0]} to {names[-1]}" if names else None
    versions = (facts["versions"] or {}).items()
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in versions)
    facts["steps"] = ", ".join(step["step"] for step in facts["steps"])
    facts["parameters"] = ", ".join(f"{name}={v!r}" for name, v in facts["parameters"].items())
    tried = [f"{name} {losses[name]:.4g} ({percent(errors[name])} wrong)" for name in losses]
    compared = candidates(history)
    if compared:
        if "n_latents" in facts:
            facts["n_latents"] = latents_in_words(facts["n_latents"])
        facts["chosen from"] = f"{len(compared)} candidates by cross-validation (--json lists them)"
    if tried:
        facts["start"] += f", by the loss on rows not seen: {', '.join(tried)}"
    for name, value in facts.items():
        if value not in (None, ""):
            say(f"{name.replace('_', ' ')}: {f'{value:,}' if isinstance(value, int) else value}")
    _show_rounds(history)


def _show_rounds(history: list[dict[str, Any]]) -> None:
    measured = [name for name in SHOWN if any(name in record for record in history)]
    if not measured:
        return
    rows = []
    for record in history:
        refined = f" r{record['refinement']}" if "refinement" in record else ""
        numbers = ["" if name not in record else f"{record[name]:.4g}" for name in measured]
        seconds = f"{sum(record['seconds'].values()):.2f}"
        rows.append([f"{record['round']}{refined}", *numbers, seconds])
    print_table(["round", *[name.replace("_", " ") for name in measured], "seconds"], rows)
    if any("refinement" in record for record in history):
        say("r1, r2 and so on are passes of the refinement, which learns from the same rows")
        say("that loss and loo error are measured on, each left out of its latent example.")


def export(
    model: option.Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    to: Annotated[
        Literal["onnx", "faiss", "sklearn"], typer.Option(help="Format to write.")
    ] = "onnx",
    overwrite: option.Overwrite = False,
    json: option.Json = False,
) -> None:
    """Convert a model to ONNX, a faiss index or plain scikit-learn.

    onnx: a graph from features to label, probabilities and neighbours. faiss: an index, and
    beside it OUT.npz with the labels of its rows and with centre, scale and components: queries
    are (x - centre) / scale @ components.T, where x has passed the steps of a pipeline. sklearn: a
    pickled pipeline, for pickle or joblib; pickles can run code, so open only your own.
    """
    beside = out.with_name(f"{out.name}.npz")
    check_output(out, to, [model], overwrite)
    if to == "faiss":
        check_output(beside, "arrays", [model], overwrite)
    loaded = load_model(model)
    whole, written = joined(loaded.steps, loaded.estimator), [out]
    if to == "onnx":
        from latentmetric.export import to_onnx

        to_onnx(whole, out)
    elif to == "sklearn":
        from latentmetric.export import to_sklearn

        pipeline = to_sklearn(whole)
        with replacing(out) as file:
            pickle.dump(pipeline, file)
    else:
        if loaded.steps is not None:
            note("the index is of rows after the steps: queries pass pipeline[:-1].transform first")
        _write_faiss(loaded.estimator, out, beside)
        written.append(beside)
    if json:
        print_json({"files": [str(path) for path in written]})
    else:
        for path in written:
            say(f"{path}: {path.stat().st_size:,} bytes")


def _write_faiss(estimator: Any, out: Path, beside: Path) -> None:
    """Write an index, and beside it the arrays that it cannot hold."""
    from latentmetric.export import to_faiss

    exported, model = to_faiss(estimator), estimator.model_
    import faiss

    with replacing(out) as file:
        file.write(faiss.serialize_index(exported.index).data)
    with replacing(beside) as file:
        np.savez(
            file,
            labels=without_objects(exported.labels),
            centre=model.coordinates.centre,
            scale=model.coordinates.scale,
            components=np.eye(model.n_features, dtype=np.float32)
            if model.components is None
            else model.components,
        )


def report(
    model: option.Model,
    features: option.Features,
    labels: option.Labels = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path(
        "report.html"
    ),
    train: Annotated[
        Path | None,
        typer.Option(help="Rows the model was fitted on; the verdict needs them."),
    ] = None,
    train_labels: Annotated[
        Path | None, typer.Option(help="Labels of the --train rows, if in a file of their own.")
    ] = None,
    image_shape: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help="Shape of rows that are images, as 28x28 or 32x32x3."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Fit no tuned k-NN, logistic regression, SVC and map."),
    ] = False,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    reading: Reading,
) -> None:
    """Write an HTML report: data, errors, map, latent examples, confusions.

    Give test rows, and with --train the rows that the model was fitted on: the page opens with a
    verdict, a comparison with tuned k-NN, logistic regression and SVC. Without --train,
    there is no verdict. --id shows rows by a column of the file. The page is one file that opens
    offline and sends no request.
    """
    from latentmetric.viz import write_report

    shape = _shape(image_shape)
    if features == train == STANDARD_INPUT:
        message = "standard input can be read only once, and the test rows are read from it"
        raise typer.BadParameter(message, param_hint="--train")
    check_output(out, "report", [model, features, labels, train, train_labels], overwrite)
    loaded = load_model(model)
    table = read_for(loaded, features, labels, reading, labelled=True)
    known = None if train is None else read_for(loaded, train, train_labels, reading, labelled=True)
    with show_progress(each_round=False) as progress:
        written = write_report(
            joined(loaded.steps, loaded.estimator),
            table.rows,
            table.labels,
            out,
            X_train=None if known is None else known.rows,
            y_train=None if known is None else known.labels,
            image_shape=shape,
            row_names=table.ids,
            train_names=None if known is None else known.ids,
            title=title,
            source=features.name,
            quick=quick,
            on_start=progress.begin,
        )
    if json:
        print_json({"report": str(written), "bytes": written.stat().st_size})
    else:
        say(f"{written}: {written.stat().st_size / 1e6:.1f} MB, opens in any browser")


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+x\d+(x\d+)?", text):
        message = f"{text!r} is not height x width, as 28x28, or with channels, as 32x32x3"
        raise typer.BadParameter(message, param_hint="--image-shape")
    return tuple(int(size) for size in text.split("x"))


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
) -> None:
    """Show what this is for, on digits, in less than a minute; write a report.

    Compares tuned k-NN, logistic regression, SVC and MaPML on clean images, with noise and with
    wrong labels, turns away images of an unknown digit, and then adds that digit to the model.
    """
    from latentmetric import demo as digits

    digits.show(out)
