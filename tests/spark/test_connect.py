"""What holds for classic sessions holds for those of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc")

FILES = [
    "test_trainer.py",
    "test_model.py",
    "test_stragglers.py",
    "test_stages.py",
    "test_sequences.py",
    "test_row_weights.py",
    "test_invalid.py",
    "test_column_function.py",
    "test_pictures.py",
    "test_cutting.py",
]


@pytest.mark.slow
def test_under_connect(tmp_path: Path) -> None:
    """The tests of these files once more, in a process that has no classic session."""
    tests = [str(Path(__file__).with_name(name)) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests]
    options = ["--basetemp", str(tmp_path / "pytest")]
    variables = {**os.environ, "SPARKNET_TEST_SESSION": "connect"}
    ran = subprocess.run([*command, *options], env=variables, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
