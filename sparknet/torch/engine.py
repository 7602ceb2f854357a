"""TorchNet: a net's passes by PyTorch, with the methods of `sparknet.native.net.NativeNet`.

Each layer has a gradient of its own, so that passes may begin and end anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import torch

from sparknet.errors import ArrayError, SpecError
from sparknet.native import NDArray
from sparknet.native.alone import alone
from sparknet.native.solver import SolverPass
from sparknet.native.staged_rows import DeviceRows
from sparknet.torch import layer_passes
from sparknet.torch.device_rows import TorchRows
from sparknet.torch.layer import (
    SOURCES,
    VIEWS,
    TorchBlob,
    TorchLayer,
    TorchParam,
    flat_of,
    hold,
    joined_layers,
)
from sparknet.torch.layer_passes import NativeLayer
from sparknet.torch.memory import Buffer, DevicePlace
from sparknet.torch.net_passes import NetPasses
from sparknet.torch.random import Random
from sparknet.torch.translations.table import TABLE
from sparknet.torch.update import DevicePass, norm_of

P = ParamSpec("P")
R = TypeVar("R")
Shape = tuple[int, ...]

PRODUCTS = {"float32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


def translated(type_name: str) -> bool:
    """Return whether torch computes a type of layers, or has nothing to compute of it."""
    return type_name in TABLE or type_name in VIEWS or type_name in SOURCES


class TorchNet(NetPasses):
    """The memory and the passes of one net, on one device."""

    views_stay = True
    """Whether an array that was handed out shows what later passes compute."""

    def __init__(
        self, train: bool, seed: int, precision: str, device: str, apart: bool = False
    ) -> None:
        super().__init__(DevicePlace.of(device, apart), precision)
        self.views_stay = not self.place.apart
        self.train, self.seed_now = train, seed
        self.product = PRODUCTS[precision]
        self.device_rows: DeviceRows | None = (
            TorchRows(self.place, self._blobs) if self.place.apart else None
        )
        self._flats: dict[int, Buffer] = {}

    # -- building ------------------------------------------------------------------------

    def use_int8(self, layer: int, on: bool = True, bias: Sequence[float] = ()) -> None:
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

    @alone
    def reshape_blob(self, blob: int, shape: Sequence[int]) -> None:
        self._recorded.forget()
        self._blobs[blob].reshape(tuple(shape), keep=False)

    @alone
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
            for top in {*layer.tops} & {*layer.bottoms}:
                top.data.is_overwritten = True
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

    # -- memory --------------------------------------------------------------------------

    def methods(self, layer: int) -> dict[str, str]:
        one = self._layers[layer]
        if one.native is not None:
            return {name: f"native: {how}" for name, how in one.native.methods().items()}
        return {}

    def blob_shape(self, blob: int) -> Shape:
        return self._blobs[blob].shape

    def memory(self) -> dict[str, int]:
        """Return bytes of blobs; what torch keeps besides is torch's to tell."""
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

    @alone
    def adopt(self, blob: int, values: NDArray) -> bool:
        one = self._blobs[blob]
        one.data.on_host(one.shape).copy_from(values)
        return False

    @alone
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
        """Put the newest parameters into the array, where writes count from now on."""
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
