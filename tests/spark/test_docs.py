"""The guides of Spark are true: their examples run, in order, as one program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.guides import examples, run_examples
from tests.loaders.drawn import files
from tests.net.test_images import deploy


@pytest.mark.slow
def test_the_pipelines_run(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    assert len(examples("pipelines.md")) >= 7
    done = run_examples("pipelines.md", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "models/side-net/weights.caffemodel").is_file()


@pytest.mark.slow
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


def test_examples_of_images_run(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    from sparknet import Net
    from sparknet.proto import write_text

    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    assert list(files(tmp_path / "photos"))
    net = Net(deploy(size=224).replace("num_output: 5", "num_output: 1000"), seed=1)
    write_text("deploy.prototxt", net.described)
    net.save("weights.caffemodel")
    names: dict[str, Any] = {}
    for program in examples("images.md"):
        # A relative path is one of the JVM, which may have started elsewhere.
        exec(program.replace('load("photos")', f'load("{tmp_path}/photos")'), names)
    assert len(names["scores"]) == names["scored"].count() == 40
