"""Entries: where records enter a net, and which blobs depend on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sparknet.errors import DataError, LayerError, SpecError, clean
from sparknet.graph.records import Outline
from sparknet.layers import LAYERS, Layer, Shape, make
from sparknet.layers.inputs import Input
from sparknet.layers.source_layer import SourceLayer, TransformParam
from sparknet.loaders.image_arrays import ImageArrays
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.native.alone import cached_property
from sparknet.onnx.inputs import one_number
from sparknet.proto import caffe_pb2

NetMessage = caffe_pb2.NetParameter
LayerMessage = caffe_pb2.LayerParameter

CHANNELS = (1, 3)
"""The channels of images: grey, or blue, green and red."""


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
    given: Preprocessing | None = field(default=None, repr=False, compare=False)
    """The preprocessing that the net's user asks for."""
    blank: float | None = None
    """The value of rows that fill up a record that has fewer; None where all have as many."""

    @cached_property
    def preprocessing(self) -> Preprocessing | None:
        """What happens to records: by the transform_param, or as the user asks."""
        how = self.given
        if self.transform is not None:
            own = Preprocessing.of_param(self.transform.options, self.transform.mean)
            return own if how is None else how.over(own, self.name).cropped(self.record, self.name)
        return None if how is None else how.cropped(self.record, self.name)

    @property
    def pictures(self) -> Preprocessing | None:
        """The same, for images of any size; None where the input takes no images."""
        if len(self.record) != 3 or self.record[0] not in CHANNELS or self.axis:
            return None
        return (self.preprocessing or Preprocessing()).completed(self.record)

    def images(self, training: bool) -> ImageArrays:
        """Return what makes arrays of images for this input; DataError if it takes none."""
        if (how := self.pictures) is None:
            shape = " x ".join(map(str, self.record)) or "one number"
            raise DataError(f"'{self.name}' takes no images: it is {shape}")
        return ImageArrays(how, self.record[0], training)

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
        how = self.preprocessing
        if how is None or (how.crop is None and how.resize is None):
            return self.record
        return (self.record[0], None, None)

    def batch_shape(self, rows: int) -> Shape:
        """Return the blob's shape for another number of records."""
        return (*self.shape[: self.axis], rows, *self.shape[self.axis + 1 :])


@dataclass(frozen=True)
class DataTop:
    """A top of a data layer or Input layer, where records of any shape may enter."""

    name: str
    kind: type[SourceLayer]
    is_read: bool
    """Whether a layer reads it; if not, its column may be missing."""

    @property
    def is_optional(self) -> bool:
        return self.kind.fills_itself or not self.is_read


def source_layers(net: NetMessage) -> list[tuple[LayerMessage, type[SourceLayer]]]:
    """Return the layers that records can replace."""
    pairs = ((layer, LAYERS.get(layer.type)) for layer in net.layer)
    return [
        (layer, kind)
        for layer, kind in pairs
        if kind is not None and issubclass(kind, SourceLayer) and kind.holds_records
    ]


def data_tops(net: NetMessage, others: Sequence[NetMessage] = ()) -> list[DataTop]:
    """Return the places of a filtered net; one is read if `others` read it, or if none is."""
    bottoms = {name for one in (net, *others) for layer in one.layer for name in layer.bottom}
    tops = [(top, kind) for layer, kind in source_layers(net) for top in layer.top]
    idle = not any(top in bottoms for top, _ in tops)
    return [DataTop(top, kind, idle or top in bottoms) for top, kind in tops]


def find_entries(
    net: NetMessage,
    places: Sequence[DataTop],
    phase: int,
    records: Mapping[str, Shape],
    given: Preprocessing | None = None,
) -> list[Entry]:
    """Return the entries of a filtered net; `records` holds known shapes, `given` is for images."""
    entry_names = {place.name for place in places if place.is_read}
    tops = [
        (name, layer, shape, transform)
        for layer, kind in source_layers(net)
        for name, shape, transform in _tops(layer, kind, phase, records, given)
        if name in entry_names
    ]
    for name, layer, shape, _ in tops:
        if not shape and layer.input_param.shape:
            raise SpecError(
                f"input '{clean(name)}' has no axis along which records lie: {one_number([name])} "
                "of a .onnx, or run the net by sparknet.caffe.Net"
            )
    axes = Outline(net.layer, phase).input_axes({name: shape for name, _, shape, _ in tops})
    labels, blanks = set(_labels(net)), dict(_blanks(net))
    entries = [
        Entry(
            name,
            shape,
            layer.name,
            layer.type,
            transform,
            axes[name],
            name in labels,
            blank=blanks.get(name),
        )
        for name, layer, shape, transform in tops
    ]
    return entries if given is None else _pictured(entries, given)


