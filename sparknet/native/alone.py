"""Methods that run one at a time, and properties that are computed once.

A pass of another thread would find shapes that are only partly updated.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """A property that is computed once, as from Python 3.12 on: without a lock.

        A fork while another thread held that lock left a child that waited for it for ever.
        """

        def __init__(self, compute: Any) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


__all__ = ["Locked", "alone", "cached_property"]

P = ParamSpec("P")
R = TypeVar("R")


class Locked(Protocol):
    """What has such methods."""

    _lock: RLock


L = TypeVar("L", bound=Locked)


def alone(method: Callable[Concatenate[L, P], R]) -> Callable[Concatenate[L, P], R]:
    """Return the method, for one thread at a time."""

    @wraps(method)
    def locked(self: L, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked
