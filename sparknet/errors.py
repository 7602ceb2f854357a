"""Every exception that sparknet raises on purpose.

::

    SparkNetError
    ├── SpecError (ValueError)         a net, layer or solver description that cannot be built
    │   ├── TextError                  a text file that does not parse: file, line, column
    │   ├── LayerError                 one layer is at fault; `.layer` is its name
    │   ├── SolverError                a solver setting is at fault
    │   └── SettingError               a setting of a strategy or of a training run is at fault
    ├── FileError (OSError)            a missing, truncated or foreign file; `.path`
    ├── WeightsError (ValueError)      weights that do not fit the net; `.layer`
    ├── DataError (ValueError)         records that a net cannot take; no more records
    ├── ArgumentError (TypeError)      an argument of a type that pycaffe's functions cannot take
    ├── ArrayError (ValueError)        an NDArray operation refused: shape, dtype, read-only
    ├── IndexOutOfRange (IndexError)   an index outside an array
    ├── OutOfMemory (MemoryError)      storage that could not be had
    ├── CommError (ConnectionError)    workers that do not reach or do not understand each other
    │   └── PeerLost                   one worker is gone or silent; `.rank`, `.where`
    ├── SparkError (RuntimeError)      a Spark session, cluster or job that training cannot use
    ├── WorkerError (RuntimeError)     a worker failed with an error that is none of these
    ├── ListenerError (RuntimeError)   a function given as on_event failed; its error is the cause
    ├── Diverged (ArithmeticError)     training whose loss or weights are no longer of use
    ├── MissingExtra (ImportError)     an optional dependency is missing or broken
    └── NativeError (RuntimeError)     the native core failed in a way that none of the others names

Each is also the matching builtin exception, so that callers can catch those."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ArgumentError",
    "ArrayError",
    "CommError",
    "DataError",
    "Diverged",
    "FileError",
    "IndexOutOfRange",
    "LayerError",
    "ListenerError",
    "MissingExtra",
    "NativeError",
    "OutOfMemory",
    "PeerLost",
    "SettingError",
    "SolverError",
    "SparkError",
    "SparkNetError",
    "SpecError",
    "TextError",
    "WeightsError",
    "WorkerError",
]

LONGEST_NAME = 200


def clean(name: object) -> str:
    """Return a name from an untrusted file, escaped and shortened for a message."""
    text = printable(str(name)).replace("\n", "\\n")
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def outside() -> int:
    """Return the stack level of the caller outside this package, for a warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("sparknet."):
        level, frame = level + 1, frame.f_back
    return level


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn where a program outside this package called it."""
    warnings.warn(message, category, stacklevel=outside())


def printable(text: str) -> str:
    """Text whose lines stay, without what a terminal would obey."""
    return "\n".join(
        "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)
        for line in text.split("\n")
    )


_FOREIGN = (__file__.removesuffix("errors.py"), f"{os.sep}IPython{os.sep}", "site-packages")
"""The files whose lines a notebook does not show."""


class SparkNetError(Exception):
    """The root of the tree.  Every error can be pickled, to be sent by Spark's workers."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, dict(vars(self)))

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the lines of the user's own code, and the sentence."""
        frames = traceback.extract_tb(self.__traceback__)
        own = [one for one in frames if not any(part in one.filename for part in _FOREIGN)]
        return [*traceback.format_list(own), f"{type(self).__name__}: {self}"]


def _rebuilt(
    kind: type[SparkNetError], args: tuple[object, ...], state: dict[str, object]
) -> SparkNetError:
    error = bare(kind, *args)
    vars(error).update(state)
    return error


def bare(kind: type[SparkNetError], *args: object) -> SparkNetError:
    """Return an error with these ``args``, made without calling its constructor.

    The base makes it, because MemoryError's own ``__new__`` refuses a class with a second base."""
    base: Any = kind.__base__
    error: SparkNetError = base.__new__(kind, *args)
    BaseException.__init__(error, *args)
    return error


class SpecError(SparkNetError, ValueError):
    """A net, layer or solver description that cannot be built."""


class TextError(SpecError):
    """A text-format file that does not parse."""

    def __init__(self, message: str, path: str = "<text>", line: int = 0, column: int = 0) -> None:
        super().__init__(f"{path}:{line}:{column}: {message}" if line else f"{path}: {message}")
        self.path, self.line, self.column = path, line, column


class LayerError(SpecError):
    """One layer is at fault."""

    def __init__(self, layer: str, message: str) -> None:
        super().__init__(f"layer '{clean(layer)}': {message}")
        self.layer = layer


class SolverError(SpecError):
    """A solver setting is at fault."""


class SettingError(SpecError):
    """A setting of a strategy or of a training run is at fault."""


class FileError(SparkNetError, OSError):
    """A file that is missing, cut short or of another format."""

    def __init__(self, path: object, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path, self.reason = str(path), message


class WeightsError(SparkNetError, ValueError):
    """Weights that do not fit the net."""

    def __init__(self, layer: str, message: str) -> None:
        super().__init__(f"layer '{clean(layer)}': {message}")
        self.layer = layer


class DataError(SparkNetError, ValueError):
    """Records that a net cannot take, or of which there are no more."""


class ArgumentError(SparkNetError, TypeError):
    """An argument of a type that a function of pycaffe's interface cannot take."""


class ArrayError(SparkNetError, ValueError):
    """An NDArray operation refused: shape, dtype, read-only."""


class IndexOutOfRange(SparkNetError, IndexError):
    """An index outside an array."""


class OutOfMemory(SparkNetError, MemoryError):
    """Storage that could not be had."""


class CommError(SparkNetError, ConnectionError):
    """Workers that do not reach or do not understand each other."""


class PeerLost(CommError):
    """One worker is gone or silent."""

    def __init__(self, rank: int, where: str, what: str, phase: str = "") -> None:
        meanwhile = f" (this worker was {phase})" if phase else ""
        super().__init__(f"worker {rank} on {where} is lost: {what}{meanwhile}")
        self.rank, self.where, self.what, self.phase = rank, where, what, phase


class SparkError(SparkNetError, RuntimeError):
    """A Spark session, cluster or job that is not as training needs it."""


class WorkerError(SparkNetError, RuntimeError):
    """A worker failed with an error that is none of sparknet's own."""


class ListenerError(SparkNetError, RuntimeError):
    """A listener to training's events failed; what it raised is the cause."""


class Diverged(SparkNetError, ArithmeticError):
    """Training whose loss or weights are no longer of use."""


class MissingExtra(SparkNetError, ImportError):
    """An optional dependency is not installed, or cannot be imported."""

    def __init__(self, package: str, extra: str, purpose: str, reason: str = "") -> None:
        package_name = f"'sparknet[{extra}]'" if extra else package
        cure = f": run pip install {package_name}"
        if reason:
            cure = f", which cannot be imported ({reason}): install versions that fit each other"
        super().__init__(f"{purpose} needs the package '{package}'{cure}")
        self.package, self.extra = package, extra


@contextmanager
def extra(package: str, name: str, purpose: str) -> Iterator[None]:
    """Import an optional package in the block; MissingExtra if that fails."""
    try:
        yield
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        reason = "" if is_missing else printable(str(error)).partition("\n")[0]
        raise MissingExtra(package, name, purpose, reason) from error


class NativeError(SparkNetError, RuntimeError):
    """The native core failed in a way that none of the others names."""
