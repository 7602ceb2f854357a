"""Training under Spark Connect where no executor can open a connection to the client."""

import os
import signal
from contextlib import closing

import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("pyspark")
pytest.importorskip("grpc")

from tests.spark.apart import ApartDriver, wire
from tests.spark.cluster import Driver
from tests.spark.digits import records

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path):
    """A file of rows."""
    images, labels = records(200)
    columns = {
        "pixels": [image.tobytes() for image in images],
        "digit": pa.array(labels, pa.int32()),
        "number": pa.array(range(200), pa.int32()),
    }
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    return str(tmp_path / "rows.parquet")


def test_a_client_that_nothing_reaches(connect_server, tmp_path, path):
    """The bits of a classic run, also when the client is killed and another one resumes; Ctrl-C
    ends a run with a snapshot."""
    run = {"steps": 80, "path": path, "deadline": 15.0}
    keeping = {**run, "snapshots": str(tmp_path / "snapshots"), "snapshot_every": 1}
    with closing(Driver("local[4,4]", tmp_path)) as driver:
        classic = driver.fit(**run)
        rounds = [event["round"] for event in driver.kinds("round")]

    with wire(connect_server, tmp_path):
        with closing(ApartDriver(connect_server, tmp_path)) as client:

            def kill(event):
                if event["event"] == "snapshot" and event["round"] == 2:
                    client.process.kill()

            assert client.fit(kill, **keeping) == {"ended": -signal.SIGKILL}
        with closing(ApartDriver(connect_server, tmp_path)) as client:
            ended = client.fit(**keeping, resume=True)
            assert ended.get("weights") == classic["weights"], ended
            assert [event["round"] for event in client.kinds("round")] == rounds[2:]

            def interrupt(event):
                if event["event"] == "round" and event["round"] == 1:
                    os.kill(client.process.pid, signal.SIGINT)

            stopped = client.fit(interrupt, **(keeping | {"steps": 10**6}))
            assert stopped["error"] == "Interrupted"
            newest = max((tmp_path / "snapshots").glob("run-*/round-*"), key=os.path.getmtime)
            assert str(newest) in stopped["message"]
