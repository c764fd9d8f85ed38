"""The opening of the page: better or worse than what one would use instead, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from latentmetric.characters import in_a_sentence
from latentmetric.evaluation.rivals import SUPPORT
from latentmetric.evaluation.significance import NOT_COVERED, Paired, holm, paired
from latentmetric.evaluation.unequal import are_unequal, balanced_scores, majority
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import Bar, bar_chart
from latentmetric.viz.report.evidence import EUCLID, Evidence, LabelQuality
from latentmetric.viz.report.text import counted, percent
from latentmetric.viz.summaries import curve, latents_in_words, pair_counts, starts

Facts = dict[str, Any] | LabelQuality | None


@dataclass(frozen=True)
class Compared:
    """One line of the comparison."""

    name: str
    about: str
    n_wrong: int
    match: Paired
    """The model beside this method, row by row."""
    kind: str
    """``model``, ``rival``, ``base`` for Euclid, or ``alternative``, which has no bar."""
    fitted: str = ""
    """How many of the training rows it was fitted on, if not all."""

    @property
    def error(self) -> float:
        """The share of the queries that it misclassifies."""
        return self.n_wrong / self.match.n_rows

    @property
    def called(self) -> str:
        """Its name, with the rows it was fitted on if these are fewer than the model's."""
        return f"{self.name}, {self.fitted}" if self.fitted else self.name


def verdict_section(evidence: Evidence) -> dict[str, Any]:
    """The verdict in words, the errors as bars, advice, and the numbers behind it."""
    methods = compare(evidence)
    rivals = [method for method in methods if method.kind == "rival"]
    names = [rival.name for rival in rivals]
    told = rivals or [method for method in methods[1:] if method.name == EUCLID]
    n_queries = len(evidence.queries)
    most_frequent, base_error = majority(evidence.true)
    bars = [
        Bar(method.called, method.error, percent(method.error),
            sqrt(method.error * (1 - method.error) / n_queries), method.kind)
        for method in (methods[0], *told)
    ]  # fmt: skip
    return {
        "headline": headline(evidence, methods[0], rivals),
        "methods": methods,
        "most_frequent": evidence.labels[most_frequent],
        "base_error": base_error,
        "balanced": balanced_scores(evidence.true, evidence.right)["balanced_accuracy"]
        if are_unequal(evidence.true)
        else None,
        "told": told,
        "chart": bar_chart(f"Error on {counted(n_queries, 'row')}", bars),
        "advice": advice(evidence, methods, rivals),
        "rivals": in_a_sentence(names) if names else "",
        "not_covered": NOT_COVERED,
        "without_svc": bool(names) and SUPPORT not in names,
    }


def compare(evidence: Evidence) -> list[Compared]:
    """The model first, then rivals, then what the paper compares it with."""
    n_all, compared = len(evidence.originals), []
    for method in (evidence.verdict, *evidence.others):
        right = method.predicted == evidence.true
        kind, fitted, about = "alternative", "", f"{method.about} vote"
        if method.n_rows is not None:
            kind = "rival"
            fitted = f"{method.n_rows:,} of {n_all:,} training rows"
            about = f"{method.about}; {fitted}"
            if method.n_rows == n_all:
                fitted, about = "", f"{method.about}; {n_all:,} training rows"
        elif method is evidence.verdict:
            kind = "model"
        elif method.name == EUCLID:
            kind = "base"
        match = paired(evidence.right, right)
        compared.append(Compared(method.name, about, int((~right).sum()), match, kind, fitted))
    matches = holm([method.match for method in compared[1:]])
    beside = zip(compared[1:], matches, strict=True)
    return [compared[0], *(replace(method, match=match) for method, match in beside)]


def headline(evidence: Evidence, model: Compared, rivals: list[Compared]) -> str:
    """The verdict in one line."""
    if not evidence.has_training_rows:
        return "No verdict yet: the training rows are missing"
    if not evidence.is_test:
        return "No verdict: most of the tested rows are training rows"
    if not rivals:
        return f"{model.name} misclassifies {percent(model.error)}; no verdict yet"
    even = "too close to tell from"
    named: dict[str, list[str]] = {"worse than": [], "better than": [], even: []}
    for rival in rivals:
        relation = "better than" if rival.match.fewer > 0 else "worse than"
        some = f" ({rival.fitted})" if rival.fitted else ""
        named[relation if rival.match.significant else even].append(rival.name + some)
    said = [f"{how} {in_a_sentence(whom)}" for how, whom in named.items() if whom]
    return f"{model.name} is {', '.join(said)}"


