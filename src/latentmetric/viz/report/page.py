"""The report: sections combined into one HTML file that makes no network requests."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.core.parallel import small_numbers_may_vanish
from latentmetric.persistence.replacing import replacing
from latentmetric.validation.parameters import Integer
from latentmetric.validation.pipelines import Piped
from latentmetric.viz.report.classes import class_section
from latentmetric.viz.report.confusion import confusion_section
from latentmetric.viz.report.context import Context
from latentmetric.viz.report.data import data_section
from latentmetric.viz.report.doubts import doubt_section
from latentmetric.viz.report.evidence import Evidence, gather
from latentmetric.viz.report.gallery import gallery_section
from latentmetric.viz.report.learning import convergence_section
from latentmetric.viz.report.markup import Html, shown, tag
from latentmetric.viz.report.mistakes import mistake_section
from latentmetric.viz.report.pictures import COLUMNS, Pictures
from latentmetric.viz.report.plane import map_section
from latentmetric.viz.report.reliability import reliability_section
from latentmetric.viz.report.spectrum import spectrum_section
from latentmetric.viz.report.verdict import verdict_section

SCRIPTS = (
    "theme.js",
    "pictures.js",
    "tables.js",
    "gallery.js",
    "drawing.js",
    "exports.js",
    "plot.js",
    "matrix.js",
    "map.js",
)

SECTIONS: tuple[tuple[str, str, Callable[[Evidence, Context], Html]], ...] = (
    ("verdict", "Verdict", verdict_section),
    ("classes", "Classes", class_section),
    ("confusion", "Confusion", confusion_section),
    ("mistakes", "Mistakes", mistake_section),
    ("doubts", "Labels", doubt_section),
    ("reliability", "Reliability", reliability_section),
    ("map", "Map", map_section),
    ("gallery", "Latents", gallery_section),
    ("spectrum", "Metric", spectrum_section),
    ("convergence", "Fit", convergence_section),
    ("data", "Data", data_section),
)
"""The id of each section, its name in the navigation, and what makes it."""

PICTURED_FIRST = (mistake_section, doubt_section, gallery_section)
"""Built before the map, whose many pictures would use up the budget."""


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    X_train: Any = None,
    y_train: Any = None,
    image_shape: tuple[int, ...] | None = None,
    row_names: Any = None,
    train_names: Any = None,
    title: str | None = None,
    source: str | None = None,
    max_queries: int = 10_000,
    random_state: int = 0,
    quick: bool = False,
    about_to: Callable[[str], None] = lambda step: None,
) -> Path:
    """Write one page that shows what a fitted model has learned and where it fails.

    The page is self-contained: it opens offline and sends no request. It opens with a verdict: is
    the model better than k-NN, logistic regression and SVC, tuned on the training rows, and is that
    more than chance? It shows every class, a confusion matrix, misclassified rows, doubtful labels,
    how reliable the probabilities are, a map, the latent examples beside rows they represent, what
    the metric weighs, what the fit chose, and the data. Figures and tables can be saved from the
    page.

    Parameters
    ----------
    model : MaPML, another estimator of this package, or a Pipeline that ends in one
        Fitted. Sections that do not apply, such as latent examples of other models, say so. Of a
        pipeline, rows are shown as they are given; distances are those after its steps.
    X : array-like of shape (n_samples, n_features)
        Rows to classify, ideally test rows given together with ``X_train``. Rows whose labels the
        model does not know are left out, and the page says how many.
    y : array-like of shape (n_samples,)
        Their labels.
    path : str or path
        The file to write. An older one is replaced once the new one is complete.
    X_train, y_train : array-like, default=None
        The rows the model was fitted on, which the verdict needs, Euclid and MaPML-O vote with and
        the gallery draws from. Without them a part of ``X`` is used instead, and the page says so.
    image_shape : tuple of int, default=None
        Height, width and, if any, channels of rows that are images.
    row_names, train_names : sequence of str, default=None
        A text to show with each row of ``X`` and of ``X_train``, such as a sentence or a file name.
    title : str, default=None
        Heading of the page; None makes one from the name of the estimator.
    source : str, default=None
        Where the rows came from, shown on the page.
    max_queries : int, default=10_000
        Classify at most this many rows; if there are more, a stratified sample.
    random_state : int, default=0
        Seed of the samples of rows and latent examples.
    quick : bool, default=False
        Fit nothing for the page: no k-NN, logistic regression and SVC for the verdict to compare
        with, and no map of rank 2. Both need ``X_train``.
    about_to : callable
        Called with the name of each step that takes time, before it.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from latentmetric import MaPML
    >>> from latentmetric.viz import write_report
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = MaPML(max_iter=2, random_state=0).fit(X_train, y_train)
    >>> with TemporaryDirectory() as folder:
    ...     page = write_report(
    ...         model, X_test, y_test, Path(folder) / "report.html",
    ...         X_train=X_train, y_train=y_train, image_shape=(8, 8),
    ...     )
    ...     page.stat().st_size < 1_000_000
    True
    """
    max_queries = Integer(1).check("max_queries", max_queries)
    generator = np.random.default_rng(random_state)
    learner = type(Piped.of(model).estimator).__name__
    heading = shown(title, 200) if title else f"What {learner} learned"
    with small_numbers_may_vanish():
        evidence = gather(
            model, X, y, X_train, y_train, row_names, train_names, max_queries, generator,
            not quick, about_to,
        )  # fmt: skip
        context = Context.of(evidence, image_shape, source, generator, quick, about_to)
        page = _page(heading, evidence, context)
    return _write_whole(Path(path), page)


def _page(heading: str, evidence: Evidence, context: Context) -> str:
    """The whole file. Its policy allows only the scripts and styles listed by hash."""
    made = {section: section(evidence, context) for section in PICTURED_FIRST}
    sections = [
        made[section] if section in made else section(evidence, context)
        for _, _, section in SECTIONS
    ]
    styles = [_asset("report.css"), *_sheet(context.pictures)]
    script = "\n".join(_asset(name) for name in SCRIPTS)
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {' '.join(map(_hash, styles))}; script-src {_hash(script)}"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", heading),
        *(tag("style", Html(style)) for style in styles),
    )
    body = tag(
        "body",
        _navigation(),
        tag("main", tag("header", tag("h1", heading), id="top"), *sections, _footer()),
        tag("a", "Contents", href="#top", class_="to-top"),
        tag("script", as_json(context.script_data), type="application/json", id="report-data"),
        tag("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _navigation() -> Html:
    links = [tag("a", text, href=f"#{name}") for name, text, _ in SECTIONS]
    toggle = tag("button", "Dark", type="button", class_="theme needs-script")
    return tag("nav", tag("div", *links, class_="links"), toggle, aria_label="Parts of the report")


def _footer() -> Html:
    said = (
        f"Made by latentmetric {_version()}. This page works offline and sends no data. Long "
        "labels and names are shortened in the middle; invisible characters are shown as codes."
    )
    return tag("footer", tag("p", said))


def _version() -> str:
    from latentmetric import __version__

    return __version__


def _asset(name: str) -> str:
    return (files("latentmetric.viz.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _sheet(pictures: Pictures | None) -> list[str]:
    """A style sheet with all pictures in one image; the script shows the right part of it."""
    if pictures is None or not len(pictures):
        return []
    height, width = pictures.size
    lines = -(-len(pictures) // COLUMNS)
    return [
        f":root{{--columns:{COLUMNS};--lines:{lines};--aspect:{width}/{height}}}"
        f".picture{{background-image:url(data:image/png;base64,{pictures.sheet()})}}"
    ]


def as_json(data: Any) -> Html:
    """JSON that cannot end the script element around it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("<", "\\u003c"))


def _write_whole(path: Path, text: str) -> Path:
    """Write the whole file or nothing: an interrupted write leaves the old file."""
    with replacing(path) as file:
        file.write(text.encode())
    return path
