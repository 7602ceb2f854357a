"""Entries: the blobs where records enter a net, its inputs and the tops of data layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparknet.errors import LayerError, SpecError
from sparknet.graph.records import Outline
from sparknet.layers import LAYERS, Layer, Shape, make
from sparknet.layers.input import Input
from sparknet.layers.source_layer import SourceLayer
from sparknet.layers.transform_param import TransformParam
from sparknet.proto import caffe_pb2

NetMessage = caffe_pb2.NetParameter
LayerMessage = caffe_pb2.LayerParameter


@dataclass(frozen=True)
class Entry:
    """A blob that records fill."""

    name: str
    """The blob's name, and the name of the records' column."""
    shape: Shape
    """The shape of a whole batch."""
    layer: str
    type: str
    """The layer's type in the net's description."""
    transform: TransformParam | None = field(default=None, repr=False, compare=False)
    """The transform_param that applies to records."""
    axis: int = 0
    """The axis of records; 1 where time comes first, for LSTM or RNN."""
    is_label: bool = False
    """Whether its values are class indices."""

    @property
    def batch(self) -> int:
        return self.shape[self.axis] if self.shape else 1

    @property
    def record(self) -> Shape:
        """The shape of one record in the net."""
        return self.shape[: self.axis] + self.shape[self.axis + 1 :]

    @property
    def stored(self) -> tuple[int | None, ...]:
        """The shape of one record in the data, before transforms; None is any size."""
        if self.transform is None or not self.transform.crop_size:
            return self.record
        return (self.record[0], None, None)

    def batch_shape(self, rows: int) -> Shape:
        """The blob's shape for another number of records."""
        return (*self.shape[: self.axis], rows, *self.shape[self.axis + 1 :])


@dataclass(frozen=True)
class Place:
    """A top of a data layer or Input layer, where records of any shape may enter."""

    name: str
    kind: type[SourceLayer]
    is_read: bool
    """Whether a layer reads it; if not, its column may be missing."""

    @property
    def is_optional(self) -> bool:
        return self.kind.fills or not self.is_read


def source_layers(net: NetMessage) -> list[tuple[LayerMessage, type[SourceLayer]]]:
    """The layers that records can replace."""
    found = ((layer, LAYERS.get(layer.type)) for layer in net.layer)
    return [
        (layer, kind)
        for layer, kind in found
        if kind is not None and issubclass(kind, SourceLayer) and kind.records
    ]


def find_places(net: NetMessage, others: Sequence[NetMessage] = ()) -> list[Place]:
    """The places of a filtered net; `others` are nets that are fed the same records.

    A place counts as read if one of the nets reads it, or if no place is read at all.
    """
    read = {name for one in (net, *others) for layer in one.layer for name in layer.bottom}
    tops = [(top, kind) for layer, kind in source_layers(net) for top in layer.top]
    idle = not any(top in read for top, _ in tops)
    return [Place(top, kind, idle or top in read) for top, kind in tops]


def find_entries(
    net: NetMessage, places: Sequence[Place], phase: int, records: Mapping[str, Shape]
) -> list[Entry]:
    """The entries of a filtered net: the places that are read.  `records` holds the known shapes
    of records.
    """
    read = {place.name for place in places if place.is_read}
    tops = [
        (name, layer, shape, transform)
        for layer, kind in source_layers(net)
        for name, shape, transform in _tops(layer, kind, phase, records)
        if name in read
    ]
    axes = Outline(net.layer, phase).input_axes({name: shape for name, _, shape, _ in tops})
    labels = set(_labels(net))
    return [
        Entry(name, shape, layer.name, layer.type, transform, axes[name], name in labels)
        for name, layer, shape, transform in tops
    ]


def _labels(net: NetMessage) -> Iterator[str]:
    """The blobs whose values are class indices."""
    for layer in net.layer:
        place = LAYERS[layer.type].classes if layer.type in LAYERS else None
        if place is not None and place < len(layer.bottom):
            yield layer.bottom[place]


def with_inputs(net: NetMessage, entries: Sequence[Entry]) -> NetMessage:
    """The net with each data layer replaced by an Input layer."""
    shapes = {entry.name: entry.shape for entry in entries}
    changed = NetMessage()
    changed.CopyFrom(net)
    for layer, _ in source_layers(changed):
        tops = [top for top in layer.top if top in shapes]
        plain = LayerMessage(name=layer.name, type=Input.type, top=tops)
        for top in tops:
            plain.input_param.shape.add().dim.extend(shapes[top])
        layer.CopyFrom(plain)
    for index in reversed(range(len(changed.layer))):
        if changed.layer[index].type == Input.type and not changed.layer[index].top:
            del changed.layer[index]
    return changed


def only_layers(net: NetMessage, tops: Sequence[str]) -> NetMessage:
    """A net of only the data layers that make these blobs."""
    alone = NetMessage(name=f"{net.name} (data)")
    found = (layer for layer, _ in source_layers(net))
    alone.layer.extend(layer for layer in found if set(layer.top).intersection(tops))
    return alone


def adapted(entry: Entry, values: Any) -> Entry:
    """The entry for a batch whose records have other sizes, where the net allows them."""
    if values is None or entry.transform is not None or values.ndim != len(entry.shape):
        return entry
    axis = entry.axis
    record = values.shape[1:]
    return replace(entry, shape=(*record[:axis], len(values), *record[axis:]))


def _tops(
    layer: LayerMessage, kind: type[SourceLayer], phase: int, records: Mapping[str, Shape]
) -> Iterator[tuple[str, Shape, TransformParam | None]]:
    made = make(layer, phase)
    transform = None
    if layer.HasField("transform_param") and kind.batches:
        transform = TransformParam(made, layer.transform_param)
    if kind.reads and any(top in records for top in layer.top):
        shapes = tuple(_shapes_by_records(layer, kind, transform, records))
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
    layer: LayerMessage,
    kind: type[SourceLayer],
    transform: TransformParam | None,
    records: Mapping[str, Shape],
) -> Iterator[Shape]:
    assert kind.field is not None
    batch = getattr(layer, kind.field).batch_size
    if batch < 1:
        raise LayerError(layer.name, f"batch_size is {batch}, it must be at least 1")
    for number, top in enumerate(layer.top):
        known: Any = records.get(top)
        if known is None and kind.pictures and number == 1:
            known = ()
        if known is None:
            raise LayerError(layer.name, f"the data has no column '{top}'")
        if kind.pictures and number == 0:
            known = (1, 1, 1, *known)[-3:]
            known = transform.output(known) if transform else known
        yield (batch, *known)


class UnknownShape(SpecError):
    """A data layer's file cannot be read, and no data says what its records look like."""

    def __init__(self, layer: str, reason: str) -> None:
        super().__init__(f"{reason}; set data first, or put the file there")
        self.layer = layer
