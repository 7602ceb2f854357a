"""docs/data.md is true: its examples run, in order, as one program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sparknet import loaders
from sparknet.loaders.opening import KINDS
from tests.goldens import ROOT

GUIDE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def test_examples_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(blocks) == 4
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_every_kind_and_every_name_is_there() -> None:
    assert sorted(re.findall(r"^\| `(\w+)`", GUIDE, re.MULTILINE)) == sorted(KINDS)
    for name in loaders.__all__:
        if name not in ("Column", "Records"):
            assert f"{name}(" in GUIDE, f"{name} is not told of"
