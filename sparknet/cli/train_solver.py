"""`sparknet train` as `caffe train` (Caffe: tools/caffe.cpp, util/signal_handler.cpp)."""

from __future__ import annotations

import signal
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from sparknet.cli import net_file, train_outputs
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.caffe.solvers import Solver
    from sparknet.proto.caffe_pb2 import SolverParameter
    from sparknet.report import Listener

INTERRUPTED = 130
EFFECTS = ("stop", "snapshot", "none")
_ITERATIONS = 20
"""Iterations of a round where the solver does not say how often it displays."""


class Stopped(Exception):
    """A signal asked to stop; the weights are those of a whole iteration."""


def train(chosen: Namespace) -> int:
    """Train; returns the exit status, 130 if a signal stopped it, after a snapshot."""
    from sparknet.caffe import get_solver
    from sparknet.caffe.solvers.nets import weight_files
    from sparknet.caffe.solvers.report import say
    from sparknet.caffe.solvers.snapshot import check_last_place
    from sparknet.devices import take_gpu
    from sparknet.weights import check_layers, open_weights

    settings = net_file.read_solver(chosen)
    wants_gpu = settings.HasField("solver_mode") and settings.solver_mode == settings.GPU
    if not chosen.gpu and wants_gpu and (reason := take_gpu(settings.device_id)):
        say(f"solver_mode is GPU: {reason}")
    check_last_place(settings)  # the net takes a while to build
    with ExitStack() as stack:
        listener: Listener = _ignore
        if train_outputs.are_wanted(chosen):
            train_outputs.check(chosen, settings.snapshot_prefix)
            listener = train_outputs.listener(chosen, settings, stack, bar=False)
        solver = get_solver(settings, precision=chosen.precision, keep_blobs=False)
        check_layers(solver.net, open_weights(weight_files(settings)))
        interrupts = stack.enter_context(Interrupts(chosen.sigint_effect, chosen.sighup_effect))
        _check_inputs(solver)
        events = SolverEvents(listener, solver)
        _obey(solver, interrupts)
        try:
            say("Starting Optimization")
            solver.solve(chosen.snapshot)
        except Stopped:
            solver.snapshot_after_training()
            say("Optimization stopped early.")
            events.stop("interrupted")
            return INTERRUPTED
        events.stop("steps")
    if chosen.out:
        _save(solver, settings, chosen.out)
        train_outputs.say_written(chosen.out)
    return 0


def _ignore(event: Mapping[str, Any]) -> None:
    """Show and write nothing."""


def _check_inputs(solver: Solver) -> None:
    """Refuse training without a loss, or on inputs that stay zero, as caffe does silently."""
    from sparknet.caffe.training_checks import check_loss

    check_loss(solver.net)
    if names := solver.net.inputs:
        listed = ", ".join(f"'{name}'" for name in names)
        raise WrongUse(
            f"nothing fills the net's {'inputs' if len(names) > 1 else 'input'} {listed}",
            "name records with --data, or give a net with data layers",
        )


def _save(solver: Solver, settings: SolverParameter, out: str) -> None:
    """Write the model as a training by workers does."""
    from sparknet.net import Net
    from sparknet.net.model_folder import SUFFIXES, save_model
    from sparknet.net.model_inputs import ModelInputs
    from sparknet.weights import WeightCollection

    net = Net(settings)
    net.set_weights(WeightCollection.of(solver.net))
    if Path(out).suffix in SUFFIXES:
        net.save(out)
    else:
        save_model(net, out, ModelInputs({}, net.preprocessing, net.labels))


class SolverEvents:
    """Passes on what a solver tells as the events of a training by one worker."""

    def __init__(self, listener: Listener, solver: Solver) -> None:
        self._listener, self._solver = listener, solver
        self._losses: list[float] = []
        self._rounds = self._samples = 0
        self._snapshot: str | None = None
        self._start_time = 0.0
        self._every = int(solver.param.display) or _ITERATIONS
        first = solver.net.blobs[next(iter(solver.net.blobs))].shape
        self._batch = int(first[0] if len(first) else 1) * int(solver.param.iter_size)
        solver.on_event = self._hear
        solver.add_callback(self._start)

    def _start(self) -> None:
        """Tell of the start before the first iteration."""
        if self._start_time:
            return
        self._start_time = self._since = time.monotonic()
        steps = int(self._solver.param.max_iter)
        about = {"net": self._solver.net.name, "workers": 1, "strategy": "alone", "settings": {}}
        more = {"steps": steps, "seconds": None, "batch_size": self._batch, "resumed": None}
        self._tell("start", round=0, **about, **more)

    def _hear(self, kind: str, value: Any) -> None:
        if kind == "iteration":
            self._losses.append(value)
            if self._solver.iter % self._every == 0:
                self._end_round()
        elif kind == "test":
            self._end_round()
            metrics = {
                name if array.size == 1 else f"{name}[{place}]": float(number)
                for name, array in value.items()
                for place, number in enumerate(array.ravel())
            }
            self._tell("validation", metrics=metrics)
        elif kind == "snapshot":
            self._snapshot = str(value)
            self._tell("snapshot", path=self._snapshot)

    def _end_round(self) -> None:
        steps = len(self._losses)
        if not steps:
            return
        now = time.monotonic()
        self._rounds += 1
        self._samples += steps * self._batch
        self._tell(
            "round",
            round=self._rounds,
            steps=steps,
            samples=steps * self._batch,
            loss=sum(self._losses) / steps,
            rate=self._solver.lr,
            seconds_computing=now - self._since,
            seconds_communicating=0.0,
            bytes_sent=0,
            total_samples=self._samples,
            total_seconds=now - self._start_time,
        )
        self._losses, self._since = [], now

    def stop(self, reason: str) -> None:
        """Tell of the end, and of the iterations since the last round."""
        self._end_round()
        self._tell("stop", reason=reason, best=None, snapshot=self._snapshot)

    def _tell(self, kind: str, **fields: Any) -> None:
        at = {"event": kind, "time": time.time(), "iteration": self._solver.iter}
        self._listener({**at, **fields})


def _obey(solver: Solver, interrupts: Interrupts) -> None:
    """Handle signals before each iteration."""

    def look() -> None:
        if interrupts.take_snapshot():
            solver.snapshot()
        if interrupts.stop:
            raise Stopped

    solver.add_callback(look)


class Interrupts:
    """Records signals as `stop` and `take_snapshot`; a second SIGINT raises KeyboardInterrupt."""

    def __init__(self, sigint: str, sighup: str) -> None:
        self._effects = {signal.SIGINT: sigint}
        if hasattr(signal, "SIGHUP"):
            self._effects[signal.SIGHUP] = sighup
        self._before: dict[signal.Signals, Any] = {}
        self.stop = False
        """Whether a signal asked to stop."""
        self._snapshot = False

    def take_snapshot(self) -> bool:
        """Return whether a signal asked for a snapshot since the last call."""
        snapshot, self._snapshot = self._snapshot, False
        return snapshot

    def __enter__(self) -> Interrupts:
        for number in self._effects:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        effect = self._effects[signal.Signals(number)]
        if effect == "stop":
            if self.stop and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.stop = True
        elif effect == "snapshot":
            self._snapshot = True
