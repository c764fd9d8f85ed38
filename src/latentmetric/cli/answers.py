"""Commands that answer for each row of a file, or for each latent example.

``predict``, ``neighbors``, ``doubts`` and ``latents``; all write CSV, TSV, Parquet or .npy, or
print JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.cli import _options as option
from latentmetric.cli._estimators import Parameters, Steps, fit_steps
from latentmetric.cli._messages import note
from latentmetric.cli._output import Answers, Columns
from latentmetric.cli._progress import show_progress
from latentmetric.cli._reading import (
    Reading,
    load_latents,
    load_model,
    prepared,
    read_for,
    read_to_fit,
)
from latentmetric.estimators.explaining import Explanation, example_columns
from latentmetric.estimators.inverse import NotInvertibleError, to_input_units
from latentmetric.estimators.unlabelled import are_marked
from latentmetric.io import Table

DECIMALS = 6
"""Of the scores and probabilities of doubts; more would be noise, and hard to read."""


def predict(
    model: option.Model,
    features: option.Features,
    *,
    answers: Answers,
    reading: Reading,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add each class's share of the vote.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add the references that voted, at most 5 a row."),
    ] = False,
    reject_below: Annotated[
        float | None,
        typer.Option(metavar="SCORE", help="Reject rows with a lower score (score_samples)."),
    ] = None,
    reject_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Reject about this share of rows like those of fit; farther ones, too.",
        ),
    ] = None,
    reject_label: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="Label of rejected rows. Default: unknown, or -1 among numbers."
        ),
    ] = None,
) -> None:
    """Predict labels, or probabilities, for the rows of a file.

    Rows are numbered from 0; --id puts a column of the file before that number. An .npy file holds
    the labels alone, or with --proba the probabilities alone, in the order of the classes. Rows
    that are unlike all that fit has seen can be rejected: those with a score below a number, or
    below the score that --reject-share of the rows held out of fit had.

    --explain writes a line for each reference that voted on a row, with its label (voter), its
    distance and its share of the vote. If fit was given --id, the names of the rows nearest to it
    follow.
    """
    if proba and explain:
        raise typer.BadParameter("give --proba or --explain, not both")
    if reject_below is not None and reject_share is not None:
        raise typer.BadParameter("give --reject-below or --reject-share, not both")
    answers.check(model, features)
    loaded = load_model(model)
    fitted = loaded.estimator
    rejecting = _rejecting(fitted, reject_below, reject_share, reject_label)
    table = read_for(loaded, features, None, reading, labelled=False)
    with show_progress("predict"):
        rows = prepared(loaded, table.rows)
        shares = fitted.predict_proba(rows) if proba else None
        if shares is None or rejecting:
            labels = fitted.predict(rows, **rejecting)
        else:
            labels = fitted.classes_[shares.argmax(axis=1)]
        if explain:
            _write_explained(answers, table, labels, fitted.explain(rows))
            return
    columns: Columns = {"label": labels}
    if shares is not None:
        names = [str(name) for name in fitted.classes_.tolist()]
        if {"row", "label", "id", table.id_name} & {*names}:
            names = [f"probability of {name}" for name in names]
        columns |= dict(zip(names, shares.T, strict=True))
    array = labels if shares is None else shares
    answers.write(_numbered(table, columns) | columns, array, _ids(table, columns) | columns)


def _write_explained(answers: Answers, table: Table, labels: Any, voted: Explanation) -> None:
    """Write a line for each reference that voted on a row."""
    voters = voted.to_dict()
    of_rows = voters.pop("row")
    columns = {"label": labels[of_rows]}
    columns |= {"voter" if name == "label" else name: own for name, own in voters.items()}
    rows = {name: own[of_rows] for name, own in _numbered(table, columns).items()}
    document = {
        "label": labels, "references": voted.references, "voters": voted.labels,
        "distances": voted.distances, "shares": voted.shares, **_examples(voted.row_ids),
    }  # fmt: skip
    answers.write(rows | columns, labels, _ids(table, document) | document)


def _examples(row_ids: Any) -> Columns:
    """Rows that references stand for, in JSON; nothing if the model has none."""
    return {} if row_ids is None else {"examples": row_ids}


def _rejecting(
    fitted: Any, below: float | None, share: float | None, label: str | None
) -> dict[str, Any]:
    """The arguments of ``predict`` that reject rows."""
    if share is not None:
        if not hasattr(fitted, "reject_threshold"):
            raise ValueError(
                f"{type(fitted).__name__} keeps no scores of held-out rows; use --reject-below"
            )
        below = fitted.reject_threshold(share)
    if below is None:
        if label is not None:
            raise typer.BadParameter("--reject-label needs --reject-below or --reject-share")
        return {}
    kind = {"U": str, "O": str, "f": float}.get(fitted.classes_.dtype.kind, int)
    if label is None:
        label = "unknown" if kind is str else "-1"
    try:
        return {"reject_below": below, "reject_label": kind(label)}
    except ValueError as error:
        raise typer.BadParameter(
            f"--reject-label must be a number, as the model's labels are, such as -1, got {label!r}"
        ) from error


def _ids(table: Table, answers: Iterable[str]) -> Columns:
    """The ids of the rows, if requested, by their name in the file if no answers have that."""
    if table.ids is None:
        return {}
    return {"id" if table.id_name in ("row", *answers) else str(table.id_name): table.ids}


def _numbered(table: Table, answers: Iterable[str]) -> Columns:
    """The id, if there is one, and the number of each row."""
    return _ids(table, answers) | {"row": np.arange(len(table.rows))}


def neighbors(
    model: option.Model,
    features: option.Features,
    *,
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each row.")] = 5,
    answers: Answers,
    reading: Reading,
) -> None:
    """Find the nearest references of the rows of a file, k lines a row, nearest first.

    References are latent examples, or rows of the file given to fit, both numbered from 0. --id
    puts a column of the file before the number of the row. If fit was given --id, the names of the
    rows nearest to each reference follow. An .npy file holds the numbers of the references alone.
    """
    answers.check(model, features)
    loaded = load_model(model)
    fitted = loaded.estimator
    table = read_for(loaded, features, None, reading, labelled=False)
    with show_progress("neighbors"):
        distances, found = fitted.kneighbors(prepared(loaded, table.rows), k)
    labels, row_ids = fitted.classes_[fitted.model_.codes[found]], fitted.model_.row_ids
    row_ids = None if row_ids is None else row_ids[found]
    columns = {
        "rank": np.tile(np.arange(1, k + 1), len(found)),
        "reference": found.ravel(),
        "label": labels.ravel(),
        "distance": distances.ravel(),
        **example_columns(row_ids),
    }
    rows = {name: np.repeat(own, k) for name, own in _numbered(table, columns).items()}
    document = {"references": found, "labels": labels, "distances": distances}
    document |= _examples(row_ids)
    answers.write(rows | columns, found, _ids(table, document) | document)


def doubts(
    features: option.Features,
    labels: option.Labels = None,
    *,
    answers: Answers,
    model: Annotated[
        Path | None,
        typer.Option(help="Model that was fitted to these rows. Default: MaPML is fitted now."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Rows to list.")] = 100,
    reading: Reading,
    parameters: Parameters,
    steps: Steps,
) -> None:
    """List the rows whose labels are most doubtful, the worst first.

    The score is how likely the given label is, from 0 to 1, judged with the row left out of its
    latent example; suggested is the label that the model would give, with its probability. --id
    puts a column of the file before the number of the row. An .npy file holds the numbers alone.
    Without --model, MaPML is fitted with label_noise, which trusts unlikely labels less.
    """
    built = steps.impute or steps.one_hot or steps.normalize
    if model is not None and (parameters.n_latents or parameters.set_ or built):
        raise typer.BadParameter("--model is fitted already; leave out parameters and steps")
    answers.check(model, features, labels)
    if model is None:
        fitted = parameters.estimator("mapml", label_noise=True)
        table = read_to_fit(features, labels, reading, steps, "a model is given with --model")
        rows = fit_steps(steps.make(table), table)
        with show_progress():
            fitted.fit(rows, table.labels)
    else:
        loaded = load_latents(model)
        fitted = loaded.estimator
        table = read_for(loaded, features, labels, reading, labelled=True)
        rows = prepared(loaded, table.rows)
    given: Any = table.labels
    scores = _label_scores(fitted, rows, given)
    worst = np.argsort(scores, kind="stable")[: min(most, np.isfinite(scores).sum())]
    shares = fitted.predict_proba(rows[np.sort(worst)])[np.argsort(np.argsort(worst))]
    columns = {
        "label": given[worst],
        "score": scores[worst].round(DECIMALS),
        "suggested": fitted.classes_[shares.argmax(axis=1)],
        "probability": shares.max(axis=1).round(DECIMALS),
    }
    rows = {name: own[worst] for name, own in _numbered(table, columns).items()}
    answers.write(rows | columns, worst)


def _label_scores(fitted: Any, rows: Any, labels: Any) -> Any:
    """How likely each label is; inf for rows without one."""
    if fitted.unlabelled is None:
        return fitted.label_scores(rows, labels)
    labelled = np.flatnonzero(~are_marked(labels, fitted.unlabelled))
    scores = np.full(len(labels), np.inf)
    scores[labelled] = fitted.label_scores(rows[labelled], labels[labelled])
    return scores


def latents(model: option.Model, answers: Answers) -> None:
    """Write the latent examples of a model, with how many rows each stands for.

    Latent examples are numbered from 0, as in the answers of neighbors. Their features are in the
    units that fit was given, where the steps of a pipeline can be undone; a note says if not. An
    .npy file holds the features alone.
    """
    answers.check(model)
    loaded = load_latents(model)
    fitted = loaded.estimator
    examples, names = fitted.latent_examples_, loaded.feature_names
    try:
        examples = to_input_units(loaded, examples)
    except NotInvertibleError as error:
        note(f"latent examples are as they are after the steps: {error}")
        names = None
    counts = fitted.latent_counts_  # not always whole, with sample weights
    columns = {
        "latent": np.arange(len(examples)),
        "label": fitted.latent_labels_,
        "rows": counts.astype(np.int64) if (counts % 1 == 0).all() else counts,
    }
    document = columns | {"features": examples}
    for index, values in enumerate(examples.T):
        name = f"feature {index}" if names is None else names[index]
        if values.dtype == object and not any(isinstance(value, str) for value in values):
            values = values.astype(np.float64)
        columns[f"feature {name}" if name in ("latent", "label", "rows") else name] = values
    answers.write(columns, examples, document)
