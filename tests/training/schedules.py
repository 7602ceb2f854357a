"""Random schedules of hosts: killed, stopped, slow, new: python -m tests.training.schedules

Each run of four workers ends with one SHA-256 of its weights, that of the run in virtual time.
"""

import argparse
import hashlib
import logging
import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress

import numpy as np

from sparknet.training.local_training import train
from sparknet.training.strategies import AllReduce, Averaging, DiLoCo, Strategy
from sparknet.training.virtual import simulate
from tests.training import small

WORKERS = 4
MIDDLE = small.BATCH_NORM + small.DROPOUT
ADAM = small.settings('type: "Adam" base_lr: 0.01', middle=MIDDLE)
STRATEGIES: tuple[Strategy, ...] = (Averaging(4), DiLoCo(4), AllReduce(4))
ARRAYS = dict(small.records().arrays)
RUN = {"workers": WORKERS, "threads": 1, "steps": 400}


class Disturber:
    """A listener that makes things happen to hosts after rounds."""

    def __init__(self, seed: int, pause: float) -> None:
        self._random, self._pause = random.Random(seed), pause
        self.hosts = self._random.randint(1, WORKERS)
        kinds = [self._random.choice(("kill", "stop", "slow")) for _ in range(3)]
        self._due = {self._random.randint(1, 90): kind for kind in kinds}
        self._processes: list[int] = []
        self.story: list[str] = [f"{self.hosts} hosts"]

    def __call__(self, event):
        if event["event"] == "workers":
            self._processes = sorted({one["process"] for one in event["workers"]})
        if event["event"] == "joined":
            self.story.append("join")
        if event["event"] != "round":
            return
        time.sleep(0.02)  # others have time to come
        if (kind := self._due.pop(event["round"], None)) is not None:
            self.story.append(kind)
            process = self._random.choice(self._processes)
            if kind == "kill":
                _send(process, signal.SIGKILL)
            else:
                work = self._stop if kind == "stop" else self._slow
                threading.Thread(target=work, args=(process,), daemon=True).start()

    def _stop(self, process: int) -> None:
        _send(process, signal.SIGSTOP)
        time.sleep(self._pause)
        _send(process, signal.SIGCONT)

    def _slow(self, process: int) -> None:
        """Let a host run for a tenth of the time."""
        for _ in range(20):
            _send(process, signal.SIGSTOP)
            time.sleep(0.09)
            _send(process, signal.SIGCONT)
            time.sleep(0.01)


def _send(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def digest(trained):
    return hashlib.sha256(np.asarray(trained.weights.flat).tobytes()).hexdigest()


def disturbed(strategy: Strategy, seed: int, pause: float) -> tuple[str, str]:
    """The digest of a run, and what happened in it."""
    disturber = Disturber(seed, pause)
    hosts = {
        "hosts": disturber.hosts,
        "min_hosts": 1,
        "restarts": 8,
        "deadline": 2.0,
    }
    trained = train(ADAM, ARRAYS, **RUN, **hosts, strategy=strategy, on_event=disturber)
    return digest(trained), ", ".join(disturber.story)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="schedules of each strategy")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first one")
    parser.add_argument("--pause", type=float, default=60.0, help="seconds of a stop")
    given = parser.parse_args()
    logging.getLogger("sparknet.training").setLevel(logging.ERROR)
    wrong = 0
    for strategy in STRATEGIES:
        expected = digest(simulate(ADAM, ARRAYS, **RUN, strategy=strategy))
        print(f"{strategy.name} in virtual time: {expected}", flush=True)
        for seed in range(given.seed, given.seed + given.count):
            sha, story = disturbed(strategy, seed, given.pause)
            wrong += sha != expected
            print(f"{strategy.name} {seed}: {sha} ({story})", flush=True)
    print(f"{wrong} runs ended with other weights")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