def _pictured(entries: Sequence[Entry], given: Preprocessing) -> list[Entry]:
    """Give preprocessing to 'data', or to the first entry of 1 or 3 channels and others like it."""
    images = [entry for entry in entries if entry.pictures is not None and not entry.is_label]
    if not images:
        listing = ", ".join(f"'{entry.name}' {entry.record}" for entry in entries) or "none"
        raise SpecError(f"no input takes images, which {given!r} is for; the inputs are: {listing}")
    first = next((entry for entry in images if entry.name == "data"), images[0])
    pictures = [
        replace(entry, given=given) if entry in images and entry.record == first.record else entry
        for entry in entries
    ]
    for entry in pictures:
        _ = entry.preprocessing  # may be refused
    return pictures


def _labels(net: NetMessage) -> Iterator[str]:
    """Yield the blobs whose values are class indices."""
    for layer in net.layer:
        if layer.type in LAYERS and LAYERS[layer.type].other_bottoms == "classes":
            yield from layer.bottom[1:2]


def _blanks(net: NetMessage) -> Iterator[tuple[str, float]]:
    """Yield the blobs whose records may have fewer rows than fit, with what fills them."""
    for layer in net.layer:
        blank = LAYERS[layer.type].padding_value if layer.type in LAYERS else None
        if blank is not None and layer.bottom:
            yield layer.bottom[0], blank


def with_inputs(
    net: NetMessage, entries: Sequence[Entry], names: Collection[str] | None = None
) -> NetMessage:
    """Return the net with each data layer, or those of these names, replaced by an Input layer."""
    shapes = {entry.name: entry.shape for entry in entries}
    changed = NetMessage()
    changed.CopyFrom(net)
    for layer, _ in source_layers(changed):
        if names is not None and layer.name not in names:
            continue
        tops = [top for top in layer.top if top in shapes]
        plain = LayerMessage(name=layer.name, type=Input.type, top=tops)
        for top in tops:
            plain.input_param.shape.add().dim.extend(shapes[top])
        layer.CopyFrom(plain)
    for index in reversed(range(len(changed.layer))):
        if changed.layer[index].type == Input.type and not changed.layer[index].top:
            del changed.layer[index]
    return changed


def unused_name(net: NetMessage, name: str) -> str:
    """Return a name that no layer and no blob of a net has, beginning with this one."""
    names = {one for layer in net.layer for one in (layer.name, *layer.top)}
    while name in names:
        name += "_"
    return name


def only_layers(net: NetMessage, tops: Sequence[str]) -> NetMessage:
    """Return a net of only the data layers that make these blobs."""
    alone = NetMessage(name=f"{net.name} (data)")
    layers = (layer for layer, _ in source_layers(net))
    alone.layer.extend(layer for layer in layers if set(layer.top).intersection(tops))
    return alone


def adapted(entry: Entry, values: Any) -> Entry:
    """Return the entry for a batch whose records have other sizes, where the net allows them."""
    if values is None or entry.preprocessing is not None or values.ndim != len(entry.shape):
        return entry
    axis = entry.axis
    record = values.shape[1:]
    return replace(entry, shape=(*record[:axis], len(values), *record[axis:]))


def _tops(
    layer: LayerMessage,
    kind: type[SourceLayer],
    phase: int,
    records: Mapping[str, Shape],
    given: Preprocessing | None,
) -> Iterator[tuple[str, Shape, TransformParam | None]]:
    built = make(layer, phase)
    transform = None
    sized = _is_sized(given)
    if layer.HasField("transform_param") and kind.has_batch_size:
        transform = TransformParam(built, layer.transform_param)
    if kind.reads_files and (
        any(top in records for top in layer.top) or (kind.has_images and sized)
    ):
        shapes = tuple(_shapes_by_records(layer, kind, transform, records, given))
    else:
        shapes = _shapes_by_layer(built)
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
    given: Preprocessing | None,
) -> Iterator[Shape]:
    assert kind.field is not None
    batch = getattr(layer, kind.field).batch_size
    if batch < 1:
        raise LayerError(layer.name, f"batch_size is {batch}, it must be at least 1")
    for number, top in enumerate(layer.top):
        shape: Any = records.get(top)
        sized = _is_sized(given)
        if shape is None and kind.has_images and (number == 1 or sized):
            shape = ()
        if shape is None:
            raise LayerError(layer.name, f"the data has no column '{top}'")
        if kind.has_images and number == 0:
            shape = _image_shape(shape, given)
            shape = transform.output(shape) if transform else shape
            if given is not None and given.crop is not None:
                shape = (shape[0], *given.crop)
        yield (batch, *shape)


