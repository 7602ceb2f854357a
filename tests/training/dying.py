"""A worker process that kills itself in the middle of something: DYING=phase:rank:count.

It is sparknet.training.workers.process, but that a certain call of a certain worker is its last.
"""

import os
import signal
import sys
from time import sleep

from sparknet.comm.tcp_comm import TcpComm
from sparknet.net.learner import SolverLearner
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.workers import process as local_worker

PHASES: dict[str, tuple[type, str]] = {
    "computing": (SolverLearner, "_load"),
    "silent": (SolverLearner, "_load"),
    "sending": (TcpComm, "_go_on"),
    "receiving": (TcpComm, "_receive"),
    "snapshotting": (FolderStore, "put"),
    "committing": (FolderStore, "commit"),
}


def last(method, count, die, how):
    """The method, with its count-th call replaced by a death."""
    calls = 0

    def replaced(*arguments):
        nonlocal calls
        calls += 1
        if calls == count:
            die(*arguments)
            os.kill(os.getpid(), how)
            sleep(1.0)  # the signal may reach another thread first
        return method(*arguments)

    return replaced


def halfway(phase, method):
    """What is still done: a part of the message or of the file."""
    if phase == "sending":
        return lambda comm, one, data: comm._pipes[one][0].send(data[: len(data) // 2])
    if phase == "snapshotting":
        return lambda store, round, name, parts: method(store, round, name, parts[:-1])
    return lambda *arguments: None


def arm() -> None:
    phase, rank, count = os.environ["DYING"].split(":")
    kind, name = PHASES[phase]
    run = local_worker.run

    def armed(place, memory, worker, line):
        if worker == place.number == int(rank):
            method = getattr(kind, name)
            how = signal.SIGSTOP if phase == "silent" else signal.SIGKILL
            setattr(kind, name, last(method, int(count), halfway(phase, method), how))
        return run(place, memory, worker, line)

    local_worker.run = armed


if __name__ == "__main__":
    arm()
    sys.exit(local_worker.main(int(sys.argv[1])))
