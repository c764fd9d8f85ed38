"""``python -m latentmetric.demo``."""

from __future__ import annotations

import argparse
from pathlib import Path

from latentmetric.characters import write_what_encodings_lack_as_codes
from latentmetric.demo import show


def main() -> None:
    """Run the demo; what it writes goes to the folder ``--out``."""
    write_what_encodings_lack_as_codes()
    parser = argparse.ArgumentParser(prog="python -m latentmetric.demo", description="A first look")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder to write to")
    show(parser.parse_args().out)


if __name__ == "__main__":
    main()
