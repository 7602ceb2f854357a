"""Verb: one verb of the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verb:
    """A verb; `execute` returns the exit status, 0 for success.

    A `transparent` verb runs a user's program: its exceptions end the process with a traceback,
    as in Python itself.
    """

    name: str
    help: str
    arguments: Callable[[ArgumentParser], None]
    execute: Callable[[Namespace], int]
    transparent: bool = False


class WrongUse(Exception):
    """Flags that cannot be combined: exit status 2, and a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
