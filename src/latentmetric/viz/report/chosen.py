"""What the fit chose, and why, as a short list: start, rounds, passes, latent examples, vote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Content, Html, counted, join, number, tag
from latentmetric.viz.summaries import curve, is_number, last_before_refinement


def chosen(evidence: Evidence) -> Html | None:
    """The list; None for estimators that choose nothing."""
    model = evidence.latent_model
    if model is None:
        return None
    before = last_before_refinement(model.history_)
    facts: list[tuple[str, Content]] = [
        ("Start", _start(model)),
        ("Rounds", _rounds(model, before)),
        *([] if before is None else [("Passes", _passes(model, before))]),
        ("Latent examples", _latents(model)),
        ("Vote", _vote(evidence)),
    ]
    return tag("dl", *(join((tag("dt", name), tag("dd", said))) for name, said in facts))


def _start(model: Any) -> str:
    first: Mapping[str, Any] = model.history_[0] if model.history_ else {}
    name, losses = first.get("start"), first.get("start_losses")
    if not isinstance(name, str):
        return "not recorded"
    if not isinstance(losses, Mapping) or not is_number(losses.get(name)):
        return f"{name}, as it was set"
    others = [loss for other, loss in losses.items() if other != name and is_number(loss)]
    if not others:
        return f"{name}, the only one that was tried"
    lowest = min(others)
    if losses[name] <= lowest:
        return f"{name}: the lowest loss, {number(losses[name])} (next: {number(lowest)})"
    own, lower = number(losses[name]), number(lowest)
    return f"{name}, with a loss of {own}; that of the lowest, {lower}, is not lower by enough"


def _rounds(model: Any, before: int | None) -> str:
    made = model.n_iter_ if before is None else before
    if before is not None and model.best_iter_ > before:
        return f"{made:,}, all of them used: the passes after them were better"
    return f"{made:,}; round {model.best_iter_:,} was kept, {_why(model)}"


def _passes(model: Any, before: int) -> str:
    made = model.n_iter_ - before
    if model.best_iter_ <= before:
        return f"{made:,}, none of them kept: they did not improve on the rounds"
    return f"{made:,}; pass {model.best_iter_ - before:,} was kept, {_why(model)}"


def _why(model: Any) -> str:
    if curve(model.history_, "validation_error").rounds:
        return "for the lowest error on held-out rows"
    if curve(model.history_, "loss").rounds:
        return "for the lowest leave-one-out loss"
    return "because the last one is kept"


def _latents(model: Any) -> str:
    n_latents, asked = len(model.latent_examples_), model.n_latents
    if isinstance(asked, Mapping):
        return f"{n_latents:,}, a number for each class"
    if isinstance(asked, float):
        share = f"{100 * asked:g}\N{NO-BREAK SPACE}%"
        return f"{n_latents:,}: n_latents={asked:g}, {share} of the rows of each class"
    return f"{n_latents:,}: n_latents={asked}, as many for each class"


def _vote(evidence: Evidence) -> str:
    model, verdict = evidence.model, evidence.verdict
    kinds = {"latent": "latent example", "original": "original row", "own": "stored row"}
    return f"weights={model.weights!r}, {counted(verdict.n_references, kinds[verdict.voters])}"
