"""Workers that are killed or stopped, in real processes: noticed, in time, and named."""

import os
import signal
import subprocess
import sys
import threading
from time import monotonic

import pytest

from sparknet.comm.collectives import Comm
from sparknet.errors import PeerLost
from sparknet.native import NDArray
from tests.comm.groups import in_threads
from tests.comm.peer import peers

BIG = 40_000_000
"""Numbers: far more than connections hold by themselves."""
LONG = 30.0
SHORT = 2.0


def mean(comm: Comm, size: int = 1000) -> None:
    comm.mean(NDArray.zeros((size,)))


def pull(comm: Comm) -> None:
    server = comm.server(NDArray.zeros((9,)), lambda staleness: 1.0)
    server.pull(NDArray.zeros((9,)))


@pytest.mark.parametrize("wait", [mean, pull, Comm.barrier], ids=["mean", "pull", "barrier"])
def test_a_killed_worker_is_noticed_at_once(wait):
    """Also if it was only computing: long before the deadline."""
    with peers(1, LONG) as (comm, (other,)):
        other.signal(signal.SIGKILL)
        start = monotonic()
        with pytest.raises(PeerLost, match=r"worker 1 on 127\.0\.0\.1:\d+ is lost: ") as caught:
            wait(comm)
        assert monotonic() - start < LONG / 2
        assert caught.value.rank == 1


def test_killed_while_it_exchanges_a_large_buffer():
    with peers(1, LONG) as (comm, (other,)):
        other.tell("mean", BIG)

        def kill():
            """When something has arrived from it, but not all."""
            while not comm.traffic.received:
                pass
            other.signal(signal.SIGKILL)

        start = monotonic()
        found, _ = in_threads([lambda: mean(comm, BIG), kill])
        assert isinstance(found, PeerLost)
        assert (found.rank, found.phase) == (1, "taking a mean")
        assert monotonic() - start < LONG / 2


def test_a_stopped_worker_is_noticed_within_the_deadline():
    """It takes no bytes and sends none, though its connections stand."""
    with peers(1, SHORT) as (comm, (other,)):
        other.signal(signal.SIGSTOP)
        start = monotonic()
        with pytest.raises(PeerLost, match="no heartbeat for 2 s") as caught:
            mean(comm, BIG // 4)
        assert SHORT / 2 < monotonic() - start < LONG / 2
        assert (caught.value.rank, caught.value.phase) == (1, "gathering")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_all_that_are_left_name_the_one_that_is_lost(number):
    with peers(3, SHORT) as (comm, (first, second, third)):
        first.tell("barrier")
        third.tell("mean", 1000)
        second.signal(number)
        with pytest.raises(PeerLost) as caught:
            comm.barrier()
        comm.close()
        named = [caught.value, first.told(), third.told()]
        assert [error.rank for error in named] == [2, 2, 2]


def test_a_worker_that_computes_for_long_is_not_lost():
    """Twice the deadline: it is waited for, as its heart still beats."""
    with peers(1, SHORT) as (comm, (other,)):
        waiting = threading.Event()

        def wait():
            mean(comm)
            waiting.set()

        def let_it_go_on_later():
            assert not waiting.wait(2 * SHORT)
            other.tell("mean", 1000)

        assert in_threads([wait, let_it_go_on_later]) == [None, None]
        assert other.told() == "done"


def test_workers_that_were_all_paused_go_on():
    """As by a suspended machine: each of them has heard of nobody for longer than the deadline."""
    with peers(2, SHORT) as (comm, (first, second)):
        pause = (
            "import os, signal, sys, time\n"
            "processes = [int(number) for number in sys.argv[1:]]\n"
            "for process in processes: os.kill(process, signal.SIGSTOP)\n"
            f"time.sleep({2 * SHORT})\n"
            "for process in processes: os.kill(process, signal.SIGCONT)\n"
        )
        processes = [os.getpid(), *(one.process.pid for one in (first, second))]
        command = [sys.executable, "-c", pause, *map(str, processes)]
        with subprocess.Popen(command) as pausing:
            pausing.wait()
        first.tell("mean", 1000)
        second.tell("mean", 1000)
        mean(comm)
        assert [first.told(), second.told()] == ["done", "done"]
