"""sparknet.dist, the name until version 0.2, has the same objects as sparknet.training."""

from __future__ import annotations

import subprocess
import sys

OLD = """
import sparknet.dist.strategies.averaging as old
import sparknet.training.strategies.averaging as new
from sparknet.dist import Averaging, train
from sparknet.dist.strategies import DiLoCo
import sparknet

assert old is new and new.__name__ == "sparknet.training.strategies.averaging"
assert sparknet.dist is sparknet.training
assert Averaging is new.Averaging and train is sparknet.train
assert DiLoCo is sparknet.training.DiLoCo
"""


def test_the_old_name_has_the_same_objects_and_warns_at_the_users_line() -> None:
    words = [sys.executable, "-W", "always", "-c", OLD]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert told == ["<string>:2: DeprecationWarning: sparknet.dist is called sparknet.training now"]


def test_a_module_that_never_was_is_named() -> None:
    words = [sys.executable, "-c", "import sparknet.dist.nothing"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert "ModuleNotFoundError: No module named 'sparknet.training.nothing'" in done.stderr
