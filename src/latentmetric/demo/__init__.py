"""A first look, in less than a minute, on scikit-learn's digits: ``python -m latentmetric.demo``.

Every number that it prints is measured while it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import numpy as np

from latentmetric.characters import visible
from latentmetric.demo.contenders import (
    EUCLID,
    LOGISTIC,
    MAPML,
    NAMES,
    SIGMA,
    SUPPORT,
    TUNED,
    Measured,
    Task,
    digits,
    measure,
    mislabelled,
    noisy,
)
from latentmetric.estimators.mapml import MaPML
from latentmetric.evaluation.comparison import duration
from latentmetric.evaluation.significance import paired
from latentmetric.persistence.replacing import check_replaceable
from latentmetric.viz.report import write_report

REPORT = "report.html"

LEFT_OUT = 9
"""The digit that is unknown at first, and then added."""

REJECTED_SHARE = 0.05
"""How many rows of known classes one is willing to turn away."""

Results = Mapping[str, Measured]


class Printer:
    """Prints to standard output, and what is being done to standard error."""

    def __init__(self) -> None:
        from rich.console import Console

        self._out = Console(highlight=False)
        self._progress = Console(stderr=True, highlight=False)
        self.status = self._progress.status("")
        """Shows on a terminal what is being done, as long as its block is open."""

    def on_start(self, what: str) -> None:
        """Show what comes next: on a terminal in one place, elsewhere on a line of its own."""
        self.status.update(what)
        if not self._progress.is_terminal:
            self._progress.print(f"… {what}", markup=False)

    def say(self, text: str, style: str | None = None) -> None:
        """A line, however long."""
        self._out.print(visible(text), style=style, markup=False, soft_wrap=True)

    def heading(self, text: str) -> None:
        """The title of a part."""
        self._out.print()
        self.say(text, style="bold")

    def table(self, results: Results) -> None:
        """A line for each method."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("method", no_wrap=True)
        for column in ("error", "references", "fit", "per query", "calibration error"):
            table.add_column(column, justify="right")
        for name, found in results.items():
            table.add_row(
                name,
                percent(found.error, 2),
                f"{found.references:,}" if found.references else "none",
                duration(found.fit_seconds),
                f"{1000 * found.query_seconds / len(found.right):.3f} ms",
                "none" if found.calibration is None else percent(found.calibration, 1),
            )
        self._out.print(table)


def show(folder: Path) -> None:
    """Fit the models, print what they do, write the report into the folder."""
    try:
        printer = Printer()
    except ImportError as error:
        raise SystemExit("the demo needs rich: pip install 'latentmetric[demo]'") from error
    folder.mkdir(parents=True, exist_ok=True)
    check_replaceable(folder / REPORT)
    since = perf_counter()
    with printer.status:
        task = digits()
        printer.say(
            f"Digits of scikit-learn: {len(task.y_train):,} images of {task.X_train.shape[1]} "
            f"pixels to learn from, {len(task.y_test)} to test."
        )
        printer.say(
            "References are what a query is compared with. The calibration error is how far stated "
            "probabilities are from the share of right answers. A fit includes the choice of "
            "parameters."
        )
        printer.heading("1. Images as they are")
        clean = _contest(printer, task, "images as they are")
        printer.say(about_clean(clean))
        printer.heading(
            f"2. Noise on the training images: {SIGMA} of 16 grey levels; clean test images"
        )
        printer.say(about_noise(_contest(printer, noisy(task), "noisy images")))
        printer.heading("3. Wrong labels on the training images; MaPML is told that some are wrong")
        wrong = mislabelled(task)
        results = _contest(printer, wrong, "wrong labels", label_noise=True)
        printer.say(about_wrong_labels(results, np.mean(task.y_train != wrong.y_train)))
        printer.heading("4. A class that was not there when the model was fitted")
        printer.on_start(f"MaPML without any {LEFT_OUT}")
        for line in about_new_class(task):
            printer.say(line)
        printer.on_start("report")
        write_report(
            clean[MAPML].model, task.X_test, task.y_test, folder / REPORT, X_train=task.X_train,
            y_train=task.y_train, image_shape=(8, 8), title="Digits",
            source="load_digits of scikit-learn",
        )  # fmt: skip
    printer.heading("See for yourself")
    printer.say(f"{folder / REPORT}: everything about the model of part 1. Open it in a browser:")
    printer.say(f"    {(folder / REPORT).resolve().as_uri()}")
    printer.heading("Next: your own rows, in a table with a column of labels")
    printer.say(f"    {_command()} compare table.csv    # does it help?")
    printer.say(f"    {_command()} fit table.csv -o model")
    printer.say("docs/tutorial.md goes on from there.")
    printer.say(f"All of this took {perf_counter() - since:.0f} s.")


