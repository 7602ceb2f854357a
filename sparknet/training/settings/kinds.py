"""Kinds of settings: which values they can have, and how these are written on a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar


@dataclass(frozen=True)
class Kind:
    """Any value: whoever uses it refuses what is wrong."""

    readable: ClassVar[bool] = True
    """Whether a text can mean a value."""
    form: ClassVar[str] = "VALUE"
    """What such a text looks like."""

    def fault(self, value: object) -> str | None:
        """Return what the value must be and is not; None where it is right."""
        return None

    def read(self, text: str) -> Any:
        """Return the value that a text means; ValueError says what it must be."""
        return text

    def _checked(self, value: Any) -> Any:
        if fault := self.fault(value):
            raise ValueError(fault)
        return value


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number."""

    form: ClassVar[str] = "N"

    least: int | None = None

    def fault(self, value: object) -> str | None:
        if not isinstance(value, int) or isinstance(value, bool):
            return "must be a whole number"
        if self.least is not None and value < self.least:
            return f"must be at least {self.least}"
        return None

    def read(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        return int(self._checked(value))


@dataclass(frozen=True)
class Numbers(Kind):
    """A whole number, or several."""

    form: ClassVar[str] = "N[,N]"

    def fault(self, value: object) -> str | None:
        values = [value] if isinstance(value, int) else value
        fine = isinstance(values, Sequence) and not any(map(Whole(1).fault, values))
        return None if fine and values else "must be whole numbers of at least 1"

    def read(self, text: str) -> Any:
        words = text.split(",")
        return self._checked([int(word) if word.isdecimal() else 0 for word in words])


@dataclass(frozen=True)
class Number(Kind):
    """A number of at least ``least``, or of more than ``above``."""

    form: ClassVar[str] = "NUMBER"

    least: float = -inf
    above: float = -inf
    finite: bool = True

    def fault(self, value: object) -> str | None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return "must be a number"
        if not value > self.above and self.above > -inf:
            return f"must be more than {self.above:g}"
        if not value >= self.least:
            return f"must be at least {self.least:g}"
        return "must be finite" if self.finite and value == inf else None

    def read(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError("must be a number") from None
        return float(self._checked(value))


@dataclass(frozen=True)
class Switch(Kind):
    """True or False."""

    def fault(self, value: object) -> str | None:
        return None if isinstance(value, int) and value in (0, 1) else "must be True or False"


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    def fault(self, value: object) -> str | None:
        if isinstance(value, str) and value in self.words:
            return None
        *others, last = (f"'{word}'" for word in self.words)
        return f"must be {', '.join(others)} or {last}"

    def read(self, text: str) -> str:
        return str(self._checked(text))


@dataclass(frozen=True)
class Name(Kind):
    """A name."""

    form: ClassVar[str] = "NAME"

    def fault(self, value: object) -> str | None:
        return None if isinstance(value, str) else "must be a name"


@dataclass(frozen=True)
class Names(Kind):
    """A list of names."""

    form: ClassVar[str] = "NAME[,NAME]"

    def fault(self, value: object) -> str | None:
        fine = isinstance(value, Sequence) and not isinstance(value, str)
        return None if fine else "must be a list of names"

    def read(self, text: str) -> list[str]:
        return text.split(",")


@dataclass(frozen=True)
class Ports(Kind):
    """Numbers of ports; 0 is any free one."""

    form: ClassVar[str] = "PORT[,PORT]"

    def fault(self, value: object) -> str | None:
        if isinstance(value, (list, tuple, range)) and all(map(_is_port, value)):
            return None
        return "must be a list of numbers up to 65535"

    def read(self, text: str) -> list[int]:
        words = text.split(",")
        return list(self._checked([int(word) if word.isdecimal() else -1 for word in words]))


@dataclass(frozen=True)
class Pairs(Kind):
    """A dict of names."""

    form: ClassVar[str] = "NAME=VALUE[,…]"

    def fault(self, value: object) -> str | None:
        return None if isinstance(value, Mapping) else "must be a dict of names"

    def read(self, text: str) -> Any:
        pairs = [part.partition("=") for part in text.split(",")]
        if not all(name and equals and value for name, equals, value in pairs):
            raise ValueError("must be NAME=VALUE[,NAME=VALUE]")
        return {name: value for name, _, value in pairs}


@dataclass(frozen=True)
class ClassWeights(Kind):
    """Numbers by label, or the word balanced."""

    form: ClassVar[str] = "LABEL=WEIGHT[,…]"

    def read(self, text: str) -> Any:
        if text == "balanced":
            return text
        numbers = Number()
        return {label: numbers.read(one) for label, one in Pairs().read(text).items()}


@dataclass(frozen=True)
class Rates(Kind):
    """Numbers by the names of layers, or by patterns of these."""

    form: ClassVar[str] = "LAYER=X[,…]"

    def fault(self, value: object) -> str | None:
        fault = "must be a dict of numbers from 0 on, by layer"
        if not isinstance(value, Mapping):
            return fault
        rate = Number(least=0)
        return fault if any(rate.fault(one) is not None for one in value.values()) else None

    def read(self, text: str) -> Any:
        rate = Number(least=0)
        return {layer: rate.read(one) for layer, one in Pairs().read(text).items()}


@dataclass(frozen=True)
class InputShapes(Kind):
    """Sizes by input; None is one that stays open, as N is in a text."""

    form: ClassVar[str] = "INPUT=Nx3x224x224[,…]"

    def fault(self, value: object) -> str | None:
        return None if isinstance(value, Mapping) else "must be a dict of shapes, by input"

    def read(self, text: str) -> Any:
        return {name: _shape(sizes) for name, sizes in Pairs().read(text).items()}


@dataclass(frozen=True)
class InputAxes(Kind):
    """Axes by input."""

    form: ClassVar[str] = "INPUT=0[,…]"

    def fault(self, value: object) -> str | None:
        fault = "must be a dict of whole numbers, by input"
        if not isinstance(value, Mapping):
            return fault
        return fault if any(Whole().fault(one) for one in value.values()) else None

    def read(self, text: str) -> Any:
        return {name: Whole().read(axis) for name, axis in Pairs().read(text).items()}


@dataclass(frozen=True)
class Unwritten(Kind):
    """Any value, but none that a command line could write."""

    readable: ClassVar[bool] = False


@dataclass(frozen=True)
class InProgram(Unwritten):
    """A value of some kind that only a program gives."""

    kind: Kind

    def fault(self, value: object) -> str | None:
        return self.kind.fault(value)


@dataclass(frozen=True)
class Callback(Unwritten):
    """A function of an event."""

    def fault(self, value: object) -> str | None:
        return None if callable(value) else "must be a function of an event"


def _shape(text: str) -> list[int | None]:
    return [None if size in ("N", "?") else Whole(0).read(size) for size in text.split("x")]


def _is_port(number: object) -> bool:
    return type(number) is int and 0 <= number < 1 << 16
