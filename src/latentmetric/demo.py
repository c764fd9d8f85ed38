"""A first look, in less than a minute, on scikit-learn's digits: ``python -m latentmetric.demo``.

Every number that it prints is measured while it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric.characters import set_stdio_errors, visible
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.mapml import MaPML
from latentmetric.evaluation import calibration_error
from latentmetric.evaluation.comparison import Outcome, duration, predictor, timed
from latentmetric.evaluation.rivals import SUPPORT, TUNED, Rival, fit_rival
from latentmetric.evaluation.significance import paired
from latentmetric.extras import pip_install
from latentmetric.persistence.replacing import check_replaceable
from latentmetric.viz.report import write_report

REPORT = "report.html"

SIGMA = 8
"""Standard deviation of the noise on a pixel, of 16 grey levels."""

DRAWN_LABELS = 0.3
"""The share of the training labels that are drawn at random."""

LEFT_OUT = 9
"""The digit that is unknown at first, and then added."""

REJECTED_SHARE = 0.05
"""How many rows of known classes one is willing to turn away."""

EUCLID, MAPML, SMALL_MAPML = "3-NN", "MaPML, 10 % latents", "MaPML, 2 % latents"
NAMES = (EUCLID, *TUNED, MAPML, SMALL_MAPML)

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Measured(Outcome):
    """A fitted method, and how it did on the test rows."""

    model: Any
    calibration: float | None
    """None of a method without probabilities."""


Results = Mapping[str, Measured]


class Demo:
    """Fits and measures methods, and prints what comes out."""

    def __init__(self) -> None:
        from rich.console import Console

        self._out = Console(highlight=False)
        self._progress = Console(stderr=True, highlight=False)
        self.status = self._progress.status("")
        """Shows on a terminal what is being done, as long as its block is open."""
        X, y = load_digits(return_X_y=True)
        self.X_train, self.X_test, self.y_train, self.y_test = train_test_split(
            X, y, test_size=0.3, stratify=y, random_state=0
        )

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

    def contest(self, part: str, X: Array, y: Array, label_noise: bool = False) -> Results:
        """Fit every method to these rows, measure it on the test rows, and print a table."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        table.add_column("method", no_wrap=True)
        for column in ("error", "references", "fit", "per query", "calibration error"):
            table.add_column(column, justify="right")
        results = {}
        for name in NAMES:
            self.on_start(f"{part}: {name}")
            results[name] = found = self.measure(name, X, y, label_noise)
            table.add_row(
                name,
                percent(found.error, 2),
                f"{found.references:,}" if found.references else "none",
                duration(found.fit_seconds),
                f"{1000 * found.query_seconds / found.n_queries:.3f} ms",
                "none" if found.calibration is None else percent(found.calibration, 1),
            )
        self._out.print(table)
        return results

    def measure(self, name: str, X: Array, y: Array, label_noise: bool) -> Measured:
        """Fit a method to these rows and measure it on the test rows."""
        fitted, fit_seconds = timed(partial(_fit, name, X, y, label_noise))
        predict, references = predictor(fitted)
        predicted, query_seconds = timed(partial(predict, self.X_test))
        model = fitted.pipeline if isinstance(fitted, Rival) else fitted
        calibration = None
        if hasattr(model, "predict_proba"):
            shares = model.predict_proba(self.X_test)
            calibration = calibration_error(self.y_test, shares, model.classes_)
        right = predicted == self.y_test
        return Measured(
            name, 0, right, fit_seconds, query_seconds, references, model, calibration,
            true=self.y_test,
        )  # fmt: skip

    def new_class(self) -> None:
        """How many rows of a missing class are turned away, and what comes of adding it."""
        own, new = self.y_train == LEFT_OUT, self.y_test == LEFT_OUT
        model = MaPML(random_state=0).fit(self.X_train[~own], self.y_train[~own])
        threshold = model.reject_threshold(REJECTED_SHARE)
        rejected = model.predict(self.X_test, reject_below=threshold, reject_label=-1) == -1
        self.say(
            f"A model that has never seen a {LEFT_OUT} turns away {percent(rejected[new].mean())} "
            f"of them as no known digit, and {percent(rejected[~new].mean())} of the digits it "
            "knows."
        )
        since = perf_counter()
        model.add_classes(self.X_train[own], self.y_train[own])
        seconds = perf_counter() - since
        right = model.predict(self.X_test) == self.y_test
        self.say(
            f"Then {np.count_nonzero(own)} images of a {LEFT_OUT} are added in "
            f"{1000 * seconds:.0f} ms, without a new fit: {percent(right[new].mean())} of the "
            f"test's {LEFT_OUT}s are recognised, and {percent(1 - right.mean(), 1)} of all digits "
            "are wrong."
        )


def _fit(name: str, X: Array, y: Array, label_noise: bool) -> Any:
    if name in TUNED:
        return fit_rival(name, X, y)
    if name == EUCLID:
        return Euclidean().fit(X, y)
    n_latents = 0.1 if name == MAPML else 0.02
    return MaPML(n_latents, label_noise=label_noise, random_state=0).fit(X, y)


