"""Workers that are stopped and connections that are cut at any moment: noticed within the deadline.

Real processes, SIGSTOP, and an attacker on loopback that swallows bytes without a word.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from queue import Queue

import numpy as np
import pytest

from sparknet.comm.mesh import TOGETHER, UPWARD
from sparknet.comm.rpc import Gate, Line, Link
from sparknet.comm.shared_memory import SWITCH
from sparknet.comm.wire import HMAC
from sparknet.errors import CommError, PeerLost
from sparknet.training.driver import run
from sparknet.training.driver.run import Run
from sparknet.training.local_training import train
from sparknet.training.strategies import Averaging, Downpour, Strategy
from sparknet.training.workers.local import ProcessHost
from tests.comm.groups import SECRET
from tests.goldens import ROOT
from tests.training import flows, small
from tests.training.attacker import Attacker, Cut, tap
from tests.training.test_attacks import ARRAYS, SOLVER

pytestmark = pytest.mark.slow  # deadlines are waited for

DEADLINE = 2.0
LATEST = 6 * DEADLINE
"""Seconds in which a stop or a cut is noticed, on a machine that has other work too."""
ENDLESS = {"steps": 10**6, "threads": 1, "deadline": DEADLINE}


class Clock:
    """The time since the stop or the cut."""

    def __init__(self) -> None:
        self.begun: float | None = None

    def start(self) -> None:
        self.begun = time.monotonic()

    def check(self) -> None:
        assert self.begun is not None
        assert time.monotonic() - self.begun < LATEST


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others' last words are not waited for as long."""
    monkeypatch.setattr(run, "_WORDS", 0.3)


@pytest.fixture
def processes() -> Iterator[list[int]]:
    """The numbers of the worker processes, by rank, as they start."""
    numbers: list[int] = []
    with small.on_start(lambda host: numbers.append(host.process.pid)):
        yield numbers


@pytest.fixture
def attack(monkeypatch: pytest.MonkeyPatch) -> Callable[[Attacker], None]:
    link = Run.link
    return lambda attacker: monkeypatch.setattr(Run, "link", tap(link, attacker.address))


def at_round(number, act):
    return lambda event: (
        act() if (event["event"], event.get("round")) == ("round", number) else None
    )


@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_that_is_stopped_right_after_its_start(rank):
    """It has not called yet; what it is given is more than a socket takes."""
    clock = Clock()

    def stop(host: ProcessHost) -> None:
        if host.ranks == [rank]:
            os.kill(host.process.pid, signal.SIGSTOP)
            clock.start()

    solver = small.settings()
    solver.net_param.name = "large" * 100_000
    said = rf"worker {rank} on this machine is lost: process \d+ has not called the driver, and"
    with small.on_start(stop), pytest.raises(PeerLost, match=said):
        train(solver, ARRAYS, workers=2, **ENDLESS)
    clock.check()


@pytest.mark.parametrize("workers", [1, 2])
def test_all_workers_are_stopped(workers, processes):
    clock, events = Clock(), []

    def stop() -> None:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        clock.start()

    def hear(event):
        events.append(event)
        at_round(3, stop)(event)

    said = r"worker \d on 127\.0\.0\.1 \(process \d+\) is lost: no heartbeat for 2 s"
    with pytest.raises(PeerLost, match=said):
        train(SOLVER, ARRAYS, workers=workers, on_event=hear, **ENDLESS)
    clock.check()
    assert sum(event["event"] == "failure" for event in events) == 1  # the first that is noticed


def test_a_worker_that_is_stopped_and_goes_on_in_time(processes):
    def pause() -> None:
        os.kill(processes[-1], signal.SIGSTOP)
        timer = threading.Timer(DEADLINE / 4, os.kill, (processes[-1], signal.SIGCONT))
        timer.start()

    given = {**ENDLESS, "steps": 40}
    whole = train(SOLVER, ARRAYS, workers=2, strategy=Averaging(4), **given)
    paused = train(
        SOLVER, ARRAYS, workers=2, strategy=Averaging(4), on_event=at_round(3, pause), **given
    )
    assert np.array_equal(np.array(whole.weights.flat), np.array(paused.weights.flat))


LATE = r"is lost: (\d+ bytes that it sent have not come for 2 s|what it sends does not reach)"
SILENT = r"((nothing has come from it|no heartbeat) for 2 s|no word to the driver)"
CUTS: list[tuple[str, int, Strategy, str]] = [
    ("worker 0", TOGETHER, Averaging(2), LATE),
    ("worker 0", UPWARD, Downpour(2), LATE),
    ("driver", 0, Averaging(2), SILENT),
    ("driver", 1, Averaging(2), SILENT),
]


