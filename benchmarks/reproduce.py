"""Run the paper's experiments, draw its figures and tables, and check its claims.

    python benchmarks/reproduce.py mnist --quick

Finished trials are kept in the folder of results and not computed again. Exit codes: 0 done, 1 the
data cannot be read, 2 the command was called wrongly, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EXPERIMENTS = ("mnist", "cifar10", "cifar100", "imagenet200", "imagenet", "banking77", "clinc150")

MISTAKES = (ValueError, OSError, ImportError, MemoryError)
"""Exceptions that are shown as one line: missing or damaged data, missing libraries."""

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"], help="data set, or all")
    parser.add_argument(
        "--quick", action="store_true", help="one trial, 10,000 rows, 64 principal components"
    )
    parser.add_argument(
        "--out", type=Path, help="folder of results; default: paper-results[-quick]"
    )
    parser.add_argument(
        "--trials", type=_positive, default=5, help="trials of each random method; default: 5"
    )
    parser.add_argument("--data", type=Path, help="folder of the data; default: $LATENTMETRIC_DATA")
    parser.add_argument(
        "--report", action="store_true", help="show the results in the folder, compute nothing"
    )
    parser.add_argument(
        "--imagenet",
        type=Path,
        help="ImageNet features, an .npz of x_train, y_train, x_test, y_test; default: synthetic "
        "rows of the same size",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def compute_or_report(options: argparse.Namespace) -> None:
    """Do what the options say."""
    from reproduction.run import report, run
    from reproduction.sources import Source

    chosen = list(EXPERIMENTS) if options.experiment == "all" else [options.experiment]
    (report if options.report else run)(
        chosen,
        quick=options.quick,
        out=options.out or Path("paper-results-quick" if options.quick else "paper-results"),
        n_trials=1 if options.quick else options.trials,
        source=Source(options.data, options.imagenet),
    )


def main(arguments: list[str] | None = None) -> int:
    """Entry point; the exit code."""
    options = parser().parse_args(arguments)
    try:
        compute_or_report(options)
    except ModuleNotFoundError as error:
        print(f"Error: {error}: pip install -e '.[demo]'", file=sys.stderr)
        return 1
    except MISTAKES as error:
        print(f"Error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
