"""Losses for networks: ours, those of pytorch-metric-learning, and cross-entropy.

    LATENTMETRIC_DATA=folder python benchmarks/deep.py [--tasks mnist,cifar100] [--report]

Every loss trains the same network from the same start for the same epochs, on one thread. Each has
eight candidates of its parameters, and takes the one that is best on training rows that it does not
learn from; without classes in common, on classes held back of those that it learns. Answers come
from the loss's own classifier or from 3-NN on all training rows, whichever is better on these rows.
Test rows take no part in any choice. Seeds are paired: seed 0 is the same network and the same
order of rows for every loss. Finished cells are kept, so a run can be stopped and continued;
--fresh starts over, --report only prints the tables.

Needs PyTorch and pytorch-metric-learning 2.9.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from common import RESULTS, gemm_gflops, machine_facts, table, write_json
from networks.methods import LATENTS, METHODS, Candidate
from networks.scores import k_means_latents, search_scores, three_nearest
from networks.tasks import TASKS, Rows, Task
from networks.training import EPOCHS, Trained

SEEDS = (0, 1, 2, 3, 4)
CHOOSING_SEED = 100
RAW = "cosine, raw features"
NEAR_BEST = 0.95
SHOWN = ("error", "3-NN, latents only", "recall@1", "map@r")
"""Scores in percent; the first two are errors."""

Cell = dict[str, Any]


def key_of(candidate: Candidate) -> str:
    return ", ".join(f"{name}={value}" for name, value in candidate.items())


def answers(trained: Trained, rows: Rows) -> dict[str, float]:
    """The errors of the ways to answer."""
    learned, scored = trained.embed(rows.X), trained.embed(rows.X_scored)
    ways = {"3-NN": three_nearest(scored, learned, rows.y)}
    own = trained.own_answers(rows.X_scored)
    if own is not None:
        ways["own"] = own.numpy()
    latents = trained.loss.latents()
    points, labels = (
        k_means_latents(learned, rows.y, LATENTS)
        if latents is None
        else (latents[0], latents[1].numpy())
    )
    ways["latents"] = three_nearest(scored, points, labels)
    return {name: float((found != rows.y_scored).mean()) for name, found in ways.items()}


def choose(task: Task, method: str, cell: Cell, save: Callable[[], None]) -> Candidate:
    """The best candidate, and the best way to answer with it."""
    candidates = {key_of(found): found for found in METHODS[method].candidates()}
    choices = cell.setdefault("choices", {})
    missing = [key for key in candidates if key not in choices]
    rows = task.choice() if missing else None
    for key in missing:
        assert rows is not None
        trained = Trained(rows, METHODS[method], candidates[key], task.images, CHOOSING_SEED)
        if rows.zero_shot:
            choices[key] = {
                "search": -search_scores(trained.embed(rows.X_scored), rows.y_scored)["map@r"]
            }
        else:
            found = answers(trained, rows)
            choices[key] = {way: found[way] for way in ("3-NN", "own") if way in found}
        print(method, "|", key, "|", choices[key], f"| {trained.seconds:.1f} s", flush=True)
        save()
    ranked = {(key, way): loss for key in candidates for way, loss in choices[key].items()}
    cell["chosen"], cell["way"] = min(ranked, key=ranked.__getitem__)
    return candidates[cell["chosen"]]


def measured(trained: Trained, rows: Rows, way: str) -> dict[str, Any]:
    scored = trained.embed(rows.X_scored)
    found: dict[str, Any] = search_scores(scored, rows.y_scored)
    if not rows.zero_shot:
        errors = answers(trained, rows)
        found |= {"error": errors[way], "3-NN, latents only": errors["latents"]}
    return found | {"seconds": trained.seconds, "curve": trained.curve}


def run_task(
    name: str, cells: dict[str, Cell], save: Callable[[], None], methods: list[str]
) -> None:
    task = TASKS[name]
    rows: Rows | None = None
    for method in methods:
        cell = cells.setdefault(method, {})
        done = cell.setdefault("seeds", {})
        missing = [seed for seed in SEEDS if str(seed) not in done]
        if not missing:
            continue
        chosen = choose(task, method, cell, save)
        rows = task.final() if rows is None else rows
        for seed in missing:
            trained = Trained(rows, METHODS[method], chosen, task.images, seed)
            done[str(seed)] = measured(trained, rows, cell["way"])
            shown = {score: done[str(seed)].get(score) for score in SHOWN}
            print(name, "|", method, "|", seed, "|", shown, flush=True)
            save()
    if not task.images and RAW not in cells:
        rows = task.final() if rows is None else rows
        cells[RAW] = {"seeds": {"0": raw_scores(rows)}}
        save()


def raw_scores(rows: Rows) -> dict[str, float]:
    """Of the features as they are, compared by their angle."""
    scored, learned = (
        torch.nn.functional.normalize(torch.from_numpy(part)) for part in (rows.X_scored, rows.X)
    )
    found = search_scores(scored, rows.y_scored)
    if not rows.zero_shot:
        points, labels = k_means_latents(learned, rows.y, LATENTS)
        for score, references, of in (
            ("error", learned, rows.y), ("3-NN, latents only", points, labels)
        ):  # fmt: skip
            wrong = three_nearest(scored, references, of) != rows.y_scored
            found[score] = float(wrong.mean())
    return found


# The report


def percent(values: list[float]) -> str:
    numbers = 100 * np.array(values)
    if len(numbers) < 2:
        return f"{numbers.mean():.2f}"
    return f"{numbers.mean():.2f} ± {numbers.std(ddof=1) / np.sqrt(len(numbers)):.2f}"


def epochs_to(cells: dict[str, Cell], seeds: dict[str, Any]) -> str:
    """Epochs until recall@1 is 95 % of the best that any loss reached at the end, in the mean."""
    finals = [
        run["curve"][-1]
        for cell in cells.values()
        for run in cell["seeds"].values()
        if "curve" in run
    ]
    wanted = NEAR_BEST * max(finals)
    reached = [
        next((epoch + 1 for epoch, value in enumerate(run["curve"]) if value >= wanted), None)
        for run in seeds.values()
    ]
    return "never" if None in reached else f"{np.mean(reached):.1f}"


def task_table(name: str, cells: dict[str, Cell]) -> str:
    zero_shot = "zero-shot" in name
    scores = [score for score in SHOWN if not zero_shot or score in ("recall@1", "map@r")]
    rows = []
    for method, cell in cells.items():
        seeds = cell.get("seeds", {})
        if not seeds:
            continue
        row: list[Any] = [method]
        row += [percent([run[score] for run in seeds.values()]) for score in scores]
        if method == RAW:
            row += ["", "", ""]
        else:
            row.append(f"{np.mean([run['seconds'] for run in seeds.values()]):.1f}")
            row += [epochs_to(cells, seeds), cell["chosen"]]
        rows.append((np.mean([run[scores[0]] for run in seeds.values()]), row))
    rows.sort(key=lambda pair: pair[0], reverse=zero_shot)
    header = ["loss", *scores, "seconds", "epochs to 95 %", "chosen"]
    return f"### {TASKS[name].title}\n\n{table(header, [row for _, row in rows])}\n"


def report(results: dict[str, Any]) -> str:
    found = results.get("cells", {})
    return "\n".join(task_table(name, found[name]) for name in TASKS if any_seed(found.get(name)))


def any_seed(cells: dict[str, Cell] | None) -> bool:
    return any(cell.get("seeds") for cell in (cells or {}).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--fresh", action="store_true", help="measure these cells again")
    parser.add_argument("--report", action="store_true", help="only print the tables")
    options = parser.parse_args()
    if not options.report:
        torch.set_num_threads(1)
        methods = [name for name in METHODS if name in options.methods.split(",")]
        for name in options.tasks.split(","):
            cells = stored().get("cells", {}).get(name, {})
            if options.fresh:
                cells |= {method: {} for method in methods}
            start = time.perf_counter()
            run_task(name, cells, partial(keep, name, cells), methods)
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    found = report(stored())
    (RESULTS / "deep.md").write_text(found)
    print(found)


def stored() -> dict[str, Any]:
    """What has been measured so far."""
    path = RESULTS / "deep.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def keep(name: str, cells: dict[str, Cell]) -> None:
    """Write the cells of a task. The file is read again: runs of other tasks may share it."""
    results = stored()
    if "machine" not in results:
        results["machine"] = machine_facts(gemm_gflops()) | {"torch": torch.__version__}
        results["epochs"] = EPOCHS
    results.setdefault("cells", {})[name] = cells
    write_json("deep", results)


if __name__ == "__main__":
    main()