def _is_sized(given: Preprocessing | None) -> bool:
    """Return whether images have a size that does not depend on the data."""
    return given is not None and (given.resize is not None or given.crop is not None)


def _image_shape(known: Shape, given: Preprocessing | None) -> Shape:
    """Return an image's shape before the crop; ``known`` is () for numbers and encoded images."""
    channels, height, width = (1, 1, 1, *known)[-3:]
    if given is None:
        return channels, height, width
    if not known:
        channels = 1 if given.color == "grey" else 3
        return (channels, *(given.resize or given.crop or (height, width)))
    return (channels, *(given.resize or (height, width)))


class UnknownShape(SpecError):
    """A data layer's file cannot be read, and no data says what its records look like."""

    def __init__(self, layer: str, reason: str) -> None:
        super().__init__(f"{reason}; set data first, or put the file there")
        self.layer = layer


def dependent(net: NetMessage, missing: Sequence[str]) -> dict[str, str]:
    """Return the blobs that depend on missing blobs, each with one that it needs."""
    causes = {name: name for name in missing}
    for layer in net.layer if causes else ():
        lacking = next((causes[name] for name in layer.bottom if name in causes), None)
        for top in layer.top if layer.bottom else ():
            causes.pop(top, None)
            if lacking is not None:
                causes[top] = lacking
    return causes


def last_blobs(net: NetMessage, lost: Mapping[str, str]) -> list[str]:
    """Return the blobs that no layer reads, if the blobs of `lost` are not computed."""
    return _last(net.layer, lost, data_tops(net))


def predictions(net: NetMessage, learned: Collection[str]) -> list[str]:
    """Return the last blobs of a net without its losses and accuracies.

    `learned` names the layers with parameters.  In a net for training, a blob that does not depend
    on one of them is a target and no prediction."""
    flow = from_learned(net, learned)
    judging = _judging(net, learned, flow)
    layers = [layer for number, layer in enumerate(net.layer) if number not in judging]
    places = data_tops(net)
    last = _last(layers, {}, places)
    if not judging:
        return last
    fed = {place.name for place in places}
    computed = [name for name in last if name not in fed]
    return [name for name in computed if name in flow] or computed or last


def _last(
    layers: Iterable[LayerMessage], lost: Mapping[str, str], places: Iterable[DataTop]
) -> list[str]:
    idle = {place.name for place in places if not place.is_read}
    last: dict[str, None] = {}
    for layer in layers:
        if any(name in lost for name in layer.bottom):
            continue
        for name in layer.bottom:
            last.pop(name, None)
        last.update(dict.fromkeys(top for top in layer.top if top not in lost))
    return [name for name in last if name not in idle]


def from_learned(net: NetMessage, learned: Collection[str]) -> set[str]:
    """Return the blobs that depend on layers with parameters."""
    blobs: set[str] = set()
    for layer in net.layer:
        if layer.name in learned or not blobs.isdisjoint(layer.bottom):
            blobs.update(layer.top)
    return blobs


def _judging(net: NetMessage, learned: Collection[str], flow: Collection[str]) -> set[int]:
    """Return the numbers of the layers that compare predictions with targets, of each loss all."""
    judging: set[int] = set()
    inside: dict[str, bool] = {}
    """Blobs that are read, and whether only the layers of a loss read them."""
    for number, layer in reversed(list(enumerate(net.layer))):
        judges = layer.type in LAYERS and LAYERS[layer.type].compares_labels
        part = any(layer.loss_weight) or (
            bool(layer.top)
            and layer.name not in learned
            and all(inside.get(name, False) for name in layer.top)
        )
        if judges or (part and layer.bottom):
            judging.add(number)
        meets = len({name in flow for name in layer.bottom}) > 1
        for name in layer.top:
            inside.pop(name, None)
        for name in layer.bottom:
            inside[name] = inside.get(name, True) and part and not judges and not meets
    return judging