@pytest.mark.parametrize(("who", "connection", "strategy", "said"), CUTS)
def test_a_connection_that_is_cut_without_a_word(who, connection, strategy, said, attack):
    """Heartbeats between the workers go on."""
    clock = Clock()
    with Cut(who, connection) as cut:
        attack(cut)

        def act() -> None:
            cut.now.set()
            clock.start()

        with pytest.raises(CommError, match=said):
            train(
                SOLVER, ARRAYS, workers=2, strategy=strategy, on_event=at_round(3, act), **ENDLESS
            )
        clock.check()
        assert cut.swallowed


def test_bytes_that_are_removed_between_workers(attack):
    """A hole in a record: what follows does not fit its seal, or never fills it."""
    with Cut("worker 0", TOGETHER, "up", only=1000) as cut:
        attack(cut)
        said = rf"{LATE}|what came over the connection was changed"
        with pytest.raises(PeerLost, match=said):
            train(
                SOLVER,
                ARRAYS,
                workers=2,
                strategy=Averaging(2),
                on_event=at_round(3, cut.now.set),
                **ENDLESS,
            )
        assert cut.swallowed == 1000


def test_bytes_that_are_removed_on_the_way_to_the_driver(attack):
    """Of the trained weights."""
    with Cut("driver", 0, "up", only=5000) as cut:
        attack(cut)
        cut.now.set()
        with pytest.raises(CommError, match=r"changed on the way|nothing has come|no heartbeat"):
            train(SOLVER, ARRAYS, workers=1, **{**ENDLESS, "steps": 4})
        assert cut.swallowed == 5000


@pytest.mark.parametrize(("among", "said"), [("workers", LATE), ("driver", SILENT)])
def test_a_flow_whose_packets_are_dropped(among, said):
    """By the system's own rules, in a network namespace: TCP tries again and again."""
    with ExitStack() as stack:
        try:
            inside = stack.enter_context(flows.namespace())
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"a network namespace needs iproute2 and root: {error}")
        command = [*inside, sys.executable, "-m", "tests.training.flows", among]
        settings = {**os.environ, SWITCH: "0", "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=120
        )
    assert re.search(said, ended.stdout), ended
    assert float(ended.stdout.split()[0]) < LATEST


# -- the line to the driver --------------------------------------------------------------


QUICK = 0.4
SIZE = 32 << 20
"""Bytes: more than a connection holds."""


@contextmanager
def line(serve: Callable[[Line], None], drivers_deadline: float = QUICK) -> Iterator[Line]:
    """A worker's line to a driver that serves it so."""
    gate = Gate(Link("", ("127.0.0.1", 0), SECRET, HMAC, drivers_deadline), serve)
    with (
        closing(gate),
        closing(Link("", ("127.0.0.1", gate.port), SECRET, HMAC, QUICK).dial(0)) as one,
    ):
        yield one


def late(over: threading.Event) -> Callable[[Line], None]:
    """Takes a call and its bytes when it is time, and answers."""

    def serve(one: Line) -> None:
        one.receive()
        one.is_serving = True
        over.wait()
        for _ in one.chunks(one._ahead):
            pass
        one.is_serving = False
        one.send({"done": True})

    return serve


@pytest.mark.parametrize("size", [0, SIZE])
def test_a_driver_that_is_busy_for_longer_than_the_deadline(size):
    """It says so: listeners and snapshots on slow disks take long."""
    over = threading.Event()
    with line(late(over)) as one:
        threading.Timer(4 * QUICK, over.set).start()
        assert one.call("put", [memoryview(bytes(size))])[0] == {"done": True}


@pytest.mark.parametrize(
    ("size", "said"), [(0, "nothing has come from it"), (SIZE, "it has taken no bytes")]
)
def test_a_driver_that_is_silent(size, said):
    over = threading.Event()
    with line(late(over), drivers_deadline=60.0) as one:
        try:
            with pytest.raises(
                CommError, match=rf"the driver is gone \(call 'put'\): {said} for 0.4"
            ):
                one.call("put", [memoryview(bytes(size))])
            with pytest.raises(CommError, match=said):  # and stays so
                one.call("put")
        finally:
            over.set()


def test_a_worker_that_is_silent():
    missed: Queue[str] = Queue()

    def serve(one: Line) -> None:
        try:
            while one.receive() is not None:
                one.send({})
        except OSError as error:
            missed.put(str(error))

    with line(serve) as one:
        one.call("anything")
        assert missed.get(timeout=30) == "nothing has come from it for 0.4 s"
