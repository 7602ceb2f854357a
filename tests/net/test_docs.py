"""docs/net.md is true: its examples run, in order, as one program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sparknet import Net, WeightCollection
from tests.goldens import ROOT
from tests.net.nets import NET

GUIDE = (ROOT / "docs" / "net.md").read_text(encoding="utf-8")


def test_examples_run(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(blocks) == 5
    program = tmp_path / "program.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program.name],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_exists() -> None:
    net = Net(NET)
    for name in re.findall(r"`net\.(\w+)", GUIDE):
        assert hasattr(net, name), name
    for name in re.findall(r"`WeightCollection\.(\w+)", GUIDE):
        assert hasattr(WeightCollection, name), name
