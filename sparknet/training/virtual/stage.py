"""Stage: worker threads of which one runs at a time, in the order of a simulated clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Semaphore, Thread
from typing import Any

from sparknet.comm.threads import start
from sparknet.errors import CommError, PeerLost

Act = Callable[[Sequence[Any]], tuple[Any, float]]
"""What a meeting does with the workers' values: its result, and the seconds that it takes."""


class Stage:
    """Lets that worker run whose clock is behind all others; so events come in order of time.

    A worker runs until it waits for others (`meet`) or lets them come first (`turn`).
    """

    def __init__(self, size: int, now: float = 0.0) -> None:
        self.clocks = [now] * size
        self.ended: dict[int, str] = {}
        """The workers that have ended, and why."""
        self.lost: tuple[float, int] | None = None
        """When the first worker was lost, and which one, if one was."""
        self._go = [Semaphore(0) for _ in range(size)]
        self._ready = set(range(size))
        self._table: list[Any] = [None] * size
        self._arrived: set[int] = set()
        self._left: set[int] = set()
        self._met: tuple[Any, float] = (None, now)
        self._held = 0

    def open(self) -> None:
        """Let the first worker begin."""
        self._pass_on()

    def enter(self, rank: int) -> None:
        """Wait for the first turn; called by each worker's thread, before all else."""
        self._go[rank].acquire()

    def turn(self, rank: int) -> None:
        """Let the workers go first whose clocks are behind."""
        self._check(rank)
        self._ready.add(rank)
        self._wait(rank)

    def meet(self, rank: int, value: Any, act: Act) -> tuple[Any, float]:
        """Wait for all; returns the meeting's result and the time at which all were there."""
        self._check(rank)
        held = self._held
        self._table[rank] = value
        self._arrived.add(rank)
        if len(self._arrived) == len(self.clocks):
            self._hold(act)
        self._wait(rank)
        if self._held == held:  # woken because a worker ended
            self._check(rank)
        return self._met

    def lose(self, rank: int, at: float, why: str) -> None:
        """The worker that runs is lost; it runs on until it leaves."""
        self.ended[rank] = why
        self.lost = min(self.lost or (at, rank), (at, rank))

    def leave(self, rank: int) -> None:
        """End a worker; those that wait for it, or ever will, get an error."""
        if rank in self._left:
            return
        self._left.add(rank)
        self.ended.setdefault(rank, "it ended")
        self._ready |= self._arrived - self._left
        self._arrived = set()
        self._pass_on()

    def _hold(self, act: Act) -> None:
        """The meeting itself, while everybody else waits."""
        begun = max(self.clocks)
        result, seconds = act(self._table)
        self.clocks = [begun + seconds] * len(self.clocks)
        self._met, self._held = (result, begun), self._held + 1
        self._ready |= self._arrived
        self._arrived = set()
        self._table = [None] * len(self.clocks)

    def _wait(self, rank: int) -> None:
        self._pass_on()
        self._go[rank].acquire()

    def _pass_on(self) -> None:
        """Let the next worker run; at the end there is none."""
        if self._ready:
            following = min(self._ready, key=lambda rank: (self.clocks[rank], rank))
            self._ready.remove(following)
            self._go[following].release()

    def _check(self, rank: int) -> None:
        if rank in self.ended:
            raise CommError("this comm was closed")
        if self.ended:
            lost = min(self.ended)
            raise PeerLost(lost, "this process", self.ended[lost])


def perform(stage: Stage, work: Callable[[int], Any]) -> list[Any]:
    """What ``work`` gives for each worker, or its error; each has a thread of its own."""
    found: list[Any] = [None] * len(stage.clocks)

    def run(rank: int) -> None:
        stage.enter(rank)
        try:
            found[rank] = work(rank)
        except BaseException as error:
            found[rank] = error
        finally:
            stage.leave(rank)

    members = [Thread(target=run, args=(rank,), daemon=True) for rank in range(len(found))]
    for member in members:
        start(member)
    stage.open()
    for member in members:
        member.join()
    return found
