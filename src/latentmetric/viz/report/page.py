"""The report: one HTML file that makes no network requests.

Python computes what the sections show; the templates write it, and escape all of it.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from latentmetric.extras import import_optional
from latentmetric.persistence.replacing import replacing
from latentmetric.validation.parameters import Integer
from latentmetric.viz.report import charts, limits
from latentmetric.viz.report.errors import (
    calibration_section,
    class_section,
    confusion_section,
    mistake_section,
)
from latentmetric.viz.report.evidence import gather
from latentmetric.viz.report.gallery import Pictures, gallery_section
from latentmetric.viz.report.learned import data_section, fit_section, metric_section
from latentmetric.viz.report.map import map_section
from latentmetric.viz.report.text import FILTERS, shown
from latentmetric.viz.report.verdict import verdict_section
from latentmetric.viz.summaries import latents_in_words

SCRIPTS = ("page.js", "map.js")

TITLES = {
    "verdict": "Verdict",
    "classes": "Classes",
    "confusion": "Confusion",
    "mistakes": "Mistakes",
    "doubts": "Labels",
    "calibration": "Calibration",
    "map": "Map",
    "gallery": "Latents",
    "spectrum": "Metric",
    "convergence": "Fit",
    "data": "Data",
}
"""The id of each section and its template, and its name in the navigation."""


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
    on_start: Callable[[str], None] = lambda step: None,
) -> Path:
    """Write one page that shows what a fitted model has learned and where it fails.

    The page is self-contained: it opens offline and sends no request. It opens with a verdict: is
    the model better than tuned k-NN, logistic regression and SVC, and is that more than chance? It
    shows every class, a confusion matrix, misclassified rows, doubtful labels, how well calibrated
    the probabilities are, a map, the latent examples beside rows they represent, what the metric
    weighs, what the fit chose, and the data. Figures and tables can be saved from the page.

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
        the gallery draws from. Without them there is no verdict, and the gallery draws from ``X``.
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
        Fit nothing for the page: no tuned k-NN, logistic regression and SVC for the verdict to
        compare with, and no map of rank 2. Both need ``X_train``.
    on_start : callable
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
    _templates()  # an error before any work if Jinja2 is missing
    generator = np.random.default_rng(random_state)
    with np.errstate(under="ignore"):
        evidence = gather(
            model, X, y, X_train=X_train, y_train=y_train, row_names=row_names,
            train_names=train_names, image_shape=image_shape, max_queries=max_queries,
            generator=generator, quick=quick, on_start=on_start,
        )  # fmt: skip
        pictures = Pictures(evidence.image_shape, *evidence.originals.value_range)
        sections = {
            "verdict": verdict_section(evidence),
            "classes": class_section(evidence),
            "confusion": confusion_section(evidence),
            "mistakes": mistake_section(evidence),
            "doubts": {},
            "calibration": calibration_section(evidence),
            "gallery": gallery_section(evidence),
            "spectrum": metric_section(evidence),
            "convergence": fit_section(evidence),
            "data": data_section(evidence, source),
        }
        written = {
            name: render(name, evidence=evidence, pictures=pictures, **data)
            for name, data in sections.items()
        }
        # The map comes last: its points may use up the budget of pictures.
        mapped = map_section(evidence, pictures, generator, quick, on_start)
        written["map"] = render("map", evidence=evidence, **mapped)
    heading = shown(title, 200) if title else f"What {evidence.name} learned"
    page = _page(heading, [written[name] for name in TITLES], pictures)
    with replacing(path) as file:
        file.write(page.encode())
    return Path(path)


def render(name: str, **data: Any) -> str:
    """The page, or one of its sections, as HTML."""
    html: str = _templates().get_template(f"{name}.html").render(data)
    return html


@cache
def _templates() -> Any:
    jinja2 = import_optional("jinja2", "plot", "a report")
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("latentmetric.viz.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(FILTERS)
    frame = {name: value for name, value in vars(charts).items() if name.isupper()}
    templates.globals.update(frame, limits=limits, latents_in_words=latents_in_words)
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return templates


def _page(heading: str, sections: list[str], pictures: Pictures) -> str:
    """The whole file. Its policy allows only the scripts and styles listed by hash."""
    from latentmetric import __version__

    styles = [_static("report.css"), *([pictures.style_sheet()] if len(pictures) else [])]
    script = "\n".join(map(_static, SCRIPTS))
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {' '.join(map(_hash, styles))}; script-src {_hash(script)}"
    )
    return render(
        "page", heading=heading, policy=policy, styles=styles, titles=TITLES, sections=sections,
        script=script, version=__version__,
    )  # fmt: skip


def _static(name: str) -> str:
    return (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
