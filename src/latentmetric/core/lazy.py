"""A property that is computed when it is first read and then kept, without a lock.

``functools.cached_property`` of Python 3.11 holds one lock for all instances of a class while it
computes. A process that forks at that moment gives its child a lock that nobody releases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy_property(Generic[Value]):  # noqa: N801 - used like ``property``
    """Computes a value once and keeps it in the instance's ``__dict__``, even of a frozen one.

    Threads that read it at the same time may each compute it, so it must be the same every time.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> lazy_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any]) -> Value: ...

    def __get__(self, instance: object | None, owner: type[Any]) -> Value | lazy_property[Value]:
        """The value; Python calls this only as long as ``__dict__`` does not have it."""
        if instance is None:
            return self
        value: Value = vars(instance).setdefault(self._name, self._compute(instance))
        return value
