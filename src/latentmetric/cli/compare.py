"""``latentmetric compare``: is a learned metric worth it on this data, and which?"""

from __future__ import annotations

import warnings
from typing import Annotated, Any

import numpy as np
import typer

from latentmetric import evaluation
from latentmetric.cli._errors import INTERRUPTED, note
from latentmetric.cli._output import print_json, print_table, say
from latentmetric.cli._preparing import Preparation, prepares
from latentmetric.cli._progress import followed
from latentmetric.cli._tables import Features, Json, Labels, read_table, reads_tables
from latentmetric.evaluation import METHODS, Outcome, advise
from latentmetric.evaluation.comparison import duration
from latentmetric.evaluation.sampling import sample_rows
from latentmetric.io import Choice

OTHER_NAMES = {
    "forest": "random-forest",
    "hr-sgd": "HRSGD",
    "k-nn": "tuned-k-NN",
    "knn": "tuned-k-NN",
    "logistic": "logistic-regression",
    "svm": "SVC",
}
"""What else people call the methods."""


@prepares
@reads_tables
def compare(
    features: Features,
    labels: Labels = None,
    *,
    methods: Annotated[
        str, typer.Option(help=f"Methods, with commas between: {', '.join(METHODS)}.")
    ] = ",".join(METHODS),
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    n_neighbors: Annotated[int, typer.Option(min=1, help="Neighbours that vote.")] = 3,
    max_rows: Annotated[
        int, typer.Option(min=10, help="Draw this many rows at random where the file has more.")
    ] = 10_000,
    random_state: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    json: Json = False,
    choice: Choice,
    preparation: Preparation,
) -> None:
    """Compare methods on your data by cross-validation, and say which to use.

    All methods see the same folds. Those of this package and random-forest have their default
    parameters; those of tuned-k-NN, logistic-regression and SVC are chosen on training rows, which
    counts as part of the fit. --impute, --normalize and --one-hot come before every method, fitted
    to the training rows of each fold. Ctrl-C prints the results so far; the exit code is then 130.
    """
    names = _chosen(methods)
    table = read_table(
        features, labels, preparation.choice(choice), models="compare fits its own and takes none"
    )
    assert table.labels is not None
    rows, known = sample_rows(table.rows, table.labels, max_rows, random_state)
    if len(known) < len(table.labels):
        note(
            f"compared on {len(known):,} rows drawn at random from {len(table.labels):,} "
            "(--max-rows)"
        )
    _check_folds(known, folds)
    outcomes: list[Outcome] = []
    interrupted = False
    with followed(each_round=False) as follower, warnings.catch_warnings():
        # What scikit-learn says of classes with fewer rows than folds has been said above.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)

        def about_to(method: str, fold: int) -> None:
            follower.begin(f"{method}, fold {fold + 1} of {folds}")

        try:
            for outcome in evaluation.compare(
                rows, known, names, n_folds=folds, n_neighbors=n_neighbors,
                random_state=random_state, steps=preparation.steps(table), about_to=about_to,
            ):  # fmt: skip
                outcomes.append(outcome)
        except KeyboardInterrupt:
            interrupted = True
    _show(names, outcomes, folds, json)
    if interrupted:
        note("Interrupted; the table holds the folds that were finished.")
        raise typer.Exit(INTERRUPTED)


def _check_folds(labels: Any, folds: int) -> None:
    """Refuse more folds than any class has rows; say so where some classes have fewer."""
    classes, counts = np.unique(labels, return_counts=True)
    names, largest = classes.tolist(), int(counts.argmax())
    most = int(counts[largest])
    if most < 2:
        raise ValueError(
            f"each of {len(names):,} classes, such as {names[0]!r}, has 1 row, so none can be "
            "tested; are these really labels? --label names another column"
        )
    if most < folds:
        raise ValueError(
            f"no class has as many rows as there are folds, {folds}: the largest, "
            f"{names[largest]!r}, has {most}; lower --folds to at most {most}"
        )
    n_rare, smallest = int((counts < folds).sum()), int(counts.argmin())
    if n_rare:
        rows = "1 row" if counts[smallest] == 1 else f"{counts[smallest]} rows"
        note(
            f"Warning: {n_rare:,} of {len(names):,} classes have fewer rows than there are folds, "
            f"{folds}, such as {names[smallest]!r} with {rows}; some folds do not test them, and a "
            "single row is always wrong (--folds sets the number)"
        )


def _chosen(methods: str) -> list[str]:
    known = {kind.lower(): name for name, kind in reversed(METHODS.items())}
    known |= {name.lower(): name for name in METHODS} | OTHER_NAMES
    requested = [name.strip().lower() for name in methods.split(",") if name.strip()]
    unknown = [name for name in requested if name not in known]
    if unknown or not requested:
        raise typer.BadParameter(
            f"{', '.join(unknown) or 'nothing'} is not among {', '.join(METHODS)}",
            param_hint="--methods",
        )
    return list(dict.fromkeys(known[name] for name in requested))


def _show(names: list[str], outcomes: list[Outcome], folds: int, json: bool) -> None:
    found = [summary for name in names if (summary := _summary(name, outcomes))]
    advice = advise(outcomes)
    if json:
        recommended = None if advice is None else advice.method
        print_json([line | {"recommended": line["method"] == recommended} for line in found])
        return
    print_table(
        ["method", "error", "± std", "folds", "references", "fit", "1000 queries"],
        [_cells(line, folds) for line in found],
        title="Error on held-out rows, mean and standard deviation over folds",
    )
    if advice is not None:
        say(advice.words)


def _cells(line: dict[str, Any], folds: int) -> list[str]:
    return [
        line["method"],
        f"{100 * line['error']:.2f} %",
        f"{100 * line['std']:.2f}",
        f"{len(line['errors'])} of {folds}",
        f"{line['references']:,.0f}" if line["references"] else "none",
        duration(line["fit_seconds"]),
        duration(line["seconds_a_thousand_queries"]),
    ]


def _summary(name: str, outcomes: list[Outcome]) -> dict[str, Any]:
    own = [outcome for outcome in outcomes if outcome.method == name]
    if not own:
        return {}
    errors = [outcome.error for outcome in own]
    return {
        "method": name,
        "error": float(np.mean(errors)),
        "std": float(np.std(errors)),
        "errors": errors,
        "references": float(np.mean([outcome.references for outcome in own])),
        "fit_seconds": float(np.median([outcome.fit_seconds for outcome in own])),
        "seconds_a_thousand_queries": float(
            np.median([outcome.query_seconds / outcome.n_queries * 1000 for outcome in own])
        ),
    }
