"""Thinned: a list of bounded length that keeps the shape of a long series."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Thinned(Generic[Value]):
    """Holds the newest ``most`` values, and every n-th of the older ones.

    n is 1 until there are ``most`` older values, and doubles whenever there are more.  The first
    value stays, and the older values that stay are equally far apart.
    """

    def __init__(self, most: int) -> None:
        self._most, self._count, self._step = most, 0, 1
        self._old: list[tuple[int, Value]] = []
        """The older values, each with its number in the order of arrival."""
        self._new: deque[tuple[int, Value]] = deque()

    def add(self, value: Value) -> None:
        self._new.append((self._count, value))
        self._count += 1
        if len(self._new) > self._most:
            self._age(*self._new.popleft())

    def _age(self, number: int, value: Value) -> None:
        if number % self._step:
            return
        self._old.append((number, value))
        if len(self._old) > self._most:
            self._step *= 2
            self._old = [one for one in self._old if one[0] % self._step == 0]

    @property
    def values(self) -> list[Value]:
        """The values, oldest first."""
        return [value for _, value in (*self._old, *self._new)]
