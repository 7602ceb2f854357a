"""The shortest program of the DSL."""

import os
import subprocess
import sys
from pathlib import Path

from sparknet.proto import parse_net

ROOT = Path(__file__).resolve().parents[2]


def test_it_prints_its_prototxt_and_its_table():
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "lenet.py")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    text, _, table = done.stdout.partition("\nLayer ")
    assert parse_net(text).name == "lenet"
    assert "431,080 parameters" in table
