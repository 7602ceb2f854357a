"""What `sparknet doctor --master` asks of executors."""

import json
import os
import pickle
import platform
import socket
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import pytest

import sparknet
from sparknet.cli import main
from sparknet.errors import SparkError
from sparknet.native import onednn_isa
from sparknet.spark.cluster import executors
from tests.spark.conftest import CONNECT, SLOTS

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")


def test_what_executors_have(session):
    (found,) = executors.look(session, time.monotonic() + 60)
    assert found.tasks == (executors._TASKS if CONNECT else SLOTS)
    assert found.host == socket.gethostname()
    assert found.python == platform.python_version()
    assert found.sparknet == sparknet.__version__
    assert found.instructions == onednn_isa()
    assert found.processors == len(os.sched_getaffinity(0))
    assert list(executors.differences(found, executors.driver())) == []


def test_a_job_that_is_not_run_in_time(session):
    with pytest.raises(SparkError, match="did not run a short job in time"):
        executors.look(session, time.monotonic())


def test_a_python_without_sparknet_answers():
    """In a process of its own, which is refused sparknet."""
    from pyspark.cloudpickle import dumps

    code = (
        "import sys, pickle; sys.modules['sparknet'] = None\n"
        "work = pickle.loads(sys.stdin.buffer.read())\n"
        "print(*(batch.to_pylist()[0]['finding'] for batch in work([])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=dumps(executors._by_value()), capture_output=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sparknet"] is None
    assert found["python"] == platform.python_version()
    assert pickle.loads(dumps(executors._by_value())).__module__ == "__main__"


def test_differences_in_a_sentence_each():
    here = executors.Executors("a", 0, "3.11.7", "0.2.0", "3.2.0", "AVX2", 4, 8 << 30)
    bare = replace(here, sparknet=None, onednn=None, instructions=None)
    assert [stops for _, stops in executors.differences(bare, here)] == [True]
    there = executors.Executors("b", 2, "3.11.2", "0.1.0", "3.1.0", "AVX-512", 2, 4 << 30)
    said = list(executors.differences(there, here))
    assert [stops for _, stops in said] == [True, False, False, False, False, False]
    assert [sentence.partition(":")[0] for sentence, _ in said] == [
        "sparknet is 0.1.0 there, 0.2.0 on the driver",
        "oneDNN is 3.1.0 there, 3.2.0 on the driver",
        "Python is 3.11.2 there, 3.11.7 on the driver",
        "instructions go up to AVX-512 there, AVX2 on the driver",
        "2 processors there, 4 on the driver",
        "4.0 GiB of memory there, 8.0 GiB on the driver",
    ]


@pytest.mark.parametrize("kind", ["spark://", "sc://", "k8s://https://"])
def test_a_master_that_nobody_reaches(kind, capsys):
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        master = f"{kind}127.0.0.1:{bound.getsockname()[1]}"
        assert main(["doctor", "--json", "--master", master]) == 1
    last = json.loads(capsys.readouterr().out)["findings"][-1]
    assert last["value"].startswith(f"the master {master} cannot be reached (")
    assert not last["found"]


def test_a_listener_that_is_no_master(monkeypatch):
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        monkeypatch.setattr("sparknet.spark.cluster.session.get_session", lambda **_: time.sleep(5))
        port = silent.getsockname()[1]
        with pytest.raises(SparkError, match=r"gave no session within 0.1 s: see whether"):
            executors.examine(f"spark://127.0.0.1:{port}", 0.1)


def answers(*words):
    done = subprocess.run(
        [sys.executable, "-m", "sparknet", "doctor", "--json", *words],
        capture_output=True,
        text=True,
        timeout=180,
    )
    return {"status": done.returncode, **json.loads(done.stdout)}


@pytest.mark.slow
def test_a_cluster(standalone, tmp_path, monkeypatch):
    """Two executors; then on a Python that has Spark's packages and no sparknet."""
    monkeypatch.setenv("PYTHONPATH", str(executors.__file__).rpartition("/sparknet/")[0])
    said = answers("--master", standalone.url, "--timeout", "120")
    values = [one["value"] for one in said["findings"] if one["group"] == "executors"]
    assert said["status"] == 0, values
    (value,) = values
    assert value.startswith(f"Python {platform.python_version()}, sparknet {sparknet.__version__}")
    assert value.endswith("ran 2 tasks")
    bare = tmp_path / "bare.py"
    bare.write_text(
        "import runpy, sys\nsys.modules['sparknet'] = None\nsys.argv = sys.argv[2:]\n"
        "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {bare} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    said = answers("--master", standalone.url, "--timeout", "120")
    found = [one for one in said["findings"] if one["group"] == "executors"]
    assert said["status"] == 1
    assert ", sparknet missing, " in found[0]["value"]
    assert found[1]["value"].startswith("Python there cannot import sparknet: install it")
