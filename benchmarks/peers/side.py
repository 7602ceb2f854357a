"""Side: the interface of a library, and the loop of its process."""

from __future__ import annotations

import gc
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.peers.contests import CONTESTS, Contest


class Side(ABC):
    """One library with one net."""

    @abstractmethod
    def load(self, contest: Contest, mode: str, precision: str, variant: str) -> dict[str, Any]:
        """Build the net for `mode`, train or inference; returns facts such as its parameters."""

    @abstractmethod
    def step(self) -> None:
        """Run forward, backward and update once; or forward once."""

    def choose(self, way: str) -> None:
        """Run the next steps in one of the ways that the side has; "" is the usual one."""
        if way:
            raise ValueError(f"it has no way {way!r}")

    def finish(self) -> None:  # noqa: B027
        """Wait for what a device still computes of the steps so far."""

    def memory(self) -> int:
        """The peak of this process in bytes; on a GPU what it holds there."""
        return peak_memory()


def peak_memory() -> int:
    """The peak resident size of this process in bytes."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def give_back(device: str) -> None:
    """What nobody uses any more of a GPU's memory."""
    if device.startswith("cuda"):
        import torch

        gc.collect()
        torch.cuda.empty_cache()


def held_on(device: str) -> int:
    """The bytes that PyTorch holds on a GPU, 0 for other devices."""
    if not device.startswith("cuda"):
        return 0
    import torch

    return int(torch.cuda.memory_reserved(device))


def run_steps(side: Any, steps: int, finish: Callable[[], None] = lambda: None) -> list[float]:
    """Milliseconds of each step; the last one waits for a device, which computes behind them."""
    spent = []
    for number in range(steps):
        start = time.perf_counter()
        side.step()
        if number == steps - 1:
            finish()
        spent.append((time.perf_counter() - start) * 1e3)
    return spent


def serve(
    side: Any, answer_to: Callable[[Any, dict[str, Any]], dict[str, Any]] | None = None
) -> None:
    """Answer requests, one JSON line each, until there are no more."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # keeps output of libraries out of the answers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = (answer_to or _answer)(side, request)
        except Exception as error:  # the other end reports every failure
            text = str(error).strip().splitlines()
            answer = {"error": f"{type(error).__name__}: {text[0] if text else ''}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answer(side: Side, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "load":
        names = ("mode", "precision", "variant")
        contest = CONTESTS[request["contest"]]
        if request.get("batch"):
            contest = replace(contest, batch=request["batch"])
        return side.load(contest, **{name: request[name] for name in names})
    side.choose(request.get("way", ""))
    return {"ms": run_steps(side, request["steps"], side.finish), "memory": side.memory()}
