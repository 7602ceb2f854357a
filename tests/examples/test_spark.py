"""The examples on Spark: each runs as it stands, and learns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("pyspark")
pytest.importorskip("sklearn")


def run(name: str, *words: str, figure: str = "accuracy", connect: bool = False) -> float:
    """A figure that an example prints last, in a classic session or in one of Spark Connect."""
    remote = {"SPARK_REMOTE": "local[2]"} if connect else {}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | remote,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "ERROR" not in done.stderr
    return float(re.findall(rf"{figure} ([0-9.]+)%", done.stdout)[-1]) / 100


def test_the_demo(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run("digits_spark.py", str(tmp_path)) >= 0.97
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"digits.caffemodel", "digits.jsonl", "digits.png"}


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [
        ("train_on_sql.py", (), 0.9),
        pytest.param("rdd_averaging.py", ("4",), 0.85, marks=pytest.mark.slow),
        pytest.param("mnist_spark.py", (), 0.95, marks=pytest.mark.slow),
        pytest.param("cifar10_spark.py", (), 0.8, marks=pytest.mark.slow),
        pytest.param(
            "imagenet_tars.py", ("--workers", "2", "--seconds", "60"), 0.7, marks=pytest.mark.slow
        ),
        pytest.param("featurize.py", (), 0.9, marks=pytest.mark.slow),
        pytest.param("finetune.py", (), 0.95, marks=pytest.mark.slow),
    ],
)
def test_it_learns(name: str, words: tuple[str, ...], least: float) -> None:
    assert run(name, *words) >= least


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "remote"), [("1", {"SPARK_REMOTE": "local[2]"}), ("2", {})])
def test_tables(workers: str, remote: dict[str, str]) -> None:
    """The nets are ahead of trees, and their features of the columns, in either kind of session."""
    if remote:
        pytest.importorskip("grpc_status")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "tables.py"), workers],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | remote,
    )
    assert done.returncode == 0, done.stderr
    found = {
        line.split()[0]: [*map(float, line.split()[1:])] for line in done.stdout.splitlines()[-2:]
    }
    for name, least in {"collisions": 0.88, "molecules": 0.9}.items():
        net, trees, by_features, by_columns = found[name]
        assert net > max(least, trees)
        assert by_features > by_columns + 0.05


BOTH = pytest.mark.parametrize(("workers", "connect"), [(2, False), (1, False), (2, True)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "figure", "least"),
    [
        ("detect_and_match.py", "accuracy", 0.9),
        ("segment.py", "mean IoU", 0.9),
        ("languages.py", "accuracy", 0.72),
        ("nowcast.py", "persistence by", 0.33),
    ],
)
@BOTH
def test_an_application(name: str, figure: str, least: float, workers: int, connect: bool) -> None:
    if name == "languages.py":
        pytest.importorskip("django")
    assert run(name, str(workers), figure=figure, connect=connect) >= least
