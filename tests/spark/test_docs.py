"""docs/spark.md is true: its examples run, in order, as one program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guides import examples, run_examples


def test_examples_run(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert len(examples("spark.md")) >= 4
    done = run_examples("spark.md", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all steps are done" in done.stderr
    assert (tmp_path / "points.prototxt").is_file()
