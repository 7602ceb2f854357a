"""Symbolic sizes: polynomials over the open sizes of a model's inputs, with rounded-down quotients.

A `Size` is an int, its value for one example, and a `Size` again after any arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd, prod
from typing import Any, NoReturn

from sparknet.errors import FileError, clean

Terms = dict[tuple["Atom", ...], int]
RECORDS = "N"
"""The name of the number of records."""
_LOST = "it computes with a size that the model leaves open: give its shape"
_FINEST = 64
"""The largest denominator of a factor by which a size is scaled."""


@dataclass(frozen=True, order=True)
class Atom:
    """An open size, or a quotient that is rounded down and does not divide evenly."""

    text: str
    example: int = field(compare=False)
    dividend: int | None = field(default=None, compare=False)
    divisor: int = field(default=1, compare=False)

    def at(self, values: Mapping[str, int]) -> int:
        if self.dividend is None:
            return values[self.text]
        return evaluate(self.dividend, values) // evaluate(self.divisor, values)

    def symbols(self) -> set[str]:
        if self.dividend is None:
            return {self.text}
        return symbols(self.dividend) | symbols(self.divisor)


class Size(int):
    """A size that depends on open ones: `terms` says how."""

    terms: Terms

    @staticmethod
    def open(name: str, example: int) -> int:
        return _from_terms({(Atom(name, example),): 1})

    def at(self, values: Mapping[str, int]) -> int:
        """Return its value for other open sizes."""
        return sum(n * prod(atom.at(values) for atom in one) for one, n in self.terms.items())

    def __str__(self) -> str:
        parts = list[str]()
        for one, factor in sorted(self.terms.items(), key=lambda pair: (not pair[0], pair[0])):
            text = "·".join(atom.text for atom in one)
            number = text if text and factor == 1 else f"{factor}{text}"
            parts.append(number if not parts or factor < 0 else f"+{number}")
        return "".join(parts)

    __repr__ = __str__

    def __add__(self, other: Any) -> Any:
        if not _is_whole(other):
            return NotImplemented
        terms = dict(self.terms)
        for one, factor in _terms(other).items():
            terms[one] = terms.get(one, 0) + factor
        return _from_terms(terms)

    __radd__ = __add__

    def __neg__(self) -> int:
        return _from_terms({one: -factor for one, factor in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + -other if _is_whole(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if _is_whole(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, float):
            return _Scaled.of(self, other)
        if not _is_whole(other):
            return NotImplemented
        terms: Terms = {}
        for one, factor in self.terms.items():
            for its, times in _terms(other).items():
                both = tuple(sorted(one + its))
                terms[both] = terms.get(both, 0) + factor * times
        return _from_terms(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _floor(self, other) if _is_whole(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        """Return the quotient of the example: 0 for an index within the size, -1 from its end."""
        return int(other) // int(self) if _is_whole(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return self - _floor(self, other) * other if _is_whole(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self if _is_whole(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __truediv__(self, other: Any) -> NoReturn:
        """Refuse a number with which the net would be wrong for other sizes."""
        raise ValueError(_LOST)

    __rtruediv__ = __truediv__

    def __abs__(self) -> int:
        return self if self >= 0 else -self


class FixedSize(FileError):
    """A height or width that the exporter fixed, though the model leaves it open."""

    def __init__(self, path: str, name: str, size: int) -> None:
        super().__init__(path, f"'{clean(name)}' must be {size}: give the input's shape (shapes=)")
        self.name, self.size = name, size


class _Scaled(float):
    """A size times a fraction, until it is rounded down."""

    size: Size
    factor: Fraction

    @classmethod
    def of(cls, size: Size, factor: float) -> float:
        share = Fraction(factor).limit_denominator(_FINEST)
        product = cls(int(size) * factor)
        product.size, product.factor = size, share
        return product if float(share) == factor else float(product)

    def __floor__(self) -> int:
        return _floor(self.size * self.factor.numerator, self.factor.denominator)


def is_same(size: int, other: int) -> bool:
    """Return whether two sizes are equal for any open sizes."""
    return _terms(size - other) == {(): 0}


def symbols(size: int) -> set[str]:
    """Return the names of the open sizes that a size depends on."""
    if not isinstance(size, Size):
        return set()
    return {name for one in size.terms for atom in one for name in atom.symbols()}


def affine(size: int, length: int) -> tuple[int, int] | None:
    """Return a and b of a size a + b L for this open size L; None if it is no such size."""
    (one,) = _terms(length)
    terms = dict(_terms(size))
    slope, start = terms.pop(one, 0), terms.pop((), 0)
    return (start, slope) if slope and not terms else None


def evaluate(size: int, values: Mapping[str, int]) -> int:
    """Return a size, open or not, for these open sizes."""
    return size.at(values) if isinstance(size, Size) else size


def evaluate_all(shape: Iterable[int], values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(size, values) for size in shape)


def _is_whole(value: Any) -> bool:
    """Return whether a number is whole; a size plus a fraction is refused."""
    if isinstance(value, float):
        raise ValueError(_LOST)
    return isinstance(value, int) or hasattr(value, "__index__")


def _terms(size: int) -> Terms:
    return size.terms if isinstance(size, Size) else {(): int(size)}


def _from_terms(terms: Terms) -> int:
    terms = {one: factor for one, factor in terms.items() if factor}
    value = sum(n * prod(atom.example for atom in one) for one, n in terms.items())
    if not any(terms):
        return value
    size = Size(value)
    size.terms = terms
    return size


def _floor(size: int, other: int) -> int:
    """Return a quotient rounded down: what divides evenly, and a new atom for the rest."""
    if isinstance(other, Size):
        whole, rest = _long_division(size, other)
    else:
        factor = int(other)
        whole = _from_terms(
            {
                one: -(-n // factor) if one and n < 0 else n // factor
                for one, n in _terms(size).items()
            }
        )
        rest, other = _reduced(size - whole * factor, factor)
        if isinstance(rest, Size) and all(n == -1 for one, n in rest.terms.items() if one):
            return whole - _floor(other - 1 - rest, other)  # that is rounded up
    if not isinstance(rest, Size) and not isinstance(other, Size):
        return whole + rest // other
    is_nothing = not isinstance(rest, Size) and rest == 0
    return whole if is_nothing else whole + _quotient(rest, other)


def _reduced(size: int, factor: int) -> tuple[int, int]:
    """Take out what divides both, and a quotient of a quotient."""
    terms = _terms(size)
    common = gcd(factor, *(n for one, n in terms.items() if one))
    terms, factor = {one: n // common for one, n in terms.items()}, factor // common
    (first, times), *more = sorted(terms.items(), reverse=True) or [((), 0)]
    inner = first[0] if len(first) == times == 1 and not any(one for one, _ in more) else None
    if inner and inner.dividend is not None and not isinstance(inner.divisor, Size):
        moved = inner.dividend + sum(n for _, n in more) * inner.divisor
        return moved, factor * inner.divisor
    return _from_terms(terms), factor


def _quotient(size: int, other: int) -> int:
    text = f"floor(({size})/{other})" if isinstance(size, Size) else f"floor({size}/({other}))"
    return _from_terms({(Atom(text, int(size) // int(other), size, other),): 1})


def _long_division(size: int, other: Size) -> tuple[int, int]:
    """Divide polynomials as far as it goes without fractions."""
    lead = max(other.terms, key=lambda one: (len(one), one))
    whole, rest = 0, size
    while isinstance(rest, Size):
        part = next(
            filter(None, (_share(one, n, lead, other) for one, n in rest.terms.items())), None
        )
        if part is None:
            break
        whole, rest = whole + part, rest - part * other
    return whole, rest


def _share(one: tuple[Atom, ...], factor: int, lead: tuple[Atom, ...], other: Size) -> int:
    """Return a term by the leading one, or 0."""
    rest = list(one)
    for atom in lead:
        if atom not in rest:
            return 0
        rest.remove(atom)
    return (
        _from_terms({tuple(rest): factor // other.terms[lead]})
        if factor % other.terms[lead] == 0
        else 0
    )
