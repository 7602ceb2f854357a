"""Tool: one of Caffe's smaller programs."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparknet.cli import glog
from sparknet.cli.gflags import Word, words_of
from sparknet.cli.reporting import reporting
from sparknet.cli.verb import WrongUse

Flags = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A program; `usage` names its positional words, optional ones in brackets.

    The type of a flag's default makes it a switch, a number or a text.
    """

    name: str
    usage: str
    execute: Callable[[list[str], Flags], int]
    flags: Mapping[str, bool | int | str] = field(default_factory=dict)

    def run(self, arguments: Sequence[str]) -> int:
        """Run the program; returns the exit status."""
        if not {"-help", "--help", "-h"}.isdisjoint(arguments):
            print("\n".join(self._help()))
            return 0
        return reporting(self.name, lambda: self._started(arguments))

    def _started(self, arguments: Sequence[str]) -> int:
        words, flags = self._parsed(arguments)
        most = len(self.usage.split())
        if not most - self.usage.count("[") <= len(words) <= most:
            raise WrongUse(f"takes {self.usage}, not {len(words)} words", f"'{self.name} --help'")
        glog.begin_file(self.name)
        return self.execute(words, flags)

    def _parsed(self, arguments: Sequence[str]) -> tuple[list[str], Flags]:
        line, words, flags = deque(arguments), list[str](), Flags(self.flags)
        switches = {name for name, default in self.flags.items() if isinstance(default, bool)}
        valued = self.flags.keys() - switches
        for word in words_of(line, switches | glog.SWITCHES, valued | glog.VALUED):
            if word.flag in flags:
                flags[word.flag] = self._value(word)
            elif word.flag is not None:
                glog.obey(word.flag, word.value)
            elif word.is_flag:
                raise WrongUse(f"there is no flag '{word.raw}'", f"'{self.name} --help'")
            else:
                words.append(word.raw)
        return words + list(line)[1:], flags

    def _value(self, word: Word) -> bool | int | str:
        default = self.flags[str(word.flag)]
        if isinstance(default, bool):
            return word.value == "true"
        if isinstance(default, str):
            return word.value
        try:
            return int(word.value)
        except ValueError:
            raise WrongUse(f"{word.raw}: '{word.value}' is no number") from None

    def _help(self) -> list[str]:
        lines = [
            f"{self.name} [FLAGS] {self.usage}",
            "of sparknet, as Caffe's program of that name",
        ]
        for name, default in self.flags.items():
            shown = str(default).lower() if isinstance(default, bool) else repr(default)
            lines.append(f"  -{name}  by default {shown}")
        return lines


def said(message: str) -> None:
    """Print a line of the log in glog's format."""
    from sparknet.caffe.solvers.report import say

    say(message)


def complain(name: str, message: object) -> None:
    print(f"{name}: {message}", file=sys.stderr)
