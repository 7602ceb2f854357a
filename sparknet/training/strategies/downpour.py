"""Downpour: asynchronous workers and a sharded server (Dean et al., 2012; TensorSpark)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, final

from sparknet.native import NDArray
from sparknet.training import statistics
from sparknet.training.comm import Comm, Server
from sparknet.training.learner import Learner, Steps
from sparknet.training.strategies.strategy import Meter, Round, State, Strategy


@dataclass
class Served(State):
    """The server, the weights of the last pull, and their versions."""

    pulled: NDArray = field(metadata={"transient": True})
    server: Server | None = field(default=None, metadata={"transient": True})
    versions: list[int] = field(default_factory=list, metadata={"transient": True})


@final
@dataclass(frozen=True)
class Downpour(Strategy):
    """Pushes each worker's changes to a server, and pulls the server's weights from time to time.

    The server is sharded over the workers and adds up all contributions.  Staleness is the number
    of contributions received since its pull.  A contribution whose staleness exceeds the usual
    counts damping^excess, and nothing above max_staleness.  In a round all workers together make
    K · ``steps`` steps, a fast worker more than a slow one.  Results depend on worker timing.
    """

    name: ClassVar[str] = "downpour"

    steps: int = 10
    push_every: int = 1
    pull_every: int = 1
    """The number of pushes between two pulls."""
    max_staleness: int = 64
    damping: float = 0.9

    def check(self) -> None:
        self.need(self.steps >= 1, "steps", "at least 1")
        self.need(self.push_every >= 1, "push_every", "at least 1")
        self.need(self.pull_every >= 1, "pull_every", "at least 1")
        self.need(self.max_staleness >= 0, "max_staleness", "at least 0")
        self.need(0 < self.damping <= 1, "damping", "in 0 … 1")

    def factor(self, staleness: int, workers: int) -> float:
        """The factor of a contribution.  Equally fast workers see workers · pull_every - 1."""
        if staleness > self.max_staleness:
            return 0.0
        return self.damping ** max(staleness - (workers * self.pull_every - 1), 0)

    @property
    def needs_state(self) -> bool:
        return True  # a pull may set the iteration

    def start(self, learner: Learner, comm: Comm) -> Served:
        return Served(pulled=NDArray.empty(learner.weights.shape))

    def round(self, learner: Learner, comm: Comm, state: State, most: int) -> Round:
        assert isinstance(state, Served)
        meter, steps = Meter(comm), min(self.steps, most)
        if comm.size == 1:
            done = learner.step(steps)
        else:
            done = self._together(learner, comm, state, steps)
        state.round += 1
        return meter.round(state.round, done, 0.0)

    def finish(self, learner: Learner, comm: Comm, state: State) -> None:
        assert isinstance(state, Served)
        if state.server is not None:
            state.server.close()

    def _together(self, learner: Learner, comm: Comm, state: Served, steps: int) -> Steps:
        server = self._server(learner, comm, state)
        begun, first = learner.iter, max(state.versions)
        pushes = -(-steps * comm.size // self.push_every)
        done, count = Steps(), 0
        while max(state.versions) < first + pushes:
            done += learner.step(self.push_every)
            _push(server, learner, state)
            count += 1
            if count % self.pull_every == 0:
                _pull(server, learner, state)
                made = (max(state.versions) - first) * self.push_every // comm.size
                learner.seek(begun + min(made, steps))
        comm.barrier()  # all have pushed
        _pull(server, learner, state)
        comm.barrier()  # all have pulled
        statistics.average(learner, comm)
        learner.seek(begun + steps)
        return done

    def _server(self, learner: Learner, comm: Comm, state: Served) -> Server:
        """The server; made in the first round, when a resumed run has its weights."""
        if state.server is None:
            accept = partial(self.factor, workers=comm.size)
            state.server = comm.server(learner.weights, accept)
            state.pulled.copy_from(learner.weights)
            state.versions = [0] * comm.size
        return state.server


def _push(server: Server, learner: Learner, state: Served) -> None:
    delta = state.pulled.axpby(1.0, learner.weights, -1.0)
    statistics.clear(delta, learner.statistics)
    server.push(delta, state.versions)
    state.pulled.copy_from(learner.weights)


def _pull(server: Server, learner: Learner, state: Served) -> None:
    saved = statistics.take(learner.weights, learner.statistics)
    state.versions = server.pull(learner.weights)
    statistics.put(learner.weights, learner.statistics, saved)
    state.pulled.copy_from(learner.weights)
