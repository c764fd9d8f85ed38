"""``latentmetric evaluate``: the error of a model on labelled rows, by class and pair."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.characters import percent, shortened, told_apart
from latentmetric.cli._output import print_json, print_table, say
from latentmetric.cli._preparing import prepared
from latentmetric.cli._tables import (
    Features,
    Json,
    Labels,
    Model,
    load_model,
    read_for,
    reads_tables,
)
from latentmetric.core.types import Ints
from latentmetric.core.votes import VOTES
from latentmetric.io import Choice
from latentmetric.viz.summaries import class_errors, confused_pairs

SMALLEST_SHARE = 1e-3
"""Smaller probabilities count as this one in the logarithmic loss."""

CLASSES_SHOWN = 25

CLASSES_NAMED = 5
"""Classes that a message names."""

LONGEST_LABEL = 60
"""Characters of a label that are shown; longer ones are cut in the middle."""


@reads_tables
def evaluate(
    model: Model,
    features: Features,
    labels: Labels = None,
    *,
    pairs: Annotated[int, typer.Option(min=0, help="Confused pairs to show.")] = 10,
    json: Json = False,
    choice: Choice,
) -> None:
    """Measure the error of a model on labelled rows, by class and by confused pair.

    Rows whose label the model does not know are errors, and are also counted separately.
    """
    piped = load_model(model)
    fitted = piped.estimator
    table = read_for(piped, features, labels, choice, labelled=True)
    assert table.labels is not None
    true = _codes_of(fitted.classes_, table.labels)
    known = true >= 0
    if not known.any():
        raise ValueError(
            f"the model knows none of the labels of {labels or features}, such as "
            f"{table.labels[0].item()!r}; it knows {_known(fitted.classes_, table.labels)}"
        )
    rows = prepared(piped, table.rows)
    shares = fitted.predict_proba(rows) if _has_probabilities(fitted) else None
    predicted = (
        _codes_of(fitted.classes_, fitted.predict(rows))
        if shares is None
        else shares.argmax(axis=1)
    )
    facts = _facts(fitted, true, predicted, pairs)
    if shares is not None:
        facts["log_loss"] = _log_loss(shares, true)
    if json:
        print_json(facts)
    else:
        _show(facts)


def _known(classes: Any, labels: Any) -> str:
    """The first classes, and whether all labels differ from classes by their capitals alone."""
    names = classes[:CLASSES_NAMED].tolist()
    first = [shortened(repr(label), LONGEST_LABEL) for label in names]
    more = len(classes) - len(first)
    shown = f"{', '.join(first)}{f' and {more} more' if more else ''}"
    known, given = ({str(name).casefold() for name in some.tolist()} for some in (classes, labels))
    if given <= known:
        return f"{shown}: only capitals differ; write the labels as the model does"
    return shown


def _codes_of(classes: Any, labels: Any) -> Ints:
    """The index of each label in the classes, −1 for unknown labels."""
    places = {label: code for code, label in enumerate(classes.tolist())}
    distinct, inverse = np.unique(labels, return_inverse=True)
    codes = np.array([places.get(label, -1) for label in distinct.tolist()], dtype=np.intp)
    found: Ints = codes[inverse]
    return found


def _has_probabilities(fitted: Any) -> bool:
    """Whether probabilities are worth measuring: a vote of three has only four values."""
    return VOTES[fitted.weights].needs_temperature


def _facts(fitted: Any, true: Ints, predicted: Ints, pairs: int) -> dict[str, Any]:
    known = true >= 0
    names = fitted.classes_.tolist()
    errors = class_errors(true[known], predicted[known], len(names))
    precision = _precision(true, predicted, len(names))
    return {
        "rows": len(true),
        "errors": int((true != predicted).sum()),
        "error": float((true != predicted).mean()),
        "unknown_rows": int((~known).sum()),
        "classes": [
            {
                "label": name,
                "rows": int(errors.rows[code]),
                "errors": int(errors.wrong[code]),
                "error": float(errors.shares[code]) if errors.rows[code] else None,
                "precision": precision[code],
            }
            for code, name in enumerate(names)
        ],
        "confused": [
            {"label": names[pair.true], "taken_for": names[pair.predicted], "rows": pair.count}
            for pair in confused_pairs(true[known], predicted[known])[:pairs]
        ],
    }


def _precision(true: Ints, predicted: Ints, n_classes: int) -> list[float | None]:
    """The share of the rows predicted as each class that are of this class."""
    taken = np.bincount(predicted, minlength=n_classes)
    rightly = np.bincount(predicted[true == predicted], minlength=n_classes)
    return [float(r / t) if t else None for r, t in zip(rightly, taken, strict=True)]


def _log_loss(shares: Any, true: Ints) -> float:
    rows = np.flatnonzero(true >= 0)
    return float(-np.log(np.maximum(shares[rows, true[rows]], SMALLEST_SHARE)).mean())


def _show(facts: dict[str, Any]) -> None:
    say(f"error: {percent(facts['error'])} ({facts['errors']:,} of {facts['rows']:,} rows)")
    if facts["unknown_rows"]:
        say(f"of these, {facts['unknown_rows']:,} have a label that the model does not know")
    if "log_loss" in facts:
        say(
            f"logarithmic loss of the probabilities: {facts['log_loss']:.4f} "
            f"(none counted below {SMALLEST_SHARE:g})"
        )
    labels = [line["label"] for line in facts["classes"]]
    shown = dict(zip(labels, told_apart(labels, LONGEST_LABEL), strict=True))
    n_classes = len(labels)
    worst = sorted(facts["classes"], key=lambda line: -(line["error"] or 0))[:CLASSES_SHOWN]
    rest = f" ({CLASSES_SHOWN} of {n_classes}; --json has all)" if n_classes > len(worst) else ""
    print_table(
        ["class", "rows", "errors", "error", "precision"],
        [
            [
                shown[line["label"]],
                f"{line['rows']:,}",
                f"{line['errors']:,}",
                _percent(line["error"]),
                _percent(line["precision"]),
            ]
            for line in worst
        ],
        title=f"By class, the worst first{rest}",
    )
    if facts["confused"]:
        print_table(
            ["class", "predicted as", "rows"],
            [
                [shown[line["label"]], shown[line["taken_for"]], f"{line['rows']:,}"]
                for line in facts["confused"]
            ],
            title="Most confused",
        )


def _percent(share: float | None) -> str:
    return "" if share is None else percent(share)
