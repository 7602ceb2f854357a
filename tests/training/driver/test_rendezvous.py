"""Workers that have not met yet: who hangs is found, by lines to a real driver's end."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from queue import SimpleQueue
from time import monotonic

import pytest

from sparknet.comm.handshake import make_secret
from sparknet.comm.rpc import Line, Link
from sparknet.comm.wire import HMAC
from sparknet.errors import CommError, PeerLost
from sparknet.training.driver import rendezvous
from sparknet.training.driver.driver import Driver
from sparknet.training.driver.membership import Elastic
from sparknet.training.driver.rendezvous import HOLD, Presence, Rendezvous

SECRET = make_secret()
LINK = Link("", ("127.0.0.1", 0), SECRET, HMAC)
QUICK, SLOW = 0.2, 60.0
"""Deadlines: one that passes soon, and one whose heartbeats are far apart."""


@pytest.fixture
def driver():
    with Driver(LINK, memoryview(b""), None, lambda _: None) as driver:
        yield driver


@pytest.fixture
def new_line(driver):
    """Lines of workers, by rank."""

    def dialled(rank: int) -> Line:
        return driver.link.dial(rank)

    with ExitStack() as stack:
        yield lambda rank: stack.enter_context(closing(dialled(rank)))


def present(line: Line, size: int, deadline: float = SLOW) -> Presence:
    return Presence(line, "training", size, f"{'ab'[line.rank]} (process 7)", deadline)


def hang(mute: Line) -> None:
    """Worker 1 says one thing, and nothing more."""
    present(mute, 2)._call()


def together(presences):
    """What each hears."""

    def meet(number):
        with presences[number] as presence:
            return presence.meet(f"from {number}")

    with ThreadPoolExecutor() as pool:
        return list(pool.map(meet, range(len(presences))))


def test_all_hear_what_all_say(new_line):
    met = {"workers": ["from 0", "from 1"], "attempt": 1, "resume": None, "own": False}
    assert together([present(new_line(rank), 2) for rank in range(2)]) == [met, met]


def test_one_that_hangs_before_it_is_ready(new_line):
    hang(new_line(1))
    with (
        present(new_line(0), 2, QUICK) as presence,
        pytest.raises(PeerLost, match=r"worker 1 on b \(process 7\) is lost: no heartbeat"),
    ):
        presence.meet()


def test_one_that_is_gone_is_not_waited_for(new_line):
    gone = new_line(1)
    hang(gone)
    with present(new_line(0), 2) as presence:
        gone.close()
        with pytest.raises(PeerLost, match=r"worker 1 on b .* is lost: its process ended"):
            presence.meet()


def test_who_waits_in_vain_gives_up(new_line):
    with (
        present(new_line(0), 2) as presence,
        pytest.raises(CommError, match="not all workers came within 0 s"),
    ):
        presence.meet(patience=0)


def test_the_next_attempt_does_not_mind_who_hung_in_the_last(new_line):
    hung, failed = new_line(1), new_line(0)
    hang(hung)
    present(failed, 2)._call()
    failed.call("failed", failure={"worker": 0, "type": "PeerLost", "message": "gone"})
    with present(new_line(0), 1, QUICK) as presence:
        assert presence.meet()["attempt"] == 1
    with pytest.raises(PeerLost, match=r"worker 0 on a .* is lost: it failed: gone"):
        present(hung, 2).meet()


def test_workers_of_two_attempts_do_not_meet(new_line):
    """One of the first is late, and its stage is run again already."""
    late = new_line(1)
    hang(late)
    met = together([present(new_line(rank), 2) for rank in range(2)])
    assert met[0]["workers"] == ["from 0", "from 1"]
    with pytest.raises(PeerLost, match=r"worker 1 on b .* is lost: it was started again"):
        present(late, 2).meet()


def test_each_attempt_has_its_number(new_line):
    """Also when the first hung after it had met: its line is still there."""
    attempts = [present(new_line(0), 1).meet()["attempt"] for _ in range(2)]
    assert attempts == [1, 2]


Waiting = tuple[Callable[[int], Presence], "SimpleQueue[float]"]


@pytest.fixture(params=[None, Elastic(2, 1, 1, wait=0.0)], ids=["fixed", "elastic"])
def waiting(request):
    """Workers by rank, of two that are needed, and the times of their calls."""
    times: SimpleQueue[float] = SimpleQueue()
    with Driver(LINK, memoryview(b""), None, lambda _: None, elastic=request.param) as driver:
        place = driver._places["training"]
        if driver.members is not None:
            host = None
            driver.members.carry(host, 0, "here", False, [])
        hear = place.hear

        def noted(line, call):
            times.put(monotonic())
            return hear(line, call)

        place.hear = noted
        with ExitStack() as stack:

            def come(rank: int) -> Presence:
                line = driver.link.dial(rank)
                return stack.enter_context(present(stack.enter_context(closing(line)), 2, 600.0))

            yield come, times


def test_who_waits_asks_seldom(waiting):
    come, times = waiting
    with pytest.raises(CommError, match="not all workers came"):
        come(0).meet(patience=3 * HOLD)
    assert times.qsize() <= 6


def test_who_waits_hears_at_once(waiting, monkeypatch):
    monkeypatch.setattr(rendezvous, "HOLD", 60.0)
    come, times = waiting
    with ThreadPoolExecutor() as pool:
        first = pool.submit(come(0).meet)
        begun = [times.get() for _ in range(2)][1]
        assert come(1).meet()["workers"] == first.result()["workers"] == [None, None]
    assert monotonic() - begun < 30
    assert times.qsize() == 2


class Caller:
    """What a rendezvous asks of a line."""

    def __init__(self, rank: int) -> None:
        self.rank = rank


class Clocked:
    """A rendezvous of two whose clock the test turns; worker 0 asks who is lost."""

    def __init__(self, *present: int, deadline: float = 60.0) -> None:
        self.now, self.deadline = 1000.0, deadline
        self.place = Rendezvous(clock=lambda: self.now)
        self.lines = [Caller(0), Caller(1)]
        for rank in present or (0, 1):
            self.after(0, rank)

    def after(self, seconds, rank=0, **more):
        """What a worker hears that calls then."""
        self.now += seconds
        said = {"deadline": self.deadline, "where": f"host {rank}", "said": None}
        call = {"of": 2, "ready": False, **said, **more}
        return self.place.hear(self.lines[rank], call)["lost"]


def test_workers_that_were_all_paused_are_not_lost():
    """As by a suspended machine: the driver heard of nobody for longer than the deadline."""
    place = Clocked()
    assert place.after(10_000, 0) is None
    assert place.after(50, 0) is None  # the other has the whole deadline again
    assert place.after(0, 1) is None


def test_one_that_does_not_come_back_from_a_pause_is_lost():
    place = Clocked()
    assert place.after(10_000) is None
    assert [place.after(20) for _ in range(3)] == [None] * 3
    assert place.after(1) == (1, "host 1", "no heartbeat for 60 s")


def test_one_that_is_silent_while_the_other_calls_was_not_paused():
    place = Clocked()
    assert [place.after(15) for _ in range(4)] == [None] * 4
    assert place.after(1) == (1, "host 1", "no heartbeat for 60 s")


@pytest.mark.parametrize(("deadline", "patience"), [(6.0, 60), (90.0, 90)])
def test_one_that_never_calls_is_lost(deadline, patience):
    """Spark starts all tasks at once, but Python may have to be started first."""
    place = Clocked(0, deadline=deadline)
    assert 1 not in place.place.entered()
    assert [place.after(1) for _ in range(patience)] == [None] * patience
    said = f"it did not call the driver within {patience} s of the others"
    assert place.after(1) == (1, "an unknown place", said)


def test_one_that_comes_in_time_is_not_lost():
    place = Clocked(0, deadline=60.0)
    assert [place.after(1) for _ in range(59)] == [None] * 59
    assert place.after(0, 1) is None
    assert [place.after(1, second % 2) for second in range(100)] == [None] * 100


def test_a_pause_of_the_driver_is_no_delay_of_the_first_call():
    place = Clocked(0)
    assert place.after(1000) is None
    assert place.after(29) is None
    assert place.after(30) is None


def test_who_is_silent_after_all_have_met_ends_the_attempt():
    """The others are told at their next calls; the silent one is not told of itself twice."""
    place = Clocked()
    assert [place.after(1, rank, ready=True) for rank in (0, 1)] == [None, None]
    assert place.place.miss(place.lines[1], "no heartbeat") == (1, "host 1", "no heartbeat")
    assert place.after(1) == (1, "host 1", "no heartbeat")
    assert place.place.miss(place.lines[0], "no heartbeat") is None


def test_a_standstill_says_what_each_does():
    place = Clocked(0)
    working = {"doing": "computes", "moved": 1}
    place.after(5, **working)
    assert place.place.standstill(10) is None
    place.now += 10
    still = (10.0, {"0": "computes", "1": "has not called the driver yet"})
    assert place.place.standstill(10) == still
    place.after(0, 1, doing="waits for worker 0, taking a mean", moved=7)
    assert place.place.standstill(10) is None  # it got on
    place.now += 11
    place.after(0, **working)
    waiting = {"0": "computes", "1": "waits for worker 0, taking a mean"}
    assert place.place.standstill(10) == (11.0, waiting)
    place.after(0, **{**working, "moved": 2})
    assert place.place.standstill(10) is None
    place.place.leave(place.lines[0])
    place.place.leave(place.lines[1])
    place.now += 100
    assert place.place.standstill(10) is None  # nobody is there
