"""How notebooks show an estimator: scikit-learn's diagram and, after a fit, what the fit found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from sklearn.base import BaseEstimator

from latentmetric.characters import told_apart, visible

CLASSES_SHOWN = 10
LONGEST_LABEL = 20

FOUND_BY = {
    "validation_error": "of the rows that were held out",
    "loo_error": "of the training rows, each left out of its own latent example",
}
"""The errors that a round may have measured, and what each is a share of."""


class ShownInNotebooks(BaseEstimator):
    """Adds what a fit found to the HTML representation of scikit-learn."""

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_  # absent if scikit-learn is set to display text
        return lambda: diagram() + fitted_html(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] += fitted_html(self)
        return bundle


def fitted_html(model: Any) -> str:
    """A table of what the fit found; nothing for a model that is not fitted."""
    if not hasattr(model, "model_"):
        return ""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(visible(words))}</td></tr>'
        for name, words in fitted_facts(model).items()
    )
    return f"<table><caption>{escape(type(model).__name__)}, fitted</caption>{lines}</table>"


def fitted_facts(model: Any) -> dict[str, str]:
    """What matters after a fit, in words: classes, references, start, rounds, error."""
    facts = {"classes": _classes(model.classes_.tolist()), "references": _references(model)}
    start = model.history_[0].get("start")
    if isinstance(start, str):
        facts["start"] = _start(start, model.history_[0].get("start_errors"))
    if model.learns:
        facts["rounds"] = _rounds(model)
    error = _error(model)
    if error:
        facts["error"] = error
    return facts


def _classes(classes: list[Any]) -> str:
    shown = told_apart(classes[:CLASSES_SHOWN], LONGEST_LABEL)
    more = ["…"] if len(classes) > CLASSES_SHOWN else []
    return f"{len(classes):,}: {', '.join(shown + more)}"


def _references(model: Any) -> str:
    """What votes: latent examples or rows."""
    n_references = len(model.model_.references)
    if getattr(model, "reference_", "original") != "latent":
        return f"{n_references:,} rows"
    n_rows = round(float(model.latent_counts_.sum()))
    return f"{n_references:,} latent examples, which stand for {n_rows:,} rows"


def _start(chosen: str, errors: Any) -> str:
    """Where the metric starts and, if several were tried, the error of each."""
    if not isinstance(errors, Mapping) or len(errors) < 2:
        return chosen
    tried = ", ".join(f"{name} {_percent(error)}" for name, error in errors.items())
    return f"{chosen}; tried on a sample: {tried}"


def _rounds(model: Any) -> str:
    passes = sum("refinement" in record for record in model.history_)
    counted = f"{model.n_iter_ - passes}" + (
        f" and {passes} {'passes' if passes > 1 else 'pass'} of the refinement" if passes else ""
    )
    return f"{counted}; number {model.best_iter_} was kept"


def _error(model: Any) -> str:
    """The error of the round that was kept, as it measured it; empty if it measured none."""
    kept = [r for r in model.history_ if r.get("iterations", r.get("round")) == model.best_iter_]
    for name, rows in FOUND_BY.items():
        if kept and name in kept[0]:
            return f"{_percent(kept[0][name])} {rows}"
    return ""


def _percent(share: Any) -> str:
    """A share from a history, which another tool may have written."""
    return f"{100 * share:.2f} %" if isinstance(share, int | float) else str(share)
