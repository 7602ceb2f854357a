"""reporting: runs a program, prints its error to stderr and returns the exit status."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from io import TextIOWrapper

from sparknet.cli.hints import hint
from sparknet.cli.verb import WrongUse
from sparknet.errors import SparkNetError, printable


def reporting(program: str, work: Callable[[], int]) -> int:
    """Do the work; returns the exit status."""
    if isinstance(sys.stdout, TextIOWrapper):
        # File names that are not valid text are printed unchanged.
        sys.stdout.reconfigure(errors="surrogateescape")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_warned, program)
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
