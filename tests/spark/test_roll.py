"""Workers that have not met yet: who hangs is found, by lines to a real driver's end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from sparknet.dist.auth import make_secret
from sparknet.errors import PeerLost
from sparknet.spark.control import Control
from sparknet.spark.line import Line
from sparknet.spark.roll import Presence

SECRET = make_secret()
QUICK, SLOW = 0.2, 60.0
"""Deadlines: one that passes soon, and one whose signs of life are far apart."""


@pytest.fixture
def control() -> Iterator[Control]:
    with Control(SECRET, memoryview(b""), None, lambda _: None) as control:
        yield control


@pytest.fixture
def new_line(control: Control) -> Iterator[Callable[[], Line]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(Line.to("127.0.0.1", control.port, SECRET)))


def hang(mute: Line, ready: bool) -> None:
    """Worker 1 says one thing, and nothing more."""
    said = {"worker": 1, "of": 2, "where": "b (process 7)", "deadline": SLOW}
    mute.call("here", ready=ready, met=False, **said)


def test_all_are_ready(new_line: Callable[[], Line]) -> None:
    with Presence(new_line(), 0, 1, "a", SLOW) as presence:
        presence.wait_for_all()
        assert presence.meet(lambda: ["a"]) == ["a"]


def test_one_that_hangs_while_it_reads(new_line: Callable[[], Line]) -> None:
    hang(new_line(), ready=False)
    with (
        Presence(new_line(), 0, 2, "a", QUICK) as presence,
        pytest.raises(PeerLost, match=r"worker 1 on b \(process 7\) is lost: no sign of life"),
    ):
        presence.wait_for_all()


def test_one_that_hangs_when_all_are_ready(new_line: Callable[[], Line]) -> None:
    """Spark's rendezvous would wait for it for ever."""
    hang(new_line(), ready=True)
    never = threading.Event()
    with Presence(new_line(), 0, 2, "a", QUICK) as presence:
        presence.wait_for_all()
        with pytest.raises(PeerLost, match=r"worker 1 on b \(process 7\) is lost: .* meeting it"):
            presence.meet(lambda: [str(never.wait())])
    never.set()


def test_the_next_attempt_does_not_mind_who_hung_in_the_last(new_line: Callable[[], Line]) -> None:
    hang(new_line(), ready=False)
    new_line().call("failed", failure={"worker": 0, "type": "PeerLost", "message": "gone"})
    with Presence(new_line(), 0, 1, "a", QUICK) as presence:
        presence.wait_for_all()
        assert presence.meet(lambda: ["a"]) == ["a"]


def test_a_rendezvous_that_fails_says_why(new_line: Callable[[], Line]) -> None:
    def fails() -> list[str]:
        raise EOFError("the executor is gone")

    with (
        Presence(new_line(), 0, 1, "a", SLOW) as presence,
        pytest.raises(EOFError, match="the executor is gone"),
    ):
        presence.meet(fails)


def test_who_has_met_may_be_quiet(new_line: Callable[[], Line]) -> None:
    quiet = new_line()
    with Presence(quiet, 1, 2, "b", SLOW) as other:
        other.meet(lambda: ["a", "b"])
    with Presence(new_line(), 0, 2, "a", QUICK) as presence:
        over = threading.Timer(4 * QUICK, lambda: None)
        over.start()
        presence.meet(lambda: [str(over.join())])
