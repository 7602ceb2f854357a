"""spark-submit brings sparknet to a standalone cluster of two workers, whose Python lacks it."""

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
from tests.test_zip_import import zipped  # noqa: E402

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
    (site / "theirs.pth").write_text(f"import sys; sys.path.append({theirs!r})\n")
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


def check(cluster: Cluster, folder: Path, *words: str, python: str) -> None:
    """Both executors have sparknet from what was sent, and train."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    options = [*words, "--conf", "spark.executorEnv.PYTHONPATH="]
    said = submit(cluster, *options, str(program), PYSPARK_PYTHON=python)
    places = [line.split()[1:] for line in said.splitlines() if line.startswith("executor")]
    assert len(places) == 2
    for path, of_executor in places:
        assert of_executor.endswith(python.lstrip("."))
        assert not path.startswith(str(ROOT))
    assert float(re.findall(r"^accuracy ([0-9.]+)", said, re.M)[0]) > 0.95


def test_a_packed_environment(standalone, tmp_path):
    archive = packed(tmp_path)
    check(standalone, tmp_path, "--archives", f"{archive}#env", python="./env/bin/python")


def test_a_zip(standalone, tmp_path):
    """The wheel's own form; the Python there has what sparknet needs."""
    place = tmp_path / "theirs"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python3*/site-packages")
    (site / "theirs.pth").write_text(sysconfig.get_path("purelib"))
    python = str(place / "bin" / "python")
    check(standalone, tmp_path, "--py-files", str(zipped(tmp_path)), python=python)


@pytest.mark.parametrize("example", [["train_on_sql.py"], ["rdd_averaging.py", "4"]])
def test_an_example(standalone, example):
    pytest.importorskip("sklearn")
    name, *words = example
    said = submit(standalone, str(ROOT / "examples" / name), *words)
    assert float(re.findall(r"accuracy ([0-9.]+)%", said)[-1]) >= 85
