"""Compatibility with different versions of scikit-learn.

From version 1.9 on, estimators report their progress to callbacks (``sklearn.callback``); in
older versions nothing is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING:

    class CallbackSupportMixin:  # noqa: D101
        def set_callbacks(self, *callbacks: object) -> Any: ...  # noqa: D102
        def _init_callback_context(self, *, max_subtasks: int | None) -> Any: ...

    def with_callbacks(method: Method) -> Method: ...  # noqa: D103

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """A placeholder for versions of scikit-learn without callbacks."""

        def with_callbacks(method):
            """A placeholder for versions of scikit-learn without callbacks."""
            return method
