"""Arguments of the functions that pycaffe has in C++, checked by their types at the call."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import index
from reprlib import repr as short
from typing import Any, NoReturn, TypeVar

from sparknet.errors import ArgumentError, clean

T = TypeVar("T")


def refuse(name: str, wanted: str, value: object, hint: str = "") -> NoReturn:
    text = f"{clean(short(value))} ({type(value).__name__})"
    raise ArgumentError(f"{name} must be {wanted}; it is {text}{hint}")


def integer(name: str, value: Any, hint: str = "") -> int:
    """Return a whole number, numpy's among them."""
    try:
        return int(index(value))
    except TypeError:
        refuse(name, "a whole number", value, hint)


def text(name: str, value: Any) -> str:
    return value if isinstance(value, str) else refuse(name, "a text", value)


def path(name: str, value: Any) -> str:
    """Return the name of a file."""
    if isinstance(value, (str, os.PathLike)):
        filename = os.fspath(value)
        if isinstance(filename, str):
            return filename
    refuse(name, "the name of a file", value)


def names(name: str, value: Any) -> Sequence[str]:
    """Any number of texts; None is no text."""
    if value is None:
        return ()
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        refuse(name, "a list of names", value)
    words = list(value)
    for one in words:
        text(f"each of {name}", one)
    return words


def boolean(name: str, value: Any) -> bool:
    """Return a bool, numpy's or a whole number."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return bool(value)
    return bool(integer(name, value))


def instance(name: str, value: Any, kind: type[T], wanted: str) -> T:
    return value if isinstance(value, kind) else refuse(name, wanted, value)


def function(name: str, value: Any) -> Callable[..., Any]:
    if not callable(value):
        refuse(name, "a function", value)
    called: Callable[..., Any] = value
    return called
