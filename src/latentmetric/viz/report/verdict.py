"""The opening of the page: better or worse than what one would use instead, and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from latentmetric.characters import in_a_sentence
from latentmetric.core.votes import n_voters
from latentmetric.evaluation.significance import Paired, paired
from latentmetric.viz.report import limits
from latentmetric.viz.report.charts import Bar, bar_chart
from latentmetric.viz.report.evidence import EUCLID, SVC, Baseline, Evidence, Vote
from latentmetric.viz.report.text import counted, percent
from latentmetric.viz.summaries import curve, pair_counts, starts


@dataclass(frozen=True)
class Method:
    """One line of the comparison."""

    name: str
    error: float
    n_wrong: int
    match: Paired | None
    """The model beside this method, row by row; None for the model itself."""
    about: str
    kind: str
    is_rival: bool
    """Whether one would use it instead of the model."""
    fitted: str = ""
    """How many of the training rows it was fitted on, if not all."""

    @property
    def called(self) -> str:
        """Its name, with the rows it was fitted on if these are fewer than the model's."""
        return f"{self.name}, {self.fitted}" if self.fitted else self.name

    @property
    def p_value(self) -> str:
        """The chance of such a difference between equals, as it is written."""
        assert self.match is not None
        return f"{self.match.p_value:.2g}" if self.match.p_value >= 1e-4 else "< 0.0001"

    @property
    def interval(self) -> tuple[float, float]:
        """By how many percentage points the errors differ at least and at most, with 95 %."""
        assert self.match is not None
        sign = 1 if self.match.fewer > 0 else -1
        low, high = sorted(max(0.0, sign * 100 * end) for end in self.match.interval)
        return low, high


def verdict_section(evidence: Evidence) -> dict[str, Any]:
    """The verdict in words, the errors as bars, advice, and the numbers behind it."""
    methods = compare(evidence)
    rivals = [method for method in methods if method.is_rival]
    n_queries, weights = len(evidence.queries), evidence.voting.weights
    euclid = next((vote for vote in evidence.votes if vote.name == EUCLID), None)
    n_euclid = 0
    if euclid is not None:
        n_euclid = n_voters(weights, evidence.voting.n_neighbors, euclid.n_references)
    names = [baseline.name for baseline in evidence.baselines]
    bars = [
        Bar(method.called, method.error, percent(method.error),
            sqrt(method.error * (1 - method.error) / n_queries), method.kind)
        for method in methods
    ]  # fmt: skip
    return {
        "headline": headline(evidence, methods),
        "methods": methods,
        "told": rivals or [one for one in methods if one.name == EUCLID and one.match],
        "chart": bar_chart(f"Error on {counted(n_queries, 'row')}", bars),
        "advice": advice(evidence, methods),
        "rivals": in_a_sentence(names) if names else "",
        "short_rivals": [one for one in evidence.baselines if one.n_rows < len(evidence.originals)],
        "max_svc_classes": limits.MAX_SVC_CLASSES if names and SVC not in names else None,
        "n_euclid": n_euclid,
        "weights": weights,
    }


def compare(evidence: Evidence) -> list[Method]:
    """The model first, then rivals, then what the paper compares it with."""
    others = [vote for vote in evidence.votes if vote is not evidence.verdict]
    n_all = len(evidence.originals)
    methods = []
    entries: list[Vote | Baseline] = [evidence.verdict, *evidence.baselines, *others]
    for entry in entries:
        right = entry.predicted == evidence.true
        own, fitted = entry is evidence.verdict, ""
        if isinstance(entry, Baseline):
            if entry.n_rows < n_all:
                fitted = f"{entry.n_rows:,} of {n_all:,} training rows"
            about = f"{entry.chosen}; {fitted or f'{entry.n_rows:,} training rows'}"
            kind = "base"
        else:
            about = f"{entry.references} vote"
            kind = "" if own else "base" if entry.name == EUCLID else "alternative"
        match = None if own else paired(evidence.right, right)
        is_rival, n_wrong = isinstance(entry, Baseline), int((~right).sum())
        error = float((~right).mean())
        methods.append(Method(entry.name, error, n_wrong, match, about, kind, is_rival, fitted))
    return methods


def headline(evidence: Evidence, methods: list[Method]) -> str:
    """The verdict in one line."""
    name, rivals = methods[0].name, [method for method in methods if method.is_rival]
    if not evidence.has_training_rows:
        return "No verdict yet: the training rows are missing"
    if not evidence.is_test:
        return "No verdict: most of the tested rows are training rows"
    if not rivals:
        return f"{name} misclassifies {percent(methods[0].error)}; no verdict yet"
    even = "too close to tell from"
    named: dict[str, list[str]] = {"worse than": [], "better than": [], even: []}
    for method in rivals:
        assert method.match is not None
        relation = "better than" if method.match.fewer > 0 else "worse than"
        some = f" ({method.fitted})" if method.fitted else ""
        named[relation if method.match.significant else even].append(method.name + some)
    said = [f"{how} {in_a_sentence(whom)}" for how, whom in named.items() if whom]
    return f"{name} is {', '.join(said)}"


