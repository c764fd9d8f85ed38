"""The comparison with methods of 2026: rows, cells, searches and tables."""

from dataclasses import asdict

import numpy as np
import peers_2026 as peers
import pytest
from data import Split
from side_by_side.cells import Limits
from side_by_side.child import log_loss
from side_by_side.learners_2026 import LEARNERS, Searched, grid
from side_by_side.plan import MAIN
from sklearn.neighbors import KNeighborsClassifier

LIMITS = Limits(seconds=600, gigabytes=12)
STOPPED = {
    "state": "stopped",
    "reason": "passed 600 s in the fit",
    "limit": "seconds",
    "limits": asdict(LIMITS),
}


def finished(error):
    return {
        "state": "finished",
        "error": error,
        "log_loss": 0.5,
        "fit_cpu_seconds": 2.0,
        "query_cpu_microseconds": 7.0,
        "peak_megabytes": 300.0,
        "notes": "",
    }


def test_every_method_has_an_environment():
    found = {peers.environment_of(method) for method in LEARNERS}
    assert found == {MAIN, *peers.ENVIRONMENTS}
    assert peers.environment_of("CatBoost") == MAIN
    assert peers.environment_of("xRFM tuned") == peers.PYTABKIT


def test_the_probe_is_for_embeddings():
    assert peers.PROBE in peers.methods_of("BANKING77", list(LEARNERS))
    assert peers.PROBE not in peers.methods_of("letter", list(LEARNERS))


@pytest.mark.parametrize(
    ("cell", "limits", "fresh", "expected"),
    [
        (None, LIMITS, False, True),
        (finished(1.0), LIMITS, False, False),
        (finished(1.0), LIMITS, True, True),
        (STOPPED, LIMITS, False, False),
        (STOPPED, Limits(700, 12), False, True),
        ({"state": "failed", "reason": "KeyError"}, LIMITS, False, True),
    ],
)
def test_cells_that_failed_or_had_tighter_limits_are_run_again(cell, limits, fresh, expected):
    assert bool(peers.pending(cell, limits, fresh)) is expected


def test_a_part_has_the_classes_in_proportion_and_codes_as_labels(monkeypatch):
    y = np.array(["b"] * 60_000 + ["a"] * 20_000)
    X = np.arange(80_000.0)[:, None]
    split = Split("mnist", X, y, X[-10:], y[-10:])
    monkeypatch.setattr(peers, "load_benchmark", lambda name: split)
    found = peers.arrays_of("MNIST 10k")
    np.testing.assert_array_equal(np.bincount(found["y_train"]), [2_500, 7_500])
    np.testing.assert_array_equal(found["y_train"], found["X_train"][:, 0] < 60_000)
    np.testing.assert_array_equal(found["y_test"], np.zeros(10))


def test_no_probability_counts_less_than_a_thousandth():
    shares = np.array([[0.25, 0.75], [1.0, 0.0]])
    assert log_loss(shares, np.array([1, 1])) == pytest.approx(-np.log(0.75 * 0.001) / 2)


def moons_of_one(n=200):
    """One column, two classes that alternate: only few neighbours tell them apart."""
    X = np.sort(np.random.default_rng(0).random(n))[:, None]
    return X, (X[:, 0] * 10).astype(int) % 2


def test_a_search_takes_the_best_candidate_and_fits_it_to_all_rows():
    X, y = moons_of_one()
    found = Searched(KNeighborsClassifier, grid({"n_neighbors": (100, 1)})).fit(X, y)
    assert found.notes_ == "{'n_neighbors': 1}, best of 2 of 2"
    np.testing.assert_array_equal(found.predict_proba(X).argmax(axis=1), y)


def test_a_search_ends_when_its_time_is_over():
    X, y = moons_of_one()
    candidates = grid({"n_neighbors": (100, 1)})
    found = Searched(KNeighborsClassifier, candidates, seconds=1e-9).fit(X, y)
    assert found.notes_.endswith("best of 1 of 2")


def test_no_row_votes_for_itself():
    torch = pytest.importorskip("torch")
    from side_by_side.modern_nca import log_vote

    rows = torch.tensor([[0.0], [1.0], [3.0]])
    labels = torch.eye(2)[[0, 1, 1]]
    found = log_vote(rows[:2], rows, labels, own=True).exp().numpy()
    weights = np.exp([-1.0, -3.0, -1.0, -2.0])
    expected = [
        [0, 1],
        [weights[2] / weights[2:].sum(), weights[3] / weights[2:].sum()],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_modern_nca_learns_and_says_which_epoch_it_kept():
    pytest.importorskip("torch")
    from side_by_side.modern_nca import ModernNCA

    X, y = moons_of_one(300)
    found = ModernNCA(seconds=2).fit(X, y)
    assert "epochs: number" in found.notes_
    shares = found.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-4)
    assert np.mean(shares.argmax(axis=1) != y) < 0.3


def test_the_report_is_in_the_order_of_errors_and_says_what_is_missing():
    cells = {"letter": {"CatBoost": finished(3.0), "MaPML": finished(2.0), "TabM": STOPPED}}
    text = peers.report(cells)
    lines = [part for part in text.splitlines() if part.startswith("| ")][2:]
    names = [part.split("|")[1].strip() for part in lines]
    assert names[:2] == ["**MaPML**", "CatBoost"]
    (tabm,) = [part for part in lines if part.startswith("| TabM  ")]
    assert "passed 600 s in the fit" in tabm
    (forest,) = [part for part in lines if part.startswith("| random forest  ")]
    assert "not run" in forest
