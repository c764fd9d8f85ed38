"""The parameters of the estimators as options, from their signatures, rules and docstrings.

An option belongs to all estimators that have the parameter. What is not given stays at the
estimator's own default.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from latentmetric.cli._docstrings import docstring_of
from latentmetric.cli._signature import made_of, option
from latentmetric.registry import ESTIMATORS, estimator_class
from latentmetric.validation.parameters import (
    AnyLabel,
    Boolean,
    CountOrShare,
    Number,
    OneOf,
    OrNone,
)
from latentmetric.validation.weights import BALANCED, ClassWeights

KINDS = {name.lower(): estimator_class(name) for name in ESTIMATORS}
"""The estimators by the names that commands give them."""

Estimator = StrEnum("Estimator", {name: name for name in KINDS})  # type: ignore[misc]
DEFAULT_ESTIMATOR = Estimator("mapml")

NOT_OFFERED = ("verbose", "warm_start")
"""Progress is shown anyway, and a command fits once."""

SEED = 0
"""The ``random_state`` of a command, unless another is given: the same call, the same model."""


def described(kind: type[Any]) -> dict[str, str]:
    """The text of each parameter in a class's numpydoc docstring."""
    section = re.search(r"Parameters\n-+\n(.*?)\n\n", docstring_of(kind), re.DOTALL)
    entries = re.findall(
        r"^(\w+) : .*$\n?((?:    .*\n?)*)", section[1] if section else "", re.MULTILINE
    )
    return {name: " ".join(text.split()) for name, text in entries}


TEXTS = {kind: described(kind) for kind in KINDS.values()}
"""The texts of the parameters of each estimator."""


def _all_parameters() -> dict[str, list[type[Any]]]:
    """Which estimators have each parameter."""
    having: dict[str, list[type[Any]]] = {}
    for kind in KINDS.values():
        for name in inspect.signature(kind).parameters:
            if name not in NOT_OFFERED:
                having.setdefault(name, []).append(kind)
    return having


def _option(name: str, kinds: list[type[Any]]) -> inspect.Parameter:
    of_all = len(kinds) == len(KINDS)
    panel = "Parameters of every estimator" if of_all else f"Parameters of {_named(kinds)}"
    defaults = [inspect.signature(kind).parameters[name].default for kind in kinds]
    if name == "random_state":
        defaults = [SEED] * len(kinds)
    text = f"{_first_sentence(TEXTS[kinds[0]].get(name, ''))} {_default(kinds, defaults)}"
    shown: dict[str, Any] = {"help": text, "rich_help_panel": panel}
    rule = kinds[0]._parameter_rules.get(name)
    if isinstance(rule, OrNone):
        rule = rule.rule
    if isinstance(rule, Boolean):
        flag = "--" + name.replace("_", "-")
        return option(name, Annotated[bool | None, typer.Option(flag, metavar=" ", **shown)])
    if isinstance(rule, ClassWeights):
        rule = OneOf((BALANCED,))
    if isinstance(rule, OneOf):
        offered = StrEnum(name, {word: word for word in rule.words})  # type: ignore[misc]
        return option(name, Annotated[offered | None, typer.Option(**shown)])
    if isinstance(rule, AnyLabel):
        label = typer.Option(parser=_label, metavar="LABEL", **shown)
        return option(name, Annotated[str | None, label])
    if isinstance(rule, Number | CountOrShare):
        number = typer.Option(parser=_number, metavar="NUMBER", **shown)
        return option(name, Annotated[float | None, number])
    return option(name, Annotated[int | None, typer.Option(**shown)])


def _number(text: str) -> float | int:
    """An int or a float: for some parameters an int is a count and a float a share."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _label(text: str) -> str | int:
    """A whole number if it is one, as in a column of labels."""
    try:
        return int(text)
    except ValueError:
        return text


def _default(kinds: list[type[Any]], defaults: list[Any]) -> str:
    if defaults[0] is None or isinstance(defaults[0], bool):
        return ""
    if all(default == defaults[0] for default in defaults):
        return f"(default: {defaults[0]})"
    each = zip(kinds, defaults, strict=True)
    return f"(default: {', '.join(f'{value} for {kind.__name__}' for kind, value in each)})"


def _named(kinds: list[type[Any]]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)


def _first_sentence(text: str) -> str:
    """Without the marks of docstrings, which a terminal would show as they are.

    No sentence ends within brackets: (Alg. 1) is one of its words.
    """
    ends = [found.start() for found in re.finditer(r"(?<=\.) (?=[A-Z0-9])", text)]
    first = next(
        (text[:end] for end in ends if text.count("(", 0, end) == text.count(")", 0, end)), text
    )
    return first.replace("``", "").replace("[", "\\[")


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in values.items()
        if value is not None
    }


takes_parameters = made_of(
    "parameters", [_option(name, kinds) for name, kinds in _all_parameters().items()], _given
)
"""An option for each parameter of an estimator, for a command that takes ``parameters``."""


def make_estimator(name: str, parameters: Mapping[str, Any]) -> Any:
    """An estimator with these parameters; a wrong parameter is a usage error."""
    kind = KINDS[name]
    own = inspect.signature(kind).parameters
    for parameter in parameters:
        if parameter not in own:
            having = _named(_all_parameters()[parameter])
            raise typer.BadParameter(
                f"{kind.__name__} has no such parameter; it is a parameter of {having}",
                param_hint="--" + parameter.replace("_", "-"),
            )
    seed = {"random_state": SEED} if "random_state" in own else {}
    estimator = kind(**seed | dict(parameters))
    try:
        estimator._check_parameters()
    except (OverflowError, TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    return estimator
