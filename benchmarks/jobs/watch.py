"""Watch: seconds, CPU seconds and the most memory of this process and all below it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_PAUSE = 0.25


class Watch:
    """Looks into /proc four times a second while a job runs."""

    def __enter__(self) -> Watch:
        self._cpu_before, self._cpu = seconds_by_process(), dict[int, float]()
        self._memory, self._ended = [0], threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._begin = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._seconds = time.perf_counter() - self._begin
        self._ended.set()
        self._thread.join()

    def figures(self) -> dict[str, Any]:
        """Return seconds, CPU seconds, and the most MB, of the whole and of each quarter."""
        cpu = sum(self._cpu.values()) - sum(self._cpu_before.get(pid, 0.0) for pid in self._cpu)
        each = -(-len(self._memory) // 4)
        begins = range(0, len(self._memory), each)
        quarters = [max(self._memory[begin : begin + each]) / 1e6 for begin in begins]
        return {
            "seconds": self._seconds,
            "cpu": cpu,
            "memory": max(quarters),
            "quarters": [*map(round, quarters)],
        }

    def _look(self) -> None:
        while True:
            is_last = self._ended.wait(_PAUSE)
            self._cpu |= seconds_by_process()
            self._memory.append(sum(map(memory, processes())))
            if is_last:
                return


def processes() -> list[int]:
    """Return this process and all below it."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(place.parent.name)] = int(fields[1])
    below, count = {os.getpid()}, 0
    while len(below) > count:
        count = len(below)
        below |= {pid for pid, parent in parents.items() if parent in below}
    return sorted(below)


def seconds_by_process() -> dict[int, float]:
    seconds = {}
    for pid in processes():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        seconds[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
    return seconds


def memory(process: int) -> int:
    """Return a process's share of memory (PSS), in bytes."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
