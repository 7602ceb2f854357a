"""Where a barrier task runs: its address, and the GPU that Spark gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparknet.errors import SparkError
from sparknet.net.backend import CPU
from sparknet.spark.gpus import number_of


def device_of(resources: Mapping[str, Any]) -> int:
    """The number that the GPU which Spark gave to a task has in this process, or CPU;
    ``resources`` are the task's."""
    if "gpu" not in resources:
        return CPU
    addresses = list(resources["gpu"].addresses)
    if not addresses:
        raise SparkError("Spark gave the task a resource 'gpu' without an address")
    return number_of(addresses[0])


def task_host() -> str:
    """The address under which Spark knows this executor."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    address: str = context.getTaskInfos()[context.partitionId()].address
    return address.rsplit(":", 1)[0].strip("[]")


def gathered(message: str) -> tuple[int, list[str]]:
    """The number of this task of a barrier stage, and what each task said, in their order."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    return context.partitionId(), context.allGather(message)