def _contest(printer: Printer, task: Task, part: str, label_noise: bool = False) -> Results:
    """Fit and measure every method, and print a table."""
    results = {}
    for name in NAMES:
        printer.on_start(f"{part}: {name}")
        results[name] = measure(name, task, label_noise)
    printer.table(results)
    return results


def percent(share: float, digits: int = 0) -> str:
    """A share as text."""
    return f"{100 * share:.{digits}f} %"


def about_clean(results: Results) -> str:
    """Errors as counts, because they are few."""
    euclid, ours = results[EUCLID], results[MAPML]
    return (
        f"Of {len(ours.right)} test images, MaPML gets {ours.wrong} wrong with {ours.references} "
        f"references; 3-NN gets {euclid.wrong} wrong with all {euclid.references:,} images, tuned "
        f"k-NN {results[TUNED].wrong}, logistic regression {results[LOGISTIC].wrong} and tuned SVC "
        f"{results[SUPPORT].wrong}. A difference of a few images is chance: on clean rows like "
        "these, MaPML saves references rather than errors."
    )


def about_noise(results: Results) -> str:
    """Errors in percent."""
    return (
        f"After learning from images full of noise, {_errors(results, 0)} of the clean test images "
        "wrong: latent examples start as averages, in which noise cancels out."
    )


def about_wrong_labels(results: Results, share: float) -> str:
    """What came of so many wrong labels; MaPML and SVC are judged as ``compare`` judges."""
    ours = paired(results[MAPML].right, results[SUPPORT].right)
    verdict = "about as good as tuned SVC: chance explains the difference."
    if ours.significant:
        better = "better" if ours.fewer > 0 else "worse"
        verdict = f"{better} than tuned SVC, by more than chance explains."
    return (
        f"With {percent(share)} of the labels wrong, {_errors(results, 1)} of the test images "
        f"wrong. MaPML is {verdict}"
    )


def _errors(results: Results, digits: int) -> str:
    """Which share each method gets, for a sentence that ends with "wrong"."""
    euclid, tuned, logistic, support, ours = (
        percent(results[name].error, digits) for name in (EUCLID, TUNED, LOGISTIC, SUPPORT, MAPML)
    )
    return (
        f"3-NN gets {euclid}, tuned k-NN {tuned}, logistic regression {logistic}, tuned SVC "
        f"{support} and MaPML {ours}"
    )


def about_new_class(task: Task) -> tuple[str, str]:
    """How many rows of a missing class are turned away, and what comes of adding it."""
    known, new = task.without(LEFT_OUT), task.y_test == LEFT_OUT
    model = MaPML(random_state=0).fit(known.X_train, known.y_train)
    threshold = model.reject_threshold(REJECTED_SHARE)
    rejected = model.predict(task.X_test, reject_below=threshold, reject_label=-1) == -1
    own = task.y_train == LEFT_OUT
    since = perf_counter()
    model.add_classes(task.X_train[own], task.y_train[own])
    seconds = perf_counter() - since
    right = model.predict(task.X_test) == task.y_test
    return (
        f"A model that has never seen a {LEFT_OUT} turns away {percent(rejected[new].mean())} of "
        f"them as no known digit, and {percent(rejected[~new].mean())} of the digits it knows.",
        f"Then {np.count_nonzero(own)} images of a {LEFT_OUT} are added in "
        f"{1000 * seconds:.0f} ms, without a new fit: {percent(right[new].mean())} of the test's "
        f"{LEFT_OUT}s are recognised, and {percent(1 - right.mean(), 1)} of all digits are wrong.",
    )


def _command() -> str:
    """How to call the command: with its folder if that is likely not to be searched."""
    own = Path(sys.executable).with_name("latentmetric")
    if sys.prefix == sys.base_prefix or not own.exists():
        return "latentmetric"
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
