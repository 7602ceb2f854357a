"""docs/data.md is true: its examples run, in order, as one program."""

from __future__ import annotations

import re
from pathlib import Path

from sparknet import loaders
from sparknet.loaders.opening import KINDS
from tests.guides import examples, guide, run_examples

GUIDE = guide("data.md")


def test_examples_run(tmp_path: Path) -> None:
    assert len(examples("data.md")) == 4
    done = run_examples("data.md", tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_every_kind_and_every_name_is_there() -> None:
    assert sorted(re.findall(r"^\| `(\w+)`", GUIDE, re.MULTILINE)) == sorted(KINDS)
    for name in loaders.__all__:
        if name not in ("Column", "Records"):
            assert f"{name}(" in GUIDE, f"{name} is not told of"
