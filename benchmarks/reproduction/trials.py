"""One trial: choose the parameter on validation rows, fit on all training rows, test.

The result of a finished trial is a file, so an interrupted run continues where it stopped. A
result is written under another name and then renamed, so that its file is complete or absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from data import Split
from sklearn.model_selection import train_test_split

from latentmetric.estimators.lmnn import LMNN
from latentmetric.estimators.mapml import MaPML
from reproduction.plan import (
    GRID,
    LARGE_SET,
    LARGE_STEPS,
    LMNN_NOISE_ITERATIONS,
    METHODS,
    MOST_FURTHER,
    SEARCH_ROWS_PER_CLASS,
    Method,
    Setting,
    Trial,
)
from reproduction.sources import Source, sample

HELD_OUT_SHARE, HELD_OUT_ROWS = 0.2, 5_000
"""Training rows held out to compare values of a parameter: this share, at most this many."""

FOLDER = "cells"
"""Subfolder of the results; stored results use this name."""


def trial_path(trial: Trial, source: Source, out: Path) -> Path:
    """The file of a trial's result."""
    return out / FOLDER / f"{trial.name}{source.tag(trial.setting)}.json"


def run_trial(trial: Trial, source: Source, out: Path) -> dict[str, Any]:
    """The result of a trial, from its file if there is one."""
    path = trial_path(trial, source, out)
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    method = METHODS[trial.method]
    setting, split = limited(trial.setting, method, source)
    searched = search_parameter(trial, method, split, out, source.tag(trial.setting))
    model = for_setting(trial.setting, method.make(searched["value"], trial.seed))
    result = {
        "setting": trial.setting.name,
        "method": trial.method,
        "seed": trial.seed,
        "fitted_on": asdict(setting)
        | {"rows": len(split.X_train), "columns": split.X_train.shape[1]},
        "parameter": searched,
        "model": repr(model),
        "made": source.is_synthetic(trial.setting),
        **measure(model, split),
    }
    write_json(path, result)
    return result


def for_setting(setting: Setting, model: Any) -> Any:
    """MaPML takes more steps on the large set, as in the paper; LMNN fewer if there is noise."""
    if setting.dataset == LARGE_SET and isinstance(model, MaPML):
        model.set_params(n_steps=LARGE_STEPS)
    if setting.noise and isinstance(model, LMNN):
        model.set_params(max_iter=min(model.max_iter, LMNN_NOISE_ITERATIONS))
    return model


def limited(setting: Setting, method: Method, source: Source) -> tuple[Setting, Split]:
    """The setting reduced to what the method can take; the result records the reduced one."""
    split = source.load(setting)
    if method.max_features and method.max_features < split.X_train.shape[1]:
        setting = Setting(
            setting.dataset, setting.noise, setting.n_rows, n_features=method.max_features
        )
    if method.max_rows and method.max_rows < len(split.X_train):
        setting = Setting(
            setting.dataset, setting.noise, n_rows=method.max_rows, n_features=setting.n_features
        )
    return setting, source.load(setting)


def search_parameter(
    trial: Trial, method: Method, split: Split, out: Path, tag: str
) -> dict[str, Any]:
    """The value with the lowest validation error, searched once for all trials."""
    if not method.searched:
        return {"value": 1.0, "validation_errors": {}}
    name = method.searched_as or trial.method
    path = out / "searches" / f"{trial.setting.name}--{name}{tag}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    method, held = METHODS[name], validation_split(split, METHODS[name].search_rows)

    def validation_error(value: float) -> float:
        model = method.try_out(value) if method.try_out else method.make(value, 0)
        measured = measure(for_setting(trial.setting, model), held)
        found: float = measured["error"] + measured.get("error_original", measured["error"])
        return found / 2

    errors = searched_errors(validation_error, MOST_FURTHER if method.beyond_grid else 0)
    result = {
        "value": best_value(errors),
        "fit_rows": len(held.X_train),
        "held_out_rows": len(held.X_test),
        "validation_errors": {f"{v:g}": e for v, e in errors.items()},
    }
    write_json(path, result)
    return result


def searched_errors(error_of: Callable[[float], float], most_further: int) -> dict[float, float]:
    """The error of each value of the grid, and beyond the end of it that is best while it falls."""
    errors = {value: error_of(value) for value in GRID}
    for _ in range(most_further):
        best = best_value(errors)
        if best not in (min(errors), max(errors)):
            break
        further = best * 10 if best == max(errors) else best / 10
        errors[further] = error_of(further)
    return errors


def best_value(errors: dict[float, float]) -> float:
    """The value with the lowest error; of equals, the one nearest to 1."""
    return min(errors, key=lambda value: (errors[value], abs(np.log10(value))))


def validation_split(split: Split, max_rows: int) -> Split:
    """Training rows to fit on and others to validate with; test rows are not used."""
    X, y = split.X_train, split.y_train
    n_held = min(HELD_OUT_ROWS, round(HELD_OUT_SHARE * len(X)))
    X, X_held, y, y_held = train_test_split(X, y, test_size=n_held, stratify=y, random_state=2)
    X, y = sample(X, y, max(max_rows, SEARCH_ROWS_PER_CLASS * len(np.unique(y))), seed=1)
    return Split(split.name, X, y, X_held, y_held)


def measure(model: Any, split: Split) -> dict[str, Any]:
    """Fit and test: errors in percent, CPU and wall-clock seconds, the objective by round."""
    wall, cpu = perf_counter(), process_time()
    model.fit(split.X_train, split.y_train)
    result: dict[str, Any] = {
        "fit_cpu_seconds": process_time() - cpu,
        "fit_seconds": perf_counter() - wall,
    }
    wall = perf_counter()
    result["error"] = percent_wrong(model, split)
    result["query_microseconds"] = 1e6 * (perf_counter() - wall) / len(split.X_test)
    if isinstance(model, MaPML):
        result["latents"] = len(model.latent_examples_)
        rounds = [record for record in model.history_ if "refinement" not in record]
        result["objectives"] = [record["objective"] for record in rounds]
        model.set_references(split.X_train, split.y_train)
        wall = perf_counter()
        result["error_original"] = percent_wrong(model, split)
        result["query_original_microseconds"] = 1e6 * (perf_counter() - wall) / len(split.X_test)
    return result


def percent_wrong(model: Any, split: Split) -> float:
    """Test error, in percent."""
    return 100 * float(np.mean(model.predict(split.X_test) != split.y_test))


def write_json(path: Path, content: Any) -> None:
    """Write the whole file or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)
