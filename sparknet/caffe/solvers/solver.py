"""Solver: pycaffe's training loop.  Caffe: solver.cpp and sgd_solver.cpp."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from sparknet.caffe import checks, weights_io
from sparknet.caffe.net import Net
from sparknet.caffe.precision import Precision
from sparknet.caffe.solvers import layer_rates, nets, rate, snapshot
from sparknet.caffe.solvers.flat import Flat
from sparknet.caffe.solvers.nets import NetSource, SolverSource, settings
from sparknet.caffe.solvers.report import Display, say, say_outputs
from sparknet.caffe.solvers.snapshot import StrPath
from sparknet.caffe.training_checks import warn_of_idle
from sparknet.errors import SolverError, clean
from sparknet.layers.user_layer import NetVec
from sparknet.native import NDArray
from sparknet.proto import check_construction
from sparknet.proto.solver import check_step

Array = np.ndarray[Any, Any]
Callback = Callable[[], Any]


class Solver(ABC):
    """Trains a net.

    ``source`` is a solver file, a SolverParameter or `sparknet.dsl.SolverParams`.  A ``net``
    (a file, a NetParameter, `NetSpec` or `NetParams`) replaces the one that the source names.
    File names count from the working directory, as in Caffe.  With ``precision="bf16"`` its
    nets multiply in bfloat16; with ``keep_blobs=False`` their blobs share memory."""

    type: ClassVar[str]
    rule: ClassVar[str]
    """Its update: ``sn_<rule>_step`` of native/include/sparknet/solver.h."""
    histories: ClassVar[int] = 1
    """How many numbers it remembers for each parameter."""

    def __init__(
        self,
        source: SolverSource,
        net: NetSource = None,
        *,
        precision: Precision = "float32",
        keep_blobs: bool = True,
        device: str | None = None,
    ) -> None:
        self.param = settings(source, net)
        """The settings in use: a change counts from the next iteration on."""
        self.param.type = self.type
        check_construction(self.param)
        snapshot.check_place(self.param)
        self._net, tests = nets.build(self.param, precision, keep_blobs, device)
        self._test_nets = NetVec(tests)
        self._flat = Flat(self._net, self.histories)
        self._local = layer_rates.LocalRates(len(self._flat.rates))
        self._iter = 0
        self._current_step = 0
        self.clipped = 0
        """Iterations whose gradients were scaled down to clip_gradients (ours, not pycaffe's)."""
        self.tells_clipping = True
        """Whether each of them is a line of the log, as Caffe has it (ours, not pycaffe's)."""
        self.on_event: Callable[[str, Any], None] | None = None
        """Called with each "iteration" (loss), "test" (outputs), "snapshot" (path); ours."""
        self._callbacks: list[tuple[Callback | None, Callback | None]] = []
        if self.param.debug_info:
            say("debug_info is not supported: nothing is shown for single layers")

    @abstractmethod
    def _settings(self) -> tuple[float, ...]:
        """Return what the rule needs beside the rate, in the order of solver.h."""

    # -- what it is ----------------------------------------------------------------------

    @property
    def net(self) -> Net:
        return self._net

    @property
    def test_nets(self) -> NetVec:
        """The nets for testing; the trained weights are theirs from the first test on."""
        return self._test_nets

    @property
    def iter(self) -> int:
        """How often the weights have been updated."""
        return self._iter

    @property
    def max_iter(self) -> int:
        return int(self.param.max_iter)

    @property
    def history(self) -> list[Array]:
        """The history blobs, in the order of a solverstate, as views (ours, not pycaffe's)."""
        return self._flat.history

    @property
    def flat_history(self) -> list[NDArray]:
        """The histories, each in one buffer as long as the net's (ours, not pycaffe's)."""
        return self._flat.buffers

    @property
    def lr(self) -> float:
        """The rate of the current iteration, which the next update uses."""
        step = rate.current_step(self.param, self._iter, self._current_step)
        return rate.learning_rate(self.param, self._iter, step)

    def close(self) -> None:
        """Close its nets' data layers (ours, not pycaffe's)."""
        for net in (self._net, *self._test_nets):
            net.close()

    def __getstate__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled: snapshot it instead")

    # -- training ------------------------------------------------------------------------

    def add_callback(
        self, on_start: Callback | None, on_gradients_ready: Callback | None = None
    ) -> None:
        """Call back before each iteration's first pass, and before each update."""
        callbacks = {"on_start": on_start, "on_gradients_ready": on_gradients_ready}
        for name, callback in callbacks.items():
            if callback is not None:
                checks.function(name, callback)
        self._callbacks.append((on_start, on_gradients_ready))

    def step(self, iterations: int) -> None:
        """Train for some iterations.  Caffe: solver.cpp, Step."""
        check_step(self.param)
        snapshot.check_last_place(self.param)
        iterations = checks.integer("iterations", iterations)
        if self._iter == 0 and iterations > 0:
            warn_of_idle(self._net, self.param)
        self._progress = Display(self.param, self._iter)
        for _ in range(iterations):
            unseen = not (self._callbacks or self._tests_are_due() or self._net._is_watched)
            if not unseen:
                self._net.clear_param_diffs()
            if self._tests_are_due() and (self._iter > 0 or self.param.test_initialization):
                self.test_all()
            self._call_back(0)
            loss = self._passes(overwrite=unseen)
            self._progress.add(self._net, self._iter, loss)
            self._call_back(1)
            self.apply_update()
            self._tell("iteration", loss)
            if self.param.snapshot and self._iter % self.param.snapshot == 0:
                self.snapshot()

    def solve(self, resume_file: StrPath | None = None) -> None:
        """Train up to max_iter, from where a solverstate left off.  Caffe: solver.cpp, Solve."""
        if resume_file is not None:
            resume_file = checks.path("resume_file", resume_file)
        say(f"Solving {clean(self._net.name)}")
        say(f"Learning Rate Policy: {self.param.lr_policy}")
        if resume_file:
            say(f"Restoring previous solver status from {resume_file}")
            self.restore(resume_file)
        self.step(self.max_iter - self._iter)
        self.snapshot_after_training()
        if self.param.display and self._iter % self.param.display == 0:
            loss = self._progress.smoothed(self._forward())
            say(f"Iteration {self._iter}, loss = {loss:g}")
        if self._tests_are_due():
            self.test_all()
        say("Optimization Done.")

    def compute_gradient(self, load: Callable[[], object] | None = None) -> float:
        """Return one iteration's gradients, and its loss (ours, not pycaffe's).

        ``load`` puts a batch into the net, once before each of the ``iter_size`` passes, and
        must not read gradients.  `apply_update` then completes the iteration."""
        overwrite = not self._net._is_watched
        if not overwrite:
            self._net.clear_param_diffs()
        return self._passes(overwrite, load)

    def _passes(self, overwrite: bool, load: Callable[[], Any] | None = None) -> float:
        """Run an iteration's passes and return their mean loss; ``overwrite`` old gradients."""
        loss = 0.0
        for number in range(self.param.iter_size):
            if load is not None:
                load()
            loss += self._forward_backward(overwrite and number == 0)
        return loss / self.param.iter_size

    def _forward(self) -> float:
        return self._net._forward(0, len(self._net.layers) - 1)

    def _forward_backward(self, overwrite: bool = False) -> float:
        if not overwrite:
            loss = self._forward()
            self._net._backward(len(self._net.layers) - 1, 0)
            return loss
        try:
            return self._net._runtime.forward_backward()
        except BaseException:
            self._net.clear_param_diffs()
            raise

    def _call_back(self, moment: int) -> None:
        for pair in self._callbacks:
            callback = pair[moment]
            if callback is not None:
                callback()

    def _tell(self, kind: str, value: Any) -> None:
        if self.on_event is not None:
            self.on_event(kind, value)

    # -- the update ----------------------------------------------------------------------

    def apply_update(self) -> None:
        """Update the weights by the gradients; an iteration is done (Caffe: ApplyUpdate)."""
        self._update(self._flat.gradient_norm, self._flat.take, whole=True)

    def update_slice(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        """Update elements begin … end alone (ours); ``norm`` is of the whole gradient."""
        self._update(norm, partial(self._flat.take_slice, begin, end))

    def _update(
        self, norm: Callable[[], float], take: Callable[..., None], whole: bool = False
    ) -> None:
        check_step(self.param)
        now, current_step = self._next_rate()
        if self.param.display and self._iter % self.param.display == 0:
            say(f"Iteration {self._iter}, lr = {now:g}")
        numbers: dict[str, Any] = {
            "rate": now,
            "decay": layer_rates.weight_decay(self.param, self._iter),
            "l1": self.param.regularization_type == "L1",
            "clip": self._clip(norm),
            "share": float(np.float32(1) / np.float32(self.param.iter_size)),
        }
        rule_settings = self._settings()
        if layer_rates.LocalRates.needed(self.param):
            numbers["factors"] = self._local_rates(numbers, rule_settings, whole)
        # An interrupt that arrives during the pass is raised right after it: count before it.
        self._iter, self._current_step = self._iter + 1, current_step
        take(self.rule, rule_settings, **numbers)

    def _local_rates(
        self, numbers: Mapping[str, Any], rule_settings: tuple[float, ...], whole: bool
    ) -> list[float]:
        if not whole:
            raise SolverError("larc and local_lr_auto need whole gradients, not slices of them")
        before = numbers["clip"] * numbers["share"]
        momentum = rule_settings[0] if self.rule in ("sgd", "nesterov") else 0.0
        parts = self._flat.parts(before)
        rates = self._flat.rates
        return self._local.factors(self.param, rates, parts, numbers["rate"], momentum)

    def _next_rate(self) -> tuple[float, int]:
        """Return the rate of this iteration, and how often it has been lowered."""
        step = rate.current_step(self.param, self._iter, self._current_step)
        if self.param.lr_policy == "multistep" and step != self._current_step:
            say(f"MultiStep Status: Iteration {self._iter}, step = {step}")
        return rate.learning_rate(self.param, self._iter, step), step

    def _clip(self, gradient_norm: Callable[[], float]) -> float:
        """Return the factor that brings the norm of all gradients down to clip_gradients."""
        limit = self.param.clip_gradients
        if limit < 0:
            return 1.0
        norm = float(np.float32(gradient_norm()))
        factor = float(np.float32(limit) / np.float32(norm)) if norm > limit else 1.0
        self.clipped += norm > limit
        if norm > limit and self.tells_clipping:
            say(
                f"Gradient clipping: scaling down gradients (L2 norm {norm:g} > {limit:g}) "
                f"by scale factor {factor:g}"
            )
        return factor

    # -- testing -------------------------------------------------------------------------

    def _tests_are_due(self) -> bool:
        interval = self.param.test_interval
        return bool(interval) and (self._iter - self.param.test_offset) % interval == 0

    def test_all(self) -> list[dict[str, Array]]:
        """Test with every test net (ours, not pycaffe's)."""
        return [self.test(number) for number in range(len(self._test_nets))]

    def test(self, number: int = 0) -> dict[str, Array]:
        """Return the means of a test net's outputs over test_iter passes (ours)."""
        say(f"Iteration {self._iter}, Testing net (#{number})")
        net = self._test_nets[number]
        nets.share(net, self._net)
        loss, means = nets.mean_outputs(net, self.param.test_iter[number], self.param.ap_version)
        if self.param.test_compute_loss:
            say(f"Test loss: {loss:g}")
        say_outputs("Test", means, net.blob_loss_weights)
        self._tell("test", means)
        return means

    # -- weights and files ---------------------------------------------------------------

    def share_weights(self, net: Net) -> None:
        """Share the trained weights with another net."""
        checks.instance("net", net, Net, "a Net").share_with(self._net)

    def snapshot(self) -> None:
        """Write the weights, and what is needed to go on from here, next to each other."""
        model, state = snapshot.save(
            self.param, self._net, self._iter, self._current_step, self.history
        )
        say(f"Snapshotting to {model}")
        say(f"Snapshotting solver state to {state}")
        self._tell("snapshot", model)

    def snapshot_after_training(self) -> None:
        """Write the snapshot that ends a training, unless just written or switched off (ours)."""
        every = self.param.snapshot
        if not self.param.snapshot_after_train or (every and self._iter % every == 0):
            return
        if self.param.HasField("snapshot_prefix"):
            self.snapshot()
        else:
            say("No snapshot after training: there is no snapshot_prefix")

    def restore(self, state_file: StrPath) -> None:
        """Load a snapshot.  Nothing changes unless all of it fits."""
        name = checks.path("state_file", state_file)
        state, model = snapshot.load(name, self._flat.shapes)
        if model is not None:
            weights_io.copy_model(self._net._runtime, model)
        for mine, stored in zip(self.history, state.history, strict=True):
            mine[...] = stored.reshape(mine.shape)
        self.seek(state.iteration, state.current_step)

    @property
    def position(self) -> tuple[int, int]:
        """The iteration, and how often the rate has been lowered (ours, not pycaffe's)."""
        return self._iter, self._current_step

    def seek(self, iteration: int, current_step: int | None = None) -> None:
        """Count from another iteration on; weights and history stay (ours, not pycaffe's)."""
        if current_step is None:
            current_step = sum(value < iteration for value in self.param.stepvalue)
        self._iter, self._current_step = iteration, current_step
