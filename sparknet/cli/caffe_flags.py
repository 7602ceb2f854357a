"""The flags of the `caffe` program and of glog, which all verbs take, also before the verb."""

from __future__ import annotations

import getpass
import logging
import os
import socket
import sys
import time
from argparse import SUPPRESS, ArgumentParser
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sparknet.cli import flags
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
    """Remove words from the line one by one, up to ``--``; a switch is "true" or "false"."""
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
    """Return a word's name, equals sign and value; the name is empty if it is no flag."""
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


GLOG_SWITCHES = frozenset(
    {
        *("alsologtostderr", "colorlogtostderr", "colorlogtostdout", "drop_log_memory"),
        *("log_prefix", "log_utc_time", "log_year_in_prefix", "logtostderr", "logtostdout"),
        *("stop_logging_if_full_disk", "symbolize_stacktrace"),
    }
)
GLOG_VALUED = frozenset(
    {
        *("alsologtoemail", "log_backtrace_at", "log_dir", "log_link", "logbuflevel"),
        *("logbufsecs", "logemaillevel", "logfile_mode", "logmailer", "max_log_size"),
        *("minloglevel", "stderrthreshold", "v", "vmodule"),
    }
)
LEVEL, FOLDER = "minloglevel", "log_dir"


def obey(flag: str, value: str) -> None:
    """Apply a flag of glog; most change nothing, as messages always go to stderr."""
    if flag in (LEVEL, FOLDER):
        os.environ[_variable(flag)] = value


def begin_file(program: str) -> None:
    """Write the log also to a file that glog would name, in --log_dir or GLOG_log_dir."""
    folder = os.environ.get(_variable(FOLDER))
    if not folder or os.environ.get(_variable(LEVEL), "0") not in ("", "0"):
        return
    from sparknet.caffe.modes import init_log, log_to

    now = time.strftime("%Y%m%d-%H%M%S")
    who = f"{socket.gethostname()}.{_user()}"
    path = Path(folder) / f"{program}.{who}.log.INFO.{now}.{os.getpid()}"
    try:
        handler = logging.FileHandler(path, encoding="utf-8")
        link = path.with_name(f"{program}.INFO")
        link.unlink(missing_ok=True)
        link.symlink_to(path.name)
    except OSError as error:
        # As in glog, the program runs without its log.
        print(f"{program}: no log in {folder}: {error.strerror}", file=sys.stderr)
        return
    init_log()
    log_to(handler)


def _variable(flag: str) -> str:
    """Return a flag's value in the environment, which glog reads too."""
    return f"GLOG_{flag}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "invalid-user"


CAFFE_VALUED = (
    *("gpu", "solver", "model", "phase", "level", "stage", "snapshot", "weights", "iterations"),
    *("sigint_effect", "sighup_effect"),
)
CAFFE_SWITCHES = ("forward_only",)


def arrange(words: Sequence[str], untouched: Collection[str]) -> list[str]:
    """Move Caffe's flags after the verb, and apply and remove glog's; spare an `untouched` verb."""
    line, front = deque(words), list[str]()
    for word in words_of(line, {*CAFFE_SWITCHES, *GLOG_SWITCHES}, {*CAFFE_VALUED, *GLOG_VALUED}):
        if not word.is_flag:
            rest = list(line) if word.raw in untouched else _rest(line)
            return [word.raw, *front, *rest]
        if word.flag is None:
            return list(words)
        front += _passed(word)
    return [*front, *line]


def _rest(line: deque[str]) -> list[str]:
    words: list[str] = []
    for word in words_of(line, {*CAFFE_SWITCHES, *GLOG_SWITCHES}, GLOG_VALUED):
        words += _passed(word)
    return [*words, *line]


def _passed(word: Word) -> list[str]:
    """Return the words that argparse gets for a word."""
    if word.flag is None:
        return [word.raw]
    if word.flag in CAFFE_SWITCHES:
        return [f"--{word.flag}"] if word.value == "true" else []
    if word.flag in CAFFE_VALUED:
        return [f"--{word.flag}={word.value}"]
    obey(word.flag, word.value)
    return []


def add_unused(parser: ArgumentParser) -> None:
    """Accept the flags of `caffe` that this verb ignores."""
    flags_there = parser._option_string_actions
    for name in CAFFE_VALUED:
        if f"--{name}" not in flags_there:
            names = (f"-{name}", f"--{name}")
            parser.add_argument(
                *names, action=flags.Noted, note="changes nothing here", dest=SUPPRESS
            )
