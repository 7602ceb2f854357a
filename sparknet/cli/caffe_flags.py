"""The flags of the `caffe` program, which all its verbs take, also before the verb."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections import deque
from collections.abc import Collection, Sequence

from sparknet.cli import flags, glog
from sparknet.cli.gflags import Word, words_of

VALUED = (
    "gpu",
    "solver",
    "model",
    "phase",
    "level",
    "stage",
    "snapshot",
    "weights",
    "iterations",
    "sigint_effect",
    "sighup_effect",
)
SWITCHES = ("forward_only",)


def arranged(words: Sequence[str], untouched: Collection[str]) -> list[str]:
    """Move Caffe's flags after the verb, and apply and remove glog's flags.

    The words after an `untouched` verb stay as they are.
    """
    line, front = deque(words), list[str]()
    for word in words_of(line, {*SWITCHES, *glog.SWITCHES}, {*VALUED, *glog.VALUED}):
        if not word.is_flag:
            rest = list(line) if word.raw in untouched else _rest(line)
            return [word.raw, *front, *rest]
        if word.flag is None:
            return list(words)
        front += _passed(word)
    return [*front, *line]


def _rest(line: deque[str]) -> list[str]:
    kept: list[str] = []
    for word in words_of(line, {*SWITCHES, *glog.SWITCHES}, glog.VALUED):
        kept += _passed(word)
    return [*kept, *line]


def _passed(word: Word) -> list[str]:
    """The words that argparse gets for a word."""
    if word.flag is None:
        return [word.raw]
    if word.flag in SWITCHES:
        return [f"--{word.flag}"] if word.value == "true" else []
    if word.flag in VALUED:
        return [f"--{word.flag}={word.value}"]
    glog.obey(word.flag, word.value)
    return []


def add_unused(parser: ArgumentParser) -> None:
    """Accept the flags of `caffe` that this verb ignores."""
    known = parser._option_string_actions
    for name in VALUED:
        if f"--{name}" not in known:
            names = (f"-{name}", f"--{name}")
            parser.add_argument(
                *names, action=flags.Noted, note="changes nothing here", dest=SUPPRESS
            )
