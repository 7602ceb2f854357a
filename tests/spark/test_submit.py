"""spark-submit with a packed environment, on a standalone cluster of two workers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
venv_pack = pytest.importorskip("venv_pack")

from tests.spark.cluster import HOME, ROOT, cluster, environment  # noqa: E402

PROGRAM = """
import sparknet
from sparknet.spark import Trainer, get_session
from tests.spark.digits import records, solver, tuples

def where(batches):
    import pyarrow as pa, sparknet, sys
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"path": [sparknet.__file__], "python": [sys.executable]})

spark = get_session(2)
found = spark.range(0, 2, 1, 2).mapInArrow(where, "path string, python string").collect()
for row in found:
    print("executor", row.path, row.python)
data = spark.sparkContext.parallelize(tuples(200), 3)
trained = Trainer(solver(steps=40), workers=2).fit(data, data)
print("accuracy", trained.outcome.metrics["accuracy"])
spark.stop()
"""


def packed(folder: Path) -> Path:
    """An environment with a copy of sparknet; what it needs is this one's."""
    place = folder / "env"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python3*/site-packages")
    shutil.copytree(ROOT / "sparknet", site / "sparknet")
    shutil.copytree(ROOT / "tests" / "spark", site / "tests" / "spark")
    theirs = sysconfig.get_path("purelib")
    (site / "theirs.pth").write_text(f"import site; site.addsitedir({theirs!r})\n")
    archive = folder / "env.tar.gz"
    venv_pack.pack(str(place), output=str(archive))
    return archive


@pytest.mark.slow
def test_a_packed_environment(tmp_path: Path) -> None:
    archive = packed(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    with cluster(tmp_path) as running:
        given = environment(tmp_path)
        given |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": "./env/bin/python"}
        done = subprocess.run(
            [
                str(HOME / "bin" / "spark-submit"),
                *("--master", running.url, "--archives", f"{archive}#env"),
                *("--conf", "spark.executorEnv.PYTHONPATH="),
                *("--executor-memory", "512m", str(tmp_path / "program.py")),
            ],
            capture_output=True,
            text=True,
            env=given,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    places = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("executor")]
    assert len(places) == 2
    assert all(python.endswith("env/bin/python") for _, python in places)
    assert float(done.stdout.split("accuracy")[1]) > 0.95
