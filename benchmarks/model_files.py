"""Are damaged model files loaded or refused, and never anything else?

    python benchmarks/model_files.py [--files 10000] [--seed 0]

Each file is one of the golden models, or a larger one, changed at random (tests/mutations.py). It
must load as a working model, or fail with ModelFileError; reading must take at most twice the
file's size and 200 MB, and must import, compile and execute nothing. Where a change left the
checksums as they were, a file that loads must give exactly the same results as before. A file with
any other outcome is kept in the folder of results.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, gemm_gflops, machine_facts, table, write_json

import latentmetric
from latentmetric import MaPML, ModelFileError, save

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))
from mutations import CODE_EVENTS, NEW_CHECKSUMS, OLD_CHECKSUMS  # noqa: E402

ALLOWED_FACTOR, ALLOWED_BYTES = 2, 200 * 2**20


class CodeWatch:
    """Records events that would mean that code was run: imports, compilations, processes."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._active = False
        sys.addaudithook(self._notice)

    def _notice(self, event: str, _arguments: Any) -> None:
        if self._active and event in CODE_EVENTS:
            self.seen.append(event)

    def __enter__(self) -> CodeWatch:
        self.seen, self._active = [], True
        return self

    def __exit__(self, *exception: object) -> None:
        self._active = False


def reset_peak() -> int:
    """Reset the peak of this process; return its current resident size."""
    Path("/proc/self/clear_refs").write_text("5")
    return status_bytes("VmRSS")


def status_bytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def originals(folder: Path) -> list[tuple[bytes, np.ndarray, list[np.ndarray]]]:
    """Files, queries, and the results of the models for these queries."""
    generator = np.random.default_rng(0)
    large = MaPML.as_published(reference="original", max_iter=1, n_steps=100, random_state=0)
    rows = generator.standard_normal((20_000, 64)).astype(np.float32)
    large.fit(
        rows, np.array([f"class {number:02}" for number in range(50)])[np.arange(20_000) % 50]
    )
    save(large, folder / "large")
    queries = np.load(TESTS / "golden" / "models" / "expected.npz")["queries"]
    found = []
    golden = sorted((TESTS / "golden" / "models").glob("*[!e].safetensors"))  # no pipeline
    for path in [*golden, folder / "large"]:
        model = latentmetric.load(path)
        dtype = model.model_.references.rows.dtype
        own = rows[:20] if path.name == "large" else queries.astype(dtype)
        found.append((path.read_bytes(), own, answers(model, own)))
    return found


def answers(model: Any, X: np.ndarray) -> list[np.ndarray]:
    return [model.predict(X), model.predict_proba(X), *model.kneighbors(X, 1)]


def outcome(path: Path, queries: np.ndarray, expected: list[np.ndarray] | None, watch: CodeWatch):
    """The outcome of loading a file, and the bytes that it took."""
    before = reset_peak()
    model, result = None, "refused"
    with watch:
        try:
            model, result = latentmetric.load(path), "loaded"
        except ModelFileError:
            pass
        except BaseException as error:
            result = f"raised {type(error).__name__}"
    taken = status_bytes("VmHWM") - before
    if watch.seen:
        return f"ran code: {watch.seen[0]}", taken
    if taken > ALLOWED_FACTOR * path.stat().st_size + ALLOWED_BYTES:
        return "took too much memory", taken
    if model is None:
        return result, taken
    try:
        found = answers(model, queries)
    except ValueError as error:  # another centre or scale: these rows are too far away
        known = expected is None and "away from their centre" in str(error)
        return (result if known else "answered with ValueError"), taken
    except BaseException as error:
        return f"answered with {type(error).__name__}", taken
    if not np.isin(found[0], model.classes_).all():
        return "predicted an unknown class", taken
    if expected is not None and any(
        (one != other).any() for one, other in zip(found, expected, strict=True)
    ):
        return "gave other results", taken
    return result, taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # models with extreme numbers overflow
    np.seterr(all="ignore")
    generator, watch = np.random.default_rng(options.seed), CodeWatch()
    changes = OLD_CHECKSUMS + NEW_CHECKSUMS
    counts: dict[str, Counter[str]] = {change.__name__: Counter() for change in changes}
    peak_share, peak = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        files = originals(Path(folder))
        path = Path(folder) / "changed"
        for number in range(options.files):
            content, queries, expected = files[generator.integers(len(files))]
            change = changes[generator.integers(len(changes))]
            path.write_bytes(change(content, generator))
            same = expected if change in OLD_CHECKSUMS else None
            result, taken = outcome(path, queries, same, watch)
            counts[change.__name__][result] += 1
            allowed = ALLOWED_FACTOR * path.stat().st_size + ALLOWED_BYTES
            peak, peak_share = max(peak, taken), max(peak_share, taken / allowed)
            if result not in ("loaded", "refused"):
                kept = RESULTS / "model_files" / f"{number}-{change.__name__}.safetensors"
                kept.parent.mkdir(exist_ok=True)
                kept.write_bytes(path.read_bytes())
                print(f"{kept}: {result}", flush=True)
    kinds = sorted({result for of_change in counts.values() for result in of_change})
    lines = [[name, *(of_change[kind] for kind in kinds)] for name, of_change in counts.items()]
    print(table(["change", *kinds], lines))
    total = sum(counts.values(), Counter())
    print(
        f"{options.files} files: {dict(total)}; most memory {peak / 2**20:.0f} MB, "
        f"{peak_share:.0%} of what is allowed"
    )
    results = {
        "machine": machine_facts(gemm_gflops()),
        "files": options.files,
        "seed": options.seed,
        "total": dict(total),
        "by_change": {name: dict(of_change) for name, of_change in counts.items()},
        "most_bytes": peak,
        "most_bytes_as_share_of_allowed": round(peak_share, 3),
    }
    print(write_json("model_files", results))


if __name__ == "__main__":
    main()
