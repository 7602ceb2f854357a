"""Rerun a few failed tests alone, once, so that a busy machine fails no run of CI.

`.ci/run` names a file by SPARKNET_RETRIED.  If at most five tests of a pytest process fail, it runs
them again in a process of their own, with the same environment and plugins, after its workers have
ended.  If all pass there, the run passes and the file names them.  A broken collection is no flake.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

RETRIED = os.environ.pop("SPARKNET_RETRIED", "")
"""Where tests that passed only alone are named; taken away, so that no pytest of a test retries."""
MAX_RETRIES = 5
OUTPUT: pytest.StashKey[list[str]] = pytest.StashKey()


def plugins(arguments: Iterable[str]) -> list[str]:
    """Return the options that name plugins or the root: they are a test's environment, too."""
    words = list(arguments)
    pairs = zip(words, [*words[1:], ""], strict=True)
    return [word for pair in pairs if pair[0] in ("-p", "--rootdir") for word in pair]


def passes_alone(session, stats):
    """Rerun the failed tests of a session if they are few, and return whether all pass."""
    config = session.config
    reports = [*stats.get("failed", ()), *stats.get("error", ())]
    names = list(dict.fromkeys(report.nodeid for report in reports))
    if not RETRIED or not 0 < len(names) <= MAX_RETRIES or not all("::" in one for one in names):
        return False
    words = [sys.executable, "-m", "pytest", *plugins(config.invocation_params.args), *names]
    env = {**os.environ, "SPARKNET_SLOW_ROWS": "1"}
    done = subprocess.run(
        words, cwd=config.invocation_params.dir, env=env, capture_output=True, text=True
    )
    if done.returncode != 0:
        config.stash[OUTPUT] = ["failed alone, too:", *(done.stdout + done.stderr).splitlines()]
        return False
    config.stash[OUTPUT] = [f"passed only alone: {name}" for name in names]
    Path(RETRIED).parent.mkdir(parents=True, exist_ok=True)
    with Path(RETRIED).open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in config.stash[OUTPUT])
    return True
