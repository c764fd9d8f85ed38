"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Context, Option

from latentmetric.io import Choice
from latentmetric.io.formats import FORMATS
from latentmetric.registry import ESTIMATORS

ANSWER_FORMATS = (".csv", ".tsv", ".parquet", ".npy")
_FORMATS = " ".join(suffix for suffix in FORMATS if not suffix.endswith(".gz"))


def _reading(*names: str, metavar: str, help: str) -> Any:  # noqa: A002
    """An option in a panel of its own, below those that people change first."""
    return Option(*names, metavar=metavar, help=help, rich_help_panel="Reading files")


Features = Annotated[
    Path, Argument(help=f"File of the rows: {_FORMATS}; - is CSV on standard input.")
]
Labels = Annotated[
    Path | None,
    Argument(help="File of their labels. Default: a column or array of the first file."),
]
Model = Annotated[Path, Argument(help="A model file that fit has written.")]

ModelOut = Annotated[Path, Option("--out", "-o", help="Model file to write.")]
AnswersOut = Annotated[
    Path | None,
    Option("--out", "-o", help=f"File to write: {' '.join(ANSWER_FORMATS)}. Else CSV is printed."),
]
Overwrite = Annotated[bool, Option("--overwrite", help="Also replace a file of other programs.")]
Json = Annotated[bool, Option("--json", help="Print JSON, for programs.")]

Estimator = Annotated[str, Option(metavar="NAME", help=" ".join(ESTIMATORS).lower())]
NLatents = Annotated[
    str | None,
    Option(metavar="NUMBER", help="Latent examples of a class: 9, or 0.1 of its rows."),
]
RandomState = Annotated[int, Option(metavar="SEED", help="The same seed gives the same model.")]
Set = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another parameter, as max_iter=9; a wrong name lists all.",
    ),
]
Impute = Annotated[
    Literal["median", "mean", "most_frequent"] | None,
    Option(metavar="HOW", help="Fill empty cells by median, mean or most_frequent."),
]
OneHot = Annotated[
    list[str] | None, Option(metavar="COLUMNS", help="Columns of categories: a,b; repeatable.")
]
Normalize = Annotated[bool, Option("--normalize", help="Scale each row to length 1.")]

Label = Annotated[
    str | None, Option(metavar="COLUMN", help="Column or array of the labels; -1 is the last.")
]
Id = Annotated[
    str | None, _reading("--id", metavar="COLUMN", help="Names of the rows, kept in the answers.")
]
Ignore = Annotated[
    list[str] | None, _reading(metavar="COLUMNS", help="Columns to leave out: a,b; repeatable.")
]
Key = Annotated[
    str | None, _reading(metavar="NAME", help="Array, or column of lists, with the features.")
]
Header = Annotated[
    bool | None,
    _reading("--header/--no-header", metavar=" ", help="Whether the first line names columns."),
]
Encoding = Annotated[str | None, _reading(metavar="NAME", help="As latin-1, if it is not UTF-8.")]
Decimal = Annotated[Literal[".", ","], _reading(metavar="MARK", help="Point or comma in numbers.")]


def table_choice(context: Context) -> Choice:
    """How to read tables, from the options of the command that runs."""
    given = context.params
    plain = {name: given[name] for name in ("label", "key", "header", "encoding", "decimal")}
    return Choice(
        **plain,
        id=given["id_"],
        ignore=given["ignore"] or (),
        categories=given.get("one_hot") or (),
        missing=given.get("impute") is not None,
    )
