"""The passes of a net that torch computes: which layers run, in what order, and what they tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import RLock
from time import perf_counter_ns
from typing import Any

import torch
from torch import Tensor

from sparknet.errors import OutOfMemory
from sparknet.native.alone import alone
from sparknet.torch import layer_passes
from sparknet.torch.layer import (
    PassNumbers,
    TorchBlob,
    TorchLayer,
    TorchParam,
    TracedCheck,
    taken_apart,
)
from sparknet.torch.memory import Buffer, DevicePlace
from sparknet.torch.recorded import Pass, RecordedPasses
from sparknet.torch.translations.table import wide


class NetPasses:
    """The layers of a net, and its memory on one device."""

    def __init__(self, place: DevicePlace, precision: str) -> None:
        self.place, self.precision = place, precision
        self._lock = RLock()
        self._blobs: list[TorchBlob] = []
        self._params: list[TorchParam] = []
        self._layers: list[TorchLayer] = []
        self._shares = False
        self._last_readers: list[list[TorchBlob]] = []
        self._timed = False
        self._checks: list[TracedCheck] = []
        self._recorded = RecordedPasses(self.place)
        self._joined: dict[int, TorchLayer] = {}

    def check(self, layer: TorchLayer, fine: Tensor, message: Callable[[], str]) -> None:
        """At once on the CPU; elsewhere at the end of the pass, which is not held up."""
        if self.place.apart:
            self._checks.append((layer, fine, message))
        elif not bool(fine):
            layer.refuse(message())

    def _checked_loss(self, told: PassNumbers | None) -> float:
        """Return the loss, once all checks of the pass were fine; wait for the device once."""
        if told is None:
            return 0.0
        loss, *fine = told.numbers()
        for (layer, _, message), is_fine in zip(told.checks, fine, strict=True):
            if not is_fine:
                layer.refuse(message())
        return loss

    def _precisely(self, one: Pass) -> AbstractContextManager[Any]:
        """Return the process's switches for GPUs, as this net wants them."""
        stack = ExitStack()
        if self.place.device.type == "cuda":
            cudnn = torch.backends.cudnn
            is_free = not (cudnn.deterministic or torch.are_deterministic_algorithms_enabled())
            tunes = cudnn.benchmark or (is_free and self._recorded.is_steady(one))
            for switches, name, setting in (
                (torch.backends.cuda.matmul, "allow_tf32", self.precision == "tf32"),
                (cudnn, "allow_tf32", self.precision == "tf32"),
                (cudnn, "benchmark", tunes),
            ):
                stack.callback(setattr, switches, name, getattr(switches, name))
                setattr(switches, name, setting)
        return stack

    def _run(self, one: Pass) -> list[TorchLayer]:
        """Return the layers of a pass, in the order of the net; those that are one step are one."""
        losses, number = [], one.first
        while number <= one.last:
            layer = self._layers[number]
            both = self._joined.get(number)
            if both and not self._timed and number < one.last and (one.is_forward or both.record):
                layer = both
            losses.append(layer)
            number += len(layer.numbers)
        return losses

    def _is_split(self, one: Pass, layers: list[TorchLayer]) -> bool:
        """Return whether layers that were one in the pass forward are two in this."""
        alone = {layer.number for layer in layers if len(layer.numbers) == 1}
        split = [self._joined[n] for n in self._joined if n in alone or n + 1 in alone]
        if one.is_forward:
            for both in split:
                both.record = None
            for number in (
                n for layer in layers if layer.number not in alone for n in layer.numbers
            ):
                self._layers[number].record = None
            return False
        apart = [both for both in split if both.record is not None]
        for both in apart:
            taken_apart(both, *self._layers[both.number : both.number + 2])
        return bool(apart)

    def _pass(
        self, one: Pass, work: Callable[[list[TorchLayer]], Tensor | None]
    ) -> PassNumbers | None:
        """Return what a pass reports at its end, when the device has come there."""
        self._checks.clear()
        layers = self._run(one)
        for flat in self._used_flats():
            flat.to_device()
        records = self._recorded.wants(one, layers) and not self._timed
        records = not self._is_split(one, layers) and records
        with self._precisely(one):
            if records:
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
        return None if numbers is None else PassNumbers(numbers, list(self._checks))

    @alone
    def forward(self, first: int, last: int) -> float:
        if first > last:
            return 0.0
        return self._checked_loss(self._pass(Pass(True, first, last), self._forward))

    def _forward(self, layers: list[TorchLayer]) -> Tensor | None:
        loss: Tensor | None = None
        for layer in layers:
            began = perf_counter_ns() if self._timed else 0
            with self._given_memory(layer):
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

    @contextmanager
    def _given_memory(self, layer: TorchLayer) -> Iterator[None]:
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            reason = ". ".join(str(error).split(". ")[:3])
            raise OutOfMemory(
                f"layer '{layer.name}': {layer.type}: {self.place.device} has too little memory; a "
                f"smaller batch takes less, and so does keep_blobs=False ({reason})"
            ) from None

    def _to_tell(self, loss: Tensor | None) -> Tensor | None:
        """Return the loss and whether each check was fine, in one tensor, or None."""
        if loss is None and not self._checks:
            return None
        if loss is None:
            loss = self.place.zeros(1)[0]
        return torch.stack([loss, *(fine.to(loss) for _, fine, _ in self._checks)])

    def _used_flats(self) -> list[Buffer]:
        flats = {id(flat): flat for param in self._params for flat in (param.flat, param.flat_diff)}
        return list(flats.values())

    @alone
    def backward(self, first: int, last: int, overwrite: bool = False) -> None:
        """Run layers first down to last; with ``overwrite`` parameter gradients start from zero."""
        if first < last:
            return
        one = Pass(False, last, first, overwrite)
        self._checked_loss(self._pass(one, lambda layers: self._backward(layers, overwrite)))

    @alone
    def forward_backward(self, first: int, last: int) -> float:
        """Begin the pass back before the device has reported the loss."""
        losses = self._pass(Pass(True, first, last), self._forward)
        self.backward(last, first, overwrite=True)
        return self._checked_loss(losses)

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
                with self._given_memory(layer):
                    layer_passes.backward(layer, self._shares)
                if self._timed:
                    self._wait()
                    layer.backward_ns += perf_counter_ns() - began
        finally:
            for param in self._params:
                param.clear_stale()
        return self._to_tell(None)

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
