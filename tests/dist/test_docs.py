"""docs/training.md is true: its example runs; docs/strategies.md knows every strategy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from sparknet.dist import STRATEGIES
from tests.goldens import ROOT


def test_the_example_runs_as_a_program(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lines.caffemodel").is_file()
    assert (tmp_path / "snapshots" / "round-00000010" / "manifest.json").is_file()


def test_every_setting_is_listed() -> None:
    page = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    for name, kind in STRATEGIES.items():
        assert f"`{name}`" in page
        assert f"| {kind.__name__} |" in page or f"| `{kind.__name__}(" in page
        for field in fields(kind):
            assert f"`{field.name}`" in page, f"{kind.__name__}.{field.name} is not in the guide"
