"""The flags of glog, which every program of Caffe takes, and its log files."""

from __future__ import annotations

import getpass
import logging
import os
import socket
import sys
import time
from pathlib import Path

SWITCHES = frozenset(
    {
        "alsologtostderr",
        "colorlogtostderr",
        "colorlogtostdout",
        "drop_log_memory",
        "log_prefix",
        "log_utc_time",
        "log_year_in_prefix",
        "logtostderr",
        "logtostdout",
        "stop_logging_if_full_disk",
        "symbolize_stacktrace",
    }
)
VALUED = frozenset(
    {
        "alsologtoemail",
        "log_backtrace_at",
        "log_dir",
        "log_link",
        "logbuflevel",
        "logbufsecs",
        "logemaillevel",
        "logfile_mode",
        "logmailer",
        "max_log_size",
        "minloglevel",
        "stderrthreshold",
        "v",
        "vmodule",
    }
)
LEVEL, FOLDER = "minloglevel", "log_dir"


def obey(flag: str, value: str) -> None:
    """Apply a flag of glog; most change nothing, as messages always go to stderr."""
    if flag in (LEVEL, FOLDER):
        os.environ[_variable(flag)] = value


def begin_file(program: str) -> None:
    """Write the log also to a file in the folder of ``--log_dir`` or GLOG_log_dir.

    The file is named as glog names it; `program`.INFO is a link to it.
    """
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
    """A flag's value in the environment, which glog reads too."""
    return f"GLOG_{flag}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "invalid-user"
