"""Where a barrier task runs: its address, and the GPU that Spark gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparknet.errors import SparkError
from sparknet.net.backend import CPU


def device_of(resources: Mapping[str, Any]) -> int:
    """The number of the GPU that Spark gave to a task, or CPU; ``resources`` are the task's."""
    if "gpu" not in resources:
        return CPU
    addresses = list(resources["gpu"].addresses)
    if not addresses or not addresses[0].isdecimal():
        raise SparkError(f"Spark gave the task the GPUs {addresses}: the first has no number")
    return int(addresses[0])


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
