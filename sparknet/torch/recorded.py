"""Passes as CUDA graphs: recorded once, then started as one."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from sparknet.errors import warn
from sparknet.torch.layer import SOURCES, TorchLayer, TracedCheck
from sparknet.torch.memory import Buffer, DevicePlace, Memory
from sparknet.torch.random import signed

Work = Callable[[], Tensor | None]
AFTER = 2
"""How many passes with the same shapes come first.  In the second cuDNN chooses its algorithms; it
runs where the recording will be made, so that libraries are ready there."""
TRIES = 2
"""After so many recordings that failed, a net makes no more."""
MOST = 8
"""How many passes of a net are recorded, as each keeps memory."""


class Tape(Protocol):
    """What records kernels, and starts them again."""

    def rehearse(self, work: Callable[[], Tensor | None]) -> Tensor | None:
        """Do the work, as it will be recorded."""

    def record(self, work: Callable[[], None]) -> None:
        """Note what the work starts; the values that it computes count for nothing."""

    def replay(self) -> None: ...


class GraphTape:
    """A CUDA graph."""

    def __init__(self, place: DevicePlace) -> None:
        index = place.device.index
        number = torch.cuda.current_device() if index is None else index
        self._device = torch.device("cuda", number)
        self._graph = torch.cuda.CUDAGraph()
        if self._device not in _STREAMS:
            _STREAMS[self._device] = torch.cuda.Stream(self._device)
        self._stream = _STREAMS[self._device]

    def rehearse(self, work: Callable[[], Tensor | None]) -> Tensor | None:
        usual = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(usual)
        with torch.cuda.stream(self._stream):
            output = work()
        usual.wait_stream(self._stream)
        return output

    def record(self, work: Callable[[], None]) -> None:
        # Other threads bring batches meanwhile.
        with (
            torch.cuda.device(self._device),
            torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local"),
        ):
            work()

    def replay(self) -> None:
        self._graph.replay()


_STREAMS: dict[torch.device, torch.cuda.Stream] = {}
"""What passes are recorded in, one for each GPU."""


def tape_of(place: DevicePlace) -> Tape | None:
    """Return what passes are recorded by there; SPARKNET_CUDA_GRAPHS=0 says that they are not."""
    if place.device.type != "cuda" or os.environ.get("SPARKNET_CUDA_GRAPHS") == "0":
        return None
    return GraphTape(place)


@dataclass(frozen=True)
class Pass:
    """Which layers run, in which direction."""

    is_forward: bool
    first: int
    last: int
    overwrites: bool = False


@dataclass
class Recorded:
    """A pass, and what it does besides what the GPU computes."""

    tape: Tape
    inputs: list[tuple[Memory, Tensor]]
    keys: Tensor
    numbers: Tensor | None = None
    checks: list[TracedCheck] = field(default_factory=list)
    after: list[tuple[Memory, Tensor | None, bool]] = field(default_factory=list)
    changed: list[Buffer] = field(default_factory=list)
    drawing: list[TorchLayer] = field(default_factory=list)
    records: list[tuple[TorchLayer, Any]] = field(default_factory=list)

    def can_run(self) -> bool:
        return not any(memory.gone for memory, _ in self.inputs)

    def run(self) -> None:
        for memory, place in self.inputs:
            memory.bring(place)
        if self.drawing:
            self._bring_keys()
        self.tape.replay()
        for memory, values, is_freed in self.after:
            memory.is_now(values, is_freed)
        for flat in self.changed:
            flat.changed()
        for layer, record in self.records:
            layer.record = record

    def _bring_keys(self) -> None:
        counts = [0] * len(self.keys)
        for layer in self.drawing:
            key = layer.random.draw().key
            assert isinstance(key, int)
            counts[layer.number] = signed(key)
        brought = torch.tensor(counts, dtype=torch.int64, pin_memory=self.keys.is_cuda)
        self.keys.copy_(brought, non_blocking=True)


class RecordedPasses:
    """The recorded passes of one net."""

    def __init__(self, place: DevicePlace) -> None:
        self._place = place
        self._can = tape_of(place) is not None
        self._tries = 0
        self._seen: dict[Pass, int] = {}
        self._found: dict[Pass, Recorded] = {}
        self._newest: Pass | None = None
        """The forward pass that was replayed last, if none has run otherwise since."""
        self._back_of: dict[Pass, Pass] = {}
        """Of a recorded pass back the forward pass whose values it reads."""
        self._rules: Any = None

    def forget(self) -> None:
        """Shapes, options or memory are others now."""
        if self._seen:
            self._seen.clear()
            self._found.clear()
            self._back_of.clear()
            self._newest = None

    def is_steady(self, one: Pass) -> bool:
        """Return whether the pass has run with these shapes, so that cuDNN may tune."""
        return self._seen.get(one, 0) > 1

    def wants(self, one: Pass, layers: Sequence[TorchLayer]) -> bool:
        """Return whether the pass is to run as a recorded one; asked once for each pass."""
        rules = torch.are_deterministic_algorithms_enabled()
        if rules != self._rules:
            self.forget()
            self._rules = rules
        self._seen[one] = self._seen.get(one, 0) + 1
        computing = [one.is_forward or layer.backward for layer in layers if layer.translation]
        follows = self._newest
        if one.is_forward:
            self._newest = None
        if not self._can or sum(computing) < 2:
            return False
        if one in self._found:
            fits = one.is_forward or self._back_of[one] == follows
            return fits and self._found[one].can_run()
        if not (one.is_forward or self._seen[one] == AFTER or _covers(follows, one)):
            return False
        if self._seen[one] < AFTER or len(self._found) == MOST:
            return False
        return all(_can_be_recorded(layer) for layer in layers)

    def run(
        self,
        one: Pass,
        layers: Sequence[TorchLayer],
        memories: Sequence[Memory],
        flats: Sequence[Buffer],
        checks: list[TracedCheck],
        work: Work,
    ) -> Tensor | None:
        """Run a wanted pass; its losses and checks, on the device."""
        recorded = self._found.get(one)
        if self._seen[one] == AFTER and (tape := tape_of(self._place)):
            return tape.rehearse(work)
        if recorded is None:
            reads = _from_outside(layers, one.is_forward)
            if any(memory.gone for memory, _ in reads):
                return work()  # which says so
            recorded = self._recorded(reads, layers, memories, flats, checks, work)
            if recorded is None:
                return work()
            self._found[one] = recorded
            if self._newest is not None:
                self._back_of[one] = self._newest
        recorded.run()
        checks.extend(recorded.checks)
        if one.is_forward:
            self._newest = one
        return recorded.numbers

    def _recorded(
        self,
        reads: Sequence[tuple[Memory, tuple[int, ...]]],
        layers: Sequence[TorchLayer],
        memories: Sequence[Memory],
        flats: Sequence[Buffer],
        checks: list[TracedCheck],
        work: Work,
    ) -> Recorded | None:
        tape = tape_of(self._place)
        assert tape is not None
        count = 1 + max(layer.number for layer in layers)
        keys = torch.zeros(count, dtype=torch.int64, device=self._place.device)
        recorded = Recorded(
            tape, [(memory, memory.read(shape).clone()) for memory, shape in reads], keys
        )
        states = [dict(layer.state) for layer in layers]
        draws = [layer.random.draws for layer in layers]

        def run() -> None:
            recorded.numbers = work()

        try:
            with _left_as_it_was(layers, memories, flats):
                for memory, place in recorded.inputs:
                    memory.is_now(place, False)
                before = [(memory.values, memory.gone) for memory in memories]
                for layer in layers:
                    layer.key = keys[layer.number]
                with _without_collection():
                    tape.record(run)
                recorded.checks = list(checks)
                recorded.after = [
                    (memory, memory.values, memory.gone)
                    for memory, (values, is_freed) in zip(memories, before, strict=True)
                    if memory.values is not values or memory.gone != is_freed
                ]
                recorded.changed = [flat for flat in flats if flat.is_on_device]
                recorded.records = [(layer, layer.record) for layer in layers]
                is_first = any(
                    layer.state.keys() != state.keys()
                    for layer, state in zip(layers, states, strict=True)
                )
                times = [
                    layer.random.draws - before for layer, before in zip(layers, draws, strict=True)
                ]
        except Exception as error:  # the pass itself says what is wrong with it
            why = str(error).strip() or type(error).__name__
            warn(
                "a pass of this net is not recorded as a CUDA graph, but runs layer by layer: "
                f"{why.splitlines()[0]}"
            )
            self._tries += 1
            self._can = self._tries < TRIES
            return None
        finally:
            checks.clear()
        recorded.drawing = [
            layer for layer, has_drawn in zip(layers, times, strict=True) if has_drawn
        ]
        self._can = max(times) < 2
        return recorded if self._can and not is_first else None


def _covers(forward: Pass | None, back: Pass) -> bool:
    return forward is not None and forward.first <= back.first and back.last <= forward.last


def _can_be_recorded(layer: TorchLayer) -> bool:
    """Return whether all that the layer does is done on the device, without waiting for it."""
    if layer.native is not None or layer.type == "Host":
        return False
    return layer.translation is None or not layer.translation.waits


def _from_outside(
    layers: Sequence[TorchLayer], is_forward: bool
) -> list[tuple[Memory, tuple[int, ...]]]:
    """Return what layers read before any of them has written it."""
    inner: set[int] = set()
    outer: dict[int, tuple[Memory, tuple[int, ...]]] = {}

    def read(memory: Memory, shape: tuple[int, ...]) -> None:
        if id(memory) not in inner:
            outer[id(memory)] = memory, shape

    for layer in layers if is_forward else reversed(layers):
        if is_forward:
            for blob in layer.bottoms:
                read(blob.data, blob.shape)
                if blob.weights is not None:
                    read(blob.weights.data, blob.weights.shape)
            if not (layer.is_view or layer.type in SOURCES):
                inner |= {id(top.data) for top in layer.tops}
            for top, weight in zip(layer.tops, layer.loss_weights, strict=True):
                if weight:
                    read(top.diff, top.shape)
                    read(top.data, top.shape)
        elif layer.backward:
            for top in layer.tops:
                read(top.diff, top.shape)
            if layer.type == "RecordWeights":
                read(layer.bottoms[1].data, layer.bottoms[1].shape)
            inner |= {
                id(bottom.diff)
                for bottom, needs_gradient in zip(layer.bottoms, layer.propagate, strict=True)
                if needs_gradient
            }
    return list(outer.values())


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep garbage collection from an older graph: destroying it spoils the one in the making."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _left_as_it_was(
    layers: Sequence[TorchLayer], memories: Sequence[Memory], flats: Sequence[Buffer]
) -> Iterator[None]:
    """Forget what the host notes of a pass: nothing has been computed."""
    states: list[tuple[Any, dict[str, Any]]] = [
        (thing, dict(vars(thing)))
        for thing in (*memories, *flats, *(layer.random for layer in layers))
    ]
    states += [
        (layer, {"record": layer.record, "key": None, "state": dict(layer.state)})
        for layer in layers
    ]
    for flat in flats:
        flat.settle()
    try:
        yield
    finally:
        for thing, values in states:
            vars(thing).update(values)
