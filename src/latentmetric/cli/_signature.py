"""Options that several commands share, or that follow from a class, put into a signature.

Typer reads a command's options from its signature. A command takes one object, such as the
``Choice`` of how to read files, and is called with the options from which the object is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

Command = Callable[..., None]


def made_of(
    parameter: str, options: list[inspect.Parameter], make: Callable[[Mapping[str, Any]], Any]
) -> Callable[[Command], Command]:
    """Replace a parameter of a command by options, from whose values it is made."""

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        kept = [
            given.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for given in signature.parameters.values()
            if given.name != parameter
        ]

        @wraps(command)
        def called(**values: Any) -> None:
            made = {option.name: values.pop(option.name) for option in options}
            command(**values, **{parameter: make(made)})

        called.__signature__ = inspect.Signature([*kept, *options])  # type: ignore[attr-defined]
        called.__annotations__ = {given.name: given.annotation for given in [*kept, *options]}
        return called

    return decorate


def option(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """One option of a signature."""
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
