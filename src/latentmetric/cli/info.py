"""``latentmetric info``: what a model file holds."""

from __future__ import annotations

from typing import Any

from latentmetric.characters import percent, told_apart
from latentmetric.cli._output import print_json, print_table, say
from latentmetric.cli._tables import Json, Model, load_model
from latentmetric.core.starts import STARTS
from latentmetric.persistence.models import versions_of
from latentmetric.validation.pipelines import Piped

SHOWN = (
    "objective", "active_share", "rank", "mean_margin", "impostors", "validation_error", "loss",
    "loo_error",
)  # fmt: skip
"""What of each round fits on a line; --json has everything."""

ABOUT_THE_START = ("start", "start_losses", "start_errors")


def info(model: Model, json: Json = False) -> None:
    """Show what a model file holds: estimator, data, parameters, rounds."""
    piped = load_model(model, features_follow=False)
    fitted = piped.estimator
    components = fitted.model_.components
    first = fitted.history_[0] if fitted.history_ else {}
    facts = {
        "file": str(model),
        "bytes": model.stat().st_size,
        **versions_of(model),
        "estimator": type(fitted).__name__,
        "features": int(piped.first.n_features_in_),
        "feature_names": piped.feature_names,
        "steps": _steps(piped),
        "classes": fitted.classes_.tolist(),
        "references": len(fitted.model_.references),
        "rank": None if components is None else len(components),
        "latent_examples": len(getattr(fitted, "latent_examples_", ())),
        "iterations": fitted.n_iter_,
        "kept_iteration": fitted.best_iter_,
        "parameters": fitted.get_params(deep=False),
        "history": fitted.history_,
    } | {name: first[name] for name in ABOUT_THE_START if name in first}
    if json:
        print_json(facts)
        return
    _show(facts)


def _steps(piped: Piped) -> list[dict[str, Any]]:
    """The steps before the estimator, with their parameters that are not at their defaults."""
    steps = [] if piped.steps is None else piped.steps.steps
    return [{"name": name, "step": " ".join(str(step).split())} for name, step in steps]


def _show(facts: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    say(f"{facts['estimator']} in {facts['file']}, {facts['bytes']:,} bytes, by {versions}")
    names = facts["feature_names"]
    named = f", {names[0]} to {names[-1]}" if names else ", without names"
    say(f"features: {facts['features']:,}{named}")
    if facts["steps"]:
        say(f"steps before the estimator: {', '.join(step['step'] for step in facts['steps'])}")
    classes = facts["classes"]
    shown = ", ".join(told_apart(classes[:10], 40))
    say(f"classes: {len(classes):,}: {shown}{', …' if len(classes) > 10 else ''}")
    latents = facts["latent_examples"]
    kind = "latent examples" if latents == facts["references"] else "rows"
    say(f"references that vote: {facts['references']:,} {kind}")
    if latents and latents != facts["references"]:
        say(f"latent examples: {latents:,}")
    if facts["rank"] is not None:
        say(f"rank of the metric: {facts['rank']}")
    kept, made = facts["kept_iteration"], facts["iterations"]
    say(
        f"iterations: {made:,}"
        + ("" if kept == made else f", the model is from iteration {kept:,}")
    )
    if "start" in facts:
        say(f"start of the metric: {facts['start']}{_race(facts)}")
    given = ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items())
    say(f"parameters: {given}")
    _show_rounds(facts["history"])


def _race(facts: dict[str, Any]) -> str:
    """What each start of the race lost, and how often it was wrong."""
    losses, errors = facts.get("start_losses", {}), facts.get("start_errors", {})
    tried = [
        f"{name} {losses[name]:.4g} ({percent(errors[name])} wrong)"
        for name in STARTS
        if name in losses and name in errors
    ]
    return f", by the loss on rows not seen: {', '.join(tried)}" if tried else ""


def _show_rounds(history: list[dict[str, Any]]) -> None:
    measured = [name for name in SHOWN if any(name in record for record in history)]
    if not measured:
        return
    print_table(
        ["round", *[name.replace("_", " ") for name in measured], "seconds"],
        [
            [
                _round(record),
                *[_number(record.get(name)) for name in measured],
                f"{sum(record['seconds'].values()):.2f}",
            ]
            for record in history
        ],
    )
    if any("refinement" in record for record in history):
        say("r1, r2 and so on are passes of the refinement, which learns from the same rows")
        say("that loss and loo error are measured on, each left out of its latent example.")


def _round(record: dict[str, Any]) -> str:
    """The number of a round; short, because the table has many columns."""
    refined = f" r{record['refinement']}" if "refinement" in record else ""
    return f"{record['round']}{refined}"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value or "")
