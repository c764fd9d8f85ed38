"""``latentmetric doubts``: the rows of a file whose labels are least likely."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.cli._output import (
    AnswersOut,
    Overwrite,
    check_answers,
    check_id_name,
    numbered,
    print_json,
    write_array,
    write_columns,
)
from latentmetric.cli._parameters import DEFAULT_ESTIMATOR, make_estimator, takes_parameters
from latentmetric.cli._preparing import Preparation, fitted_steps, prepared, prepares
from latentmetric.cli._progress import followed
from latentmetric.cli._tables import (
    Features,
    Json,
    Labels,
    load_latents,
    note_rare_labels,
    read_for,
    read_table,
    reads_tables,
)
from latentmetric.estimators.unlabelled import are_marked
from latentmetric.io import Choice, Table

COLUMNS = ("label", "score", "likelier", "probability")
"""Of the answers, after the row."""

DECIMALS = 6
"""Of scores and probabilities; more would be noise, and hard to read."""


@takes_parameters
@prepares
@reads_tables
def doubts(
    features: Features,
    labels: Labels = None,
    *,
    out: AnswersOut = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Model that was fitted to these rows. Default: MaPML is fitted now."),
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Rows to list.")] = 100,
    overwrite: Overwrite = False,
    json: Json = False,
    choice: Choice,
    preparation: Preparation,
    parameters: dict[str, Any],
) -> None:
    """List the rows whose labels are most doubtful, the worst first.

    The score is how likely the given label is, between 0 and 1, judged with the row left out of its
    latent example. The column likelier has the label that the model would give, and probability
    that label's share of the vote; where it is the given label, the model agrees. Rows are numbered
    from 0; --id puts a column of the file before that number. An .npy file holds the numbers of the
    rows alone. Without --model, MaPML is fitted with label_noise, which trusts unlikely labels
    less.
    """
    given = [*parameters, *preparation.asked]
    if model is not None and given:
        raise typer.BadParameter(f"--model is fitted already; leave out {', '.join(given)}")
    check_answers(out, [model, features, labels], overwrite)
    fitted, table, judged = _fitted(features, labels, model, choice, preparation, parameters)
    check_id_name(table.id_name, COLUMNS)
    assert table.labels is not None
    scores = _scores(fitted, judged, table.labels)
    worst = np.argsort(scores, kind="stable")[: min(most, np.isfinite(scores).sum())]
    shares = fitted.predict_proba(judged[np.sort(worst)])[np.argsort(np.argsort(worst))]
    likelier = fitted.classes_[shares.argmax(axis=1)]
    score, probability = (part.round(DECIMALS) for part in (scores[worst], shares.max(axis=1)))
    columns = (table.labels[worst], score, likelier, probability)
    rows = {name: column[worst] for name, column in numbered(len(scores), table).items()}
    answers = rows | dict(zip(COLUMNS, columns, strict=True))
    if out is not None and out.suffix == ".npy":
        write_array(worst, out)
    elif out is not None or not json:
        write_columns(answers, out)
    if json:
        print_json(answers)


def _scores(fitted: Any, rows: Any, labels: Any) -> Any:
    """How likely each label is; infinite for rows without one, which nobody can doubt."""
    if fitted.unlabelled is None:
        return fitted.label_scores(rows, labels)
    labelled = np.flatnonzero(~are_marked(labels, fitted.unlabelled))
    scores = np.full(len(labels), np.inf)
    scores[labelled] = fitted.label_scores(rows[labelled], labels[labelled])
    return scores


def _fitted(
    features: Path, labels: Path | None, model: Path | None, choice: Choice,
    preparation: Preparation, parameters: Any,
) -> tuple[Any, Table, Any]:  # fmt: skip
    """A model of the rows, the table, and its rows as the model takes them."""
    if model is not None:
        piped = load_latents(model)
        table = read_for(piped, features, labels, choice, labelled=True)
        return piped.estimator, table, prepared(piped, table.rows)
    fitted = make_estimator(DEFAULT_ESTIMATOR, {"label_noise": True} | parameters)
    given = "a model is given with --model"
    table = read_table(features, labels, preparation.choice(choice), models=given)
    note_rare_labels(table.labels)
    _, rows = fitted_steps(preparation, table)
    with followed():
        fitted.fit(rows, table.labels)
    return fitted, table, rows
