"""How notebooks show an estimator: scikit-learn's diagram and, after a fit, what the fit found."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from sklearn.base import BaseEstimator

from latentmetric.characters import distinct_names, visible

CLASSES_SHOWN = 10
LONGEST_LABEL = 20

ERRORS = {
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
    classes, history = model.classes_.tolist(), model.history_
    shown = distinct_names(classes[:CLASSES_SHOWN], LONGEST_LABEL)
    shown += ["…"] * (len(classes) > CLASSES_SHOWN)
    facts = {
        "classes": f"{len(classes):,}: {', '.join(shown)}",
        "references": f"{len(model.model_.references):,} rows",
    }
    if getattr(model, "reference_", "original") == "latent":
        n_rows = round(float(model.latent_counts_.sum()))
        latents = f"{len(model.model_.references):,} latent examples"
        facts["references"] = f"{latents}, which stand for {n_rows:,} rows"
    if "start" in history[0]:
        errors = history[0].get("start_errors", {})
        tried = ", ".join(f"{name} {_percent(error)}" for name, error in errors.items())
        facts["start"] = history[0]["start"] + (f"; tried on a sample: {tried}" if tried else "")
    if model._learns:
        passes = sum("refinement" in record for record in history)
        plural = "passes" if passes > 1 else "pass"
        refined = f" and {passes} {plural} of the refinement" if passes else ""
        facts["rounds"] = f"{model.n_iter_ - passes}{refined}; number {model.best_iter_} was kept"
    for record in history:
        if record.get("iterations", record["round"]) == model.best_iter_:
            for name in [name for name in ERRORS if name in record][:1]:
                facts["error"] = f"{_percent(record[name])} {ERRORS[name]}"
    return facts


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
