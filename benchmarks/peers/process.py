"""A side in a process of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "sparknet": ["benchmarks.peers.ours"],
    "torch": ["benchmarks.peers.torch_side"],
    "caffe": ["benchmarks.peers.caffe_side"],
    "openvino": ["benchmarks.peers.onnx_sides", "openvino"],
    "onnxruntime": ["benchmarks.peers.onnx_sides", "onnxruntime"],
}
"""What a process runs, unless it is told otherwise."""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_ENDING = 10
"""Seconds that a side may take to end."""


class SideFailed(Exception):
    """A side failed."""


def environment(threads: int) -> dict[str, str]:
    """Environment variables that set the number of threads of all libraries."""
    return os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))


class Process:
    """Sends requests to one side; an answer may take at most `limit` seconds."""

    def __init__(
        self,
        library: str,
        python: str,
        threads: int,
        log: Path,
        limit: float,
        module: Sequence[str] = (),
        folder: Path = ROOT,
    ) -> None:
        self.library, self._limit, self._log = library, limit, log
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [python, "-m", *(module or MODULES[library])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(threads),
                cwd=folder,
                start_new_session=True,
            )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        """End the side; if it does not end by itself, kill it and the processes that it started."""
        process = self._process
        with suppress(BrokenPipeError), process.stdin, process.stdout:  # type: ignore[union-attr]
            pass
        try:
            process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def load(
        self, contest: str, mode: str, precision: str, variant: str = "", batch: int | None = None
    ) -> dict[str, Any]:
        """Build the net; ``batch`` replaces the contest's own."""
        return self.ask(
            {
                "do": "load",
                "contest": contest,
                "mode": mode,
                "precision": precision,
                "variant": variant,
                "batch": batch,
            }
        )

    def run(self, steps: int, way: str = "") -> dict[str, Any]:
        return self.ask({"do": "run", "steps": steps, "way": way})

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise SideFailed(f"{self.library}: the process has ended, see {self._log}") from None
        answer: dict[str, Any] = json.loads(self._line())
        if "error" in answer:
            raise SideFailed(f"{self.library}: {answer['error']}")
        return answer

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        end = time.monotonic() + self._limit
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([self._process.stdout], [], [], max(end - time.monotonic(), 0))[0]:
                raise SideFailed(f"{self.library}: no answer within {self._limit:.0f} s")
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                raise SideFailed(f"{self.library}: the process has ended, see {self._log}")
            line += part
        return line


def can_import(python: str, name: str) -> bool:
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    return subprocess.run([python, "-c", code], capture_output=True, cwd="/").returncode == 0


def import_cost(python: str, statement: str, rounds: int) -> dict[str, float]:
    """The least milliseconds of an import in fresh processes, and the resident bytes after it."""
    code = (
        "import time; start = time.perf_counter()\n"
        f"{statement}\n"
        "spent = time.perf_counter() - start\n"
        "import json, resource\n"
        "try:\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    size = [int(x.split()[1]) for x in lines if x.startswith('VmRSS')][0]\n"
        "except OSError:\n"
        "    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(json.dumps([spent * 1e3, size * 1024]))"
    )
    found = []
    for _ in range(rounds):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            raise SideFailed(f"{statement}: {done.stderr.strip().splitlines()[-1]}")
        found.append(json.loads(done.stdout))
    return {"ms": min(ms for ms, _ in found), "memory": max(size for _, size in found)}
