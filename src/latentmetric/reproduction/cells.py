"""One cell: choose the parameter on validation rows, fit on all training rows, measure on the test.

A finished cell is a file; a run that was interrupted takes up where it stopped. Results are
written to a file of another name and renamed, so that a file is whole or not there.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from latentmetric.datasets.benchmark import Split
from latentmetric.estimators.lmnn import LMNN
from latentmetric.estimators.mapml import MaPML
from latentmetric.reproduction.plan import (
    GRID,
    LARGE_SET,
    LARGE_STEPS,
    LMNN_NOISE_ITERATIONS,
    METHODS,
    SEARCH_ROWS_PER_CLASS,
    Cell,
    Method,
    Setting,
)
from latentmetric.reproduction.sources import Source, sample

HELD_SHARE, HELD_ROWS = 0.2, 5_000
"""The training rows kept for a search's errors: this share, at most so many."""


def cell_path(cell: Cell, source: Source, out: Path) -> Path:
    """Where the result of a cell is kept."""
    return out / "cells" / f"{cell.name}{source.tag(cell.setting)}.json"


def run_cell(cell: Cell, source: Source, out: Path) -> dict[str, Any]:
    """The result of a cell, from its file if it is there."""
    path = cell_path(cell, source, out)
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    method = METHODS[cell.method]
    setting, split = limited(cell.setting, method, source)
    searched = search_parameter(cell, method, split, out, source.tag(cell.setting))
    model = for_setting(cell.setting, method.make(searched["value"], cell.seed))
    result = {
        "setting": cell.setting.name,
        "method": cell.method,
        "seed": cell.seed,
        "fitted_on": asdict(setting)
        | {"rows": len(split.X_train), "columns": split.X_train.shape[1]},
        "parameter": searched,
        "model": repr(model),
        "made": source.is_made(cell.setting),
        **measure(model, split),
    }
    write_json(path, result)
    return result


def for_setting(setting: Setting, model: Any) -> Any:
    """MaPML takes more steps on the large set, as in the paper; LMNN fewer where there is noise."""
    if setting.dataset == LARGE_SET and isinstance(model, MaPML):
        model.set_params(n_steps=LARGE_STEPS)
    if setting.noise and isinstance(model, LMNN):
        model.set_params(max_iter=min(model.max_iter, LMNN_NOISE_ITERATIONS))
    return model


def limited(setting: Setting, method: Method, source: Source) -> tuple[Setting, Split]:
    """The setting as far as the method can take it; what is cut is told in the result."""
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
    cell: Cell, method: Method, split: Split, out: Path, tag: str
) -> dict[str, Any]:
    """The value of the grid with the lowest validation error, found once for all trials."""
    if not method.searched:
        return {"value": 1.0, "validation_errors": {}}
    name = method.searched_as or cell.method
    path = out / "searches" / f"{cell.setting.name}--{name}{tag}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    method, held = METHODS[name], validation_split(split, METHODS[name].search_rows)
    errors = {}
    for value in GRID:
        model = method.try_out(value) if method.try_out else method.make(value, 0)
        measured = measure(for_setting(cell.setting, model), held)
        errors[value] = (measured["error"] + measured.get("error_original", measured["error"])) / 2
    best = min(errors, key=lambda value: (errors[value], abs(np.log10(value))))
    result = {
        "value": best,
        "fit_rows": len(held.X_train),
        "held_out_rows": len(held.X_test),
        "validation_errors": {f"{v:g}": e for v, e in errors.items()},
    }
    write_json(path, result)
    return result


def validation_split(split: Split, max_rows: int) -> Split:
    """Training rows to fit on and others to judge by; test rows are not touched."""
    X, y = split.X_train, split.y_train
    n_held = min(HELD_ROWS, round(HELD_SHARE * len(X)))
    X, X_held, y, y_held = train_test_split(X, y, test_size=n_held, stratify=y, random_state=2)
    X, y = sample(X, y, max(max_rows, SEARCH_ROWS_PER_CLASS * len(np.unique(y))), seed=1)
    return Split(split.name, X, y, X_held, y_held)


def measure(model: Any, split: Split) -> dict[str, Any]:
    """Fit and test: errors in percent, CPU and wall seconds, and the course of the fit."""
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
        result["objectives"] = [record["objective"] for record in model.history_]
        model.set_references(split.X_train, split.y_train)
        wall = perf_counter()
        result["error_original"] = percent_wrong(model, split)
        result["query_original_microseconds"] = 1e6 * (perf_counter() - wall) / len(split.X_test)
    return result


def percent_wrong(model: Any, split: Split) -> float:
    """Test error."""
    return 100 * float(np.mean(model.predict(split.X_test) != split.y_test))


def write_json(path: Path, content: Any) -> None:
    """All of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)
