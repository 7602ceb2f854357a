"""The places where records enter a net: inputs, and the tops of its data layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparknet.errors import LayerError, SpecError
from sparknet.layers import Layer, Shape, make
from sparknet.layers.transform import Transform
from sparknet.proto import caffe_pb2

NetMessage = caffe_pb2.NetParameter
LayerMessage = caffe_pb2.LayerParameter

INPUT = "Input"
DUMMY = "DummyData"
_BATCH_FIELDS = {
    "Data": "data_param",
    "ImageData": "image_data_param",
    "HDF5Data": "hdf5_data_param",
    "MemoryData": "memory_data_param",
    "WindowData": "window_data_param",
}
_READERS = frozenset(_BATCH_FIELDS) - {"MemoryData"}
"""Their files say what records look like, unless data does."""
SOURCES = frozenset({INPUT, DUMMY, *_BATCH_FIELDS})
"""Layers without bottoms whose tops are places for records."""
RECURRENT = frozenset({"LSTM", "RNN"})
LABELLED = frozenset(
    {"Accuracy", "HingeLoss", "InfogainLoss", "MultinomialLogisticLoss", "SoftmaxWithLoss"}
)
"""Layers whose second bottom is the number of a class."""


@dataclass(frozen=True)
class Entry:
    """A blob that records fill."""

    name: str
    """The blob's name, and the name of the records' column."""
    shape: Shape
    """Of a whole batch."""
    layer: str
    type: str
    """Of the layer, as the net was described."""
    transform: Transform | None = field(default=None, repr=False, compare=False)
    """What its transform_param does to a record on the way in."""
    axis: int = 0
    """Where records lie side by side: 1 in nets with LSTM or RNN layers, where time comes first."""
    is_label: bool = False
    """Whether its values are numbers of classes."""

    @property
    def batch(self) -> int:
        return self.shape[self.axis] if self.shape else 1

    @property
    def record(self) -> Shape:
        """The shape of one record in the net."""
        return self.shape[: self.axis] + self.shape[self.axis + 1 :]

    @property
    def stored(self) -> tuple[int | None, ...]:
        """The shape of one record as it comes; None is any size."""
        if self.transform is None or not self.transform.crop_size:
            return self.record
        return (self.record[0], None, None)

    def batch_shape(self, rows: int) -> Shape:
        """The blob's shape for another number of records."""
        return (*self.shape[: self.axis], rows, *self.shape[self.axis + 1 :])


def source_layers(net: NetMessage) -> list[LayerMessage]:
    return [layer for layer in net.layer if layer.type in SOURCES]


def find_entries(net: NetMessage, phase: int, records: Mapping[str, Shape]) -> list[Entry]:
    """The entries of a filtered net; `records` are shapes of records that are known."""
    recurrent = any(layer.type in RECURRENT for layer in net.layer)
    labels = {layer.bottom[1] for layer in net.layer if layer.type in LABELLED and layer.bottom[1:]}
    return [
        Entry(
            name,
            shape,
            layer.name,
            layer.type,
            transform,
            1 if recurrent and len(shape) > 1 else 0,
            name in labels,
        )
        for layer in source_layers(net)
        for name, shape, transform in _tops(layer, phase, records)
    ]


def with_inputs(net: NetMessage, entries: Sequence[Entry]) -> NetMessage:
    """The net with an Input layer in the place of each data layer."""
    shapes = {entry.name: entry.shape for entry in entries}
    changed = NetMessage()
    changed.CopyFrom(net)
    for layer in source_layers(changed):
        tops = list(layer.top)
        plain = LayerMessage(name=layer.name, type=INPUT, top=tops)
        for top in tops:
            plain.input_param.shape.add().dim.extend(shapes[top])
        layer.CopyFrom(plain)
    return changed


def only_layers(net: NetMessage, tops: Sequence[str]) -> NetMessage:
    """The net of the data layers alone that make these blobs."""
    alone = NetMessage(name=f"{net.name} (data)")
    alone.layer.extend(layer for layer in source_layers(net) if set(layer.top).intersection(tops))
    return alone


def adapted(entry: Entry, values: Any) -> Entry:
    """The entry for a batch whose records have sizes of their own, as a net may allow."""
    if values is None or entry.transform is not None or values.ndim != len(entry.shape):
        return entry
    axis = entry.axis
    record = values.shape[1:]
    return replace(entry, shape=(*record[:axis], len(values), *record[axis:]))


def _tops(
    layer: LayerMessage, phase: int, records: Mapping[str, Shape]
) -> Iterator[tuple[str, Shape, Transform | None]]:
    made = make(layer, phase)
    transform = None
    if layer.HasField("transform_param") and layer.type not in (INPUT, DUMMY):
        transform = Transform(made, layer.transform_param)
    if layer.type in _READERS and any(top in records for top in layer.top):
        shapes = tuple(_shapes_by_records(layer, transform, records))
    else:
        shapes = _shapes_by_layer(made)
    for number, (top, shape) in enumerate(zip(layer.top, shapes, strict=True)):
        yield top, shape, None if number else transform


def _shapes_by_layer(made: Layer) -> tuple[Shape, ...]:
    try:
        return made.plan(()).tops
    except LayerError as error:
        if not isinstance(error.__context__, OSError):
            raise
        raise UnknownShape(made.name, str(error)) from error


def _shapes_by_records(
    layer: LayerMessage, transform: Transform | None, records: Mapping[str, Shape]
) -> Iterator[Shape]:
    batch = getattr(layer, _BATCH_FIELDS[layer.type]).batch_size
    if batch < 1:
        raise LayerError(layer.name, f"batch_size is {batch}, it must be at least 1")
    for number, top in enumerate(layer.top):
        known: Any = records.get(top)
        if known is None and layer.type != "HDF5Data" and number == 1:
            known = ()
        if known is None:
            raise LayerError(layer.name, f"the data has no column '{top}'")
        if number == 0 and layer.type != "HDF5Data":
            known = (1, 1, 1, *known)[-3:]
            known = transform.output(known) if transform else known
        yield (batch, *known)


class UnknownShape(SpecError):
    """A data layer's file cannot be read, and no data says what its records look like."""

    def __init__(self, layer: str, reason: str) -> None:
        super().__init__(f"{reason}; set data first, or put the file there")
        self.layer = layer