def advice(evidence: Evidence, methods: list[Compared], rivals: list[Compared]) -> dict[str, Facts]:
    """What the sentences in ``verdict.html`` need, the weightiest first; None: does not apply."""
    decisive = rivals if evidence.is_test else []
    quality, surplus = evidence.label_quality, evidence.calibration.surplus
    too_sure = surplus >= limits.OVERCONFIDENT and hasattr(evidence.model, "refine")
    return {
        "use_rival": _use_rival(decisive),
        "training_rows": None if evidence.is_test else {"given": evidence.has_training_rows},
        "more_latents": _more_latents(evidence, methods),
        "more_rounds": _more_rounds(evidence.model),
        "doubtful_labels": quality if quality is not None and quality.n_doubtful else None,
        "more_test_rows": _more_test_rows(decisive),
        "hard_pair": _hard_pair(evidence),
        "probabilities": {"surplus": surplus} if too_sure else None,
        "another_start": _another_start(evidence.model, rivals),
    }


def _use_rival(rivals: list[Compared]) -> Facts:
    """A rival that is better beyond chance is the one to use."""
    better = [one for one in rivals if one.match.significant and one.match.fewer < 0]
    return {"name": min(better, key=lambda one: one.match.fewer).name} if better else None


def _more_latents(evidence: Evidence, methods: list[Compared]) -> Facts:
    """If original rows vote better under the same metric, there are too few latent examples."""
    name = f"{evidence.name}-O"
    match = next((one.match for one in methods[1:] if one.name == name), None)
    if match is None or not evidence.is_test or not match.significant or match.fewer > 0:
        return None
    return {
        "name": name,
        "fewer": match.fewer,
        "n_latents": latents_in_words(evidence.model.n_latents_),
    }


def _more_rounds(model: Any) -> Facts:
    """If the last round was the best and still much better than the one before, go on."""
    # The loss of training rows falls with every pass of the refinement, also where errors rise.
    for quantity in ("validation_error", *(() if getattr(model, "refine", 0) else ("objective",))):
        measured = curve(model.history_, quantity)
        if len(measured.values) < 3:
            continue
        first, (before, last) = measured.values[0], measured.values[-2:]
        falls = first > 0 and before - last > limits.STILL_FALLING * first
        if model.best_iter_ != measured.rounds[-1] or not falls:
            return None
        name = "refine" if getattr(model, "refine", 0) else "max_iter"
        value = getattr(model, name, "–")
        if value == "auto":
            value = model.history_[-1].get("refinement", value)
        return {"unit": measured.unit, "name": name, "value": value}
    return None


def _more_test_rows(rivals: list[Compared]) -> Facts:
    """Where chance may explain the difference to the best rival, more rows could decide."""
    best = min(rivals, key=lambda rival: rival.n_wrong, default=None)
    if best is None or best.match.significant:
        return None
    needed, n_rows = best.match.rows_to_tell, best.match.n_rows
    if needed is None or needed > limits.MAX_MORE_ROWS * n_rows:
        return None
    return {"name": best.name, "needed": needed, "n_rows": n_rows}


def _hard_pair(evidence: Evidence) -> Facts:
    """The two classes that most errors are between, whichever of them is the true one."""
    wrong = pair_counts(evidence.confused)
    if not wrong or len(evidence.labels) < 3:
        return None
    (pair, count), total = wrong.most_common(1)[0], wrong.total()
    if count < max(limits.MIN_PAIR_ERRORS, limits.HARD_PAIR * total):
        return None
    return {"share": count / total, "labels": [evidence.labels[code] for code in pair]}


def _another_start(model: Any, rivals: list[Compared]) -> Facts:
    """A start that nearly won, or a start that the race was not asked to choose."""
    if not hasattr(model, "start"):
        return None
    tried = starts(model.history_)
    if tried.chosen is None or tried.chosen not in tried.losses:
        wins = all(rival.match.fewer > 0 for rival in rivals)
        return None if model.start == "auto" or wins else {"was_set": repr(model.start)}
    own = tried.losses[tried.chosen]
    others = {name: loss for name, loss in tried.losses.items() if name != tried.chosen}
    name = min(others, key=lambda other: others[other], default=None)
    if name is None or others[name] > (1 + limits.NEARLY) * own:
        return None
    return {"name": name, "chosen": tried.chosen, "lower": others[name] < own}
