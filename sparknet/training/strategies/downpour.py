"""Downpour: asynchronous workers and a sharded server (Dean et al., 2012; TensorSpark)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, final

from sparknet.comm.codecs import CODES, OWN_ERRORS, Codec
from sparknet.comm.collectives import Comm, Server
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps
from sparknet.training.strategies.strategy import (
    Round,
    RoundMeter,
    State,
    Strategy,
    average_statistics,
    clear_statistics,
    put_statistics,
    take_statistics,
)


@dataclass
class Served(State):
    """The server, the weights of the last pull, and their versions."""

    pulled: NDArray = field(metadata={"transient": True})
    server: Server | None = field(default=None, metadata={"transient": True})
    versions: list[int] = field(default_factory=list, metadata={"transient": True})
    begun: int = field(default=0, metadata={"transient": True})
    """The iteration at which the server was made."""
    ended: int = field(default=0, metadata={"transient": True})
    """The iteration after the last round: the run may count on from another one."""
    hands: int = field(default=0, metadata={"transient": True})
    """How many hands the workers have raised in the rounds so far."""
    dropped: int = field(default=0, metadata={"transient": True})
    """How many of this worker's pushes the server dropped in this round."""

    @property
    def pushes(self) -> int:
        """All workers' pushes, as far as this one knows."""
        return max(self.versions)


@final
@dataclass(frozen=True)
class Downpour(Strategy):
    """Pushes each worker's changes to a server, and pulls the server's weights from time to time.

    The server is sharded over the workers and adds up all contributions.  Staleness is the number
    of contributions received since its pull.  A contribution whose staleness exceeds the usual
    counts damping^excess, and is dropped above max_staleness: changes of many steps from the same
    weights add up, as if the learning rate were as many times larger.  A codec sends pushes and
    pulls in fewer bytes.  In a round all workers together make at least K · ``steps`` steps, a fast
    worker more than a slow one.  A worker that knows that they are made raises its hand and trains
    on until all hands are raised: so nobody waits for a worker that is in the middle of a slow
    step, but at the end of training.  Results depend on worker timing.
    """

    name: ClassVar[str] = "downpour"

    steps: int = 10
    push_every: int = 1
    pull_every: int = 1
    """The number of pushes between two pulls."""
    max_staleness: int | None = None
    """Contributions of more staleness are dropped; None: max(15, 2K - 1)."""
    damping: float = 0.9
    codec: Codec | None = None

    @property
    def depends_on_time(self) -> bool:
        return True

    def check(self) -> None:
        self.need(self.steps >= 1, "steps", "at least 1")
        self.need(self.push_every >= 1, "push_every", "at least 1")
        self.need(self.pull_every >= 1, "pull_every", "at least 1")
        most = self.max_staleness
        self.need(most is None or most >= 0, "max_staleness", "at least 0, or None")
        self.need(0 < self.damping <= 1, "damping", "in 0 … 1")
        names = ", ".join(CODES)
        self.need(self.codec is None or self.codec in CODES, "codec", f"one of {names}, or None")

    def factor(self, staleness: int, workers: int) -> float:
        """Return the factor of a contribution.

        Equally fast workers see workers · pull_every - 1.
        """
        most = self.max_staleness
        if staleness > (max(15, 2 * workers - 1) if most is None else most):
            return 0.0
        return self.damping ** max(staleness - (workers * self.pull_every - 1), 0)

    @property
    def needs_state(self) -> bool:
        return True  # a pull may set the iteration

    def extras(self, learner: Learner, comm: Comm) -> dict[str, NDArray]:
        if self.codec is None or comm.size == 1:
            return {}
        return {OWN_ERRORS: comm.feedback(self.codec, learner.weights.size)[0]}

    def start(self, learner: Learner, comm: Comm) -> Served:
        return Served(pulled=NDArray.empty(learner.weights.shape))

    def regroup(self, learner: Learner, comm: Comm, state: State, before: int) -> None:
        if self.codec is not None and comm.size > 1:  # what all workers still owe stays the same
            comm.feedback(self.codec, learner.weights.size)[0].scale(before / comm.size)

    def part(self, state: State) -> None:
        assert isinstance(state, Served)
        if state.server is not None:
            state.server.close()

    def round(self, learner: Learner, comm: Comm, state: State, most: int) -> Round:
        assert isinstance(state, Served)
        meter = RoundMeter(comm)
        if comm.size == 1:
            done = learner.step(min(self.steps, most))
        else:
            done = self._together(learner, comm, state, most)
        state.round += 1
        dropped, state.dropped = state.dropped, 0
        return replace(meter.round(state.round, done, 0.0), dropped_pushes=dropped)

    def finish(self, learner: Learner, comm: Comm, state: State) -> None:
        self.part(state)

    def _together(self, learner: Learner, comm: Comm, state: Served, most: int) -> Steps:
        server = self._server(learner, comm, state)
        state.begun += learner.iter - state.ended
        last = learner.iter + most

        def pushes(steps: int) -> int:
            return -(-steps * comm.size // self.push_every)

        def iteration() -> int:
            pushed = state.pushes * self.push_every // comm.size
            return min(state.begun + pushed, last)

        enough = pushes(last - state.begun)
        target = min(state.pushes + pushes(self.steps), enough)
        state.hands += comm.size
        done, count, raised = Steps(), 0, False
        while state.pushes < enough:
            if state.pushes >= target:
                if server.raise_hand(0 if raised else 1) == state.hands:
                    break
                raised = True
            done += learner.step(self.push_every)
            staleness = _push(server, learner, state)
            state.dropped += not self.factor(staleness, comm.size)
            count += 1
            if count % self.pull_every == 0:
                _pull(server, learner, state)
                learner.seek(iteration())
        comm.barrier()  # all have pushed
        _pull(server, learner, state, exact=True)
        comm.barrier()  # all have pulled
        average_statistics(learner, comm)
        learner.seek(iteration())
        state.ended = learner.iter
        return done

    def _server(self, learner: Learner, comm: Comm, state: Served) -> Server:
        """Return the server; made in the first round, when a resumed run has its weights."""
        if state.server is None:
            accept = partial(self.factor, workers=comm.size)
            state.server = comm.server(learner.weights, accept, self.codec)
            state.pulled.copy_from(learner.weights)
            state.versions = [0] * comm.size
            state.begun = state.ended = learner.iter
            state.hands = 0
        return state.server


def _push(server: Server, learner: Learner, state: Served) -> int:
    """Send the changes since the last pull; return the largest staleness of a shard."""
    delta = state.pulled.axpby(1.0, learner.weights, -1.0)
    clear_statistics(delta, learner.statistics)
    staleness = server.push(delta, state.versions)
    state.pulled.copy_from(learner.weights)
    return max(staleness)


def _pull(server: Server, learner: Learner, state: Served, exact: bool = False) -> None:
    saved = take_statistics(learner.weights, learner.statistics)
    state.versions = server.pull(learner.weights, exact)
    put_statistics(learner.weights, learner.statistics, saved)
    state.pulled.copy_from(learner.weights)
