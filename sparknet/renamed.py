"""Names that were replaced: each works for one MINOR version, with a DeprecationWarning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")
Class = TypeVar("Class")


def warn(old: str, new: str, stacklevel: int = 3) -> None:
    warnings.warn(f"{old} is called {new} now", DeprecationWarning, stacklevel)


def new_names(given: Mapping[str, Any], names: Mapping[str, str], stacklevel: int) -> Any:
    """Keywords under their new names; a value under the old name counts."""
    keywords = dict(given)
    for old in [name for name in names if name in given]:
        warn(f"{old}=", f"{names[old]}=", stacklevel + 1)
        keywords[names[old]] = keywords.pop(old)
    return keywords


def keywords(**names: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Have a function take keywords under old names, too: ``old="new"``."""

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(function)
        def call(*args: Given.args, **given: Given.kwargs) -> Result:
            return function(*args, **new_names(given, names, 3))

        return call

    return decorate


def fields(**names: str) -> Callable[[type[Class]], type[Class]]:
    """Have a dataclass know fields under old names, too: ``old="new"``."""

    def decorate(kind: type[Class]) -> type[Class]:
        make: Any = kind.__init__
        setattr(kind, "__init__", keywords(**names)(make))  # noqa: B010 - mypy refuses it as an assignment
        for old, new in names.items():
            setattr(kind, old, property(_getter(kind.__name__, old, new)))
        return kind

    return decorate


def _getter(kind: str, old: str, new: str) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        warn(f"{kind}.{old}", new)
        return getattr(self, new)

    return get


def names(module: str, **found: Any) -> Callable[[str], Any]:
    """Return a module's `__getattr__` for old names: ``old=object``."""

    def get(name: str) -> Any:
        if name not in found:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(f"{module}.{name}", found[name].__name__)
        return found[name]

    return get


def start_and_stop(function: Callable[..., Result]) -> Callable[..., Result]:
    """Have `NDArray.subarray` take start and stop, and warn of lists that meant another part."""

    @wraps(function)
    def call(array: Any, *lists: Sequence[int], **named: Sequence[int]) -> Result:
        if "stop" in named:
            begin = [*lists, named.pop("start", ())][0]
            warn("subarray(start=…, stop=…)", "subarray(offsets, shape)")
            named["shape"] = [b - a for a, b in zip(begin, named.pop("stop"), strict=True)]
            return function(array, begin, **named)
        if len(lists) == 2 and any(lists[0]):
            begin, end = lists
            limits = zip(begin, end, array.shape, strict=False)
            if all(0 <= first < last <= size for first, last, size in limits):
                message = (
                    f"subarray({begin}, {end}) takes offsets and a shape, as in the paper; "
                    f"until 0.2 it ended before {end}: write a[start:stop, …] for that"
                )
                warnings.warn(message, FutureWarning, 2)
        return function(array, *lists, **named)

    return call
