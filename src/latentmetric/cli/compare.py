"""``latentmetric compare``: is a learned metric worth it on this data, and which?"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from latentmetric import evaluation
from latentmetric.cli import _options as option
from latentmetric.cli._estimators import Steps
from latentmetric.cli._messages import INTERRUPTED, note, print_json, print_table, say
from latentmetric.cli._progress import show_progress
from latentmetric.cli._reading import Reading, read_to_fit
from latentmetric.evaluation import METHODS, Outcome, advise
from latentmetric.evaluation.comparison import duration
from latentmetric.evaluation.rivals import MAJORITY
from latentmetric.evaluation.sampling import sample_rows
from latentmetric.evaluation.unequal import are_unequal, balanced_scores
from latentmetric.validation.parameters import MAX_SEED

OTHER_NAMES = {
    "boosting": "HistGradientBoosting",
    "forest": "random forest",
    "hr-sgd": "HRSGD",
    "k-nn": "tuned k-NN",
    "knn": "tuned k-NN",
    "logistic": "logistic regression",
    "majority": "majority class",
    "svm": "SVC",
}
"""What else people call the methods; a hyphen in place of a space saves quotes."""


def compare(
    features: option.Features,
    labels: option.Labels = None,
    *,
    methods: Annotated[
        str,
        typer.Option(metavar="NAMES", help=f"Methods, with commas between: {', '.join(METHODS)}."),
    ] = "all",
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    n_neighbors: Annotated[int, typer.Option(min=1, help="Neighbours that vote.")] = 3,
    max_rows: Annotated[
        int, typer.Option(min=10, help="Draw this many rows at random where the file has more.")
    ] = 10_000,
    reading: Reading,
    steps: Steps,
    random_state: Annotated[
        int,
        typer.Option(
            metavar="SEED", min=0, max=MAX_SEED, help="The same seed gives the same result."
        ),
    ] = 0,
    json: option.Json = False,
) -> None:
    """Compare methods on your data by cross-validation, and say which to use.

    All methods see the same folds. Tuned k-NN, logistic regression and SVC choose their parameters
    on training rows, as part of the fit; the others have their defaults. --impute, --normalize and
    --one-hot come before every method. Always saying the majority class is in every table. Ctrl-C
    prints the results so far (exit code 130).
    """
    names = list(METHODS) if methods == "all" else _chosen(methods)
    models = "compare fits its own and takes none"
    table = read_to_fit(features, labels, reading, steps, models)
    given: Any = table.labels
    rows, known = sample_rows(table.rows, given, max_rows, random_state)
    if len(known) < len(given):
        note(f"compared on {len(known):,} rows drawn at random from {len(given):,} (--max-rows)")
    classes, counts = np.unique(known, return_counts=True)
    if counts.max() < folds:
        raise ValueError(
            f"no class has as many rows as there are folds, {folds}: the largest, "
            f"{classes[counts.argmax()].item()!r}, has {counts.max()}; lower --folds, or take "
            "other labels with --label"
        )
    outcomes: list[Outcome] = []
    interrupted = False
    with show_progress(each_round=False) as progress:
        try:
            for outcome in evaluation.compare(
                rows, known, names, n_folds=folds, n_neighbors=n_neighbors,
                random_state=random_state, steps=steps.make(table),
                on_start=lambda method, fold: progress.begin(
                    f"{method}, fold {fold + 1} of {folds}"
                ),
            ):  # fmt: skip
                outcomes.append(outcome)
        except KeyboardInterrupt:
            interrupted = True
    _show(names, outcomes, folds, are_unequal(known), json)
    if interrupted:
        note("Interrupted; the table holds the folds that were finished.")
        raise typer.Exit(INTERRUPTED)


def _chosen(methods: str) -> list[str]:
    known = {kind.lower(): name for name, kind in reversed(METHODS.items())}
    known |= {name.lower(): name for name in METHODS} | OTHER_NAMES
    known |= {name.lower().replace(" ", "-"): name for name in METHODS}
    requested = [name.strip().lower() for name in methods.split(",") if name.strip()]
    unknown = [repr(name) for name in requested if name not in known]
    if unknown or not requested:
        message = f"{', '.join(unknown) or 'nothing'} is not among {', '.join(METHODS)}"
        raise typer.BadParameter(message, param_hint="--methods")
    return list(dict.fromkeys([MAJORITY, *(known[name] for name in requested)]))


def _show(names: list[str], outcomes: list[Outcome], folds: int, unequal: bool, json: bool) -> None:
    finished = {outcome.method for outcome in outcomes}
    found = [_summary(name, outcomes, unequal) for name in names if name in finished]
    advice = advise(outcomes)
    if json:
        recommended = None if advice is None else advice.method
        print_json([line | {"recommended": line["method"] == recommended} for line in found])
        return
    balanced = ["balanced accuracy"] if unequal else []
    auc = ["AUC"] if any("auc" in line for line in found) else []
    print_table(
        ["method", "error", "± std", *balanced, *auc, "folds", "references", "fit", "1000 queries"],
        [
            [
                line["method"],
                f"{100 * line['error']:.2f} %",
                f"{100 * line['std']:.2f}",
                *(f"{100 * line['balanced_accuracy']:.2f} %" for _ in balanced),
                *(f"{line['auc']:.3f}" if "auc" in line else "" for _ in auc),
                f"{len(line['errors'])} of {folds}",
                f"{line['references']:,.0f}" if line["references"] else "none",
                duration(line["fit_seconds"]),
                duration(line["seconds_a_thousand_queries"]),
            ]
            for line in found
        ],
        title="Error on held-out rows, mean and standard deviation over folds",
    )
    if advice is not None:
        say(advice.words)


def _summary(name: str, outcomes: list[Outcome], unequal: bool) -> dict[str, Any]:
    own = [outcome for outcome in outcomes if outcome.method == name]
    errors = [outcome.error for outcome in own]
    queries = [outcome.query_seconds / outcome.n_queries * 1000 for outcome in own]
    balanced = [balanced_scores(one.true, one.right, one.scores) for one in own if unequal]
    means = {
        score: float(np.mean([found[score] for found in balanced if score in found]))
        for score in {score: None for found in balanced for score in found}
    }
    return {
        "method": name,
        "error": float(np.mean(errors)),
        "std": float(np.std(errors)),
        **means,
        "errors": errors,
        "references": float(np.mean([outcome.references for outcome in own])),
        "fit_seconds": float(np.median([outcome.fit_seconds for outcome in own])),
        "seconds_a_thousand_queries": float(np.median(queries)),
    }
