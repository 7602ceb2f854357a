"""The guides of docs/: what they say, and their examples as programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.goldens import ROOT


def guide(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def examples(name: str) -> list[str]:
    """The Python in a guide, block by block."""
    return re.findall(r"```python\n(.*?)```", guide(name), re.DOTALL)


def run_examples(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """All of a guide's examples, in order, as one program that runs in a folder."""
    (folder / "program.py").write_text("\n".join(examples(name)), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        check=False,
    )
