"""A first look, in less than a minute, on scikit-learn's digits: ``python -m latentmetric.demo``.

Every number that it prints is measured while it runs.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from time import perf_counter

from latentmetric.demo.contenders import MAPML, contest
from latentmetric.demo.open_world import new_class, unknown_rows
from latentmetric.demo.printing import Printer
from latentmetric.demo.tasks import (
    GREY_LEVELS,
    IMAGE_SHAPE,
    LEFT_OUT,
    SIGMA,
    Task,
    digits,
    mislabelled,
    noisy,
    without,
)
from latentmetric.demo.words import about_clean, about_noise, about_wrong_labels
from latentmetric.estimators.mapml import MaPML
from latentmetric.persistence.replacing import check_replaceable
from latentmetric.viz.report import write_report

REPORT = "report.html"

EXPLAINED = (
    "References are what a query is compared with. The calibration error is how far stated "
    "probabilities are from the share of right answers. A fit includes the choice of parameters."
)


def show(folder: Path) -> None:
    """Fit the models, print what they do, write the report into the folder."""
    _check_libraries()
    folder.mkdir(parents=True, exist_ok=True)
    check_replaceable(folder / REPORT)
    since = perf_counter()
    printer = Printer()
    with printer.working():
        task = digits()
        printer.say(
            f"Digits of scikit-learn: {len(task.y_train):,} images of {task.X_train.shape[1]} "
            f"pixels to learn from, {len(task.y_test)} to test."
        )
        printer.say(EXPLAINED)
        model = _clean(printer, task)
        _noisy(printer, task)
        _wrong_labels(printer, task)
        _open_world(printer, task)
        _report(printer, model, task, folder)
    _lead_on(printer, folder)
    printer.say(f"All of this took {perf_counter() - since:.0f} s.")


def _check_libraries() -> None:
    try:
        import rich.console  # noqa: F401
    except ImportError as error:
        message = "the demo needs rich: pip install 'latentmetric[demo]'"
        raise SystemExit(message) from error


def _clean(printer: Printer, task: Task) -> MaPML:
    """The model that the report is about."""
    printer.heading("1. Images as they are")
    results = contest(task, partial(_announce, printer, "images as they are"))
    printer.table(results)
    printer.say(about_clean(results))
    model: MaPML = results[MAPML].model
    return model


def _noisy(printer: Printer, task: Task) -> None:
    printer.heading(
        f"2. Noise on the training images: {SIGMA} of {GREY_LEVELS} grey levels; clean test images"
    )
    results = contest(noisy(task), partial(_announce, printer, "noisy images"))
    printer.table(results)
    printer.say(about_noise(results))


def _wrong_labels(printer: Printer, task: Task) -> None:
    printer.heading("3. Wrong labels on the training images; MaPML is told that some are wrong")
    made = mislabelled(task)
    announce = partial(_announce, printer, "wrong labels")
    results = contest(made, announce, label_noise=True)
    printer.table(results)
    printer.say(about_wrong_labels(results, task, made))


def _open_world(printer: Printer, task: Task) -> None:
    printer.heading("4. A class that was not there when the model was fitted")
    printer.about_to(f"MaPML without any {LEFT_OUT}")
    known = without(task, LEFT_OUT)
    model = MaPML(random_state=0).fit(known.X_train, known.y_train)
    printer.say(unknown_rows(model, task))
    printer.say(new_class(model, task))


def _report(printer: Printer, model: MaPML, task: Task, folder: Path) -> None:
    printer.about_to("report")
    write_report(
        model, task.X_test, task.y_test, folder / REPORT, X_train=task.X_train,
        y_train=task.y_train, image_shape=IMAGE_SHAPE, title="Digits",
        source="load_digits of scikit-learn",
    )  # fmt: skip


def _lead_on(printer: Printer, folder: Path) -> None:
    """Where to look, and what to do next."""
    page = (folder / REPORT).resolve()
    printer.heading("See for yourself")
    printer.say(f"{folder / REPORT}: everything about the model of part 1. Open it in a browser:")
    printer.say(f"    {page.as_uri()}")
    printer.heading("Next: your own rows, in a table with a column of labels")
    printer.say(f"    {_command()} compare table.csv    # does it help?")
    printer.say(f"    {_command()} fit table.csv -o model")
    printer.say("docs/tutorial.md goes on from there.")


def _announce(printer: Printer, part: str, name: str) -> None:
    printer.about_to(f"{part}: {name}")


def _command() -> str:
    """How to call the command: with its folder if that is likely not to be searched."""
    own = Path(sys.executable).with_name("latentmetric")
    if sys.prefix == sys.base_prefix or not own.exists():
        return "latentmetric"
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)
