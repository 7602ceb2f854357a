"""Stops and cuts at random moments: python -m tests.training.stops RUNS SEED

Each run of `sparknet.train` has a deadline, and something happens to it: workers are stopped
(SIGSTOP), some of them go on later, a connection is cut without a word, or loses some bytes, or the
system drops the packets of a flow (as root, in a network namespace).  Every run must end by itself:
with its weights where nobody misses anything, else with an error, and soon after the deadline.  No
process and no file may be left.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sparknet.comm.shared_memory import SWITCH
from sparknet.errors import CommError
from sparknet.training.driver.run import Run
from sparknet.training.local_training import train
from sparknet.training.strategies import AllReduce, Averaging, Downpour, DynamicAveraging, Strategy
from tests.training import flows
from tests.training.attacker import Cut, tap
from tests.training.small import on_start
from tests.training.test_attacks import ARRAYS, SOLVER

DEADLINE = 2.0
TRAINING = 5.0
"""Seconds that a run takes where nothing is missed."""
PATIENCE = 90.0
"""Seconds without an event after which a run hangs, on a machine that does other work too."""
INSIDE = "SPARKNET_TEST_NAMESPACE"
"""The variable that says that this process is in a namespace of its own."""
STRATEGIES: list[Strategy] = [
    Averaging(2),
    AllReduce(),
    Downpour(2),
    DynamicAveraging(0.0, check_every=2),
    Averaging(3, codec="int8"),
]


@dataclass
class Fault:
    """What happens to one run, and when."""

    kind: str
    workers: int
    strategy: Strategy
    after: float
    """Seconds from the start of the first process, or from the first round."""
    is_late: bool
    """Whether it is from the first round."""
    ranks: list[int]
    """Workers that are stopped."""
    pause: float
    """Seconds after which they go on, for `pause`."""
    cut: Cut | None
    keeps: bool
    """Whether the run writes snapshots."""

    @classmethod
    def drawn(cls, draw: random.Random) -> Fault:
        kinds = ["stop", "stop", "pause", "cut", "cut", "hole"]
        kind = draw.choice([*kinds, "drop", "drop"] if INSIDE in os.environ else kinds)
        workers = draw.choice([1, 2, 2, 3])
        cut = None
        if kind in ("cut", "hole"):
            who = draw.choice(["driver", *(f"worker {rank}" for rank in range(workers - 1))])
            above = workers if who == "driver" else 4 * (workers - 1 - int(who[-1]))
            only = 0 if kind == "cut" else draw.choice([1, 16, 1000])
            connection = 0 if draw.random() < 0.3 else draw.randrange(above)
            cut = Cut(who, connection, draw.choice(["both", "up", "down"]), only)
        return cls(
            kind,
            workers,
            draw.choice(STRATEGIES),
            draw.uniform(0, TRAINING),
            draw.random() < 0.7,
            draw.sample(range(workers), draw.randint(1, workers)),
            draw.uniform(0, 2 * DEADLINE),
            cut,
            draw.random() < 0.3,
        )

    def __str__(self) -> str:
        what = f"{self.kind} of {self.ranks}"
        if self.cut is not None:
            cut = self.cut
            what = f"{self.kind} of {cut._who}'s {cut._connection} {cut._way} ({cut._only})"
        since = "first round" if self.is_late else "start"
        about = f"{self.workers} workers, {self.strategy.name}"
        return f"{what}, {about}, {self.after:.2f} s after the {since}"


@dataclass
class Watched:
    """The processes of a run, and what is done to them."""

    fault: Fault
    processes: list[int] = field(default_factory=list)
    timers: list[threading.Timer] = field(default_factory=list)
    hung: bool = False
    begun: float = 0.0
    acted: float | None = None
    heard: float = 0.0

    def start(self, process: int) -> None:
        self.processes.append(process)
        if len(self.processes) == 1:
            self.begun = time.monotonic()
            self._look()
            if not self.fault.is_late:
                self.later(self.fault.after, self.act)

    def hear(self, event):
        if event["event"] != "standstill":
            self.heard = time.monotonic()
        if self.fault.is_late and (event["event"], event.get("round")) == ("round", 1):
            self.later(self.fault.after, self.act)

    def later(self, seconds, act):
        self.timers.append(threading.Timer(seconds, act))
        self.timers[-1].daemon = True
        self.timers[-1].start()

    def act(self) -> None:
        fault, self.acted = self.fault, time.monotonic()
        if fault.cut is not None:
            fault.cut.now.set()
        elif fault.kind == "drop":
            for sender, receiver in random.sample(pairs := self.flows(), min(1, len(pairs))):
                flows.drop(sender, receiver)
        else:
            self.stop()

    def flows(self) -> list[tuple[int, int]]:
        """The ports, sender's and receiver's, of the flows of which one is dropped."""
        return [(sender, receiver) for _, sender, receiver in flows.flows()]

    def stop(self) -> None:
        processes = [
            self.processes[rank] for rank in self.fault.ranks if rank < len(self.processes)
        ]
        send(processes, signal.SIGSTOP)
        if self.fault.kind == "pause":
            self.later(self.fault.pause, lambda: send(processes, signal.SIGCONT))

    def _look(self) -> None:
        """End a run of which nothing was heard for long."""
        since = time.monotonic() - max(self.begun, self.heard, self.acted or 0)
        if since > PATIENCE:
            self.give_up(self.processes)
        else:
            self.later(PATIENCE - since + 1, self._look)

    def give_up(self, processes: Sequence[int]) -> None:
        self.hung = True
        faulthandler.dump_traceback()
        send(processes, signal.SIGKILL)

    def close(self) -> None:
        for timer in self.timers:
            timer.cancel()
        if self.fault.kind == "drop":
            flows.restore()


def send(processes: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to those of the processes that there are."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


@contextmanager
def disturbed(fault: Fault, folder: str) -> Iterator[Watched]:
    """Let it happen to the run that is started within."""
    link, watched = Run.link, Watched(fault)
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        with ExitStack() as stack:
            stack.enter_context(on_start(lambda host: watched.start(host.process.pid)))
            if fault.cut is not None:
                stack.enter_context(fault.cut)
                Run.link = tap(link, fault.cut.address)
            yield watched
    finally:
        Run.link = link
        tempfile.tempdir = before
        watched.close()


def outcome(fault: Fault) -> str:
    """How a run ended; AssertionError if that is not as it must be."""
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder, "temporary")
        temporary.mkdir()
        snapshots = {"snapshots": Path(folder, "kept"), "snapshot_every": 40} if fault.keeps else {}
        with disturbed(fault, str(temporary)) as watched:
            try:
                train(
                    SOLVER,
                    ARRAYS,
                    workers=fault.workers,
                    strategy=fault.strategy,
                    steps=10**6,
                    seconds=TRAINING,
                    threads=1,
                    deadline=DEADLINE,
                    on_event=watched.hear,
                    **snapshots,
                )
                ended, error = "weights", ""
            except CommError as caught:
                ended, error = "error", str(caught)
            spent = time.monotonic() - (watched.acted or watched.begun)
        assert not watched.hung, (
            f"it hung: {spent:.1f} s, {watched.acted}: {fault}: {ended} {error}"
        )
        assert not list(temporary.iterdir()), f"files are left: {fault}"
        assert not any(map(_lives, watched.processes)), f"processes are left: {fault}"
        print(f"{spent:5.1f} s  {ended}  {fault}  {error}", flush=True)
        return f"{fault.kind}: {ended}"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def repeat(runs: int, seed: int, outcome: Callable[[Fault], str]) -> int:
    """Let that many faults happen; the exit status."""
    draw, found = random.Random(seed), Counter[str]()
    failed = 0
    for _ in range(runs):
        fault = Fault.drawn(draw)
        os.environ[SWITCH] = "0" if fault.kind == "drop" else "1"
        try:
            found[outcome(fault)] += 1
        except Exception as error:
            failed += 1
            print(f"FAILED: {fault}: {type(error).__name__}: {error}", flush=True)
    print(f"{runs} runs of seed {seed}: {failed} failed; {dict(sorted(found.items()))}")
    return 1 if failed else 0


def in_namespace(module: str, words: Sequence[str], work: Callable[[], int]) -> int:
    """Work in a network namespace, by calling the module there, or here if there can be none."""
    if INSIDE not in os.environ:
        with suppress(OSError, subprocess.CalledProcessError), flows.namespace() as inside:
            command = [sys.executable, "-m", module, *words]
            return subprocess.call([*inside, *command], env={**os.environ, INSIDE: "1"})
        print("there is no namespace of the network: no flow is dropped")
    return work()


def main(words: Sequence[str]) -> int:
    runs, seed = map(int, words)
    return in_namespace("tests.training.stops", words, lambda: repeat(runs, seed, outcome))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
