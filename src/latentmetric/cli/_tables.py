"""What commands that read tables and models share: their arguments, and what was read, told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latentmetric.cli._mistakes import tell
from latentmetric.cli._signature import made_of, option

if TYPE_CHECKING:
    from latentmetric.io import Choice, Table

FORMATS = ".csv .tsv .txt .npy .npz .h5 .zarr .parquet .arrow .feather"

Features = Annotated[Path, typer.Argument(help=f"File of the rows: {FORMATS}.")]
Labels = Annotated[
    Path | None,
    typer.Argument(help="File of their labels; else a column or array of the first file."),
]
Model = Annotated[Path, typer.Argument(help="A model that [bold]fit[/] has saved.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_PANEL = "Reading files"


def _choice(given: Any) -> Choice:
    from latentmetric.io import Choice

    return Choice(
        key=given["key"],
        label=given["label"],
        ignore=tuple(given["ignore"] or ()),
        header=given["header"],
        encoding=given["encoding"],
    )


def _reading(kind: Any, *names: str, text: str) -> Any:
    return Annotated[kind, typer.Option(*names, help=text, rich_help_panel=_PANEL)]


reads_tables = made_of(
    "choice",
    [
        option(
            "key",
            _reading(str | None, "--key", text="Array, data set or column of lists with the rows."),
        ),
        option(
            "label",
            _reading(
                str | None,
                "--label",
                text="Column or array with the labels; a number counts columns, -1 is the last.",
            ),
        ),
        option(
            "ignore",
            _reading(
                list[str] | None, "--ignore", text="A column to leave out; may be given repeatedly."
            ),
        ),
        option(
            "header",
            _reading(
                bool | None,
                "--header/--no-header",
                text="Whether the first line of text names the columns; else it is found out.",
            ),
        ),
        option(
            "encoding",
            _reading(str | None, "--encoding", text="Of text that is not UTF-8, as latin-1."),
        ),
    ],
    _choice,
)
"""Options that say how to read files, for a command that takes a ``choice``."""


def read_table(features: Path, labels: Path | None, choice: Choice) -> Table:
    """Open a table with labels and tell on standard error what was taken."""
    from latentmetric.io import open_table

    table = open_table(features, labels, choice)
    for line in table.told:
        tell(line)
    return table


def read_for(
    model: Any, features: Path, labels: Path | None, choice: Choice, labelled: bool
) -> Table:
    """Open a table of the features that a model was fitted with, by name where both have them."""
    names = getattr(model, "feature_names_in_", None)
    wanted = None if names is None or choice.key else names.tolist()
    table = read_table(features, labels, replace(choice, names=wanted, labelled=labelled))
    if table.rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"{features} has {table.rows.shape[1]} features, but the model was fitted with "
            f"{model.n_features_in_}"
        )
    if table.labels is not None and model.classes_.dtype.kind in "UO":
        # Text such as 3 is taken for a number where all the labels of a file look like that.
        return replace(table, labels=table.labels.astype(str))
    return table


def load_model(path: Path) -> Any:
    """A model, whose feature names the commands compare with the file's themselves."""
    from latentmetric import load

    return load(path)
