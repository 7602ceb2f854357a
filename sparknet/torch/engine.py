"""TorchNet: a net's passes by PyTorch, with the methods of `sparknet.native.net.NativeNet`.

Layers have numbers, blobs have memory (`sparknet.torch.memory`), and each type is a function from
tensors to tensors (`sparknet.torch.translations`).  The gradient of a layer is torch's own, of
that layer alone, so that every blob has one, passes may begin and end anywhere, and blobs may be
changed between layers.  A type without a function is computed by the native engine, as a net of
one layer (`sparknet.torch.native_layer`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from threading import RLock
from time import perf_counter_ns
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

from sparknet.errors import ArrayError, SpecError
from sparknet.native import NDArray
from sparknet.native.solver import SolverPass
from sparknet.native.staged_rows import DeviceRows
from sparknet.torch import layer_passes
from sparknet.torch.device_rows import TorchRows
from sparknet.torch.joined import joined_layers
from sparknet.torch.layer import (
    SOURCES,
    VIEWS,
    TorchBlob,
    TorchLayer,
    TorchParam,
    flat_of,
    hold,
)
from sparknet.torch.memory import Buffer, DevicePlace
from sparknet.torch.native_layer import NativeLayer
from sparknet.torch.random import Random
from sparknet.torch.recorded import Pass, RecordedPasses
from sparknet.torch.told import Check, Told
from sparknet.torch.translations.table import TABLE, wide
from sparknet.torch.update import DevicePass, norm_of

P = ParamSpec("P")
R = TypeVar("R")
Shape = tuple[int, ...]

PRODUCTS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


def translated(type_name: str) -> bool:
    """Whether torch computes a type of layers, or has nothing to compute of it."""
    return type_name in TABLE or type_name in VIEWS or type_name in SOURCES


def _alone(
    method: Callable[Concatenate[TorchNet, P], R],
) -> Callable[Concatenate[TorchNet, P], R]:
    """One thread at a time: a blob's shape and its values change one after the other."""

    @wraps(method)
    def locked(self: TorchNet, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked


class TorchNet:
    """The memory and the passes of one net, on one device."""

    views_stay = True
    """Whether an array that was handed out shows what later passes compute."""

    def __init__(
        self, train: bool, seed: int, precision: str, device: str, apart: bool = False
    ) -> None:
        self.place = DevicePlace.named(device, apart)
        self.views_stay = not self.place.apart
        self.train, self.seed_now = train, seed
        self.precision, self.product = precision, PRODUCTS[precision]
        self._lock = RLock()
        self._blobs: list[TorchBlob] = []
        self.device_rows: DeviceRows | None = (
            TorchRows(self.place, self._blobs) if self.place.apart else None
        )
        self._params: list[TorchParam] = []
        self._flats: dict[int, Buffer] = {}
        self._layers: list[TorchLayer] = []
        self._shares = False
        self._last_readers: list[list[TorchBlob]] = []
        self._timed = False
        self._checks: list[Check] = []
        self._recorded = RecordedPasses(self.place)
        self._joined: dict[int, TorchLayer] = {}

    # -- building ------------------------------------------------------------------------

    def use_int8(self, layer: int, on: bool = True) -> None:
        if on:
            raise SpecError("the engine torch has no precision='int8': use the native engine")

    def set_step(self, blob: int, step: float, is_signed: bool, may_be_int8: bool) -> None:
        """Steps are for eight bits, which this engine does not have."""

    def share_blobs(self) -> None:
        """Let go of blobs once their last reader has run."""
        self._shares = True

    def want_blob(self, blob: int) -> None:
        self._want(self._blobs[blob])

    def _want(self, blob: TorchBlob) -> None:
        if self._shares and not blob.wanted:
            self._recorded.forget()  # the recorded ones give it back
        blob.wanted = True

    def add_blob(self, name: str, shape: Sequence[int]) -> int:
        self._blobs.append(TorchBlob(name, self.place))
        self.reshape_blob(len(self._blobs) - 1, shape)
        return len(self._blobs) - 1

    @_alone
    def reshape_blob(self, blob: int, shape: Sequence[int]) -> None:
        self._recorded.forget()
        self._blobs[blob].reshape(tuple(shape), keep=False)

    @_alone
    def extend_blob(self, blob: int, shape: Sequence[int]) -> None:
        self._recorded.forget()
        self._blobs[blob].reshape(tuple(shape), keep=True)

    def hold(self, *arrays: NDArray) -> None:
        """Buffers that parameters will be parts of."""
        for array in arrays:
            self._flats[array.address] = hold(array, self.place)

    def add_param(self, data: NDArray, diff: NDArray) -> int:
        self._params.append(TorchParam(data, diff, self.place))
        return len(self._params) - 1

    def share_param(self, param: int, data: NDArray) -> None:
        self._recorded.forget()
        self._params[param].share(data, self.place)

    def add_layer(
        self,
        type_name: str,
        name: str,
        bottoms: Sequence[int],
        tops: Sequence[int],
        params: Sequence[int],
    ) -> int:
        layer = TorchLayer(
            len(self._layers),
            type_name,
            name,
            train=self.train,
            product=self.product,
            seed=self.seed_now,
            place=self.place,
            check=self.check,
        )
        layer.bottoms = [self._blobs[blob] for blob in bottoms]
        layer.tops = [self._blobs[blob] for blob in tops]
        layer.params = [self._params[param] for param in params]
        layer.propagate = [False] * len(bottoms)
        layer.learns = [False] * len(params)
        layer.loss_weights = [0.0] * len(tops)
        self._layers.append(layer)
        return layer.number

    def set_options(self, layer: int, values: Mapping[str, Any]) -> None:
        self._recorded.forget()
        one = self._layers[layer]
        one.options = dict(values)
        one.native = None

    def set_gradients(
        self, layer: int, backward: bool, propagate: Sequence[bool], learns: Sequence[bool]
    ) -> None:
        self._recorded.forget()
        one = self._layers[layer]
        one.backward, one.propagate, one.learns = backward, list(propagate), list(learns)
        one.native = None

    def set_loss_weights(self, layer: int, weights: Sequence[float]) -> None:
        self._recorded.forget()
        self._layers[layer].loss_weights = list(weights)
        self._layers[layer].native = None

    def prepare(self, first: int, last: int) -> None:
        self._recorded.forget()
        for layer in self._layers[first : last + 1]:
            layer.record = None
            if layer.is_view:
                layer_passes.bind(layer)
            for top, weight in zip(layer.tops, layer.loss_weights, strict=True):
                if weight:
                    top.diff.fill(weight, top.shape)
            if self._needs_native(layer):
                self._prepare_native(layer)
        apart = {at: one for at, one in self._joined.items() if last < at or at + 1 < first}
        self._joined = joined_layers(self._layers) | apart
        self._find_last_readers()

    def _needs_native(self, layer: TorchLayer) -> bool:
        return layer.translation is None and layer.type not in SOURCES and not layer.is_view

    def _prepare_native(self, layer: TorchLayer) -> None:
        if layer.native is None:
            layer.native = NativeLayer(layer, self.train, self.seed_now)
        layer.native.prepare()

    def fallbacks(self) -> dict[str, str]:
        """Layers that the native engine computes, and their types."""
        return {layer.name: layer.type for layer in self._layers if self._needs_native(layer)}

    def _find_last_readers(self) -> None:
        """After which layer each blob's memory may go."""
        last: dict[int, int] = {}
        memories: dict[int, list[TorchBlob]] = {}
        for blob in self._blobs:
            memories.setdefault(id(blob.data), []).append(blob)
        for layer in self._layers:
            for blob in (*layer.bottoms, *layer.tops):
                last[id(blob.data)] = layer.number
        self._last_readers = [[] for _ in self._layers]
        for key, number in last.items():
            if not any(blob.wanted for blob in memories[key]):
                self._last_readers[number].append(memories[key][0])

    # -- passes --------------------------------------------------------------------------

    def check(self, layer: TorchLayer, fine: Tensor, message: Callable[[], str]) -> None:
        """At once on the CPU; elsewhere at the end of the pass, which is not held up."""
        if self.place.apart:
            self._checks.append((layer, fine, message))
        elif not bool(fine):
            layer.refuse(message())

    def _told(self, told: Told | None) -> float:
        """The loss, once all checks of the pass were fine: the device is waited for once."""
        if told is None:
            return 0.0
        loss, *fine = told.numbers()
        for (layer, _, message), is_fine in zip(told.checks, fine, strict=True):
            if not is_fine:
                layer.refuse(message())
        return loss

    def _precisely(self, one: Pass) -> AbstractContextManager[Any]:
        """The process's switches for GPUs, as this net wants them."""
        stack = ExitStack()
        if self.place.device.type == "cuda":
            cudnn = torch.backends.cudnn
            is_free = not (cudnn.deterministic or torch.are_deterministic_algorithms_enabled())
            tunes = cudnn.benchmark or (is_free and self._recorded.is_steady(one))
            for switches, name, wanted in (
                (torch.backends.cuda.matmul, "allow_tf32", self.precision == "tf32"),
                (cudnn, "allow_tf32", self.precision == "tf32"),
                (cudnn, "benchmark", tunes),
            ):
                stack.callback(setattr, switches, name, getattr(switches, name))
                setattr(switches, name, wanted)
        return stack

    def _run(self, one: Pass) -> list[TorchLayer]:
        """The layers of a pass, in the order of the net; those that are one step are one."""
        found, number = [], one.first
        while number <= one.last:
            layer = self._joined.get(number)
            if layer is None or self._timed or number == one.last:
                layer = self._layers[number]
            found.append(layer)
            number += len(layer.numbers)
        return found

    def _pass(self, one: Pass, work: Callable[[list[TorchLayer]], Tensor | None]) -> Told | None:
        """What a pass tells at its end, when the device has come there."""
        self._checks.clear()
        layers = self._run(one)
        for flat in self._used_flats():
            flat.to_device()
        wanted = self._recorded.wants(one, layers) and not self._timed
        with self._precisely(one):
            if wanted:
                memories = {id(at): at for blob in self._blobs for at in (blob.data, blob.diff)}
                numbers = self._recorded.run(
                    one,
                    layers,
                    list(memories.values()),
                    self._used_flats(),
                    self._checks,
                    lambda: work(layers),
                )
            else:
                numbers = work(layers)
        return None if numbers is None else Told(numbers, list(self._checks))

    @_alone
    def forward(self, first: int, last: int) -> float:
        if first > last:
            return 0.0
        return self._told(self._pass(Pass(True, first, last), self._forward))

    def _forward(self, layers: list[TorchLayer]) -> Tensor | None:
        loss: Tensor | None = None
        for layer in layers:
            began = perf_counter_ns() if self._timed else 0
            layer_passes.forward(layer, self._shares)
            for top, weight in zip(layer.tops, layer.loss_weights, strict=True):
                if weight:
                    part = torch.vdot(
                        top.values().reshape(-1).to(wide(top.values())),
                        top.gradient().reshape(-1).to(wide(top.values())),
                    )
                    loss = part if loss is None else loss + part
            if self._shares:
                for blob in (one for number in layer.numbers for one in self._last_readers[number]):
                    if not any(one.wanted for one in self._blobs if one.data is blob.data):
                        blob.data.drop()
            if self._timed:
                self._wait()
                layer.forward_ns += perf_counter_ns() - began
        return self._to_tell(loss)

    def _to_tell(self, loss: Tensor | None) -> Tensor | None:
        """The loss and whether each check was fine, in one tensor; None: there is neither."""
        if loss is None and not self._checks:
            return None
        if loss is None:
            loss = self.place.zeros(1)[0]
        return torch.stack([loss, *(fine.to(loss) for _, fine, _ in self._checks)])

    def _used_flats(self) -> list[Buffer]:
        flats = {id(flat): flat for param in self._params for flat in (param.flat, param.flat_diff)}
        return list(flats.values())

    @_alone
    def backward(self, first: int, last: int, overwrite: bool = False) -> None:
        """Run layers first down to last; with ``overwrite`` parameter gradients start from zero."""
        if first < last:
            return
        one = Pass(False, last, first, overwrite)
        self._told(self._pass(one, lambda layers: self._backward(layers, overwrite)))

    @_alone
    def forward_backward(self, first: int, last: int) -> float:
        """The pass back begins before the device has told the loss."""
        told = self._pass(Pass(True, first, last), self._forward)
        self.backward(last, first, overwrite=True)
        return self._told(told)

    def _backward(self, layers: list[TorchLayer], overwrite: bool) -> Tensor | None:
        stays = not any(layer.native is not None for layer in layers)
        for param in self._params if overwrite else ():
            param.is_stale = stays
            if not stays:
                param.flat_diff.clear()
        try:
            for layer in reversed(layers):
                if not layer.backward:
                    continue
                began = perf_counter_ns() if self._timed else 0
                layer_passes.backward(layer, self._shares)
                if self._timed:
                    self._wait()
                    layer.backward_ns += perf_counter_ns() - began
        finally:
            for param in self._params:
                param.clear_stale()
        return self._to_tell(None)

    # -- random numbers ------------------------------------------------------------------

    def seed(self, seed: int) -> None:
        self.seed_now = seed
        for layer in self._layers:
            layer.random = Random(seed, layer.number)
            if layer.native is not None:
                layer.native.seed(seed)

    def draws(self) -> list[int]:
        return [
            layer.native.draws() if layer.native is not None else layer.random.draws
            for layer in self._layers
        ]

    def set_draws(self, draws: Sequence[int]) -> None:
        if len(draws) != len(self._layers):
            raise SpecError(f"{len(draws)} draws do not fit {len(self._layers)} layers")
        for layer, count in zip(self._layers, draws, strict=True):
            layer.random.draws = int(count)
            if layer.native is not None:
                layer.native.set_draws(int(count))

    # -- clocks and memory ---------------------------------------------------------------

    def _wait(self) -> None:
        if self.place.device.type == "cuda":
            torch.cuda.synchronize(self.place.device)

    def time(self, on: bool) -> None:
        self._timed = on
        for layer in self._layers:
            layer.forward_ns = layer.backward_ns = 0

    def times(self) -> tuple[list[float], list[float]]:
        return (
            [float(layer.forward_ns) for layer in self._layers],
            [float(layer.backward_ns) for layer in self._layers],
        )

    def methods(self, layer: int) -> dict[str, str]:
        one = self._layers[layer]
        if one.native is not None:
            return {name: f"native: {how}" for name, how in one.native.methods().items()}
        return {}

    def blob_shape(self, blob: int) -> Shape:
        return self._blobs[blob].shape

    def memory(self) -> dict[str, int]:
        """Bytes of blobs; what torch keeps besides is torch's to tell."""
        memories = {id(one): one for blob in self._blobs for one in (blob.data, blob.diff)}
        rows = sum(one.bytes() for one in memories.values())
        return {"rows": rows, "layouts": 0, "scratch": 0, "pages": rows}

    def trim(self) -> None:
        """Let go of what only a backward pass would read."""
        self._recorded.forget()
        for layer in (*self._layers, *self._joined.values()):
            layer.record = None
        if self.place.device.type == "cuda":
            torch.cuda.empty_cache()

    # -- what programs see ---------------------------------------------------------------

    @_alone
    def adopt(self, blob: int, values: NDArray) -> bool:
        one = self._blobs[blob]
        one.data.on_host(one.shape).copy_from(values)
        return False

    @_alone
    def blob_array(self, blob: int, diff: bool = False) -> NDArray:
        one = self._blobs[blob]
        memory = one.diff if diff else one.data
        self._want(one)
        if memory.gone:
            raise ArrayError(
                f"the {'gradients' if diff else 'values'} of blob '{one.name}' were given back "
                "after their last reader: ask for it before the pass, or make the net with "
                "keep_blobs=True"
            )
        return memory.on_host(one.shape)

    def at_host(self, array: NDArray) -> NDArray:
        """The newest parameters lie in the array now, and what is written there counts."""
        if self.place.apart:
            flat_of(array, self.place).to_host()
        return array

    def clear(self, array: NDArray) -> None:
        """Parameters' gradients become zeros."""
        flat_of(array, self.place).clear()

    def norm(self, array: NDArray) -> float:
        return norm_of(array, self.place)

    def solver_pass(self, *buffers: Any) -> SolverPass | DevicePass:
        return DevicePass(self.place, *buffers) if self.place.apart else SolverPass(*buffers)
