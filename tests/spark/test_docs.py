"""docs/spark.md is true: its examples run, in order, as one program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.goldens import ROOT

GUIDE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")


def test_examples_run(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(blocks) >= 4
    (tmp_path / "program.py").write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "all steps are done" in done.stderr
    assert (tmp_path / "points.prototxt").is_file()