Facts = dict[str, Any] | None


def advice(evidence: Evidence, methods: list[Method]) -> dict[str, Facts]:
    """For each rule, what its sentence in ``verdict.html`` needs; None where it does not apply."""
    return {name: rule(evidence, methods) for name, rule in RULES.items()}


def _use_rival(evidence: Evidence, methods: list[Method]) -> Facts:
    """A rival that is better beyond chance is the one to use."""
    better = [
        (one.match.fewer, one.name)
        for one in methods
        if one.is_rival and one.match and one.match.significant and one.match.fewer < 0
    ]
    return {"name": min(better)[1]} if better and evidence.is_test else None


def _more_latents(evidence: Evidence, methods: list[Method]) -> Facts:
    """If original rows vote better under the same metric, there are too few latent examples."""
    name = f"{evidence.name}-O"
    match = next((one.match for one in methods[1:] if one.name == name), None)
    if match is None or evidence.verdict.voters != "latent" or not evidence.is_test:
        return None
    if not match.significant or match.fewer > 0:
        return None
    return {"name": name, "fewer": match.fewer, "n_latents": evidence.model.n_latents}


def _more_rounds(evidence: Evidence, methods: list[Method]) -> Facts:
    """If the last round was the best and still much better than the one before, go on."""
    model = evidence.model
    for quantity in ("validation_error", "loss", "objective"):
        measured = curve(model.history_, quantity)
        if len(measured.values) < 3:
            continue
        first, (before, last) = measured.values[0], measured.values[-2:]
        falls = first > 0 and before - last > limits.STILL_FALLING * first
        if model.best_iter_ != measured.rounds[-1] or not falls:
            return None
        name = "refine" if getattr(model, "refine", 0) else "max_iter"
        return {"unit": measured.unit, "name": name, "value": getattr(model, name, "–")}
    return None


def _doubtful_labels(evidence: Evidence, methods: list[Method]) -> Facts:
    quality = evidence.label_quality
    if quality is None or not quality.n_doubtful:
        return None
    return {
        "n_doubtful": quality.n_doubtful,
        "n_judged": quality.n_judged,
        "many": quality.n_doubtful > limits.MANY_DOUBTFUL * quality.n_judged,
    }


def _more_test_rows(evidence: Evidence, methods: list[Method]) -> Facts:
    """Where chance may explain the difference to the best rival, more rows could decide."""
    rivals = [method for method in methods if method.is_rival]
    if not rivals or not evidence.is_test:
        return None
    best = min(rivals, key=lambda rival: rival.n_wrong)
    match = best.match
    assert match is not None
    needed = match.rows_to_tell
    if match.significant or needed is None or needed > limits.MAX_MORE_ROWS * match.n_rows:
        return None
    return {"name": best.name, "needed": needed, "n_rows": match.n_rows}


def _hard_pair(evidence: Evidence, methods: list[Method]) -> Facts:
    """The two classes that most errors are between, whichever of them is the true one."""
    wrong = pair_counts(evidence.confused)
    if not wrong or len(evidence.labels) < 3:
        return None
    (pair, count), total = wrong.most_common(1)[0], wrong.total()
    if count < max(limits.MIN_PAIR_ERRORS, limits.HARD_PAIR * total):
        return None
    return {"share": count / total, "labels": [evidence.labels[code] for code in pair]}


def _probabilities(evidence: Evidence, methods: list[Method]) -> Facts:
    surplus = evidence.calibration.surplus
    if surplus < limits.OVERCONFIDENT or not hasattr(evidence.model, "early_stopping"):
        return None
    return {"surplus": surplus}


def _another_start(evidence: Evidence, methods: list[Method]) -> Facts:
    """A start that nearly won, or a start that the race was not asked to choose."""
    model = evidence.model
    if not hasattr(model, "start"):
        return None
    tried = starts(model.history_)
    if tried.chosen is None or tried.chosen not in tried.losses:
        wins = all(one.match and one.match.fewer > 0 for one in methods if one.is_rival)
        return None if model.start == "auto" or wins else {"was_set": repr(model.start)}
    own = tried.losses[tried.chosen]
    others = {name: loss for name, loss in tried.losses.items() if name != tried.chosen}
    name = min(others, key=lambda other: others[other], default=None)
    if name is None or others[name] > (1 + limits.NEARLY) * own:
        return None
    return {"name": name, "chosen": tried.chosen, "lower": others[name] < own}


def _training_rows(evidence: Evidence, methods: list[Method]) -> Facts:
    """Without training rows, or rows that are none of them, there is no verdict."""
    return None if evidence.is_test else {"given": evidence.has_training_rows}


RULES: dict[str, Callable[[Evidence, list[Method]], Facts]] = {
    "use_rival": _use_rival,
    "training_rows": _training_rows,
    "more_latents": _more_latents,
    "more_rounds": _more_rounds,
    "doubtful_labels": _doubtful_labels,
    "more_test_rows": _more_test_rows,
    "hard_pair": _hard_pair,
    "probabilities": _probabilities,
    "another_start": _another_start,
}
"""In the order of their weight, in which ``verdict.html`` has a sentence for each."""
