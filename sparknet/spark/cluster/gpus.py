"""GPUs and tasks: Spark's and CUDA's names of them, where a task runs, and turns on a GPU."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from sparknet.errors import SparkError
from sparknet.net.backend import CPU

_LISTED = re.compile(r"^GPU (\d+): .*\(UUID: ([^)]+)\)|^ +MIG .*\(UUID: ([^)]+)\)", re.MULTILINE)


@dataclass(frozen=True)
class ListedGpu:
    """A GPU of the machine, by the driver's number and name, and its parts (MIG)."""

    number: int
    uuid: str
    parts: tuple[str, ...] = ()


def listing() -> str:
    """Return what ``nvidia-smi -L`` says; nothing where there is none."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def listed(text: str) -> list[ListedGpu]:
    """Return the GPUs of a listing."""
    gpus: list[ListedGpu] = []
    for number, uuid, part in _LISTED.findall(text):
        if uuid:
            gpus.append(ListedGpu(int(number), uuid))
        elif gpus:
            last = gpus.pop()
            gpus.append(ListedGpu(last.number, last.uuid, (*last.parts, part)))
    return gpus


def models() -> list[str]:
    """Return what GPUs the machine has, of each kind how many."""
    counts = Counter(re.findall(r"^GPU \d+: (.*?) \(UUID", listing(), re.MULTILINE))
    return [f"{many} x {model}" if many > 1 else model for model, many in counts.items()]


def number_of(address: str, text: str | None = None) -> int:
    """Return the number under which this process has the GPU of an address that Spark gave: the
    driver's number, or the UUID of a GPU or of a part.  ``text`` is the listing, if it is
    known.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None and address.isdecimal():
        return int(address)
    if visible is not None:
        entries = [entry.strip() for entry in visible.split(",")]
        if address in entries:
            return entries.index(address)
    machine = listed(listing() if text is None else text)
    if visible is not None:
        names = _names(address, machine)
        for number, entry in enumerate(entries):
            # CUDA takes the beginning of a UUID for it.
            is_uuid = bool(entry) and not entry.isdecimal()
            if entry in names or (is_uuid and any(name.startswith(entry) for name in names)):
                return number
        raise SparkError(
            f"Spark gave the task the GPU {address}, which CUDA_VISIBLE_DEVICES={visible!r} hides"
        )
    return _number_of_all(address, machine)


def _names(address: str, machine: Sequence[ListedGpu]) -> set[str]:
    """Return an address and the other name of the same GPU."""
    for gpu in machine:
        if address in (str(gpu.number), gpu.uuid):
            return {str(gpu.number), gpu.uuid}
    return {address}


def _number_of_all(address: str, machine: Sequence[ListedGpu]) -> int:
    """Return the same where the process sees all GPUs: of parts CUDA shows it the first alone."""
    for gpu in machine:
        if address == gpu.uuid:
            return gpu.number
    parts = [part for gpu in machine for part in gpu.parts]
    if address in parts[:1]:
        return 0
    if address in parts:
        raise SparkError(
            f"Spark gave the task {address}, and CUDA shows a process one part of a GPU: start "
            f"the executor with CUDA_VISIBLE_DEVICES={address}"
        )
    names = ", ".join([*(gpu.uuid for gpu in machine), *parts]) or "none"
    raise SparkError(
        f"Spark gave the task the GPU {address}, and nvidia-smi -L lists others: {names}"
    )


def device_of(resources: Mapping[str, Any]) -> int:
    """Return the number that the GPU which Spark gave to a task has in this process, or CPU;
    ``resources`` are the task's."""
    if "gpu" not in resources:
        return CPU
    addresses = list(resources["gpu"].addresses)
    if not addresses:
        raise SparkError("Spark gave the task a resource 'gpu' without an address")
    return number_of(addresses[0])


def task_host() -> str:
    """Return the address under which Spark knows this executor."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    address: str = context.getTaskInfos()[context.partitionId()].address
    return address.rsplit(":", 1)[0].strip("[]")


def gathered(message: str) -> tuple[int, list[str]]:
    """Return the number of this task of a barrier stage, and what each task said, in order."""
    from pyspark import BarrierTaskContext

    context = BarrierTaskContext.get()
    return context.partitionId(), context.allGather(message)


PATIENCE = 600.0
"""Seconds that a task may wait for its turn."""
_PAUSES = 0.001, 0.05


@dataclass(frozen=True)
class Turns:
    """So many turns on a GPU; processes that name fewer of them use the first ones."""

    gpu: str
    most: int
    patience: float = PATIENCE

    @contextmanager
    def take(self) -> Iterator[None]:
        """Take a turn once one is free; SparkError if others keep them all."""
        if not sys.platform.startswith("linux"):
            raise SparkError(f"tasks_per_gpu={self.most} needs Linux")
        deadline, pause = time.monotonic() + self.patience, _PAUSES[0]
        while (number := self._free()) is None:
            if time.monotonic() >= deadline:
                raise SparkError(
                    f"other tasks kept all turns on {self.gpu} for {self.patience:g} s: let more "
                    f"of them compute at once (tasks_per_gpu={self.most})"
                )
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
        with closing(number):
            yield

    def _free(self) -> socket.socket | None:
        for number in range(self.most):
            tried = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                tried.bind(f"\0sparknet/{self.gpu}/{number}")
                return tried
            except OSError as error:
                tried.close()
                if error.errno != errno.EADDRINUSE:
                    raise SparkError(f"no turn on {self.gpu}: {error.strerror}") from error
        return None
