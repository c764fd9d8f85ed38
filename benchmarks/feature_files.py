"""Are damaged feature files read or refused in one line, and never anything else?

    python benchmarks/feature_files.py [--files 10000] [--seed 0]

Each file is a small table in one of the formats, changed at random. It must be read as rows of
finite numbers with a label each, or be refused with one line that names it. Files are read in a
child process, so that a file that ends the process, takes more than 4 GB, or makes a library write
to the terminal is noticed. A file with any other outcome is kept in the folder of results. Of a
.zarr folder, one of its files is changed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import zarr
from common import RESULTS, gemm_gflops, machine_facts, table, write_json

from latentmetric.io import Choice, open_table

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from mutations import append, flip_bits, truncate

MOST_BYTES = 4 * 2**30
FILES_A_CHILD = 250
GOOD = ("read", "refused")


Change = Callable[[bytes, np.random.Generator], bytes]

Parts = dict[str, bytes]
"""The files of a folder by their names in it, or the content of a file by no name."""


def originals(folder: Path) -> list[tuple[str, Parts]]:
    """A table of numbers and words in every format, with its suffix."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((40, 5)).astype(np.float32)
    labels = np.array(["cat", "dog", "no bird"])[np.arange(40) % 3]
    frame = pandas.DataFrame(rows, columns=list("abcde")).assign(label=labels)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "t.parquet")
    frame.to_feather(folder / "t.feather", compression="uncompressed")
    frame.to_feather(folder / "t.arrow", compression="lz4")
    np.savez(folder / "t.npz", x=rows, y=labels)
    with h5py.File(folder / "t.h5", "w") as file:
        file["x"], file["y"] = rows, np.arange(40) % 3
    np.save(folder / "t.npy", rows)
    zarr_folders(folder, rows, labels)
    return [(path.suffix, parts_of(path)) for path in sorted(folder.glob("t*.*"))]


def zarr_folders(folder: Path, rows: Any, labels: Any) -> None:
    """Both formats, with several codecs."""
    for name, options in (
        ("t2", {"zarr_format": 2, "chunks": (13, 5)}),
        ("t3", {"chunks": (13, 5)}),
        ("t3plain", {"chunks": (13, 5), "compressors": None}),
        ("t3shards", {"chunks": (4, 5), "shards": (20, 5)}),
    ):
        group = zarr.open_group(
            folder / f"{name}.zarr", mode="w", zarr_format=options.get("zarr_format", 3)
        )
        options.pop("zarr_format", None)
        group.create_array("x", data=rows, **options)
        words = group.create_array("y", shape=40, chunks=40, dtype=str)
        words[:] = labels


def parts_of(path: Path) -> Parts:
    if path.is_file():
        return {"": path.read_bytes()}
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


def write_parts(path: Path, parts: Parts) -> None:
    for name, content in parts.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def changed(parts: Parts, change: Change, generator: np.random.Generator) -> Parts:
    """One of the files changed."""
    name = sorted(parts)[generator.integers(len(parts))]
    return parts | {name: change(parts[name], generator)}


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def splice(content: bytes, generator: np.random.Generator) -> bytes:
    """Copy a stretch of the file to another place."""
    start, at = generator.integers(len(content), size=2)
    stretch = content[start : start + generator.integers(1, 64)]
    return content[:at] + stretch + content[at + (generator.random() < 0.5) * len(stretch) :]


def overwrite(content: bytes, generator: np.random.Generator) -> bytes:
    """Write numbers that are too large, negative or zero where lengths and offsets may be."""
    changed, width = bytearray(content), (1, 2, 4, 8)[generator.integers(4)]
    value = (0, 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1, 2 ** (4 * width))[
        generator.integers(5)
    ]
    at = int(generator.integers(max(1, len(changed) - width)))
    changed[at : at + width] = value.to_bytes(width, "little")
    return bytes(changed)


CHANGES: tuple[Change, ...] = (
    flip_bits, truncate, append, splice, overwrite,
)  # fmt: skip


def outcome(path: Path) -> str:
    """The outcome of reading a file."""
    try:
        found = open_table(path, choice=Choice(labelled=path.suffix != ".npy"))
        rows = np.asarray(found.rows)
    except (ValueError, OSError, EOFError) as error:
        message = str(error)
        one_line = "\n" not in message and path.name in message
        return "refused" if one_line else f"{type(error).__name__} without file or on many lines"
    except BaseException as error:
        return f"raised {type(error).__name__}"
    if not np.isfinite(rows).all():
        return "rows that are not finite"
    if found.labels is not None and len(found.labels) != len(rows):
        return "another number of labels than rows"
    return "read"


def read_all(paths: list[Path], results: Any) -> None:
    """In a child process: send the outcome of each file."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        for path in paths:
            found = outcome(path)
            if os.fstat(written.fileno()).st_size and found in GOOD:
                found = f"{found}, but something was written to standard error"
            os.ftruncate(written.fileno(), 0)
            results.send(found)


def outcomes(paths: list[Path]) -> list[str]:
    """The outcomes of all files, including those that end the process that reads them."""
    found: list[str] = []
    while len(found) < len(paths):
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.Process(target=read_all, args=(paths[len(found) :], theirs))
        child.start()
        theirs.close()
        try:
            while len(found) < len(paths):
                found.append(ours.recv())
        except EOFError:
            child.join()
            found.append(f"ended the process ({child.exitcode})")
        child.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = originals(folder)
        for start in range(0, options.files, FILES_A_CHILD):
            paths = []
            for number in range(start, min(start + FILES_A_CHILD, options.files)):
                suffix, parts = files[generator.integers(len(files))]
                change = CHANGES[generator.integers(len(CHANGES))]
                paths.append(folder / f"{number}-{change.__name__}{suffix}")
                write_parts(paths[-1], changed(parts, change, generator))
            for path, found in zip(paths, outcomes(paths), strict=True):
                counts.setdefault(path.suffix, Counter())[found] += 1
                if found not in GOOD:
                    kept = RESULTS / "feature_files" / path.name
                    write_parts(kept, parts_of(path))
                    print(f"{kept}: {found}", flush=True)
                remove(path)
    kinds = sorted({kind for of_kind in counts.values() for kind in of_kind})
    lines = [[name, *(counts[name][kind] for kind in kinds)] for name in sorted(counts)]
    print(table(["format", *kinds], lines))
    total = sum(counts.values(), Counter())
    print(f"{options.files} files: {dict(total)}")
    results = {
        "machine": machine_facts(gemm_gflops()),
        "files": options.files,
        "seed": options.seed,
        "total": dict(total),
        "by_format": {name: dict(of_kind) for name, of_kind in sorted(counts.items())},
    }
    print(write_json("feature_files", results))


if __name__ == "__main__":
    main()
