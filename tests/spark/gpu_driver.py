"""A driver whose executors have GPUs, by a script that answers for the machine: prints what is
seen of them as JSON."""

import json
import sys
import time

from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

from sparknet.comm.handshake import make_secret
from sparknet.comm.rpc import Link
from sparknet.comm.wire import choose_seal
from sparknet.errors import SparkError
from sparknet.spark import get_session
from sparknet.spark.cluster import executors, preflight
from sparknet.spark.hosts.resources import TaskResources
from sparknet.training.driver.driver import Driver
from tests.spark.java import start_quickly


def numbers(batches):
    """The GPU of a task, by its address and its number in the process."""
    import pyarrow as pa
    from pyspark import TaskContext

    from sparknet.spark.cluster.gpus import device_of

    for _ in batches:
        pass
    resources = TaskContext.get().resources()
    found = [str(device_of(resources)), *resources["gpu"].addresses]
    yield pa.RecordBatch.from_pydict({"found": [" ".join(found)]})


def main(script: str, seen: str, devices: list[str]) -> None:
    start_quickly()
    session = get_session(
        master="local-cluster[1,3,1024]",
        config={
            "spark.worker.resource.gpu.amount": 3,
            "spark.worker.resource.gpu.discoveryScript": script,
            "spark.executor.resource.gpu.amount": 3,
            "spark.task.resource.gpu.amount": 1,
            "spark.executorEnv.CUDA_VISIBLE_DEVICES": seen,
            "spark.ui.enabled": "false",
        },
    )
    found = executors.look(session, time.monotonic() + 60)
    said = {"executors": [[one.tasks, one.addresses] for one in found]}
    rows = session.range(0, 3, 1, 3).mapInArrow(numbers, "found string", barrier=True)
    said["numbers"] = sorted(row.found for row in rows.repartition(1).collect())
    link = Link("", ("127.0.0.1", 0), make_secret(), choose_seal("sealed"))
    with Driver(link, memoryview(b""), None, lambda _: None) as driver:
        link = driver.link
        said["preflight"] = [one["gpus"] for one in preflight.check(session, 3, link)]
        said["slots"] = [preflight.slots_of(session)]
        pair = ResourceProfileBuilder().require(TaskResourceRequests().resource("gpu", 2)).build
        both = TaskResources(session, pair)
        said["slots"].append(preflight.slots_of(session, both))
        said["pair"] = [one["gpus"] for one in preflight.check(session, 1, link, resources=both)]
        for device in devices:
            try:
                preflight.check(session, 3, link, device=device)
                said[device] = "fine"
            except SparkError as error:
                said[device] = str(error)
    print(json.dumps(said))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
