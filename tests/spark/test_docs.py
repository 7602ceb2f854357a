"""The guides of Spark are true: their examples run, in order, as one program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guides import examples, run_examples


@pytest.mark.slow
def test_the_pipelines_run(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert len(examples("pipelines.md")) >= 7
    done = run_examples("pipelines.md", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "models/side-net/weights.caffemodel").is_file()


def test_examples_run(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert len(examples("spark.md")) >= 4
    done = run_examples("spark.md", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "all steps are done" in done.stderr
    assert (tmp_path / "points.prototxt").is_file()


@pytest.mark.slow
def test_examples_of_predicting_run(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("PIL")
    assert len(examples("predicting.md")) >= 4
    done = run_examples("predicting.md", tmp_path)
    assert done.returncode == 0, done.stderr
