"""A run in a network namespace of its own, of which one flow is dropped: python -m … driver|workers

It prints the seconds that it took to notice, and the error.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sparknet.errors import CommError
from sparknet.training.driver.run import Run
from sparknet.training.local_training import train
from sparknet.training.strategies import Averaging
from tests.training.test_attacks import ARRAYS, SOLVER

DEADLINE = 2.0
_FIRST = ("ip", "rule", "del", "pref", "50")


@contextmanager
def namespace() -> Iterator[list[str]]:
    """What a command begins with that runs in a new network namespace, whose rules can be changed.

    OSError or CalledProcessError where that is not allowed.
    """
    name = f"sparknet-{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    try:
        _do("ip", "netns", "add", name)
        _do(*inside, "ip", "link", "set", "lo", "up")
        _do(*inside, "ip", "rule", "add", "pref", "100", "lookup", "local")
        _do(*inside, "ip", "rule", "del", "pref", "0")  # rules before it count from now on
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def drop(sender: int, receiver: int) -> None:
    """Drop what goes from one port to another."""
    ports = ("ipproto", "tcp", "sport", str(sender), "dport", str(receiver))
    _do("ip", "rule", "add", "pref", "50", *ports, "blackhole")


def restore() -> None:
    """Drop nothing any more."""
    while subprocess.run(_FIRST, capture_output=True, check=False).returncode == 0:
        pass


def flows() -> list[tuple[int, int, int]]:
    """The bytes sent so far, and the sender's and receiver's ports, of each flow there is."""
    said = _do("ss", "-tniHO", "state", "established")
    found = re.findall(r":(\d+)\s+\S+:(\d+)\s.*?bytes_sent:(\d+)", said)
    return [(int(sent), int(one), int(other)) for one, other, sent in found]


def busiest(driver: int, among: str) -> tuple[int, int]:
    """The ports, sender's and receiver's, of the flow with the most bytes."""
    wanted = [flow for flow in flows() if (driver in flow[1:]) == (among == "driver")]
    return max(wanted)[1:]


def main(among: str) -> None:
    drivers, cut = list[int](), list[float]()
    link = Run.link

    def noted(run, *host):
        drivers.append(run.driver.link.driver[1])
        return link(run, *host)

    def hear(event):
        if event["event"] == "round" and event["round"] == 3:
            drop(*busiest(drivers[0], among))
            cut.append(time.monotonic())

    Run.link = noted
    given = {"steps": 10**6, "threads": 1, "deadline": DEADLINE}
    try:
        train(SOLVER, ARRAYS, workers=2, strategy=Averaging(2), on_event=hear, **given)
    except CommError as error:
        print(f"{time.monotonic() - cut[0]:.1f} {error}")


def _do(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(sys.argv[1])
