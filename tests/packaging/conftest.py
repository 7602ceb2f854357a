from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.goldens import ROOT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make wheel` makes."""
    out = tmp_path_factory.mktemp("wheel") / "dist"
    subprocess.run([sys.executable, ROOT / ".ci" / "wheel.py", out], check=True, cwd=out.parent)
    (made,) = out.iterdir()
    return made
