"""``latentmetric demo``: a first look, on the digits that come with scikit-learn."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
) -> None:
    """Compare Euclid, MaPML and MaPML-O on digits, and draw the latent examples."""
    from latentmetric import demo as digits

    digits.show(out)
