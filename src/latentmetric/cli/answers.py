"""Commands that answer for each row of a file, or for each latent example.

``predict``, ``neighbors``, ``doubts`` and ``latents``; all write CSV, TSV, Parquet or .npy, or
print JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.cli import _options as option
from latentmetric.cli._estimators import fit_steps, make_estimator, make_steps
from latentmetric.cli._messages import note
from latentmetric.cli._output import (
    Columns,
    check_answers,
    check_id_name,
    ids_of,
    numbered,
    write_answers,
)
from latentmetric.cli._progress import show_progress
from latentmetric.cli._reading import (
    load_latents,
    load_model,
    note_rare_labels,
    prepared,
    read_for,
    read_table,
)
from latentmetric.estimators.inverse import NotInvertibleError, to_input_units
from latentmetric.estimators.unlabelled import are_marked

DECIMALS = 6
"""Of the scores and probabilities of doubts; more would be noise, and hard to read."""


def predict(
    context: typer.Context,
    model: option.Model,
    features: option.Features,
    *,
    out: option.AnswersOut = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add each class's share of the vote.")
    ] = False,
    reject_below: Annotated[
        float | None,
        typer.Option(metavar="SCORE", help="Reject rows whose score, minus a distance, is lower."),
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
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    label: option.Label = None,
    id_: option.Id = None,
    ignore: option.Ignore = None,
    key: option.Key = None,
    header: option.Header = None,
    encoding: option.Encoding = None,
    decimal: option.Decimal = ".",
) -> None:
    """Predict labels, or probabilities, for the rows of a file.

    Rows are numbered from 0; --id puts a column of the file before that number. An .npy file holds
    the labels alone, or with --proba the probabilities alone, in the order of the classes. Rows
    that are unlike all that fit has seen can be rejected: those with a score below a number, or
    below the score that --reject-share of the rows held out of fit had.
    """
    if reject_below is not None and reject_share is not None:
        raise typer.BadParameter("give --reject-below or --reject-share, not both")
    check_answers(out, [model, features], overwrite)
    loaded = load_model(model)
    fitted = loaded.estimator
    rejecting = _rejecting(fitted, reject_below, reject_share, reject_label)
    table = read_for(loaded, features, None, option.table_choice(context), labelled=False)
    check_id_name(table.id_name, ["label"])
    with show_progress("predict"):
        rows = prepared(loaded, table.rows)
        shares = fitted.predict_proba(rows) if proba else None
        if shares is None or rejecting:
            labels = fitted.predict(rows, **rejecting)
        else:
            labels = fitted.classes_[shares.argmax(axis=1)]
    answers: Columns = {"label": labels}
    if shares is not None:
        names = _share_names(fitted.classes_.tolist(), {"row", "label", *ids_of(table)})
        answers |= dict(zip(names, shares.T, strict=True))
    document = ids_of(table) | answers if json else None
    array = labels if shares is None else shares
    write_answers(numbered(len(labels), table) | answers, array, document, out)


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
    kind = fitted.classes_.dtype.kind
    if kind in "UO":
        return {"reject_below": below, "reject_label": "unknown" if label is None else label}
    try:
        number = float(label or -1) if kind == "f" else int(label or -1)
    except ValueError as error:
        raise typer.BadParameter(
            f"--reject-label must be a number, as the model's labels are, such as -1, got {label!r}"
        ) from error
    return {"reject_below": below, "reject_label": number}


def _share_names(classes: list[Any], columns: set[str]) -> list[str]:
    """The names of the classes, changed where another column already has that name."""
    names = [str(label) for label in classes]
    taken = {*columns, *names}
    for index, name in enumerate(names):
        while name in columns and names[index] in taken:
            names[index] = f"probability of {names[index]}"
    return names


def neighbors(
    context: typer.Context,
    model: option.Model,
    features: option.Features,
    *,
    k: Annotated[int, typer.Option("-k", min=1, help="Neighbours of each row.")] = 5,
    out: option.AnswersOut = None,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    label: option.Label = None,
    id_: option.Id = None,
    ignore: option.Ignore = None,
    key: option.Key = None,
    header: option.Header = None,
    encoding: option.Encoding = None,
    decimal: option.Decimal = ".",
) -> None:
    """Find the nearest references of the rows of a file, k lines a row, nearest first.

    References are latent examples, or rows of the file given to fit, both numbered from 0. --id
    puts a column of the file before the number of the row. An .npy file holds the numbers of the
    references alone.
    """
    check_answers(out, [model, features], overwrite)
    loaded = load_model(model)
    fitted = loaded.estimator
    table = read_for(loaded, features, None, option.table_choice(context), labelled=False)
    names, keys = ("rank", "reference", "label", "distance"), ("references", "labels", "distances")
    check_id_name(table.id_name, [*(names if out or not json else ()), *(keys if json else ())])
    with show_progress("neighbors"):
        distances, found = fitted.kneighbors(prepared(loaded, table.rows), k)
    labels = fitted.classes_[fitted.model_.codes[found]]
    rows = {name: np.repeat(column, k) for name, column in numbered(len(found), table).items()}
    ranks = np.tile(np.arange(1, k + 1), len(found))
    columns = (ranks, found.ravel(), labels.ravel(), distances.ravel())
    document = ids_of(table) | dict(zip(keys, (found, labels, distances), strict=True))
    answers = rows | dict(zip(names, columns, strict=True))
    write_answers(answers, found, document if json else None, out)


def doubts(
    context: typer.Context,
    features: option.Features,
    labels: option.Labels = None,
    *,
    out: option.AnswersOut = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Model that was fitted to these rows. Default: MaPML is fitted now."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Rows to list.")] = 100,
    label: option.Label = None,
    n_latents: option.NLatents = None,
    set_: option.Set = None,
    impute: option.Impute = None,
    one_hot: option.OneHot = None,
    normalize: option.Normalize = False,
    random_state: option.RandomState = 0,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
    id_: option.Id = None,
    ignore: option.Ignore = None,
    key: option.Key = None,
    header: option.Header = None,
    encoding: option.Encoding = None,
    decimal: option.Decimal = ".",
) -> None:
    """List the rows whose labels are most doubtful, the worst first.

    The score is how likely the given label is, from 0 to 1, judged with the row left out of its
    latent example; likelier is the label that the model would give, with its probability. --id puts
    a column of the file before the number of the row. An .npy file holds the numbers alone. Without
    --model, MaPML is fitted with label_noise, which trusts unlikely labels less.
    """
    if model is not None and (n_latents or set_ or impute or one_hot or normalize):
        raise typer.BadParameter("--model is fitted already; leave out parameters and steps")
    check_answers(out, [model, features, labels], overwrite)
    choice = option.table_choice(context)
    if model is None:
        fitted = make_estimator(
            "mapml", set_, n_latents, label_noise=True, random_state=random_state
        )
        table = read_table(features, labels, choice, models="a model is given with --model")
        note_rare_labels(table.labels)
        rows = fit_steps(make_steps(table, impute, normalize), table)
        with show_progress():
            fitted.fit(rows, table.labels)
    else:
        loaded = load_latents(model)
        fitted = loaded.estimator
        table = read_for(loaded, features, labels, choice, labelled=True)
        rows = prepared(loaded, table.rows)
    names = ("label", "score", "likelier", "probability")
    check_id_name(table.id_name, names)
    given: Any = table.labels
    scores = _label_scores(fitted, rows, given)
    worst = np.argsort(scores, kind="stable")[: min(most, np.isfinite(scores).sum())]
    shares = fitted.predict_proba(rows[np.sort(worst)])[np.argsort(np.argsort(worst))]
    columns = (
        given[worst],
        scores[worst].round(DECIMALS),
        fitted.classes_[shares.argmax(axis=1)],
        shares.max(axis=1).round(DECIMALS),
    )
    answers = {name: column[worst] for name, column in numbered(len(scores), table).items()}
    answers |= dict(zip(names, columns, strict=True))
    write_answers(answers, worst, answers if json else None, out)


def _label_scores(fitted: Any, rows: Any, labels: Any) -> Any:
    """How likely each label is; inf for rows without one."""
    if fitted.unlabelled is None:
        return fitted.label_scores(rows, labels)
    labelled = np.flatnonzero(~are_marked(labels, fitted.unlabelled))
    scores = np.full(len(labels), np.inf)
    scores[labelled] = fitted.label_scores(rows[labelled], labels[labelled])
    return scores


def latents(
    model: option.Model,
    out: option.AnswersOut = None,
    overwrite: option.Overwrite = False,
    json: option.Json = False,
) -> None:
    """Write the latent examples of a model, with how many rows each stands for.

    Latent examples are numbered from 0, as in the answers of neighbors. Their features are in the
    units that fit was given, where the steps of a pipeline can be undone; a note says if not. An
    .npy file holds the features alone.
    """
    check_answers(out, [model], overwrite)
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
    document = columns | {"features": examples} if json else None
    for index, values in enumerate(examples.T):
        name = f"feature {index}" if names is None else names[index]
        if values.dtype == object and not any(isinstance(value, str) for value in values):
            values = values.astype(np.float64)
        columns[f"feature {name}" if name in ("latent", "label", "rows") else name] = values
    write_answers(columns, examples, document, out)
