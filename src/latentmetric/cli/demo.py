"""``latentmetric demo``: a first look, on the digits that come with scikit-learn."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("demo"),
) -> None:
    """Show what this is for, on digits, in less than a minute; write a report.

    Compares k-NN, logistic regression, SVC and MaPML on clean images, with noise and with wrong
    labels, turns away images of an unknown digit, and then adds that digit to the model.
    """
    from latentmetric import demo as digits

    digits.show(out)
