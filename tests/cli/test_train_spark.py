"""`sparknet train --spark`: what `sparknet.spark.Trainer` does, from a shell."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from sparknet.cli import main, setting_flags
from sparknet.proto import parse_solver
from tests.cli.conftest import ROOT, Task, make_task

pytest.importorskip("pyspark")


@pytest.fixture
def fresh(tmp_path):
    return make_task(tmp_path)


def train(task: Task, *words: str) -> list[str]:
    return ["train", "-solver", task.path("solver.prototxt"), "--spark", *words]


def parquet(task: Task, name: str) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pixels = [image.astype(np.uint8).tobytes() for image in task.images]
    pq.write_table(pa.table({"pixels": pixels, "kind": task.labels}), task.path(name))
    return task.path(name)


@pytest.mark.parametrize(("channels", "asks"), [(1, 1), (3, 3)])
def test_images_have_the_nets_channels(channels, asks, tmp_path, monkeypatch):
    """A net of one channel once needed --color grey on Spark, and not without."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    image.fromarray(np.zeros((6, 6, 3), np.uint8)).save(tmp_path / "a" / "x.png")
    solver = parse_solver(
        'base_lr: 0.1 lr_policy: "fixed" '
        'net_param { layer { name: "data" type: "Input" top: "data" '
        f"input_param {{ shape {{ dim: 2 dim: {channels} dim: 6 dim: 6 }} }} }} }}"
    )
    monkeypatch.setattr("sparknet.spark.read_records", lambda session, records: records)
    records = setting_flags.read_frame(None, None, [str(tmp_path)], None, solver)
    assert records.columns["data"].shape == (asks, 6, 6)


@pytest.mark.slow
def test_a_query_over_parquet(fresh, run):
    path = parquet(fresh, "columns.parquet")
    words = ["--sql", f"SELECT pixels, kind FROM parquet.`{path}`", "--validation", path]
    words += ["--columns", "data=pixels,label=kind", "--validate-every", "2"]
    words += ["-iterations", "40", "--out", fresh.path("out.caffemodel"), "--snapshot-every", "2"]
    done = run(*train(fresh, *words))
    assert done.returncode == 0, done.stderr
    printed = dict(line.split(" = ") for line in done.stdout.splitlines())
    assert float(printed["accuracy"]) > 0.9
    assert done.stderr.splitlines()[-1] == f"sparknet train: wrote {fresh.path('out.caffemodel')}"
    assert "step 40/40 100%" in done.stderr
    assert "ERROR" not in done.stderr
    assert list(fresh.folder.glob("columns_snapshots/run-*/round-*"))


def test_no_data_is_told_before_a_spark_is_started(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # where there is none: Spark cannot start
    net = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 } } }'
    (tmp_path / "solver.prototxt").write_text(
        f"net_param {{ {net} }} base_lr: 0.1 lr_policy: 'fixed' max_iter: 1"
    )
    assert main(["train", "-solver", str(tmp_path / "solver.prototxt"), "--spark"]) != 0
    assert "the net names no data\nhint: give --data SOURCE" in capsys.readouterr().err


@pytest.mark.slow
def test_the_nets_own_data(fresh, run):
    done = run(*train(fresh, "-iterations", "20", "--json", "--validate-every", "1"))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert next(e for e in events if e["event"] == "start")["records"] == 60
    assert events[-1]["reason"] == "steps"


@pytest.mark.slow
def test_ctrl_c_snapshots_and_leaves(fresh):
    words = train(fresh, "--seconds", "200", "--json", "--strategy", "averaging:steps=2")
    with subprocess.Popen(
        [sys.executable, "-m", "sparknet", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        next(line for line in process.stdout if '"round"' in line)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert '"interrupted"' in rest
    assert "Traceback" not in errors
    assert list(fresh.folder.glob("columns_snapshots/run-*/round-*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--master", "yarn"], "--master is for work on Spark"),
        (["--spark", "--sql", "SELECT 1", "--data", "x"], "give --data or --sql, not both"),
        (["--spark", "--columns", "data"], "'data' is no BLOB=COLUMN"),
    ],
)
def test_wrong_use(fresh, words, said, capsys):
    assert main(["train", "-solver", fresh.path("solver.prototxt"), *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_errors_are_one_line(fresh, run):
    done = run(*train(fresh, "--sql", "SELECT nothing"))
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "sparknet train:" in line]
    assert "nothing" in line
    assert "Traceback" not in done.stderr
