"""The page about MLflow is one program."""

import subprocess
import sys

import pytest

pytest.importorskip("mlflow", reason="mlflow is not installed: make test-mlflow")

from tests.guides import blocks


def test_it_runs(tmp_path):
    programs = [block.text for block in blocks("docs/mlflow.md") if block.word == "python"]
    assert len(programs) == 3
    table = """
from sparknet.spark import get_session
spark = get_session(1)
rows = [(row.tolist(),) for row in points[:5]]
data = spark.createDataFrame(rows, "data array<float>")
"""
    path = tmp_path / "page.py"
    told = """
run = mlflow.last_active_run()
print(run.info.status, run.data.metrics["loss"] < 0.5, sorted(served.columns))
print([len(row.ip) for row in predicted.collect()])
"""
    path.write_text("\n".join([*programs[:2], table, programs[2], told]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["FINISHED True ['ip']", "[2, 2, 2, 2, 2]"]
