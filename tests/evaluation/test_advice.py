"""Which method is recommended, and in which words; the quick answer after a fit."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.base import clone

from latentmetric import Euclidean, MaPML
from latentmetric.evaluation import Advice, Outcome, advise, quick_check
from latentmetric.evaluation.advice import QUICK_MAX_ROWS
from latentmetric.io import open_rows

SPREAD = np.array([-0.02, -0.01, 0.0, 0.01, 0.02])


def outcomes(method, errors, seconds=1.0, n_queries=200):
    """All methods get the first rows of a fold wrong."""
    rows = np.arange(n_queries)
    return [
        Outcome(method, fold, rows >= round(error * n_queries), 1.0, seconds, 10, true=rows % 2)
        for fold, error in enumerate(errors)
    ]


def test_of_methods_that_are_as_good_the_best_whatever_the_clock_says():
    for seconds in (0.1, 1.0, 9.0):
        svc, mapml = outcomes("SVC", 0.1 + SPREAD, seconds), outcomes("MaPML", 0.105 - SPREAD)
        found = advise(mapml + svc + outcomes("Euclid", 0.4 + SPREAD, 0.1))
        assert found.method == "SVC"
        assert found.words.startswith(
            "Use SVC. Its error, 10.00 %, is the lowest. MaPML (10.50 %) is too close to tell from "
            "it on these rows."
        )
        assert ("MaPML answers at least 5 times as fast." in found.words) == (seconds > 5)
        assert "Take MaPML (10.50 %) if you want to search" in found.words


def test_of_methods_with_the_same_error_the_simplest():
    found = outcomes("SVC", 0.1 + SPREAD, 0.1) + outcomes("MaPML", 0.1 + SPREAD, 0.1)
    assert advise(found).method == "SVC"
    assert advise(found + outcomes("tuned k-NN", 0.1 + SPREAD)).method == "tuned k-NN"


def test_a_rival_of_the_paper_has_to_be_better_than_all_others():
    lmnn, oasis = outcomes("LMNN", 0.1 + SPREAD), outcomes("OASIS", 0.1 - SPREAD)
    found = advise(lmnn + oasis + outcomes("SVC", 0.105 - SPREAD))
    assert found.method == "SVC"
    assert found.words.startswith(
        "Use SVC. Its error, 10.50 %, cannot be told from the lowest, LMNN's 10.00 %, on these "
        "rows, and the method is better known."
    )
    assert advise(lmnn + outcomes("SVC", 0.2 + SPREAD)).method == "LMNN"
    assert advise(lmnn + oasis).method == "LMNN", "there is no other"


def test_another_method_is_recommended_where_it_is_better():
    found = advise(outcomes("MaPML", 0.15 + SPREAD) + outcomes("SVC", 0.1 - SPREAD, 9.0))
    assert found.method == "SVC"
    assert "is the lowest, by more than chance explains." in found.words
    assert "MaPML's error is 5.00 percentage points above that of SVC." in found.words


def test_a_difference_of_a_few_rows_is_no_difference():
    """A coin falls five times on the same side with a probability of 6 %, and six times of 3 %."""
    euclid, better = [0.1] * 5, [0.09] * 5
    few = outcomes("Euclid", euclid, 0.1, 100) + outcomes("MaPML", better, 1.0, 100)
    assert "too close to tell" in advise(few).words  # 5 errors more
    few += outcomes("Euclid", [0.1] * 6, 0.1, 100)[5:] + outcomes("MaPML", [0.09] * 6, 1, 100)[5:]
    assert "by more than chance explains" in advise(few).words  # 6 errors more


def test_nothing_beats_the_majority_where_labels_are_random(rng):
    """Among six methods the best looks good by chance."""
    true = rng.permutation(np.repeat(["no", "yes"], [110, 90])).reshape(2, 100)
    found = [
        Outcome(f"method {index}", fold, rng.random(100) < 0.5, 1.0, 1.0, 10, true=true[fold])
        for index in range(6)
        for fold in range(2)
    ]
    assert advise(found) == Advice(
        None,
        "By the error, nothing beats always saying 'no', 45.00 %: no method has a lower one by "
        "more than chance explains.",
    )


def test_of_unequal_classes_the_balanced_accuracy_is_told(rng):
    """One finds nothing, the other all rare rows and as many that are none."""
    true = np.arange(400) % 20 == 0
    found = [
        Outcome(name, fold, right, 1.0, 1.0, 10, true=true)
        for name, right in (("Euclid", ~true), ("MaPML", np.arange(400) % 20 != 1))
        for fold in range(2)
    ]
    words = advise(found).words
    assert words.startswith("By the error, nothing beats always saying False, 5.00 %: ")
    assert words.endswith("the balanced accuracy is highest with MaPML, 97.37 %.")


def test_the_line_of_the_majority_is_no_rival():
    found = outcomes("majority class", 0.5 + SPREAD) + outcomes("MaPML", 0.1 + SPREAD)
    assert advise(found) is None
    assert "majority" not in advise(found + outcomes("Euclid", 0.1 + SPREAD)).words


def test_equal_methods_are_rarely_told_apart(rng):
    """The best of 11 was selected, which a test of each against the best would not know."""
    alarms, true = 0, np.arange(250) % 2
    for _ in range(300):
        right = rng.random((11, 2, 250)) >= 0.2
        found = [
            Outcome(f"method {chr(65 + index)}", fold, of_fold, 1.0, 1.0, 10, true=true)
            for index, folds in enumerate(right)
            for fold, of_fold in enumerate(folds)
        ]
        words = advise(found).words
        alarms += not all(f"method {letter}" in words for letter in "ABCDEFGHIJK")
    assert alarms / 300 <= 0.05


def test_only_folds_that_all_methods_have_finished_count():
    found = outcomes("Euclid", [0.3, 0.3, 0.0]) + outcomes("MaPML", [0.1, 0.1])
    assert advise(found).words.startswith("Use MaPML. Its error, 10.00 %,")


@pytest.mark.parametrize(
    "found",
    [
        [],
        outcomes("Euclid", 0.3 + SPREAD),
        outcomes("Euclid", [0.3, 0.3]) + outcomes("MaPML", [0.1]),
    ],
    ids=["nothing", "one method", "one fold"],
)
def test_no_advice_without_a_comparison(found):
    assert advise(found) is None


QUICK = MaPML(max_iter=2, n_steps=1000, refine=1, random_state=0)


def curved(n_rows, seed=0):
    """Two classes that no line separates, hidden among columns of noise."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n_rows, 12))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_errors_are_those_of_held_out_rows():
    X, y = curved(900)
    model = clone(QUICK)
    found = quick_check(model, X, y)
    assert (found.fitted_rows, found.held_out_rows) == (600, 300)
    assert list(found.errors) == ["MaPML", "tuned k-NN", "logistic regression"]
    assert found.errors["logistic regression"] > 0.4
    assert not hasattr(model, "model_"), "the caller's estimator is not fitted"
    assert "Error on 300 rows after a trial fit to 600 others: MaPML " in found.words
    assert quick_check(model, X, y) == found


