import sys
from dataclasses import asdict

import numpy as np
import peers_2026
import pytest
from side_by_side import environments, rows, tables
from side_by_side.cells import Limits, given_up, predicted, run
from side_by_side.findings import Findings
from side_by_side.learners import LEARNERS
from side_by_side.plan import ENVIRONMENTS, MAIN, PEERS
from side_by_side.running import measure

GENEROUS = Limits(seconds=600, gigabytes=12)


def cell(seconds, error=5.0, peak=300.0):
    return {
        "state": "finished",
        "fit_seconds": seconds,
        "fit_cpu_seconds": seconds,
        "query_cpu_seconds": 0.0,
        "query_cpu_microseconds": 7.0,
        "query_microseconds": 7.0,
        "loaded_megabytes": 100.0,
        "peak_megabytes": peak,
        "error": error,
    }


def stopped(limit="seconds", limits=GENEROUS):
    reason = f"passed {limits.text(limit)} in the fit"
    kept = {"limit": limit, "limits": asdict(limits)}
    return {"state": "stopped", "reason": reason, "phase": "fit", **kept}


def growing(seconds, power, sizes=(2_000, 4_000, 8_000, 16_000), error=5.0):
    return {str(size): cell(seconds * (size / 2_000) ** power, error) for size in sizes}


def test_every_method_can_be_built_and_has_an_environment():
    assert set(LEARNERS) == set(PEERS)
    assert {peer.environment for peer in PEERS.values()} == {MAIN, *ENVIRONMENTS}


def test_samples_are_nested_and_have_the_classes_in_proportion():
    codes = np.repeat([0, 1, 2], [600, 300, 100])
    order = rows.nested_order(codes)
    np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    np.testing.assert_array_equal(order, rows.nested_order(codes))
    for n in (50, 100, 500):
        counts = np.bincount(codes[order[:n]], minlength=3)
        assert np.abs(counts - n * np.array([0.6, 0.3, 0.1])).max() <= 1


def child(text, limits=GENEROUS):
    """The cell of a process that runs the text; its facts go to sys.argv[1]."""
    return run([sys.executable, "-c", text], environments.variables(MAIN), limits)


def test_a_process_that_takes_too_long_is_stopped():
    found = child("while True: pass", Limits(0.2, 12))
    assert found.pop("used_seconds") > 0.2
    assert found == stopped(limits=Limits(0.2, 12))


def test_a_process_that_takes_too_much_memory_is_stopped():
    found = child("held = bytearray(400_000_000)\nwhile True: pass", Limits(60, 0.2))
    assert found.pop("used_seconds") >= 0
    assert found == stopped("gigabytes", Limits(60, 0.2))


@pytest.mark.parametrize(
    ("module", "method"),
    [("learners", "scikit-learn 3-NN brute"), ("learners_2026", "random forest")],
)
def test_a_method_is_fitted_and_asked_in_a_process(tmp_path, module, method):
    X, y = np.eye(4, dtype=np.float32).repeat(5, axis=0), np.arange(4).repeat(5)
    for name, array in {"X_train": X, "y_train": y, "X_test": X, "y_test": (y + 1) % 4}.items():
        np.save(tmp_path / f"{name}.npy", array)
    found = measure(module, method, MAIN, tmp_path, None, GENEROUS)
    assert found["state"] == "finished"
    assert found["error"] == 100
    assert found["peak_megabytes"] >= found["loaded_megabytes"] > 0
    assert {"fit_seconds", "fit_cpu_seconds", "query_microseconds", "versions"} <= set(found)
    if module == "learners_2026":
        assert found["log_loss"] > np.log(4)
        assert len(peers_2026.line(method, found)) == len(peers_2026.HEADER)


def test_a_power_law_through_the_last_two_sizes_predicts_the_limits():
    by_size = {2_000: cell(1), 4_000: cell(40), 8_000: cell(160)}
    assert predicted(by_size, 16_000, Limits(641, 12)) is None
    found = predicted(by_size, 16_000, Limits(639, 12))
    assert found["state"] == "predicted"
    assert found["reason"] == "predicted to pass 639 s (about 640 s)"
    assert predicted({8_000: cell(599)}, 16_000, GENEROUS) is None
    large = {4_000: cell(1, peak=1_100), 8_000: cell(1, peak=4_100)}
    assert predicted(large, 16_000, GENEROUS)["limit"] == "gigabytes"
    near = {7_000: cell(100), 8_000: cell(300)}
    assert predicted(near, 16_000, GENEROUS) is None, "sizes too near to each other"


def test_sizes_above_one_that_passed_a_limit_are_given_up():
    assert given_up({4_000: stopped()}, 8_000, GENEROUS)
    assert not given_up({4_000: stopped()}, 2_000, GENEROUS)
    assert not given_up({4_000: cell(1)}, 8_000, GENEROUS)
    assert not given_up({4_000: stopped()}, 8_000, Limits(601, 12))
    assert given_up({4_000: stopped("gigabytes")}, 8_000, Limits(601, 12))


def some_findings(nca=None):
    return Findings(
        {
            "MNIST PCA-50": {
                "MaPML": growing(1, 1, error=3.0),
                "scikit-learn NCA": nca or growing(6, 2, error=4.0),
                "metric-learn LMNN": {"2000": cell(500), "4000": stopped()},
                "sklvq GMLVQ": {"2000": stopped("gigabytes")},
            }
        }
    )


def row_of(text, start):
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [part.strip() for part in line.strip("|").split("|")]


def test_the_report_says_where_a_method_was_stopped():
    text = tables.report(some_findings())
    assert row_of(text, "**MaPML**")[1:] == ["8.00", "7.0", "300", "3.00", "1.00", "16,000", ""]
    end = "4,000 rows: passed 600 s in the fit"
    assert row_of(text, "metric-learn LMNN")[1:] == ["stopped", "", "", "", "", "2,000", end]
    assert row_of(text, "sklvq GMLVQ")[-2:] == ["none", "2,000 rows: passed 12 GB in the fit"]


def bar_lines(findings):
    lines = tables.bars(findings).splitlines()[2:]
    return [[part.strip() for part in line.strip("| ").split("|")] for line in lines]


def test_a_stopped_fit_took_at_least_the_limit_and_one_without_memory_no_known_time():
    assert [line[-1] for line in bar_lines(some_findings())] == ["yes", "yes", "yes"]
    findings = some_findings({"16000": stopped()})
    assert bar_lines(findings)[0][1] == "at least 75.0 times; an error is unknown"
    findings = some_findings({"16000": stopped(limits=Limits(8, 12))})
    assert bar_lines(findings)[0][1] == "at least 1.0 times; an error is unknown"
    findings = some_findings({"16000": stopped("gigabytes")})
    assert bar_lines(findings)[0][1] == "not run"
