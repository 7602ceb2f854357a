"""What holds for classic sessions holds for those of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc")

pytestmark = pytest.mark.slow


def test_training_under_connect(tmp_path: Path) -> None:
    """The tests of test_trainer.py once more, in a process that has no classic session."""
    tests = Path(__file__).with_name("test_trainer.py")
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", str(tests)]
    options = ["--basetemp", str(tmp_path / "pytest")]
    variables = {**os.environ, "SPARKNET_TEST_SESSION": "connect"}
    ran = subprocess.run([*command, *options], env=variables, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
