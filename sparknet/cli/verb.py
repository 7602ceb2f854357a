"""Verb: one verb of the command; how its words are parsed, and how its errors are printed."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import PARSER, REMAINDER, Action, ArgumentError, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from sparknet.errors import (
    FileError,
    MissingExtra,
    OutOfMemory,
    SparkNetError,
    WeightsError,
    printable,
)

MISSING = ("does not exist", "no such file", "no such file or folder", "no such folder")


def hint(error: Exception) -> str | None:
    """Return a line of advice to print after an error; None if there is none."""
    if isinstance(error, WeightsError):
        return "'sparknet show' prints the layers of a .prototxt and of a .caffemodel"
    if isinstance(error, OutOfMemory):
        return "try a smaller batch"
    if isinstance(error, MissingExtra):
        return "'sparknet doctor' lists what is installed"
    if isinstance(error, FileError) and str(error).endswith(MISSING):
        return _near(Path(error.path))
    return None


def left_out(count: int) -> str:
    """Return what is said of images that could not be read."""
    return "1 image was left out" if count == 1 else f"{count} images were left out"


def _near(path: Path) -> str | None:
    """Return a suggestion of a file with a similar name, if the wanted file does not exist."""
    try:
        if path.exists() or not path.parent.is_dir():
            return None
        names = sorted(one.name for one in path.parent.iterdir())
    except (OSError, ValueError):
        return None
    near = get_close_matches(path.name, names, 1)
    return f"did you mean '{path.with_name(near[0])}'?" if near else None


@dataclass(frozen=True)
class Verb:
    """A verb; `execute` returns the exit status, 0 for success.

    A `transparent` verb runs a user's program: its exceptions end the process with a traceback,
    as in Python itself.  `more` adds flags that take long to import: only where one is used."""

    name: str
    help: str
    arguments: Callable[[ArgumentParser], None]
    execute: Callable[[Namespace], int]
    transparent: bool = False
    more: Callable[[ArgumentParser], None] | None = None

    def add_arguments(self, parser: ArgumentParser, words: Sequence[str] | None) -> None:
        """Add what these words need; None stands for all words."""
        self.arguments(parser)
        own_flags = parser._option_string_actions.keys() - {"-h", "--help"}
        flags = {word.partition("=")[0] for word in words or () if word.startswith("-")}
        if self.more is not None and (words is None or not flags <= own_flags):
            self.more(parser)


class WrongUse(Exception):
    """Flags that cannot be combined: exit status 2, and a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Parser(ArgumentParser):
    """Names the verb with the error, and suggests similar words."""

    def __init__(self, *words: Any, **options: Any) -> None:
        """Allow no flag to be shortened: --metri may be --metric or --metrics."""
        super().__init__(*words, **{"allow_abbrev": False, **options})
        self._within = False

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nhint: '{self.prog} --help' says what it takes\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown words with the verb's name; plain words may stand anywhere."""
        if self._within:
            return super().parse_known_args(args, namespace)
        if any(action.nargs in (PARSER, REMAINDER) for action in self._actions):
            options, rest = super().parse_known_args(args, namespace)
        else:
            self._within = True
            options, rest = self.parse_known_intermixed_args(args, namespace)
        if rest:
            self._refuse(rest[0])
        return options, rest

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"'{word}' is one argument too many")
        flag = word.partition("=")[0]
        flags = [name for action in self._actions for name in action.option_strings]
        self.error(f"there is no flag '{flag}'{_similar(flag, flags)}")

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(name) for name in action.choices]
        what = [*action.option_strings, str(action.metavar or action.dest)][0]
        near = _similar(str(value), names)
        raise ArgumentError(None, f"{what}: '{value}' is none of {', '.join(names)}{near}")


def _similar(word: str, known: Iterable[str]) -> str:
    from sparknet.proto.suggest import did_you_mean  # imports protobuf, which --help does not need

    return did_you_mean(word, known)


def run_reported(program: str, work: Callable[[], int]) -> int:
    """Do the work; returns the exit status."""
    if isinstance(sys.stdout, TextIOWrapper):
        # File names that are not valid text are printed unchanged.
        sys.stdout.reconfigure(errors="surrogateescape")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_warned, program)
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            status = work()
        sys.stdout.flush()
    except SparkNetError as error:
        return _failed(program, error, hint(error), 1)
    except WrongUse as error:
        return _failed(program, error, error.hint, 2)
    except BrokenPipeError:
        # The reader of stdout is gone, so nothing may be flushed to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as interrupt:
        return _failed(program, interrupt, None, 130) if interrupt.args else 130
    return status


def _warned(program: str, message: Warning | str, *_: object) -> None:
    print(f"{program}: warning: {printable(str(message))}", file=sys.stderr)


def _failed(program: str, error: BaseException, advice: str | None, status: int) -> int:
    print(f"{program}: {printable(str(error))}", file=sys.stderr)
    if advice:
        print(f"hint: {advice}", file=sys.stderr)
    return status
