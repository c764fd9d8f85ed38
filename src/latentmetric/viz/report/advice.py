"""What to do next, from what the page found: each rule looks at one thing and may say nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from latentmetric.evaluation.calibration import calibration
from latentmetric.evaluation.significance import paired
from latentmetric.viz.report.context import Context
from latentmetric.viz.report.doubtful import CUT_OFF
from latentmetric.viz.report.evidence import Evidence
from latentmetric.viz.report.markup import Content, code, counted, percent, points, tag
from latentmetric.viz.summaries import confused_pairs, curve, is_number

NEARLY = 0.1
"""Another start whose loss is higher by at most this share is worth a try."""

TOO_SURE = 0.03
"""Probabilities that exceed the accuracy by this much on average are worth a remark."""

MANY_DOUBTS = 0.02
"""If more of the labels than this are doubtful, the fit should know."""

STILL_FALLING = 0.01
"""A last round that lowers the loss by this share of the first one is not the end."""

HARD, LEAST_ERRORS = 0.1, 3
"""A pair of classes with this share of the errors, and at least so many, is worth a look."""

MOST_TEST_ROWS = 20
"""More test rows are advised only if they are at most this many times those there are."""

Step = tuple[Content, ...]


def next_steps(evidence: Evidence, context: Context) -> list[Step]:
    """Advice, the most important first; never empty."""
    steps = [step for rule in RULES for step in rule(evidence, context)]
    return steps or [("Nothing stands out: the model is ready to be used.",)]


def _worse(evidence: Evidence, context: Context) -> list[Step]:
    """A rival that is better beyond chance is the one to use."""
    if not evidence.is_test:
        return []
    better = []
    for baseline in evidence.baselines:
        match = paired(evidence.right, baseline.predicted == evidence.true)
        if match.beyond_chance and match.fewer < 0:
            better.append((match.fewer, baseline.name))
    if not better:
        return []
    return [(f"Use {min(better)[1]} on these rows, unless one of the steps below closes the gap.",)]


def _more_latents(evidence: Evidence, context: Context) -> list[Step]:
    """If original rows vote better under the same metric, there are too few latent examples."""
    name = f"{type(evidence.model).__name__}-O"
    originals = evidence.vote_called(name)
    if originals is None or evidence.verdict.voters != "latent" or not evidence.is_test:
        return []
    match = paired(evidence.right, originals.predicted == evidence.true)
    if not match.beyond_chance or match.fewer > 0:
        return []
    return [
        (
            tag("b", "More latents: "),
            f"with all rows as references ({name}) the error is {points(match.fewer)} lower, "
            f"beyond chance. Raise n_latents, now {evidence.model.n_latents} (",
            code("--n-latents"),
            ").",
        )
    ]


def _more_rounds(evidence: Evidence, context: Context) -> list[Step]:
    """If the last round was the best and still much better than the one before, go on."""
    model = evidence.model
    for quantity in ("validation_error", "loss", "objective"):
        measured = curve(model.history_, quantity)
        if len(measured.values) < 3:
            continue
        before, last = measured.values[-2:]
        falls = measured.values[0] > 0 and before - last > STILL_FALLING * measured.values[0]
        if model.best_iter_ != measured.rounds[-1] or not falls:
            return []
        name = "refine" if getattr(model, "refine", 0) else "max_iter"
        return [
            (
                tag("b", "More rounds: "),
                f"the last {measured.unit} was the best, and still improved. Raise {name}, now "
                f"{getattr(model, name, '–')} (",
                code(f"--{name.replace('_', '-')}"),
                ").",
            )
        ]
    return []


def _another_start(evidence: Evidence, context: Context) -> list[Step]:
    """A start that nearly won, or a start that the race was not asked to choose."""
    model = evidence.model
    if not hasattr(model, "start"):
        return []
    first: Mapping[str, Any] = model.history_[0] if model.history_ else {}
    chosen, losses = first.get("start"), first.get("start_losses")
    if not isinstance(chosen, str) or not isinstance(losses, Mapping):
        return _not_raced(evidence)
    if not is_number(losses.get(chosen)):
        return _not_raced(evidence)
    others = {name: loss for name, loss in losses.items() if name != chosen and is_number(loss)}
    if not others:
        return []
    name = min(others, key=lambda other: others[other])
    if others[name] > (1 + NEARLY) * losses[chosen]:
        return []
    sample = "on the sample that chose between them"
    if others[name] < losses[chosen]:
        said = f"“{name}” had a lower loss than “{chosen}” {sample}, but not by enough."
    else:
        said = f"“{name}” was nearly as good as “{chosen}” {sample}."
    return [
        (
            tag("b", "Another start: "),
            f"{said} Fit once with ",
            code(f'start="{name}"'),
            " (",
            code(f"--start {name}"),
            ") and compare.",
        )
    ]


def _not_raced(evidence: Evidence) -> list[Step]:
    start = evidence.model.start
    if start == "auto" or all(
        paired(evidence.right, baseline.predicted == evidence.true).fewer > 0
        for baseline in evidence.baselines
    ):
        return []
    return [
        (
            tag("b", "Another start: "),
            f"start was set to {start!r}. ",
            code('start="auto"'),
            " (",
            code("--start auto"),
            ") tries all of them and takes the best.",
        )
    ]


def _labels(evidence: Evidence, context: Context) -> list[Step]:
    """Doubtful labels."""
    steps: list[Step] = []
    doubts = evidence.doubts
    if doubts is not None and doubts.n_unlikely:
        many = doubts.n_unlikely > MANY_DOUBTS * doubts.n_judged
        noisy: Step = (
            " If they are wrong, correct them; if there are too many to correct, fit with ",
            code("label_noise=True"),
            " (",
            code("--label-noise"),
            ").",
        )
        steps.append(
            (
                tag("b", "Look at these labels: "),
                tag("a", f"{doubts.n_unlikely:,} of {counted(doubts.n_judged, 'label')}",
                    href="#doubts"),
                f" {'is' if doubts.n_unlikely == 1 else 'are'} doubtful (a score below {CUT_OFF}).",
                *(noisy if many else ()),
            )
        )  # fmt: skip
    return steps


def _hard_pair(evidence: Evidence, context: Context) -> list[Step]:
    """The two classes that most errors are between, whichever of them is the true one."""
    wrong: Counter[tuple[int, int]] = Counter()
    for pair in confused_pairs(evidence.true, evidence.verdict.predicted):
        first, second = sorted((pair.true, pair.predicted))
        wrong[first, second] += pair.count
    if not wrong or len(context.labels) < 3:
        return []
    ((first, second), count), total = wrong.most_common(1)[0], wrong.total()
    if count < max(LEAST_ERRORS, HARD * total):
        return []
    return [
        (
            tag("b", "Look at one pair: "),
            tag("a", f"{percent(count / total)} of the errors", href="#confusion"),
            " are between ",
            context.label(first),
            " and ",
            context.label(second),
            ".",
        )
    ]


def _more_test_rows(evidence: Evidence, context: Context) -> list[Step]:
    """Where chance may explain the difference to the best rival, more rows could decide."""
    matches = [
        (int((baseline.predicted != evidence.true).sum()), baseline)
        for baseline in evidence.baselines
    ]
    if not matches or not evidence.is_test:
        return []
    _, best = min(matches, key=lambda match: match[0])
    match = paired(evidence.right, best.predicted == evidence.true)
    needed = match.rows_to_tell
    if match.beyond_chance or needed is None or needed > MOST_TEST_ROWS * match.n_rows:
        return []
    return [
        (
            tag("b", "More test rows: "),
            f"if the difference to {best.name.split(',')[0]} stays what it is, about {needed:,} "
            f"test rows, now {match.n_rows:,}, would be enough to rule out chance.",
        )
    ]


def _probabilities(evidence: Evidence, context: Context) -> list[Step]:
    surplus = calibration(evidence.verdict.confidence, evidence.right).surplus
    if surplus < TOO_SURE or not hasattr(evidence.model, "early_stopping"):
        return []
    return [
        (
            tag("b", "Trust probabilities less: "),
            tag("a", f"they promise {points(surplus)} too much", href="#reliability"),
            ". ",
            code("early_stopping=True"),
            " (",
            code("--early-stopping"),
            ") fits them to held-out rows.",
        )
    ]


def _training_rows(evidence: Evidence, context: Context) -> list[Step]:
    """Without training rows, or rows that are none of them, there is no verdict."""
    if evidence.is_test:
        return []
    if evidence.has_training_rows:
        return [(tag("b", "Test other rows: "), "give rows that the model was not fitted on.")]
    return [
        (
            tag("b", "Pass the training rows "),
            "(X_train and y_train, or ",
            code("--train"),
            "): the verdict compares with k-NN, logistic regression and SVC tuned on them.",
        )
    ]


RULES: tuple[Callable[[Evidence, Context], list[Step]], ...] = (
    _worse,
    _training_rows,
    _more_latents,
    _more_rounds,
    _labels,
    _more_test_rows,
    _hard_pair,
    _probabilities,
    _another_start,
)
"""In the order of their weight."""