def test_the_verdict_follows_a_sign_test():
    words = quick_check(QUICK, *curved(900)).words
    assert "MaPML is better. The test does not cover the variation of training" in words
    assert quick_check(QUICK, *make_blobs(900)).words.endswith("too close to tell.")


def test_the_trial_of_random_labels_says_that_nothing_helps(rng):
    found = quick_check(Euclidean(), rng.standard_normal((300, 3)), np.arange(300) % 2)
    assert "; always saying 0: 50.0 %; none is better than that by more than chance" in found.words
    assert found.balanced == {}


def test_the_trial_of_unequal_classes_has_balanced_scores(rng):
    X = rng.standard_normal((600, 3))
    y = np.where(X[:, 0] > 1, "yes", "no")
    found = quick_check(Euclidean(), X, y)
    assert list(found.balanced) == list(found.errors)
    assert found.base_error == pytest.approx(np.mean(y == "yes"), abs=0.01)
    assert found.balanced["logistic regression"]["auc"] > 0.95
    assert f"; always saying 'no': {100 * found.base_error:.1f} %; " in found.words
    assert "Classes are unequal. Balanced accuracy: Euclidean " in found.words
    assert f"; AUC: Euclidean {found.balanced['Euclidean']['auc']:.3f}, tuned" in found.words


def test_rows_of_a_file_are_sampled(tmp_path):
    X, y = make_blobs(n_rows=2 * QUICK_MAX_ROWS)
    np.save(tmp_path / "rows.npy", X)
    found = quick_check(Euclidean(), open_rows(tmp_path / "rows.npy"), y)
    assert found.fitted_rows + found.held_out_rows == QUICK_MAX_ROWS
    assert found == quick_check(Euclidean(), X, y)
    assert found.words.endswith(
        f"A fit to all {2 * QUICK_MAX_ROWS:,} rows should have a lower error."
    )


def test_nothing_is_said_where_rows_are_few_or_work_is_much(monkeypatch):
    X, y = make_blobs()
    assert quick_check(Euclidean(), X[:50], y[:50]) is None
    assert quick_check(Euclidean(), X, np.arange(len(X))) is None, "no class has three rows"
    monkeypatch.setattr("latentmetric.evaluation.advice.QUICK_MAX_WORK", X.size * 3 - 1)
    assert quick_check(Euclidean(), X, y) is None
    monkeypatch.undo()
    y[:2] = 9  # a class that is too rare
    found = quick_check(Euclidean(), X, y)
    assert found.fitted_rows + found.held_out_rows == len(y) - 2
