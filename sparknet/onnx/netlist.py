"""The net that a conversion makes: layers with their arrays, and the shape of every blob."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from operator import and_
from typing import Any, NoReturn

import numpy as np

from sparknet.dsl.fields import set_fields
from sparknet.errors import SpecError
from sparknet.graph.untrusted_budget import Budget, TooLarge
from sparknet.layers import LAYERS, TEST, Layer, Plan, Shape, make
from sparknet.onnx.sizes import RECORDS, Size, evaluate_all, symbols
from sparknet.onnx.source import Array
from sparknet.proto import Model, caffe_pb2

LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)
FLOAT = np.dtype(np.float32)


@dataclass(eq=False)
class Computed:
    """A value that the net computes.

    `order` says that the value is the blob with its axes in another order, and `pads` that zeros
    lie around it: the layer that reads it may do that work, or `Netlist` adds a layer for it."""

    name: str
    stored: Shape
    order: tuple[int, ...] | None = None
    pads: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    dtype: np.dtype[Any] = FLOAT
    """What the model takes the values for."""
    integral: bool = False
    """Holds whole numbers, of whatever type."""
    rounded: bool = False
    """Whole numbers are wanted where the blob may hold others: only Embed rounds by itself."""
    rows: int = 0
    """How many rows each record has, if the model counts places through all records: the values are
    places within a record.  -1: the number of the record stands before the place."""
    step: tuple[float, bool] | None = None
    """What the values are rounded to in eight bits, and whether some are below zero."""
    done: Computed | None = None
    """What the work made, for the next reader."""

    @property
    def shape(self) -> Shape:
        shape = self.stored
        if self.order is not None:
            shape = tuple(shape[axis] for axis in self.order)
        if self.pads is not None:
            before, after = self.pads
            shape = tuple(sum(one) for one in zip(shape, before, after, strict=True))
        return shape

    @property
    def is_plain(self) -> bool:
        return self.order is None and self.pads is None


Value = Array | Computed


@dataclass(eq=False)
class NetLayer:
    """A layer of the net."""

    parameter: caffe_pb2.LayerParameter
    arrays: list[Array]
    layer: Layer
    in_int8: bool = False
    """Whether it multiplies numbers of eight bits."""

    @property
    def type(self) -> str:
        return self.parameter.type

    @property
    def options(self) -> Any:
        return self.layer.options


@dataclass(eq=False)
class Netlist:
    """Layers in order.  `batch` stands for the number of records until the net is complete."""

    name: str
    batch: int
    budget: Budget
    lengths: tuple[int, ...] = ()
    """What stands for the other sizes that are left open: the lengths of sequences."""
    anchors: dict[int, tuple[Computed, int]] = field(default_factory=dict)
    """An input and its axis that has each open size."""
    layers: list[NetLayer] = field(default_factory=list)
    blobs: dict[str, Computed] = field(default_factory=dict)
    makers: dict[str, NetLayer] = field(default_factory=dict)
    readers: Counter[str] = field(default_factory=Counter)
    """How many bottoms each blob is."""
    sizes: dict[int, Size] = field(default_factory=dict)
    """The sizes that depend on open ones, by their examples."""
    places: dict[str, tuple[Computed, int]] = field(default_factory=dict)
    """The first blob, and its axis, of each size that depends on open ones."""
    images: dict[str, int] = field(default_factory=dict)
    """The open sizes of images, by name, with the value for which a budget is taken."""
    left_over: set[str] = field(default_factory=set)
    """Tops of Slice that no reader has been given yet."""
    _names: set[str] = field(default_factory=set)
    _numbers: dict[str, int] = field(default_factory=dict)
    """The last number that `unique` put behind each name."""

    def add(
        self,
        type_name: str,
        bottoms: Sequence[Computed],
        *,
        name: str,
        tops: Sequence[str],
        arrays: Sequence[Array] = (),
        options: dict[str, Any] | None = None,
    ) -> list[Computed]:
        """Append a layer; returns its tops."""
        parameter = caffe_pb2.LayerParameter(name=self.unique(name, "layer"), type=type_name)
        parameter.bottom.extend(one.name for one in bottoms)
        parameter.top.extend(self.unique(top, "blob") for top in tops)
        layer_class = LAYERS[type_name]
        if type_name != "Input" and _has_size(options):
            _fail("it computes with a size that the model leaves open: give its shape")
        if layer_class.field is not None:
            set_fields(getattr(parameter, layer_class.field), options or {}, _fail)
        layer = make(parameter, TEST)
        entry = NetLayer(parameter, [], layer)
        shapes = [one.stored for one in bottoms]
        plan = layer.plan(shapes)
        self._pay(entry, plan, shapes)
        for param, array in zip(plan.params, arrays, strict=True):
            if array.size != prod(param.shape):
                _fail(f"an array of the shape {list(array.shape)} is none of {list(param.shape)}")
            entry.arrays.append(np.asarray(array.reshape(param.shape), np.float32, order="C"))
        self.layers.append(entry)
        self.readers.update(parameter.bottom)
        blobs = []
        for top, shape in zip(parameter.top, plan.tops, strict=True):
            self.makers[top] = entry
            sized = map(self.size_of, shape) if type_name == "SizedLike" else shape
            self.blobs[top] = Computed(top, tuple(sized))
            self.note_sizes(self.blobs[top])
            blobs.append(self.blobs[top])
        return blobs

    def note_sizes(self, blob: Computed) -> None:
        """Remember where each size is found that depends on open ones."""
        for axis, size in enumerate(blob.stored):
            if isinstance(size, Size):
                self.sizes.setdefault(size, size)
                self.places.setdefault(str(size), (blob, axis))

    def size_of(self, size: int) -> int:
        """Return a number as the size that depends on open ones, if it is one."""
        return size if isinstance(size, Size) else self.sizes.get(size, int(size))

    def is_batched(self, size: int) -> bool:
        """Return whether a size counts records, or several of each record."""
        return RECORDS in symbols(self.size_of(size))

    def _pay(self, layer: NetLayer, plan: Plan, bottoms: Sequence[Shape]) -> None:
        if self.images:
            usual = {
                name: self.images.get(name, 1)
                for one in bottoms
                for size in one
                for name in symbols(size)
            }
            bottoms = [evaluate_all(one, usual) for one in bottoms]
            plan = layer.layer.plan(bottoms)
        numbers = layer.parameter.ByteSize() + sum(self._each(prod(top)) for top in plan.tops)
        try:
            self.budget.take(numbers, self._each(layer.layer.work(plan, bottoms)))
        except TooLarge as error:
            hint = "give the inputs' shapes if that is meant"
            raise TooLarge(f"for each record {error}: {hint}") from None

    def is_open(self, size: int) -> bool:
        """Return whether a size is, or comes from, one that the model leaves open."""
        if self.images and not symbols(self.size_of(size)).isdisjoint(self.images):
            return True
        return size > 0 and any(size % one == 0 for one in (self.batch, *self.lengths))

    def moves(self, size: int) -> bool:
        """Return whether a size is open, or what is left of such a one."""
        return self.is_open(size) or size in self.sizes

    def _each(self, count: int) -> int:
        """For one record, of what there is for all."""
        count = int(count)
        return count // self.batch if count % self.batch == 0 else count

    def replan(self, layer: NetLayer) -> None:
        """Look at a layer again whose options have changed."""
        layer.layer = make(layer.parameter, TEST)
        self._plan(layer)

    def divide(self, layer: NetLayer) -> None:
        """Look at a layer again whose tops have changed."""
        layer.layer = make(layer.parameter, TEST)
        bottoms = [self.blobs[name].stored for name in layer.parameter.bottom]
        for top, shape in zip(layer.parameter.top, layer.layer.plan(bottoms).tops, strict=True):
            self.makers[top] = layer
            if top not in self.blobs or self.blobs[top].stored != tuple(shape):
                self.blobs[top] = Computed(top, tuple(shape))

    def remove(self, layer: NetLayer) -> None:
        self.layers.remove(layer)
        self.readers.subtract(layer.parameter.bottom)
        for top in layer.parameter.top:
            del self.blobs[top], self.makers[top]
            self._names.discard(f"blob {top}")
            self.left_over.discard(top)
        self._names.discard(f"layer {layer.parameter.name}")

    def is_read(self, blob: Computed) -> bool:
        return self.readers[blob.name] > 0

    def move_up(self, blob: Computed) -> None:
        """Move the last layer, which makes this blob, behind the maker of its bottom."""
        layer = self.layers.pop()
        makers = [self.layers.index(self.makers[name]) for name in layer.parameter.bottom]
        self.layers.insert(max(makers, default=len(self.layers) - 1) + 1, layer)

    def unique(self, name: str, kind: str) -> str:
        """Return a name that no other layer or blob has."""
        candidate, number = name, self._numbers.get(f"{kind} {name}", 1)
        while f"{kind} {candidate}" in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._numbers[f"{kind} {name}"] = number
        self._names.add(f"{kind} {candidate}")
        return candidate

    def rename(self, new: Mapping[str, str]) -> None:
        """Give blobs other names, everywhere."""
        for layer in self.layers:
            for names in (layer.parameter.bottom, layer.parameter.top):
                for place, name in enumerate(names):
                    if name in new:
                        names[place] = new[name]
        moved = [
            (name, self.blobs.pop(old), self.makers.pop(old), self.readers.pop(old, 0))
            for old, name in new.items()
        ]
        for name, blob, maker, readers in moved:
            if name in self.blobs:  # The blob is written over, and holds these values in the end.
                blob.step = self.blobs[name].step
            self.blobs[name] = blob
            self.makers.setdefault(name, maker)
            self.readers[name] += readers
            blob.name = name

    def silence(self, keep: set[str]) -> None:
        """Let no blob be left over that is not an output."""
        tops = [self.blobs[top] for layer in self.layers for top in layer.parameter.top]
        unread = [top for top in tops if not self.is_read(top) and top.name not in keep]
        if unread:
            self.add("Silence", unread, name="silence", tops=())
            silence = self.layers.pop()
            makers = [self.layers.index(self.makers[one.name]) for one in unread]
            self.layers.insert(max(makers) + 1, silence)  # what the net is for stays the last layer

    def work_in_place(self, keep: set[str]) -> None:
        """Let layers that can write over the blob that only they read do so."""
        new: dict[str, str] = {}
        for layer in reversed(self.layers):
            if not layer.layer.works_in_place or len(layer.parameter.bottom) != 1:
                continue
            bottom, top = layer.parameter.bottom[0], layer.parameter.top[0]
            maker = self.makers.get(bottom)
            free = self.readers[bottom] == 1 and bottom not in keep and maker is not None
            same = self.blobs[bottom].stored == self.blobs[top].stored
            if layer.layer.score_function and top in keep:
                continue  # scores beside probabilities tell that these are labels
            if free and same and maker is not None and not _is_view(maker):
                new[bottom] = new.get(top, top)
        self.rename(new)

    def model(self, usual: Mapping[int, int]) -> Model:
        """Return the net for these open sizes, and its weights."""
        self._spare_gradients()
        net = caffe_pb2.NetParameter(name=self.name)
        for layer in self.layers:
            parameter = net.layer.add()
            parameter.CopyFrom(layer.parameter)
            if layer.layer.is_input:
                for shape in parameter.input_param.shape:
                    shape.dim[:] = [usual.get(one, one) for one in shape.dim]
            for array in layer.arrays:
                parameter.blobs.add().shape.dim.extend(array.shape)
        self._tell_steps(net)
        return Model(net, [list(layer.arrays) for layer in self.layers])

    def _spare_gradients(self) -> None:
        """Mark bottoms without a gradient: those that layers without one make."""
        learns, flat = set[str](), set[str]()
        for layer in self.layers:
            bottoms, tops = list(layer.parameter.bottom), list(layer.parameter.top)
            reached = [name in learns for name in bottoms]
            stopped = [name in flat for name in bottoms]
            does = bool(layer.arrays) or any(reached)
            ends = not layer.layer.has_gradient or (
                bool(bottoms) and all(stopped) and not layer.arrays
            )
            if any(map(and_, reached, stopped)) and not ends:
                layer.parameter.propagate_down[:] = [
                    one and not other for one, other in zip(reached, stopped, strict=True)
                ]
            for names, true in ((learns, does), (flat, ends)):
                (names.update if true else names.difference_update)(tops)

    def _tell_steps(self, net: caffe_pb2.NetParameter) -> None:
        """Log what is rounded in eight bits if the precision is int8, as `Net.quantize` does."""
        for name, blob in self.blobs.items():
            if blob.step is not None:
                step, is_signed = blob.step
                net.int8_param.values.add(blob=name, step=step, is_signed=is_signed)
        if net.HasField("int8_param"):
            net.int8_param.float32_layer.extend(
                layer.parameter.name
                for layer in self.layers
                if layer.layer.multiplies_int8(self._plan(layer)) and not layer.in_int8
            )

    def _plan(self, layer: NetLayer) -> Plan:
        return layer.layer.plan([self.blobs[name].stored for name in layer.parameter.bottom])


def _is_view(layer: NetLayer) -> bool:
    """Return whether its top is another's memory: Concat of one blob and Slice into one, too."""
    parameter = layer.parameter
    alone = len(parameter.bottom) == len(parameter.top) == 1
    return (
        layer.layer.is_view
        or layer.layer.is_input
        or layer.layer.is_split
        or parameter.type == "Parameter"
        or (alone and parameter.type in ("Concat", "Slice"))
    )


def _has_size(options: Any) -> bool:
    """Return whether an option depends on a size that is open."""
    if isinstance(options, dict | list | tuple):
        each = options.values() if isinstance(options, dict) else options
        return any(map(_has_size, each))
    return isinstance(options, Size)


def _fail(message: str) -> NoReturn:
    raise SpecError(message)
