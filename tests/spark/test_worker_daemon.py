"""Workers of a local session are forked from a process that has imported what they need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet.spark.worker_daemon import PACKAGES
from tests.goldens import ROOT

FORKS = """
import os, sys
from sparknet.spark.worker_daemon import load
load()
import numpy as np
found = [name in sys.modules for name in sys.argv[1:]]
print(len(os.listdir("/proc/self/task")), *found, flush=True)
for _ in range(3):
    if not (child := os.fork()):
        print(np.random.randint(2**31), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def forks(*names: str, folder: Path | None = None) -> list[str]:
    words = [sys.executable, "-c", FORKS, *names]
    path = os.pathsep.join([str(folder), *sys.path]) if folder else os.pathsep.join(sys.path)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_forks_lose_no_thread_and_draw_numbers_of_their_own():
    first, *drawn = forks(*PACKAGES)
    assert first.split() == ["1", *("True" for _ in PACKAGES)]
    assert len(set(drawn)) == 3


def test_a_package_that_prints_or_does_not_import(tmp_path):
    """Spark reads its daemon's port from what it prints first."""
    (tmp_path / "pandas.py").write_text("print('hello')\nraise ValueError('built for another')\n")
    first, *drawn = forks("pandas", "pyspark.worker", folder=tmp_path)
    assert first.split()[1:] == ["False", "True"]
    assert len(drawn) == 3


def look(batches):
    import os

    import pyarrow as pa

    for batch in batches:
        command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode().split("\0")
        yield pa.RecordBatch.from_pydict({"said": [" ".join(command)] * batch.num_rows})


def test_a_local_session_has_it(spark):
    rows = spark.range(0, 4, 1, 4).mapInArrow(look, "said string").collect()
    assert all("-m sparknet.spark.worker_daemon" in row.said for row in rows)


@pytest.mark.slow
def test_config_may_name_another():
    """In a process of its own, as a running session would be returned."""
    program = (
        "from sparknet.spark import local_session; "
        "session = local_session(1, config={'spark.python.daemon.module': 'pyspark.daemon'}); "
        "print(session.range(3).mapInArrow(lambda rows: rows, 'id long').count(), "
        "session.conf.get('spark.python.daemon.module'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["3", "pyspark.daemon"]


@pytest.mark.slow
def test_where_only_this_process_finds_sparknet():
    """As in a notebook that adds a clone to sys.path: functions without sparknet go on."""
    packages = [path for path in sys.path if path.endswith("-packages")]
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
        "from sparknet.spark import local_session; session = local_session(1); "
        "print(session.range(3).mapInArrow(lambda rows: rows, 'id long').count(), "
        "session.conf.get('spark.python.daemon.module', 'as usual'))"
    )
    python = str(Path(sys.executable).resolve())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(packages)}
    done = subprocess.run([python, "-c", program], cwd="/", env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["3", "as", "usual"], done.stderr
