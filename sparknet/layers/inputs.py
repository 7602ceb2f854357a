"""Values from outside: Input, Parameter, DummyData and MemoryData; weights of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from sparknet.errors import LayerError
from sparknet.layers.fillers import check_filler, constant, fill
from sparknet.layers.host import Blobs, DrawingHost, Host, HostNode
from sparknet.layers.layer import (
    Layer,
    Param,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    shape_text,
)
from sparknet.layers.source_layer import SourceLayer
from sparknet.proto import caffe_pb2


class DummyDataHost(DrawingHost):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.filled: list[Shape] = []

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        shapes = [tuple(top.shape) for top in tops]
        for top, filler, refill in zip(tops, values["fillers"], values["refill"], strict=True):
            if refill or self.filled != shapes:
                top.data[...] = fill(filler, tuple(top.shape), self.rng)
        self.filled = shapes


class MemoryDataHost(Host):
    """The arrays are used without a copy where they are float32 in C order."""

    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.batch: int = node.plan.values["batch_size"]
        self.arrays: tuple[Any, ...] = ()
        self.position = 0

    def set_arrays(self, data: Any, labels: Any, sizes: Any = None) -> None:
        """Start again with these arrays (Caffe: _caffe.cpp, Net_SetInputArrays; pycaffe.py)."""
        values = self.node.plan.values
        shape = (values["channels"], values["height"], values["width"])
        self._check_floats(data, "data")
        self._check_floats(labels, "labels")
        data, labels = np.ascontiguousarray(data), np.ascontiguousarray(labels)
        if data.ndim != 4 or data.shape[1:] != shape:
            self._refuse(f"data must be N x {shape_text(shape)}; it is {shape_text(data.shape)}")
        if labels.ndim == 0 or labels.size != len(labels) or len(labels) != len(data):
            self._refuse(
                f"{len(data)} items need as many labels; they are {shape_text(labels.shape)}"
            )
        if len(data) == 0 or len(data) % self.batch:
            self._refuse(f"{len(data)} items are not a multiple of the batch size {self.batch}")
        # Four axes, whatever the label's shape was before the first pass (Forward_cpu).
        arrays = (data, labels.reshape(-1, 1, 1, 1), self._sizes(sizes, data))
        self.arrays, self.position = arrays[: len(self.node.tops)], 0

    def _sizes(self, sizes: Any, data: Any) -> Any:
        """Return the height and width of each picture, for a third top."""
        if sizes is None:
            return np.full((len(data), 1, 1, 2), data.shape[2:], np.float32)
        self._check_floats(sizes, "sizes")
        if len(self.node.tops) < 3:
            self._refuse("sizes need a third top")
        if sizes.size != 2 * len(data):
            self._refuse(
                f"{len(data)} items need as many sizes, each of height and width; "
                f"they are {shape_text(sizes.shape)}"
            )
        return np.ascontiguousarray(sizes).reshape(-1, 1, 1, 2)

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        if not self.arrays:
            self._refuse("has no data yet: call set_input_arrays first")
        part = slice(self.position, self.position + self.batch)
        for top, values in zip(tops, self.arrays, strict=True):
            batch = values[part]
            if tuple(top.shape) != batch.shape:
                top.reshape(*batch.shape)
            top.data[...] = batch
        self.position = part.stop % len(self.arrays[0])

    def _check_floats(self, array: Any, what: str) -> None:
        if not isinstance(array, np.ndarray):
            self._refuse(f"{what} must be a float32 array; it is a {type(array).__name__}")
        if array.dtype != np.float32:
            self._refuse(f"{what} must be float32; it is {array.dtype}: use .astype(numpy.float32)")

    def _refuse(self, reason: str) -> NoReturn:
        raise LayerError(self.node.name, f"MemoryData: {reason}")


@layer("Input", stock=True)
class Input(SourceLayer):
    """One shape for all tops, or one for each (Caffe: input_layer.cpp).

    Records lie along the first axis, or along the one with which layers accept more of them;
    ``record_axis`` names it for each top where no layer tells."""

    is_input = True
    is_view = True
    field = "input_param"

    def survey(self) -> Plan:
        shapes = [self.declared(shape) for shape in self.options.shape]
        tops = len(self.parameter.top)
        if len(shapes) not in (0, 1, tops):
            self.fail(f"{tops} tops need one shape, {tops} shapes or none; there are {len(shapes)}")
        if len(shapes) < 2:
            shapes = (shapes or [()]) * tops
        for axis, shape in zip(self.options.record_axis, shapes, strict=False):
            if not 0 <= axis < len(shape):
                self.fail(f"record_axis {axis}: the shape is {shape_text(shape)}")
        return Plan(tops=tuple(shapes))


@layer("Parameter", stock=True)
class Parameter(SourceLayer):
    """Blob 0 is the top; it starts at zero (Caffe: parameter_layer.hpp)."""

    field = "parameter_param"
    tops = exactly(1)
    has_gradient = True
    holds_records = False

    def survey(self) -> Plan:
        shape = self.declared(self.options.shape)
        return Plan(tops=(shape,), params=(Param(shape, constant()),))


@layer("DummyData", stock=True)
class DummyData(SourceLayer):
    """Blobs that fillers make (Caffe: dummy_data_layer.cpp).

    A filler that is not constant fills again in each pass."""

    host = DummyDataHost
    field = "dummy_data_param"
    fills_itself = True

    @property
    def draws(self) -> bool:
        return any(filler.type != "constant" for filler in self.options.data_filler)

    def survey(self) -> Plan:
        shapes = self._shapes(len(self.parameter.top))
        fillers = self._fillers(len(self.parameter.top))
        for filler, shape in zip(fillers, shapes, strict=True):
            check_filler(self.name, filler, shape)
        values = {
            "fillers": tuple(fillers),
            "refill": tuple(filler.type != "constant" for filler in fillers),
        }
        return Plan(tops=tuple(shapes), values=values)

    def _fillers(self, tops: int) -> list[caffe_pb2.FillerParameter]:
        fillers = list(self.options.data_filler)
        if len(fillers) not in (0, 1, tops):
            self.fail(f"{tops} tops need one data_filler, {tops} or none; there are {len(fillers)}")
        return fillers if len(fillers) == tops else (fillers or [constant()]) * tops

    def _shapes(self, tops: int) -> list[Shape]:
        options = self.options
        old = [options.num, options.channels, options.height, options.width]
        if not any(old):
            shapes = [self.declared(shape) for shape in options.shape]
            if len(shapes) not in (1, tops):
                self.fail(f"{tops} tops need one shape or {tops}; there are {len(shapes)}")
            return shapes if len(shapes) == tops else shapes * tops
        if options.shape:
            self.fail("takes either shape or num, channels, height and width; not both")
        for name, sizes in zip(("num", "channels", "height", "width"), old, strict=True):
            if len(sizes) not in (1, tops):
                self.fail(f"{tops} tops need {name} once or {tops} times; it is there {len(sizes)}")
        columns = [list(sizes) * (tops if len(sizes) == 1 else 1) for sizes in old]
        return [tuple(shape) for shape in zip(*columns, strict=True)]


@layer("MemoryData", stock=True)
class MemoryData(SourceLayer):
    """Batches from arrays that the caller hands over (Caffe: memory_data_layer.cpp).

    A third top, of DeepLab's nets, is N x 1 x 1 x 2: the height and width of each picture, those of
    the layer unless `set_input_arrays` is given others."""

    host = MemoryDataHost
    field = "memory_data_param"
    fields = ("transform_param",)
    tops = between(2, 3)
    has_batch_size = True

    def survey(self) -> Plan:
        options = self.options
        names = ("batch_size", "channels", "height", "width")
        sizes = {name: getattr(options, name) for name in names}
        for name, size in sizes.items():
            if size < 1:
                self.fail(f"memory_data_param needs a positive {name}; it is {size}")
        batch = sizes["batch_size"]
        tops: tuple[Shape, ...] = (tuple(sizes.values()), (batch,), (batch, 1, 1, 2))
        return Plan(tops=tops[: len(self.parameter.top)], values=sizes)


@layer("RecordWeights")
class RecordWeights(Layer):
    """Passes bottom 0 on; bottom 1 has a weight for each record, by which gradients are multiplied.

    The shape of the weights says where the records lie: n for axis 0, 1 x n for axis 1.  The sum
    of a loss that reads the top is weighted as well; what it is divided by stays as it is."""

    bottoms = exactly(2)
    is_view = True
    bottoms_without_gradient = (1,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        data, weights = bottoms
        axis = len(weights) - 1
        if not weights or count(weights[:axis]) != 1 or data[axis : axis + 1] != weights[axis:]:
            self.fail(
                f"data of shape {shape_text(data)} needs a weight for each record, in the shape n, "
                f"or 1 x n where records lie on axis 1; theirs is {shape_text(weights)}"
            )
        values = {
            "before": count(data[:axis]),
            "records": data[axis],
            "after": count(data[axis + 1 :]),
        }
        return Plan(tops=(data,), values=values)
