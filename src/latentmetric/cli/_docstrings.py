"""Docstrings as the texts of help, also under ``python -OO``, which drops them from memory."""

from __future__ import annotations

import ast
import inspect
from textwrap import dedent
from typing import Any


def docstring_of(thing: Any) -> str:
    """The docstring of a class or function, if need be out of its source; empty without either."""
    if thing.__doc__ is not None:
        return inspect.cleandoc(thing.__doc__)
    try:
        source = inspect.getsource(thing)
    except OSError:
        return ""
    (node,) = ast.parse(dedent(source)).body
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    return ast.get_docstring(node) or ""
