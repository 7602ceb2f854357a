"""Net: pycaffe's interface to a net (Caffe: python/caffe/_caffe.cpp, pycaffe.py)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from sparknet.caffe import checks, passes, weights_io
from sparknet.caffe.blob import Blob
from sparknet.caffe.contents import Contents
from sparknet.caffe.modes import next_seed
from sparknet.caffe.passes import Callback, Callbacks, fill
from sparknet.caffe.precision import Precision, available
from sparknet.caffe.runtime import Runtime
from sparknet.errors import LayerError, SpecError
from sparknet.graph import Graph, build, build_in_state
from sparknet.graph.untrusted_budget import check_budget
from sparknet.native import NDArray
from sparknet.proto import Model, caffe_pb2, read_net
from sparknet.proto.suggest import one_of
from sparknet.proto.untrusted import with_trust

StrPath = str | os.PathLike[str]
Arrays = dict[str, Any]


class Net(Contents):
    """``Net(file, phase, level=0, stages=None, weights=None)`` or ``Net(file, weights, phase)``.

    Ours, not pycaffe's: ``precision="bf16"`` multiplies in bfloat16, ``"int8"`` of a quantised
    model in eight bits (docs/precision.md); an .onnx is a net with its weights;
    ``device="cuda:0"`` computes with PyTorch, there (docs/gpu.md);
    ``keep_blobs=False`` lets blobs that no layer reads any more share memory; in the test phase
    convolutions then take in the layers after them, which changes last bits (docs/pycaffe.md).
    Of a net that is not ``trusted`` no layer imports a module, or reads or writes a file."""

    def __init__(
        self,
        network_file: StrPath,
        phase: int | StrPath | None = None,
        level: int = 0,
        stages: Sequence[str] | None = None,
        weights: StrPath | int | None = None,
        *,
        precision: Precision = "float32",
        keep_blobs: bool = True,
        trusted: bool = True,
        device: str | None = None,
    ) -> None:
        # pycaffe's older form gives the weights second and the phase third.
        if isinstance(phase, (str, os.PathLike)):
            phase, weights, level = level, phase, 0
        if phase is not None:
            phase = checks.integer("phase", phase)
        if phase not in (caffe_pb2.TRAIN, caffe_pb2.TEST):
            raise SpecError(f"phase must be caffe.TRAIN or caffe.TEST; it is {phase!r}")
        name = checks.path("network_file", network_file)
        level = checks.integer("level", level, hint="; weights come second, or as weights=")
        stages = checks.names("stages", [stages] if isinstance(stages, str) else stages)
        model = weights_io.open_model(name) if name.endswith(".onnx") else None
        net = model.net if model else with_trust(read_net(name), trusted)
        graph = build(net, phase, level, stages)
        if weights is not None:
            model = weights_io.open_model(path := checks.path("weights", weights))
            weights_io.check_shared_names(graph, model, path)
        models = [model] if model else []
        self._start(graph, None, precision, keep_blobs, models=models, device=device)

    @classmethod
    def from_proto(
        cls,
        net: caffe_pb2.NetParameter,
        phase: int | None = None,
        level: int = 0,
        stages: Sequence[str] = (),
        seed: int | None = None,
        *,
        precision: Precision = "float32",
        keep_blobs: bool = True,
        trusted: bool | None = None,
        params: NDArray | None = None,
        models: Sequence[Model] = (),
        device: str | None = None,
    ) -> Net:
        """Return a net from a message; without a phase it is built in exactly the state it holds.

        ``params`` are all parameters' values in one buffer, which is used where it lies.  The
        weights of ``models`` are copied; where they hold all, no filler runs."""
        instance = cls.__new__(cls)
        net = with_trust(net, trusted)
        graph = build_in_state(net) if phase is None else build(net, phase, level, stages)
        instance._start(graph, seed, precision, keep_blobs, params, models, device)
        return instance

    def _start(
        self,
        graph: Graph,
        seed: int | None,
        precision: Precision,
        keep_blobs: bool = True,
        params: NDArray | None = None,
        models: Sequence[Model] = (),
        device: str | None = None,
    ) -> None:
        seed = next_seed() if seed is None else seed
        everything = set(range(len(graph.params)))
        params_held = everything if params is not None else weights_io.held_params(graph, models)
        check_budget(graph, params_held)
        filled = params is not None or (bool(models) and params_held == everything)
        runtime = Runtime(
            graph, seed, precision, keep_blobs, params, fills=not filled, device=device
        )
        super().__init__(runtime)
        for model in models:
            self.copy_model(model)
        self._callbacks = Callbacks()

    # -- what it is ----------------------------------------------------------------------

    @property
    def precision(self) -> Precision:
        """The precision that is in use: "float32", "bf16" or "int8" (ours, not pycaffe's)."""
        return self._runtime.precision

    @property
    def device(self) -> str | None:
        """PyTorch's name of where it computes; None: the native engine (ours, not pycaffe's)."""
        return self._runtime.device

    @property
    def int8_param(self) -> caffe_pb2.Int8Parameter | None:
        """What blobs are rounded to in eight bits, if that is known (ours, not pycaffe's)."""
        return self._runtime.int8_param

    def use_int8(self, given: caffe_pb2.Int8Parameter) -> None:
        """Multiply numbers of eight bits, where the processor does (ours, not pycaffe's)."""
        self._runtime.precision = available("int8")
        self._runtime.use_int8(given)

    @property
    def keep_blobs(self) -> bool:
        """Whether every blob can be read after a pass (ours, not pycaffe's)."""
        return self._runtime.keep_blobs

    @property
    def flat_params(self) -> NDArray:
        """All parameters, in one buffer (ours, not pycaffe's)."""
        return self._runtime.parameters.values

    @property
    def flat_diffs(self) -> NDArray:
        """All parameter gradients, in one buffer (ours, not pycaffe's)."""
        return self._runtime.parameters.diffs

    # -- passes --------------------------------------------------------------------------

    def _forward(self, start: int, end: int) -> float:
        """Layers start … end, by number; the loss."""
        if len(self.layers):
            start, end = self._number("start", start), self._number("end", end)
        return self._run(start, end)

    def _run(self, start: int, end: int) -> float:
        callbacks = self._callbacks
        if callbacks.before_forward or callbacks.after_forward or end < start:
            return callbacks.forward(self._runtime.forward, range(start, end + 1))
        return self._runtime.forward(start, end)

    def _backward(self, start: int, end: int, overwrite: bool = False) -> None:
        """Layers start down to end; ``overwrite`` (`Runtime.backward`) unless watched."""
        if len(self.layers):
            start, end = self._number("start", start), self._number("end", end)
        work = partial(self._runtime.backward, overwrite=overwrite)
        self._callbacks.backward(work, range(start, end - 1, -1))

    @property
    def _is_watched(self) -> bool:
        """Whether user code runs during a pass."""
        return bool(self._callbacks) or bool(self._runtime.user_layers())

    def before_forward(self, callback: Callback) -> None:
        """Call back with each layer's number before it runs; layers then run one by one."""
        self._callbacks.before_forward.append(checks.function("callback", callback))

    def after_forward(self, callback: Callback) -> None:
        self._callbacks.after_forward.append(checks.function("callback", callback))

    def before_backward(self, callback: Callback) -> None:
        self._callbacks.before_backward.append(checks.function("callback", callback))

    def after_backward(self, callback: Callback) -> None:
        self._callbacks.after_backward.append(checks.function("callback", callback))

    def time_layers(self, on: bool) -> None:
        """Start every layer's clocks from 0, or stop them (ours, not pycaffe's)."""
        self._runtime.time(on)

    def layer_times(self) -> tuple[list[float], list[float]]:
        """Nanoseconds forward and backward, one number a layer (ours, not pycaffe's)."""
        return self._runtime.times()

    @property
    def random_state(self) -> tuple[int, list[int]]:
        """The state of its layers' random numbers, for another net to go on from (ours)."""
        return self._runtime.seed, self._runtime.engine.draws()

    @random_state.setter
    def random_state(self, state: tuple[int, Sequence[int]]) -> None:
        seed, draws = state
        self._runtime.reseed(seed)
        self._runtime.engine.set_draws(draws)

    def _layer_number(self, name: str) -> int:
        if checks.text("a layer", name) not in self._layer_names:
            raise LayerError(name, "the net has no such layer")
        return self._layer_names.index(name)

    def forward(
        self,
        blobs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **kwargs: ArrayLike,
    ) -> Arrays:
        """Set the inputs given by name, run from ``start`` to ``end``, return the outputs.

        ``blobs`` names further blobs to return.  The arrays are views of the
        net's memory, which the next pass overwrites."""
        first = 0 if start is None else self._layer_number(start)
        last = len(self.layers) - 1 if end is None else self._layer_number(end)
        names = self.outputs if end is None else self.top_names[end]
        is_plain = type(blobs) is list and {*map(type, blobs)} == {str}
        more = blobs if is_plain and blobs else checks.names("blobs", blobs)
        results = {name: self._blob(name) for name in dict.fromkeys([*names, *more])}
        if kwargs:
            fill(self.blobs, kwargs, self.inputs, "input")
        self._want(results)
        self._run(first, last)
        return {name: blob.data for name, blob in results.items()}

    def prepared_pass(
        self, inputs: Sequence[str], zeros: Sequence[str], outputs: Sequence[str]
    ) -> PreparedPass | None:
        """Return what runs the net as it is now with little of Python; None if nothing can."""
        if not self._runtime.is_one_call:
            return None
        return PreparedPass(self, inputs, zeros, outputs)

    def backward(
        self,
        diffs: Sequence[str] | None = None,
        start: str | None = None,
        end: str | None = None,
        **kwargs: ArrayLike,
    ) -> Arrays:
        """Set the output gradients given by name, run from ``start`` down to ``end``."""
        first = len(self.layers) - 1 if start is None else self._layer_number(start)
        last = 0 if end is None else self._layer_number(end)
        names = self.inputs if end is None else self.bottom_names[end]
        if kwargs:
            whole = start is None or set(kwargs) == set(self.outputs)
            tops = self.outputs if whole else self.top_names[str(start)]
            fill(self.blobs, kwargs, tops, "output gradient", gradient=True)
        more = checks.names("diffs", diffs)
        results = {name: self._blob(name) for name in dict.fromkeys([*names, *more])}
        self._want(results)
        self._backward(first, last)
        return {name: blob.diff for name, blob in results.items()}

    def _want(self, names: Iterable[str]) -> None:
        """Keep these blobs' values after the pass that follows."""
        if not self.keep_blobs:
            for name in names:
                if name not in self.outputs:  # those are kept anyway
                    self._runtime.engine.want_blob(self._blob_names.index(name))

    def _blob(self, name: str) -> Blob:
        if name not in self.blobs:
            raise SpecError(f"the net has no blob '{name}'{one_of(name, self.blobs)}")
        return self.blobs[name]

    def _batch(self, blobs: Arrays) -> Iterator[Arrays]:
        """Return the arrays in batches of the net's size, the last one padded with zeros."""
        return passes.batches(self, blobs)

    def forward_all(self, blobs: Sequence[str] | None = None, **kwargs: ArrayLike) -> Arrays:
        """Run any number of inputs in batches; outputs for each, the padding cut off."""
        return passes.forward_all(self, blobs, kwargs)

    def forward_backward_all(
        self,
        blobs: Sequence[str] | None = None,
        diffs: Sequence[str] | None = None,
        **kwargs: ArrayLike,
    ) -> tuple[Arrays, Arrays]:
        """Run any number of inputs and output gradients in batches, forward and backward."""
        return passes.forward_backward_all(self, blobs, diffs, kwargs)

    # -- shapes, parameters, files -------------------------------------------------------

    def reshape(self) -> None:
        """Let every layer follow the shapes that the inputs have now."""
        self._runtime.reshape()

    def clear_param_diffs(self) -> None:
        self._runtime.clear_param_diffs()

    def copy_from(self, weights_file: StrPath) -> None:
        """Copy the parameters of layers with the same names; ``.h5`` means HDF5."""
        weights_io.copy_from(self._runtime, checks.path("weights_file", weights_file))

    def copy_model(self, model: Model) -> None:
        """`copy_from` of a file that `sparknet.read_model` has read."""
        weights_io.copy_model(self._runtime, model)

    def load_hdf5(self, weights_file: StrPath) -> None:
        self.copy_from(weights_file)

    def save(self, path: StrPath) -> None:
        """Write a caffemodel; a name that ends in .h5 makes it HDF5."""
        weights_io.save(self._runtime, checks.path("path", path))

    def save_hdf5(self, path: StrPath, write_diff: bool = False) -> None:
        """Write HDF5, whatever the name ends in."""
        name, with_diffs = checks.path("path", path), checks.boolean("write_diff", write_diff)
        weights_io.save_hdf5(self._runtime, name, with_diffs)

    def share_with(self, other: Net) -> None:
        """Use another net's parameter memory for layers of the same name."""
        other = checks.instance("other", other, Net, "a Net")
        weights_io.share(self._runtime, other._runtime)

    def set_input_arrays(
        self, data: ArrayLike, labels: ArrayLike, sizes: ArrayLike | None = None
    ) -> None:
        """Hand arrays to the MemoryData layer; `sizes` has each picture's height and width."""
        host = self._runtime.segments[0].host if self._runtime.segments else None
        if host is None or not hasattr(host, "set_arrays"):
            raise SpecError("set_input_arrays needs a net whose first layer is MemoryData")
        host.set_arrays(data, labels, sizes)

    _set_input_arrays = set_input_arrays

    def trim(self) -> None:
        """Give the system the memory that no blob holds between passes (ours, not pycaffe's)."""
        self._runtime.engine.trim()

    def close(self) -> None:
        """End the threads and close the files of data layers; a later pass reopens them (ours)."""
        self._runtime.close()

    def __getstate__(self) -> Any:
        name = f"'{self.name}'" if self.name else "it"
        raise TypeError(f"a Net cannot be pickled: save {name} and load it where it is used")


class PreparedPass:
    """A forward pass in one call of the engine, while a net keeps its shapes and memory."""

    def __init__(
        self, net: Net, inputs: Sequence[str], zeros: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self._runtime, self._callbacks = net._runtime, net._callbacks
        self._generation, self._last = self._runtime.generation, len(net.layers) - 1
        self._inputs = [(name, net.blobs[name].data) for name in inputs]
        self._zeros = [net.blobs[name].data for name in zeros]
        self._outputs = {name: net.blobs[name].data for name in outputs}

    def run(self, columns: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the outputs for arrays of the inputs' shapes; None if the net has changed."""
        for name, view in self._inputs:
            if columns[name].shape != view.shape:
                return None
        runtime, callbacks = self._runtime, self._callbacks
        with runtime._lock:
            if runtime.generation != self._generation or not runtime.is_settled or callbacks:
                return None
            for name, view in self._inputs:
                view[...] = columns[name]
            for view in self._zeros:
                view.fill(0)
            runtime.engine.forward(0, self._last)
        return self._outputs.copy()
