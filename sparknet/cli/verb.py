"""What a verb of the command line is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """`execute` returns the exit status: 0 for success.

    A `transparent` verb runs somebody's program: its exceptions end the process with a traceback,
    as Python's own would.
    """

    name: str
    help: str
    arguments: Callable[[ArgumentParser], None]
    execute: Callable[[Namespace], int]
    transparent: bool = False


class WrongUse(Exception):
    """Flags that do not go together: exit status 2, and a hint at what would do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
