"""``latentmetric evaluate``: the error of a model on labelled rows, by class and pair."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from latentmetric.characters import distinct_names, percent, shortened
from latentmetric.cli import _options as option
from latentmetric.cli._messages import print_json, print_table, say
from latentmetric.cli._progress import show_progress
from latentmetric.cli._reading import Reading, load_model, prepared, read_for
from latentmetric.core.types import Ints
from latentmetric.core.votes import VOTES
from latentmetric.evaluation.unequal import (
    are_unequal,
    balanced_scores,
    majority,
    second_class_scores,
)
from latentmetric.io.choosing import listed
from latentmetric.viz.summaries import class_errors, confused_pairs

MIN_SHARE = 1e-3
"""Smaller probabilities count as this one in the logarithmic loss."""

CLASSES_SHOWN = 25

MAX_LABEL = 60
"""Characters of a label that are shown; longer ones are cut in the middle."""


def evaluate(
    model: option.Model,
    features: option.Features,
    labels: option.Labels = None,
    *,
    pairs: Annotated[int, typer.Option(min=0, help="Confused pairs to show.")] = 10,
    json: option.Json = False,
    reading: Reading,
) -> None:
    """Measure the error of a model on labelled rows, by class and by confused pair.

    Rows whose label the model does not know are errors, and are also counted separately.
    """
    loaded = load_model(model)
    fitted = loaded.estimator
    table = read_for(loaded, features, labels, reading, labelled=True)
    given: Any = table.labels
    true = _codes(fitted.classes_, given)
    if not (true >= 0).any():
        known = listed([repr(name) for name in fitted.classes_.tolist()])
        raise ValueError(
            f"the model knows none of the labels of {labels or features}, such as "
            f"{given[0].item()!r}; it knows {known}"
        )
    with show_progress("evaluate"):
        rows = prepared(loaded, table.rows)
        labelled, scores = np.flatnonzero(true >= 0), None
        # Other votes give too few different probabilities for a logarithm.
        if VOTES[fitted.weights].needs_temperature:
            shares = fitted.predict_proba(rows)
            predicted = shares.argmax(axis=1)
            scores = shares[labelled, 1] if shares.shape[1] == 2 else None
            likely = np.maximum(shares[labelled, true[labelled]], MIN_SHARE)
            log_loss = {"log_loss": float(-np.log(likely).mean())}
        else:
            predicted, log_loss = _codes(fitted.classes_, fitted.predict(rows)), {}
        facts = _facts(fitted.classes_, true, predicted, pairs) | log_loss
        if are_unequal(true[labelled]):
            if scores is None:
                scores = second_class_scores(fitted, rows[labelled])
            code, _ = majority(true[labelled])
            facts |= {
                "most_frequent": fitted.classes_.tolist()[code],
                "base_error": float((true != code).mean()),
                **balanced_scores(true[labelled], (true == predicted)[labelled], scores),
            }
    if json:
        print_json(facts)
    else:
        _show(facts)


def _codes(classes: Any, labels: Any) -> Ints:
    """The index of each label in the classes, −1 for unknown labels."""
    indices = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([indices.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def _facts(classes: Any, true: Ints, predicted: Ints, pairs: int) -> dict[str, Any]:
    """Numbers by class, and the most frequent pairs of a class and what it was taken for."""
    known, right, names = true >= 0, true == predicted, classes.tolist()
    errors = class_errors(true[known], predicted[known], len(names))
    n_predicted = np.bincount(predicted, minlength=len(names)).tolist()
    n_rows, n_wrong = errors.rows.tolist(), errors.wrong.tolist()
    return {
        "rows": len(true),
        "errors": int((~right).sum()),
        "error": float((~right).mean()),
        "unknown_rows": int((~known).sum()),
        "classes": [
            {
                "label": name,
                "rows": rows,
                "errors": wrong,
                "error": wrong / rows if rows else None,
                "precision": (rows - wrong) / taken if taken else None,
            }
            for name, rows, wrong, taken in zip(names, n_rows, n_wrong, n_predicted, strict=True)
        ],
        "confused": [
            {"label": names[pair.true], "taken_for": names[pair.predicted], "rows": pair.count}
            for pair in confused_pairs(true[known], predicted[known])[:pairs]
        ],
    }


def _show(facts: dict[str, Any]) -> None:
    say(f"error: {percent(facts['error'])} ({facts['errors']:,} of {facts['rows']:,} rows)")
    if facts["unknown_rows"]:
        say(f"of these, {facts['unknown_rows']:,} have a label that the model does not know")
    if "base_error" in facts:
        auc = f"; AUC {facts['auc']:.3f}" if "auc" in facts else ""
        label = shortened(repr(facts["most_frequent"]), MAX_LABEL)
        say(
            f"classes are unequal: always saying {label} has an error of "
            f"{percent(facts['base_error'])}; balanced accuracy "
            f"{percent(facts['balanced_accuracy'])}{auc}"
        )
    if "log_loss" in facts:
        say(
            f"logarithmic loss of the probabilities: {facts['log_loss']:.4f} "
            f"(none counted below {MIN_SHARE:g})"
        )
    labels = [line["label"] for line in facts["classes"]]
    shown = dict(zip(labels, distinct_names(labels, MAX_LABEL), strict=True))
    worst = sorted(facts["classes"], key=lambda line: -(line["error"] or 0))[:CLASSES_SHOWN]
    rows = [
        [shown[line["label"]], f"{line['rows']:,}", f"{line['errors']:,}"]
        + ["" if line[key] is None else percent(line[key]) for key in ("error", "precision")]
        for line in worst
    ]
    rest = f" ({len(rows)} of {len(labels)}; --json has all)" if len(labels) > len(rows) else ""
    header = ["class", "rows", "errors", "error", "precision"]
    print_table(header, rows, title=f"By class, the worst first{rest}")
    rows = [
        [shown[line["label"]], shown[line["taken_for"]], f"{line['rows']:,}"]
        for line in facts["confused"]
    ]
    if rows:
        print_table(["class", "predicted as", "rows"], rows, title="Most confused")
