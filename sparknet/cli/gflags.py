"""Reads command lines as gflags does: ``-flag value``, ``--flag=value``, ``--noflag``."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sparknet.cli.verb import WrongUse

TRUE = frozenset({"1", "t", "true", "y", "yes"})
FALSE = frozenset({"0", "f", "false", "n", "no"})


@dataclass(frozen=True)
class Word:
    """A known flag with its value, or any other word."""

    raw: str
    flag: str | None = None
    value: str = ""

    @property
    def is_flag(self) -> bool:
        """Whether it looks like a flag, known or not."""
        return self.flag is not None or (self.raw.startswith("-") and len(self.raw) > 1)


def words_of(
    line: deque[str], switches: Collection[str], valued: Collection[str]
) -> Iterator[Word]:
    """Remove words from the line one by one, up to ``--``.

    Switches have the values "true" and "false".
    """
    while line and line[0] != "--":
        raw = line.popleft()
        name, equals, value = _split(raw)
        if name in switches:
            yield Word(raw, name, _truth(raw, value) if equals else "true")
        elif name.startswith("no") and name[2:] in switches and not equals:
            yield Word(raw, name[2:], "false")
        elif name in valued:
            if not equals and not line:
                raise WrongUse(f"{raw} needs a value")
            yield Word(raw, name, value if equals else line.popleft())
        else:
            yield Word(raw)


def _split(raw: str) -> tuple[str, str, str]:
    """A word's name, equals sign and value; the name is empty if it is no flag."""
    if not raw.startswith("-"):
        return "", "", ""
    name, equals, value = raw.removeprefix("-").removeprefix("-").partition("=")
    return name.replace("-", "_"), equals, value


def _truth(raw: str, value: str) -> str:
    if value.lower() in TRUE:
        return "true"
    if value.lower() in FALSE:
        return "false"
    raise WrongUse(f"{raw}: '{value}' is neither true nor false")