def show(folder: Path) -> None:
    """Fit the models, print what they do, write the report into the folder."""
    try:
        demo = Demo()
    except ImportError as error:
        raise SystemExit(f"the demo needs {error.name}: {pip_install('demo')}") from error
    folder.mkdir(parents=True, exist_ok=True)
    check_replaceable(folder / REPORT)
    since = perf_counter()
    X, y = demo.X_train, demo.y_train
    with demo.status:
        demo.say(
            f"Digits of scikit-learn: {len(y):,} images of {X.shape[1]} pixels to learn from, "
            f"{len(demo.y_test)} to test."
        )
        demo.say(
            "References are what a query is compared with. The calibration error is how far stated "
            "probabilities are from the share of right answers. A fit includes the choice of "
            "parameters."
        )
        demo.heading("1. Images as they are")
        clean = demo.contest("images as they are", X, y)
        demo.say(about_clean(clean))
        demo.heading(
            f"2. Noise on the training images: {SIGMA} of 16 grey levels; clean test images"
        )
        noisy = X + np.random.default_rng(0).normal(0, SIGMA, X.shape)
        demo.say(
            "After learning from images full of noise, "
            f"{errors(demo.contest('noisy images', noisy, y), 0)} of the clean test images wrong: "
            "latent examples start as averages, in which noise cancels out."
        )
        demo.heading("3. Wrong labels on the training images; MaPML is told that some are wrong")
        wrong = mislabelled(y)
        results = demo.contest("wrong labels", X, wrong, label_noise=True)
        demo.say(about_wrong_labels(results, np.mean(y != wrong)))
        demo.heading("4. A class that was not there when the model was fitted")
        demo.on_start(f"MaPML without any {LEFT_OUT}")
        demo.new_class()
        demo.on_start("report")
        write_report(
            clean[MAPML].model, demo.X_test, demo.y_test, folder / REPORT, X_train=X, y_train=y,
            image_shape=(8, 8), title="Digits", source="load_digits of scikit-learn",
        )  # fmt: skip
    demo.heading("See for yourself")
    demo.say(f"{folder / REPORT}: everything about the model of part 1. Open it in a browser:")
    demo.say(f"    {(folder / REPORT).resolve().as_uri()}")
    demo.heading("Next: your own rows, in a table with a column of labels")
    demo.say(f"    {_command()} compare table.csv    # does it help?")
    demo.say(f"    {_command()} fit table.csv -o model")
    demo.say("docs/tutorial.md goes on from there.")
    demo.say(f"All of this took {perf_counter() - since:.0f} s.")


def mislabelled(labels: Array) -> Array:
    """Labels, some of them drawn at random."""
    generator = np.random.default_rng(0)
    wrong = labels.copy()
    drawn = generator.choice(len(labels), round(DRAWN_LABELS * len(labels)), replace=False)
    wrong[drawn] = generator.choice(np.unique(labels), len(drawn))
    return wrong


def percent(share: float, digits: int = 0) -> str:
    """A share as text."""
    return f"{100 * share:.{digits}f} %"


def about_clean(results: Results) -> str:
    """Errors as counts, because they are few."""
    wrong = {name: np.count_nonzero(~found.right) for name, found in results.items()}
    rivals = ", ".join(f"{name} {wrong[name]}" for name in TUNED)
    return (
        f"Of {results[MAPML].n_queries} test images, MaPML gets {wrong[MAPML]} wrong with "
        f"{results[MAPML].references} references; 3-NN gets {wrong[EUCLID]} wrong with all "
        f"{results[EUCLID].references:,} images, {rivals}. A difference of a few images is chance: "
        "on clean rows like these, MaPML saves references rather than errors."
    )


def about_wrong_labels(results: Results, share: float) -> str:
    """What came of so many wrong labels; MaPML and SVC are judged as ``compare`` judges."""
    ours = paired(results[MAPML].right, results[SUPPORT].right)
    verdict = "about as good as SVC: chance explains the difference."
    if ours.significant:
        better = "better" if ours.fewer > 0 else "worse"
        verdict = f"{better} than SVC, by more than chance explains."
    return (
        f"With {percent(share)} of the labels wrong, {errors(results, 1)} of the test images "
        f"wrong. MaPML is {verdict}"
    )


def errors(results: Results, digits: int) -> str:
    """Which share each method gets, for a sentence that ends with "wrong"."""
    shares = {name: percent(found.error, digits) for name, found in results.items()}
    rivals = ", ".join(f"{name} {shares[name]}" for name in TUNED)
    return f"3-NN gets {shares[EUCLID]}, {rivals} and MaPML {shares[MAPML]}"


def _command() -> str:
    """How to call the command: with its folder if that is likely not to be searched."""
    own = Path(sys.executable).with_name("latentmetric")
    if sys.prefix == sys.base_prefix or not own.exists():
        return "latentmetric"
    here = Path.cwd()
    return str(own.relative_to(here) if own.is_relative_to(here) else own)


def main() -> None:
    """Run the demo; what it writes goes to the folder ``--out``."""
    set_stdio_errors()
    parser = argparse.ArgumentParser(prog="python -m latentmetric.demo", description="A first look")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to")
    show(parser.parse_args().out)


if __name__ == "__main__":
    main()
