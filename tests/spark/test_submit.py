"""spark-submit with a packed environment, on a standalone cluster of two workers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
venv_pack = pytest.importorskip("venv_pack")

from tests.spark.cluster import HOME, ROOT, Cluster, cluster, environment, until  # noqa: E402

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

pytestmark = pytest.mark.slow


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


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("submit")) as running:
        yield running


def submit(running: Cluster, *words: str, **variables: str) -> str:
    """What a program prints."""
    given = environment(running.folder) | {"PYSPARK_DRIVER_PYTHON": sys.executable} | variables
    options = ["--master", running.url, "--executor-memory", "512m"]
    done = subprocess.run(
        [str(HOME / "bin" / "spark-submit"), *options, *words],
        capture_output=True,
        text=True,
        env=given,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    until(lambda: not running.files(), "the workers' files go")
    return done.stdout


def test_a_packed_environment(running: Cluster, tmp_path: Path) -> None:
    archive = packed(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    said = submit(
        running,
        *("--archives", f"{archive}#env", "--conf", "spark.executorEnv.PYTHONPATH=", str(program)),
        PYSPARK_PYTHON="./env/bin/python",
    )
    places = [line.split()[1:] for line in said.splitlines() if line.startswith("executor")]
    assert len(places) == 2
    assert all(python.endswith("env/bin/python") for _, python in places)
    assert float(said.split("accuracy")[1]) > 0.95


@pytest.mark.parametrize("name", ["train_on_sql.py", "rdd_averaging.py"])
def test_an_example(running: Cluster, name: str) -> None:
    pytest.importorskip("sklearn")
    said = submit(running, str(ROOT / "examples" / name))
    assert float(re.findall(r"accuracy ([0-9.]+)%", said)[-1]) >= 85
