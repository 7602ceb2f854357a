"""spark-submit with a packed environment, on a standalone cluster of two workers."""

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
venv_pack = pytest.importorskip("venv_pack")

from tests.spark.cluster import HOME, ROOT, Cluster, environment, until  # noqa: E402
from tests.spark.java import quick  # noqa: E402

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


def submit(running: Cluster, *words: str, **variables: str) -> str:
    """What a program prints."""
    given = environment(running.folder) | {"PYSPARK_DRIVER_PYTHON": sys.executable} | variables
    options = ["--master", running.url, "--executor-memory", "512m"]
    options += ["--conf", f"spark.executor.extraJavaOptions={quick()}"]
    done = subprocess.run(
        [str(HOME / "bin" / "spark-submit"), *options, *words],
        capture_output=True,
        text=True,
        env=given,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    until(lambda: not running.files(), "the workers' files go")
    return done.stdout


def test_a_packed_environment(standalone, tmp_path):
    archive = packed(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    said = submit(
        standalone,
        *("--archives", f"{archive}#env", "--conf", "spark.executorEnv.PYTHONPATH=", str(program)),
        PYSPARK_PYTHON="./env/bin/python",
    )
    places = [line.split()[1:] for line in said.splitlines() if line.startswith("executor")]
    assert len(places) == 2
    assert all(python.endswith("env/bin/python") for _, python in places)
    assert float(re.findall(r"^accuracy ([0-9.]+)", said, re.M)[0]) > 0.95


@pytest.mark.parametrize("example", [["train_on_sql.py"], ["rdd_averaging.py", "4"]])
def test_an_example(standalone, example):
    pytest.importorskip("sklearn")
    name, *words = example
    said = submit(standalone, str(ROOT / "examples" / name), *words)
    assert float(re.findall(r"accuracy ([0-9.]+)%", said)[-1]) >= 85
