"""Arguments and options that several commands share, one by one and in groups.

A group is a dataclass whose fields are options with defaults. A command takes it as one parameter,
and ``expanded`` gives the command the options in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option

from latentmetric.io.formats import FORMATS

_FORMATS = " ".join(suffix for suffix in FORMATS if not suffix.endswith(".gz"))

Features = Annotated[
    Path, Argument(help=f"File of the rows: {_FORMATS}; - is CSV on standard input.")
]
Labels = Annotated[
    Path | None,
    Argument(help="File of their labels. Default: a column or array of the first file."),
]
Model = Annotated[Path, Argument(help="A model file that fit has written.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Also replace a file of other programs.")]
Json = Annotated[bool, Option("--json", help="Print JSON, for programs.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="No notes, warnings, progress; only errors.")]


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer takes it, with the options of its groups as parameters and --quiet.

    What is not an answer goes to standard error. Errors are reported by the caller of the command.
    """
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not is_dataclass(group):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name], hints = group, get_type_hints(group, include_extras=True)
        for field in fields(group):
            own = {"default": field.default, "annotation": hints[field.name]}
            parameters.append(Parameter(field.name, Parameter.KEYWORD_ONLY, **own))
    quietly = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=Quiet)
    parameters.append(quietly)

    @wraps(command)
    def called(*, quiet: bool, **given: Any) -> None:
        for name, group in groups.items():
            own = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**own)
        with redirect_stderr(StringIO()) if quiet else nullcontext():
            command(**given)

    called.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    return called
