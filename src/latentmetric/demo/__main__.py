"""``python -m latentmetric.demo``."""

from __future__ import annotations

import argparse
from pathlib import Path

from latentmetric.characters import set_stdio_errors
from latentmetric.demo import show


def main() -> None:
    """Run the demo; what it writes goes to the folder ``--out``."""
    set_stdio_errors()
    parser = argparse.ArgumentParser(prog="python -m latentmetric.demo", description="A first look")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to")
    show(parser.parse_args().out)


if __name__ == "__main__":
    main()
