"""A worker process in which one worker does something slowly: SLOWLY=what:rank:seconds.

It is sparknet.training.workers.process, but that each step of this worker computes, for nothing, or
that its store takes long to write a file.
"""

import os
import sys
from collections.abc import Callable
from time import sleep, thread_time

from sparknet.net.learner import SolverLearner
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.workers import process as local_worker


def compute(seconds: float) -> None:
    until = thread_time() + seconds
    while thread_time() < until:
        pass


WHAT: dict[str, tuple[type, str, Callable[[float], None]]] = {
    "computing": (SolverLearner, "_load", compute),
    "storing": (FolderStore, "put", sleep),
}


def arm() -> None:
    what, rank, seconds = os.environ["SLOWLY"].split(":")
    kind, name, wait = WHAT[what]
    run, method = local_worker.run, getattr(kind, name)

    def slow(*arguments):
        wait(float(seconds))
        return method(*arguments)

    def armed(place, memory, worker, line):
        if worker == place.number == int(rank):
            setattr(kind, name, slow)
        return run(place, memory, worker, line)

    local_worker.run = armed


if __name__ == "__main__":
    arm()
    sys.exit(local_worker.main(int(sys.argv[1])))
