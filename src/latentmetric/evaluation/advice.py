"""What to use, in words: after a comparison, and quickly after a fit.

Methods whose errors differ by less than chance explains count as equally good. Chance is judged row
by row and corrected for the number of comparisons, here as in the report.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from latentmetric.characters import in_a_sentence, percent, shortened
from latentmetric.core.types import Bools
from latentmetric.evaluation.comparison import METHODS, Outcome
from latentmetric.evaluation.rivals import K_NN, LOGISTIC, MAJORITY, fit_rival
from latentmetric.evaluation.sampling import sample_rows
from latentmetric.evaluation.significance import NOT_COVERED, holm, paired
from latentmetric.evaluation.unequal import (
    are_unequal,
    balanced_scores,
    majority,
    second_class_scores,
)

QUICK_MAX_ROWS = 1_500
"""Rows that the quick check uses, two thirds of them to fit."""

QUICK_MIN_ROWS = 60
"""With fewer rows, the answer would be chance."""

QUICK_MAX_WORK = 5 * 10**7
"""Product of rows, features and classes above which the check would not be quick."""

PAPER_RIVALS = ("LMNN", "OASIS", "HRSGD")
"""Methods of the paper, which are recommended only if they are better than all others."""

MUCH_FASTER = 5
"""A method that is too close to tell is mentioned if it answers this many times as fast."""

MAX_LABEL = 60
"""Characters of a label that are shown."""

QUICK_RIVALS = (K_NN, LOGISTIC)


@dataclass(frozen=True)
class Advice:
    """The recommended method, and why."""

    method: str | None
    """Its name in ``METHODS``; None if nothing beats always saying the most frequent class."""
    words: str
    """Why, in a few sentences."""


def advise(outcomes: Iterable[Outcome]) -> Advice | None:
    """Which method to use: the one with the lowest error, if it beats the most frequent class.

    A method that the paper compares with has to be better than all others by more than chance
    explains. Seconds are mentioned, but choose nothing: the same rows get the same answer.

    Parameters
    ----------
    outcomes : iterable of Outcome
        What ``compare`` yields. Folds that not all methods have finished are left out.

    Returns
    -------
    Advice or None
        None unless two methods have finished two folds.

    Examples
    --------
    >>> import numpy as np
    >>> from latentmetric.evaluation import Outcome, advise
    >>> found = [
    ...     Outcome(method, fold, np.arange(100) < n_right, 0.1, 0.1, 10, true=np.arange(100) % 2)
    ...     for fold in range(3)
    ...     for method, n_right in (("Euclid", 80), ("MaPML", 90))
    ... ]
    >>> advise(found).words[:75]
    'Use MaPML. Its error, 10.00 %, is the lowest, by more than chance explains.'
    """
    table: dict[str, dict[int, Outcome]] = {}
    for outcome in outcomes:
        if outcome.method != MAJORITY:
            table.setdefault(outcome.method, {})[outcome.fold] = outcome
    folds = sorted(set.intersection(*map(set, table.values()))) if table else []
    if len(table) < 2 or len(folds) < 2:
        return None
    errors, seconds, right = {}, {}, {}
    for method, by_fold in table.items():
        finished = [by_fold[fold] for fold in folds]
        mean = float(np.mean([outcome.error for outcome in finished]))
        errors[method] = round(mean, 12)  # equal errors are equal in whichever folds they are
        seconds[method] = float(np.median([outcome.query_seconds for outcome in finished]))
        right[method] = np.concatenate([outcome.right for outcome in finished])
    true = np.concatenate([outcome.true for outcome in finished])
    order = {name: index for index, name in enumerate(METHODS)}
    ranked = sorted(errors, key=lambda name: (errors[name], order.get(name, len(order))))
    balanced = ""
    if are_unequal(true):
        accuracies = {name: _balanced_accuracy(table[name], folds) for name in ranked}
        highest = max(ranked, key=lambda name: accuracies[name])
        balanced = (
            " Classes are unequal, and the error says little of the rare ones: the balanced "
            f"accuracy is highest with {highest}, {percent(accuracies[highest])}."
        )
    if not _beats_majority(right, true):
        words = (
            f"By the error, nothing beats {_always(true)}, {percent(majority(true)[1])}: no method "
            "has a lower one by more than chance explains."
        )
        return Advice(None, words + balanced)
    equal = _as_good_as_the_first(ranked, right)
    known = [name for name in equal if name not in PAPER_RIVALS] or equal
    fast = [name for name in known if MUCH_FASTER * seconds[name] <= seconds[known[0]]]
    return Advice(known[0], _words(known[0], equal, fast, errors) + balanced)


def _beats_majority(right: dict[str, Bools], true: Any) -> bool:
    """Whether a method is better than the most frequent class, beyond chance."""
    label, _ = majority(true)
    matches = holm([paired(answers, true == label) for answers in right.values()])
    return any(match.significant and match.fewer > 0 for match in matches)


def _balanced_accuracy(by_fold: dict[int, Outcome], folds: list[int]) -> float:
    """The mean over folds, as of the errors."""
    found = [balanced_scores(by_fold[fold].true, by_fold[fold].right) for fold in folds]
    return float(np.mean([scores["balanced_accuracy"] for scores in found]))


def _always(true: Any) -> str:
    return f"always saying {shortened(repr(majority(true)[0]), MAX_LABEL)}"


def _as_good_as_the_first(ranked: list[str], right: dict[str, Bools]) -> list[str]:
    """Methods that chance may set apart from the best; this was selected, so all pairs count."""
    pairs = list(combinations(ranked, 2))
    matches = holm([paired(right[first], right[second]) for first, second in pairs])
    apart = {pair for pair, match in zip(pairs, matches, strict=True) if match.significant}
    return [name for name in ranked if (ranked[0], name) not in apart]


def _words(chosen: str, equal: list[str], fast: list[str], errors: dict[str, float]) -> str:
    """Why this method, how certain that is, and what about MaPML."""
    best = equal[0]
    others = [f"{name} ({percent(errors[name])})" for name in equal if name != chosen]
    if not others:
        reason = "is the lowest, by more than chance explains."
    elif chosen != best:
        reason = (
            f"cannot be told from the lowest, {best}'s {percent(errors[best])}, on these rows, and "
            "the method is better known."
        )
    else:
        are = "is" if len(others) == 1 else "are"
        reason = (
            f"is the lowest. {in_a_sentence(others)} {are} too close to tell from it on these rows."
        )
    if fast:
        answer = "answers" if len(fast) == 1 else "answer"
        reason += f" {in_a_sentence(fast)} {answer} at least {MUCH_FASTER} times as fast."
    words = f"Use {chosen}. Its error, {percent(errors[chosen])}, {reason} {NOT_COVERED}"
    if chosen == "MaPML" or "MaPML" not in errors:
        return words
    if "MaPML" in equal:
        return (
            f"{words} Take MaPML ({percent(errors['MaPML'])}) if you want to search, to see what "
            "answers rest on, to reject unknown rows or to add classes later."
        )
    points = 100 * (errors["MaPML"] - errors[best])
    return f"{words} MaPML's error is {points:.2f} percentage points above that of {best}."


@dataclass(frozen=True)
class QuickCheck:
    """Errors of an estimator and its rivals on the same held-out rows."""

    fitted_rows: int
    """Rows that all were fitted to."""
    held_out_rows: int
    """Rows that none has seen."""
    errors: dict[str, float]
    """The share of wrong answers by name; the estimator comes first."""
    base_error: float
    """The error of always saying the most frequent class."""
    balanced: dict[str, dict[str, float]]
    """Balanced accuracy and, of two classes, AUC by name; empty unless classes are unequal."""
    words: str
    """The result in one sentence."""


def quick_check(estimator: Any, X: Any, y: Any, random_state: int = 0) -> QuickCheck | None:
    """Compare an estimator with tuned k-NN and logistic regression, on some of its rows.

    Parameters
    ----------
    estimator : estimator of this package
        Its parameters are used; it is not changed.
    X : array of shape (n_samples, n_features), or rows of a file
        Training rows.
    y : array of shape (n_samples,)
        The label of each row.
    random_state : int, default=0
        Seed of the sample and of the choice of the rivals' parameters.

    Returns
    -------
    QuickCheck or None
        None where the rows are too few for an answer, or the features and classes too many for a
        quick one.
    """
    n_rows = min(len(y), QUICK_MAX_ROWS)
    if n_rows < QUICK_MIN_ROWS or n_rows * X.shape[1] * len(np.unique(y)) > QUICK_MAX_WORK:
        return None
    rows, labels = sample_rows(X, y, QUICK_MAX_ROWS, random_state)
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    common = counts[codes] >= 3  # one to hold out and two to fit
    rows, labels = rows[common], labels[common]
    if len(labels) < QUICK_MIN_ROWS or len(np.unique(labels)) < 2:
        return None
    X_fit, X_held_out, y_fit, y_held_out = train_test_split(
        rows, labels, test_size=1 / 3, stratify=labels, random_state=random_state
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they concern a trial, not what the caller does
        trial = clone(estimator).set_params(verbose=0).fit(X_fit, y_fit)
        fitted = {type(estimator).__name__: trial}
        for name in QUICK_RIVALS:
            fitted[name] = fit_rival(name, X_fit, y_fit, random_state=random_state).pipeline
        right = {name: model.predict(X_held_out) == y_held_out for name, model in fitted.items()}
        balanced = {}
        if are_unequal(y_held_out):
            for name, model in fitted.items():
                scores = second_class_scores(model, X_held_out)
                balanced[name] = balanced_scores(y_held_out, right[name], scores)
    errors = {name: float(np.mean(~answers)) for name, answers in right.items()}
    base_error = majority(y_held_out)[1]
    own, *rivals = right
    matches = dict(
        zip(rivals, holm([paired(right[own], right[name]) for name in rivals]), strict=True)
    )
    best = min(rivals, key=lambda name: errors[name])
    if not _beats_majority(right, y_held_out):
        verdict = "none is better than that by more than chance explains."
    elif not matches[best].significant:
        verdict = f"{own} and {best} are too close to tell."
    else:
        verdict = f"{own if errors[own] < errors[best] else best} is better. {NOT_COVERED}"
    shares = ", ".join(f"{name} {100 * error:.1f} %" for name, error in errors.items())
    words = (
        f"Error on {len(y_held_out)} rows after a trial fit to {len(y_fit)} others: {shares}; "
        f"{_always(y_held_out)}: {100 * base_error:.1f} %; {verdict}"
    )
    if balanced:
        words += " Classes are unequal. Balanced accuracy: " + ", ".join(
            f"{one} {percent(of['balanced_accuracy'])}" for one, of in balanced.items()
        )
        if all("auc" in found for found in balanced.values()):
            aucs = ", ".join(f"{name} {found['auc']:.3f}" for name, found in balanced.items())
            words += f"; AUC: {aucs}"
        words += "."
    if len(y) > 2 * len(y_fit):
        words += f" A fit to all {len(y):,} rows should have a lower error."
    return QuickCheck(len(y_fit), len(y_held_out), errors, base_error, balanced, words)
