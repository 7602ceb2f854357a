"""Stops and cuts at random moments of runs on Spark: python -m tests.spark.stops RUNS SEED

The faults of `tests.training.stops`, on one local session.  Spark knows nothing of a process that
is stopped, and waits for it: whoever started the run has to be told soon whom it waits for, and
the run has to end once the processes go on.  Afterwards the session has no job and takes the next
run.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import cloudpickle

from sparknet.comm.shared_memory import SWITCH
from sparknet.errors import CommError, SparkError
from sparknet.spark import Trainer, local_session
from sparknet.training.driver.run import Run
from tests.spark.cluster import parent, until
from tests.spark.digits import solver, tuples
from tests.training import attacker as attackers
from tests.training.attacker import tap
from tests.training.stops import DEADLINE, TRAINING, Fault, Watched, in_namespace, repeat, send

START = 120.0
"""Seconds that workers may take to start together."""
SOON = 15 * DEADLINE
"""Seconds within which a fault has to be told, on a machine that does other work too."""
PATIENCE = 120.0
"""Seconds after that in which a run has to end."""
TELLING = ("standstill", "waiting", "failure")


@dataclass
class Disturbed(Watched):
    """A run that something happens to, and when what was heard of it."""

    begun: float = field(default_factory=time.monotonic)
    told: float | None = None
    armed: bool = False
    started: bool = False
    """Whether the workers have started: before, they may take their time."""
    soon: float = SOON

    def hear(self, event):
        self.started = self.started or event["event"] == "start"
        if not self.armed:
            super().hear(event)
            self.armed = event["event"] == "round"  # a run that starts again has a first one, too
        if self.acted is not None and self.told is None and event["event"] in TELLING:
            self.told = time.monotonic()
            self.later(0, self._go_on)

    def act(self) -> None:
        self.soon = SOON if self.started else START + SOON
        self.later(self.soon + PATIENCE, lambda: self.give_up(workers()))
        super().act()

    def flows(self) -> list[tuple[int, int]]:
        """Those that are not of Spark's JVM."""
        command = ["ss", "-tnpHO", "state", "established"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = re.findall(r":(\d+)\s+\S+:(\d+)\s*(.*)", output)
        foreign = {port for port, _, of in rows if '"java"' in of or not of}
        return [(int(a), int(b)) for a, b, _ in rows if foreign.isdisjoint((a, b))]

    def stop(self) -> None:
        here = workers()
        self.processes = random.sample(here, min(len(self.fault.ranks), len(here)))
        send(self.processes, signal.SIGSTOP)
        is_pause = self.fault.kind == "pause"
        self.later(self.fault.pause if is_pause else self.soon, self._go_on)

    def _go_on(self) -> None:
        send(self.processes, signal.SIGCONT)

    def close(self) -> None:
        super().close()
        self._go_on()


def workers() -> list[int]:
    """Processes that PySpark's daemon has started for tasks."""
    daemons = set(_daemons())
    return [one for one in daemons if parent(one) in daemons]


def _daemons() -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):  # it has ended since it was listed
            if b"daemon\0" in (place / "cmdline").read_bytes() and _is_ours(int(place.name)):
                yield int(place.name)


def _is_ours(process: int) -> bool:
    while process > 1 and process != os.getpid():
        process = parent(process)
    return process == os.getpid()


@contextmanager
def disturbed(fault: Fault) -> Iterator[Disturbed]:
    """Let it happen to the run that is started within."""
    link, run = Run.link, Disturbed(fault)
    try:
        if fault.cut is not None:
            # The first callers of the driver are the preflight's.
            if fault.cut._who == "driver" and fault.is_late:
                fault.cut._connection += fault.workers
            fault.cut.__enter__()
            Run.link = tap(link, fault.cut.address)
        if not fault.is_late:
            run.later(fault.after, run.act)
        yield run
    finally:
        Run.link = link
        run.close()
        if fault.cut is not None:
            fault.cut.__exit__()


def outcome(session, fault):
    """How a run ended; AssertionError if that is not as it must be."""
    data = session.sparkContext.parallelize(tuples(200), fault.workers)
    with tempfile.TemporaryDirectory() as folder, disturbed(fault) as run:
        trainer = Trainer(
            solver(),
            workers=fault.workers,
            strategy=fault.strategy,
            steps=10**6,
            seconds=TRAINING,
            deadline=DEADLINE,
            start_timeout=START,
            snapshots=folder if fault.keeps else None,
            snapshot_every=40 if fault.keeps else 0,
            on_event=run.hear,
        )
        try:
            trainer.fit(data)
            ended, error = "weights", ""
        except (CommError, SparkError) as caught:
            ended, error = "error", str(caught)
        end = time.monotonic()
        acted = run.acted or end
        told = min(run.told or end, end) - acted
    assert not run.hung, f"it hung: {fault}: {ended} {error}"
    assert told < run.soon, f"nothing was said for {told:.1f} s: {fault}: {ended} {error}"
    jobs = session.sparkContext.statusTracker().getActiveJobsIds
    until(lambda: not jobs(), f"no job runs after {fault}", PATIENCE)
    print(f"{told:5.1f} s  {end - acted:5.1f} s  {ended}  {fault}  {error[:300]}", flush=True)
    return f"{fault.kind}: {ended}" + (" after it was told" if run.told else "")


def main(words: Sequence[str]) -> int:
    runs, seed = map(int, words)

    def work() -> int:
        os.environ[SWITCH] = "0"  # for the session's processes: memory has no flows to drop
        session = local_session(4, threads=1, memory="1g")
        cloudpickle.register_pickle_by_value(attackers)
        try:
            return repeat(runs, seed, lambda fault: outcome(session, fault))
        finally:
            session.stop()

    return in_namespace("tests.spark.stops", words, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
