"""Containers: what depends on YARN and Kubernetes, and on the limits of what they start.

No such cluster runs the tests, which go by recorded environments
(`tests/spark/test_containers.py`); docs/clusters.md says what was never seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import ceil
from pathlib import Path, PurePosixPath

ROOT = Path("/")
_UNITS = {"": 20, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
"""The powers of two of Spark's units; memory without a unit counts mebibytes."""
_UNLIMITED = 1 << 60
"""What version 1 of control groups says where there is no limit is more than that."""
_LEAST_OVERHEAD = 384 << 20


# -- control groups ---------------------------------------------------------------------------


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the bytes that the control groups of this process allow; None without a limit."""
    files = _files(root, "memory", "memory.max", "memory.limit_in_bytes")
    limits = [value for value in map(_whole, files) if value is not None and value < _UNLIMITED]
    return min(limits, default=None)


def processors_limit(root: Path = ROOT) -> float | None:
    """Return the processors that the control groups allow at once; None without a limit."""
    limits = [_share(path) for path in _files(root, "cpu", "cpu.max", "cpu.cfs_quota_us")]
    return min((one for one in limits if one is not None), default=None)


def _files(root: Path, controller: str, unified: str, older: str) -> list[Path]:
    """Return the files of this process's group and of those that it lies in, of either version.

    In a container a group is often seen as the root of all groups.
    """
    groups, top, paths = root / "sys/fs/cgroup", PurePosixPath("/"), []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = ["0::/", f"1:{controller}:/"]
    for line in lines:
        number, controllers, path = line.split(":", 2)
        own = PurePosixPath(path)
        if number == "0" and not controllers:
            places, name = [groups], unified
        elif controller in controllers.split(","):
            places, name = [groups / controllers, groups / controller], older
        else:
            continue
        for place in places:
            around = [own, *own.parents] if ".." not in own.parts else [top]
            paths += [place / str(one.relative_to(top)) / name for one in around]
    return [path for path in dict.fromkeys(paths) if path.is_file()]


def _whole(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max"
        return None


def _share(path: Path) -> float | None:
    """Return the cores of a file with a quota and its period, or with the period beside it."""
    try:
        words = path.read_text().split()
        if path.name == "cpu.cfs_quota_us":
            words += (path.parent / "cpu.cfs_period_us").read_text().split()
        quota, period = map(int, words)
    except (OSError, ValueError):  # "max"
        return None
    return quota / period if quota > 0 and period > 0 else None


# -- memory beside the JVM --------------------------------------------------------------------


def is_contained(master: str) -> bool:
    """Return whether executors are containers, which end when they use too much memory."""
    return master.startswith(("yarn", "k8s"))


def python_room(settings: Mapping[str, str]) -> int:
    """Return the bytes of an executor's container beside the heap of its JVM.

    They are for all Python workers of the executor, and for the rest of the JVM.
    """
    room = 0
    if own := settings.get("spark.executor.pyspark.memory"):
        room = nbytes(own)
    if overhead := settings.get("spark.executor.memoryOverhead"):
        return room + nbytes(overhead)
    older = settings.get("spark.kubernetes.memoryOverheadFactor", "0.1")
    factor = float(settings.get("spark.executor.memoryOverheadFactor", older))
    heap = nbytes(settings.get("spark.executor.memory", "1g"))
    least = settings.get("spark.executor.minMemoryOverhead")
    return room + max(int(heap * factor), nbytes(least) if least else _LEAST_OVERHEAD)


def tasks_of_executor(settings: Mapping[str, str]) -> int:
    """Return how many tasks run at once in an executor: one, unless it was given more cores."""
    cores = int(settings.get("spark.executor.cores", "1"))
    return max(cores // max(int(settings.get("spark.task.cpus", "1")), 1), 1)


def too_tight(master: str, settings: Mapping[str, str], needed: int) -> str | None:
    """Return a sentence where a container has too little memory for its workers, else None."""
    if not is_contained(master):
        return None
    tasks, room = tasks_of_executor(settings), python_room(settings)
    if tasks * needed <= room:
        return None
    return (
        f"an executor's container has {room >> 20} MiB beside its JVM, and {tasks} "
        f"worker{'s' * (tasks > 1)} in it take{'s' * (tasks == 1)} {ceil(tasks * needed / 2**20)} "
        "MiB at the least, and the records: it may be ended for that; set "
        "spark.executor.memoryOverhead to more"
    )


def nbytes(text: str) -> int:
    """Memory as Spark writes it: 512m, 2g, or a number of mebibytes."""
    match = re.fullmatch(r"(\d+)([bkmgtp]?)b?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is no memory size of Spark")
    return int(match[1]) << _UNITS[match[2]]


# -- losses -----------------------------------------------------------------------------------


def losses_allowed(master: str, settings: Mapping[str, str], workers: int) -> tuple[str, bool]:
    """Return what Spark does about lost workers, and whether it ends the application."""
    times = task_failures(master, settings)
    sentence = f"Spark starts the task of a worker {times} times (spark.task.maxFailures)"
    most = executor_failures(settings)
    direct = settings.get("spark.kubernetes.allocation.pods.allocator", "direct") == "direct"
    if not is_contained(master) or (master.startswith("k8s") and not direct):
        return f"{sentence}; then another job is begun for it", False
    within = settings.get(
        "spark.executor.failuresValidityInterval",
        settings.get("spark.yarn.executor.failuresValidityInterval"),
    )
    count = "very many" if most is None else str(most)
    sentence += f", and ends the application when {count} executors are lost"
    sentence += f" within {within}" if within else " in all, however long it runs"
    return (
        f"{sentence} (spark.executor.maxNumFailures, spark.executor.failuresValidityInterval): "
        f"allow more where machines of {workers} workers come and go",
        within is None and most is not None,
    )


def task_failures(master: str, settings: Mapping[str, str]) -> int:
    """Return how often a task may fail: of a local master once, unless its address says more."""
    if master.startswith("local"):
        match = re.fullmatch(r"local\[\s*(?:\d+|\*)\s*,\s*(\d+)\s*\]", master)
        return int(match[1]) if match else 1
    return int(settings.get("spark.task.maxFailures", "4"))


def executor_failures(settings: Mapping[str, str]) -> int | None:
    """Return how many lost executors end an application; None if it is more than anybody has.

    The rule is that of Spark's ExecutorFailureTracker.
    """
    older = settings.get("spark.yarn.max.executor.failures")
    if most := settings.get("spark.executor.maxNumFailures", older):
        return int(most)
    if settings.get("spark.dynamicAllocation.enabled", "false") == "true":
        executors = settings.get("spark.dynamicAllocation.maxExecutors")
        return None if executors is None else max(2 * int(executors), 3)
    return max(2 * int(settings.get("spark.executor.instances", "0")), 3)
