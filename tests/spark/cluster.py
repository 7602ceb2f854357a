"""A real standalone cluster on loopback, and drivers in processes of their own.

What runs in a session of processes (setsid) is found there again, whoever started it: so a test
can say what is left of a cluster or of a driver.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

from tests.spark.java import quick

HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
PATIENCE = 180.0
"""Seconds, on a machine whose cores are all in use."""
HOST = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]

Event = dict[str, Any]
OnEvent = Callable[[Event], None]


def until(condition, what, patience=PATIENCE):
    """Poll until a condition holds; what it gave.

    Less often the longer it takes: looking through /proc would keep a core from those waited for.
    """
    deadline, pause = time.monotonic() + patience, 0.005
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {patience:g} s"
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    return found


def session_processes(session: int) -> list[int]:
    """The living processes of a session; zombies are dead."""
    found = []
    for entry in Path("/proc").iterdir():
        fields = stat(int(entry.name)) if entry.name.isdigit() else []
        if fields and int(fields[3]) == session and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def stat(process: int) -> list[str]:
    """Of /proc/PID/stat, what follows the name: state, parent, group, session …; or nothing."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def parent(process: int) -> int:
    return int(stat(process)[1])


def alive(process: int) -> bool:
    return bool(fields := stat(process)) and fields[0] != "Z"


def waits(process: int) -> Callable[[], bool]:
    """Whether a process sleeps, and used no time since it was last asked."""
    seen: list[list[str]] = [[]]

    def look() -> bool:
        fields = stat(process)
        used, before = fields[11:13], seen[0]
        seen[0] = used
        time.sleep(0.1)
        return fields[0] == "S" and used == before

    return look


class Service:
    """A process in a session of its own, and all that it starts."""

    def __init__(self, command, log, **options):
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command, stderr=file, start_new_session=True, cwd=ROOT, **options
            )

    def said(self, pattern: str) -> str:
        """Wait for a line of the log."""

        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, self.log.read_text()
            return re.search(pattern, self.log.read_text())

        return str(until(look, f"'{pattern}' in {self.log.name}")[1])

    def left(self) -> list[int]:
        return session_processes(self.process.pid)

    def kill(self) -> None:
        """As if its machine were lost: it and all that it started."""
        for one in self.left():
            with suppress(ProcessLookupError):  # it has ended since it was listed
                os.kill(one, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """End it; what it started ends with it, or is killed, and that is a fault."""
        self.process.terminate()
        self.process.wait()
        try:
            until(lambda: not self.left(), "all that it started ends", 30)
        finally:
            for one in self.left():
                os.kill(one, signal.SIGKILL)


@dataclass(frozen=True)
class Cluster:
    """A master and two workers, each with one core."""

    url: str
    folder: Path
    services: list[Service]

    def machines(self) -> list[Service]:
        """The workers that run, the newest last."""
        return [service for service in self.services[1:] if service.left()]

    def add_worker(self) -> Service:
        """One more, with one core."""
        start = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker"]
        command = [*start, *HOST, "--cores", "1", "--memory", "1g", self.url]
        log = self.folder / f"worker-{len(self.services) - 1}.log"
        self.services.append(Service(command, log, env=environment(self.folder)))
        return self.services[-1]

    def files(self) -> list[Path]:
        """What workers have in the local directories of executors."""
        return [
            Path(place, name)
            for place, folders, names in os.walk(self.folder / "local")
            for name in (*folders, *names)
            if "sparknet-" in name
        ]

    def processes(self) -> list[int]:
        """What the workers have started: executors and their Python."""
        own = {service.process.pid for service in self.services}
        return [one for service in self.services for one in service.left() if one not in own]


def environment(folder: Path) -> dict[str, str]:
    """Everything on loopback, in one folder, on this Python."""
    return {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": quick(),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(folder),
    }


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start it; at the end nothing of it runs."""
    variables = environment(folder)
    for name in ("work", "local"):
        (folder / name).mkdir()
    services: list[Service] = []
    try:
        command = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master"]
        services.append(Service([*command, *HOST], folder / "master.log", env=variables))
        url = services[0].said(r"Starting Spark master at (spark://\S+)")
        found = Cluster(url, folder, services)
        for service in [found.add_worker() for _ in range(2)]:
            service.said(r"(Successfully registered with master)")
        yield found
    finally:
        for service in reversed(services):
            service.close()
        assert [one for service in services for one in service.left()] == []


class Driver:
    """`tests.spark.driver` in a process: it does one fit after another, and tells its events.

    It waits until an event has been looked at: a worker that says one stands still meanwhile.
    """

    def __init__(self, url: str, folder: Path, **settings: str) -> None:
        """``settings`` are Spark's, with _ for each dot."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self._service = Service(
            [sys.executable, "-m", "tests.spark.driver", url, json.dumps(named)],
            folder / f"driver-{time.monotonic_ns()}.log",
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.process = self._service.process
        self.events: list[Event] = []

    def begin(self, **settings):
        self.events = []
        self._tell(settings)

    def follow(self, on_event: OnEvent = lambda event: None) -> Event:
        """Until the fit has ended: its result."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: Event = json.loads(line)
            if "event" not in said:
                return said
            self.events.append(said)
            on_event(said)
            self._tell({})
        return {"ended": self.process.wait()}

    def fit(self, on_event=lambda event: None, **settings):
        self.begin(**settings)
        return self.follow(on_event)

    def kinds(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["event"] == kind]

    def left(self) -> list[int]:
        return self._service.left()

    def said(self, pattern: str) -> str:
        """Wait for a line on its standard error."""
        return self._service.said(pattern)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()  # it ends, and says good-bye to the master
        self.process.stdout.read()
        self._service.close()
        self.process.stdout.close()

    def _tell(self, message: Event) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it was killed
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
