"""Small experiments: trials are computed once, claims are checked, a page is written."""

import numpy as np
import pytest
from reproduction import plan, run, trials
from reproduction.claims import Results, check_claims
from reproduction.plan import Method, Setting, Trial, trials_of
from reproduction.sources import Source
from reproduction.trials import run_trial
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Digits in the layout of MNIST."""
    X, y = load_digits(return_X_y=True)
    images = (X * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
    path = tmp_path_factory.mktemp("data")
    np.savez(
        path / "mnist.npz", x_train=images[:1200], y_train=y[:1200], x_test=images[1200:],
        y_test=y[1200:],
    )  # fmt: skip
    return Source(path)


def test_every_trial_of_the_paper_is_planned():
    planned = trials_of(["mnist"], n_trials=5, quick=False)
    assert len({trial.name for trial in planned}) == len(planned)
    count = {}
    for trial in planned:
        key = trial.setting.name, trial.method
        count[key] = count.get(key, 0) + 1
    assert count["mnist", "MaPML_25"] == 5
    assert count["mnist", "Euclid"] == 1
    assert count["mnist-noise250", "OASIS"] == 5
    assert {method for setting, method in count if setting == "mnist-noise250"} == set(
        plan.PAPER_METHODS
    )


def test_what_is_searched_does_not_follow_the_defaults_of_the_estimators():
    """The stored results are for these values."""
    models = {name: plan.METHODS[name].make(10.0, 3) for name in ("OASIS", "HR-SGD", "LMNN")}
    assert models["OASIS"].get_params()["aggressiveness"] == pytest.approx(0.01)
    assert models["OASIS"].psd
    assert models["HR-SGD"].learning_rate == pytest.approx(0.1)
    assert (models["HR-SGD"].update, models["HR-SGD"].random_state) == ("damped", 3)
    assert plan.METHODS["HR-SGD, unbiased"].make(1.0, 0).update == "unbiased"
    lmnn = models["LMNN"]
    assert (lmnn.push, lmnn.target_neighbors, lmnn.tol) == (pytest.approx(10 / 11), 3, 1e-4)
    assert plan.METHODS["MaPML_10"].make(1.0, 0).metric_reg == 1.7


@pytest.mark.parametrize(
    ("best", "most_further", "further", "found"),
    [
        (1.0, 3, [], 1.0),
        (1e4, 3, [1e4, 1e5], 1e4),
        (1e9, 3, [1e4, 1e5, 1e6], 1e6),
    ],
)
def test_a_search_goes_on_beyond_the_grid_while_the_error_falls(best, most_further, further, found):
    errors = trials.searched_errors(lambda value: abs(np.log10(value / best)), most_further)
    np.testing.assert_allclose(list(errors), [*plan.GRID, *further])
    assert trials.best_value(errors) == pytest.approx(found)


def test_a_setting_adds_noise_to_training_rows_only_and_keeps_classes_in_proportion(source):
    plain = source.load(Setting("mnist"))
    noisy = source.load(Setting("mnist", noise=255))
    assert np.std(noisy.X_train - plain.X_train) == pytest.approx(1, rel=0.02)
    np.testing.assert_array_equal(noisy.X_test, plain.X_test)
    few = source.load(Setting("mnist", n_rows=300, n_features=10))
    assert few.X_train.shape == (300, 10)
    np.testing.assert_allclose(
        np.bincount(few.y_train) / 300, np.bincount(plain.y_train) / 1200, atol=0.01
    )


def test_a_finished_trial_is_not_computed_again_and_its_parameter_is_found_on_held_out_rows(
    source, tmp_path, monkeypatch
):
    made = []

    def make(value, seed):
        made.append((value, seed))
        return plan.MaPML.as_published(
            metric_reg=1.7 * value, n_steps=50, max_iter=1, random_state=seed
        )

    monkeypatch.setitem(plan.METHODS, "MaPML_10", Method(make))
    seen = []
    original = trials.measure
    monkeypatch.setattr(
        trials, "measure", lambda model, split: seen.append(split) or original(model, split)
    )
    first = run_trial(Trial(Setting("mnist"), "MaPML_10", 3), source, tmp_path)
    tried = [value for value, _ in made]
    assert tried[: len(plan.GRID)] == list(plan.GRID)
    assert tried[-1] == first["parameter"]["value"]
    test_rows = {row.tobytes() for row in seen[-1].X_test}
    for split in seen[:-1]:
        assert not test_rows & {row.tobytes() for row in split.X_test}
        assert len(split.X_train) == 960
    errors = first["parameter"]["validation_errors"]
    assert errors[f"{first['parameter']['value']:g}"] == min(errors.values())
    made.clear()
    assert run_trial(Trial(Setting("mnist"), "MaPML_10", 3), source, tmp_path) == first
    assert made == []
    run_trial(Trial(Setting("mnist"), "MaPML_10", 4), source, tmp_path)
    assert len(made) == 1, "the search is done once for all trials"
    assert {"error", "error_original", "objectives", "fit_cpu_seconds"} <= set(first)


def test_the_large_set_is_image_like_or_the_file_that_is_named(tmp_path):
    few = Setting("imagenet", n_rows=400)
    made = Source().load(few)
    assert made.X_train.shape == (400, 512)
    assert len(np.unique(made.y_train)) == 4
    np.savez(
        tmp_path / "mine.npz", x_train=made.X_train[:300, :8], y_train=made.y_train[:300],
        x_test=made.X_test[:50, :8], y_test=made.y_test[:50],
    )  # fmt: skip
    named = Source(imagenet=tmp_path / "mine.npz")
    named.check(["imagenet"])
    assert named.load(few).X_train.shape == (300, 8)
    methods = [trial.method for trial in trials_of(["imagenet"], 5, quick=True)]
    assert sorted(methods) == sorted(plan.LARGE_METHODS)
    assert "LMNN" not in methods
    steps = trials.for_setting(few, plan.METHODS["MaPML_5"].make(1.0, 0)).n_steps
    assert steps == plan.LARGE_STEPS


FEW = [Trial(Setting("mnist"), "Euclid", 0), Trial(Setting("mnist"), "k-means prototypes", 0)]


def test_a_run_computes_its_trials_and_ends_with_tables_figures_and_claims(
    source, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(run, "trials_of", lambda *arguments: FEW)
    run.run(["mnist"], quick=False, out=tmp_path, n_trials=1, source=source)
    shown = capsys.readouterr().out
    assert "1/2 mnist Euclid 0" in shown
    assert "9 of 9 claims need results that are not there" in shown
    page = (tmp_path / "results.md").read_text()
    for name in ("fig3a-error", "fig4a-time", "fig5-latents"):
        assert f"![{name}]({name}.svg)" in page
        assert (tmp_path / f"{name}.png").exists()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    run.run(["mnist"], quick=False, out=tmp_path, n_trials=1, source=source)
    assert before == {path: path.read_bytes() for path in before}


def result(setting, method, error, **more):
    return {
        "setting": setting, "method": method, "seed": 0, "error": error,
        "fit_cpu_seconds": 1.0, "query_microseconds": 1.0,
        "fitted_on": {"rows": 100, "columns": 7},
        "parameter": {"value": 1.0, "validation_errors": {}}, **more,
    }  # fmt: skip


def fake_results(mapml=2.0):
    found = [result("mnist", m, e) for m, e in (("Euclid", 3.0), ("OASIS", 2.8), ("HR-SGD", 2.7))]
    found += [result("mnist", "LMNN", 1.9, fit_cpu_seconds=100.0)]
    found += [result("mnist", "HR-SGD, all features", 2.7)]
    for index, ratio in enumerate(plan.RATIOS):
        found.append(
            result(
                "mnist",
                plan.mapml_name(ratio),
                mapml - 0.1 * index,
                error_original=1.9,
                objectives=[10.0, 4.0, 2.0, 1.9, 1.9],
                query_original_microseconds=9.0,
                fit_cpu_seconds=2.0,
            )
        )
    return found


def test_claims_follow_from_the_figures():
    words = [verdict.word for verdict in check_claims(Results(fake_results()))]
    assert words[0] == words[1] == words[2] == words[4] == words[5] == words[8] == "held"
    assert words[3] == words[6] == words[7] == "not computed"
    worse = [verdict.word for verdict in check_claims(Results(fake_results(mapml=4.0)))]
    assert worse[0] == worse[2] == "did not hold"
    assert worse[1] == "held"


@pytest.mark.parametrize(
    ("oasis", "reduced", "unbiased", "word"),
    [
        (46, 43, 44, "held"),
        (46, 43, 42, "did not hold"),
        (46, 43, None, "not computed"),
    ],
)
def test_claim_8_compares_each_with_euclid_on_its_own_features(oasis, reduced, unbiased, word):
    errors = {"Euclid": 45, "OASIS": oasis, "Euclid, 164 components": reduced, "HR-SGD": 44}
    errors |= {"HR-SGD, unbiased": unbiased}
    more = {"error_original": 45.0, "query_original_microseconds": 9.0}
    found = [result("imagenet200", m, e) for m, e in errors.items() if e is not None]
    found += [result("imagenet200", "MaPML_5", 40.0, **more)]
    # On the image-like rows everything beats Euclid, which decides nothing.
    found += [result("imagenet", m, 5.0, **more) for m in ("OASIS", "HR-SGD", "MaPML_5")]
    found += [result("imagenet", "Euclid", 35.0)]
    verdicts = check_claims(Results(found))
    assert verdicts[7].claim.startswith("8.")
    assert verdicts[7].word == word
    assert "imagenet200 9.0 times, imagenet 9.0 times" in verdicts[8].figures
