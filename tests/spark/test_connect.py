"""What holds for classic sessions holds for those of Spark Connect."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc")

from tests.spark.conftest import REMOTE

pytestmark = pytest.mark.slow

FILES = [
    "test_trainer.py",
    "test_hosts.py",
    "test_model.py",
    "test_resources.py",
    "test_stragglers.py",
    "test_stages.py",
    "test_sequences.py",
    "test_row_weights.py",
    "test_invalid.py",
    "test_column_function.py",
    "test_box_frames.py",
    "test_cutouts.py",
    "test_texts.py",
    "test_streams.py",
    "test_sources.py",
]
LONG = {
    "test_column_function.py",
    "test_invalid.py",
    "test_row_weights.py",
    "test_sequences.py",
    "test_stages.py",
}
CHOSEN = [pytest.param(one, marks=pytest.mark.long) if one in LONG else one for one in FILES]


# More than 30 s for test_stages.py and test_trainer.py, which train dozens of nets, and for seats.
@pytest.mark.parametrize("name", CHOSEN)
def test_under_connect(connect_server, tmp_path, name):
    """The tests of a file once more, in a process that has no classic session."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    options = ["--basetemp", str(tmp_path / "pytest"), str(Path(__file__).with_name(name))]
    variables = {**os.environ, "SPARKNET_TEST_SESSION": "connect", REMOTE: connect_server}
    ran = subprocess.run([*command, *options], env=variables, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
