"""A local session."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet.errors import MissingExtra, SparkError
from sparknet.spark import get_session, local_session
from tests.spark.conftest import SLOTS

ROOT = Path(__file__).parents[2]


def test_tasks_run_on_this_python_with_their_share_of_threads(spark):
    def look(_):
        import os
        import sys

        yield sys.executable, os.environ["OMP_NUM_THREADS"]

    context = spark.sparkContext
    assert context.parallelize([0], 1).mapPartitions(look).collect() == [(sys.executable, "1")]
    assert context.getConf().get("spark.driver.host") == "127.0.0.1"


def test_what_a_task_raises_is_not_logged_as_well(spark):
    """The job raises it: a sentence would drown in two pages of Java."""
    logger = spark._jvm.org.apache.logging.log4j.LogManager.getLogger
    assert not logger("org.apache.spark.executor.Executor").isErrorEnabled()
    assert not logger("org.apache.spark.scheduler.TaskSetManager").isErrorEnabled()
    assert logger("org.apache.spark.scheduler.DAGScheduler").isErrorEnabled()


STOPPED = """
from sparknet.net import Net
from sparknet.spark import SparkModel, Trainer, local_session
from tests.spark.digits import solver

session = local_session(1, memory="512m")
data = session.sql("SELECT array(1.0D) AS data, 1 AS label")
rdd = session.sparkContext.parallelize([1])
session.stop()
model = SparkModel(Net(solver()))
for again in (False, True):
    for use in (lambda: Trainer(solver()).fit(data), lambda: Trainer(solver()).fit(rdd),
                lambda: model.transform(data)):
        try:
            use()
        except Exception as error:
            print(type(error).__name__, error)
    local_session(1, memory="512m")
"""


@pytest.mark.slow
def test_data_of_a_session_that_was_stopped():
    ran = subprocess.run(
        [sys.executable, "-c", STOPPED], capture_output=True, text=True, check=True
    )
    said = [
        f"SparkError the Spark session of the {what} was stopped: make both again"
        for what in ("training data", "training data", "data")
    ]
    assert ran.stdout.splitlines() == said * 2


def test_a_running_session_is_taken_if_it_has_the_slots(spark):
    assert local_session(SLOTS) is spark
    with pytest.raises(SparkError, match=f"has {SLOTS} slots where 99 workers are wanted"):
        local_session(99)


BESIDE = "SparkError this process uses Spark Connect, and a local Spark cannot start beside it"
CONNECTED = """
import threading
from pyspark.sql import SparkSession
from sparknet.spark import get_session, local_session

def tell():
    try:
        local_session(1)
    except Exception as error:
        print(type(error).__name__, error)
    print(get_session() is session)

session = SparkSession.builder.remote("local[1]").getOrCreate()
tell()
other = threading.Thread(target=tell)
other.start()
other.join()
session.stop()
print(type(local_session(1, memory="512m")).__module__)
"""


@pytest.mark.slow
def test_a_local_spark_beside_spark_connect():
    pytest.importorskip("grpc")
    ran = subprocess.run(
        [sys.executable, "-c", CONNECTED], capture_output=True, text=True, check=True
    )
    told = [line.partition(":")[0] for line in ran.stdout.splitlines()]
    assert told == [BESIDE, "True", BESIDE, "True", "pyspark.sql.session"]


KILLER = """
import os
import pytest
from pyspark import SparkContext
from sparknet.errors import SparkError
from sparknet.spark import Trainer, local_session
from tests.spark.digits import pixels, solver

@pytest.fixture(scope="module")
def rows(session):
    return session.range(3)

def test_one_kills_it(session, rows):
    data = pixels(session, 8)
    SparkContext._gateway.proc.kill()
    SparkContext._gateway.proc.wait()
    trainer = Trainer(solver(), columns={"data": "pixels", "label": "digit"})
    with pytest.raises(SparkError, match="of the training data was stopped: make both again"):
        trainer.fit(data)
    assert local_session(4, memory="512m").range(5).count() == 5
    rows.count()

def test_the_next_has_another(session, rows):
    assert rows.count() == 3 and rows.sparkSession is session
"""


@pytest.mark.slow
def test_a_killed_java_ends_one_test_alone(tmp_path):
    (tmp_path / "test_killer.py").write_text(KILLER)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.spark.conftest", "-p"]
    command += ["no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout[-3000:]


@pytest.mark.parametrize("variable", ["SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE"])
def test_spark_connect_is_told_before_anything_starts(monkeypatch, variable):
    monkeypatch.setenv(variable, "sc://127.0.0.1:1")
    with pytest.raises(SparkError, match=r"take its session with get_session\(\), or stop it"):
        local_session(1)


def test_no_workers():
    with pytest.raises(SparkError, match="workers is -1: at least one is needed"):
        local_session(-1)


@pytest.mark.parametrize("module", ["grpc", "grpc_status", "google.rpc", "zstandard"])
def test_connect_without_its_packages(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"^Spark Connect needs .*sparknet\[connect\]"):
        get_session(master="sc://127.0.0.1:1")
