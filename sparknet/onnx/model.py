"""From an ONNX file to a net with its weights: what is left open is tried for several sizes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sparknet import proto
from sparknet.errors import FileError, clean, warn
from sparknet.graph.splits import without_splits
from sparknet.layers.layer import MAX_COUNT
from sparknet.onnx.conversion import Reading
from sparknet.onnx.inputs import (
    LONGEST,
    UNBOUND,
    USUAL,
    Axes,
    Shapes,
    check_axes,
    describe_inputs,
    image_names,
    open_lengths,
    refuse_axes,
    tell,
)
from sparknet.onnx.other_sizes import check_compared, counted, grow
from sparknet.onnx.patterns import simplified
from sparknet.onnx.records import (
    FEW_PIXELS,
    LARGE,
    MEDIUM,
    PIXELS,
    SMALL,
    check_alike,
    fixed_records,
    goes_on,
    is_open,
    of_fixed,
    reopened,
    unlikely,
)
from sparknet.onnx.sizes import FixedSize, Size
from sparknet.onnx.source import (
    OnnxNode,
    Source,
    StrPath,
    is_onnx,
    read_source,
)
from sparknet.proto import Model
from sparknet.proto.untrusted import mark


class OnnxWarning(UserWarning):
    """Something about a conversion that its user should know."""


def read_model(
    path: StrPath,
    *,
    batch: int | None = None,
    shapes: Shapes | None = None,
    batch_axis: Axes | None = None,
    strict: bool | Collection[str] = False,
    trusted: bool = False,
) -> Model:
    """Read an ONNX model as a net with its weights.

    An open size of an input counts records: the net is made for `batch` of them (the default is
    1), and runs with any number.  `shapes` gives the shapes of inputs that leave more sizes open,
    where None is a size that stays open, and the value of an input of one number; `batch_axis`
    says along which axis of an input records lie, also where the file fixes their number.  Layers
    that stock Caffe lacks are named by an `OnnxWarning`; `strict` refuses them, but for the types
    that it names.  What no layer computes is refused by a sentence that names its node.  A file
    that is `trusted` may ask for as much memory and work as it likes."""
    model = converted(path, 1 if batch is None else batch, shapes, batch_axis, trusted)
    _tell(model, str(path), strict is not False, () if isinstance(strict, bool) else strict)
    return model


def converted(
    path: StrPath,
    batch: int = 1,
    shapes: Shapes | None = None,
    batch_axis: Axes | None = None,
    trusted: bool = False,
) -> Model:
    """Return the net and the weights, and no word about its layers."""
    from sparknet.onnx import operators

    operators.load()
    try:
        source = read_source(path)
        source.is_trusted = trusted
        tell(source, shapes or {}, batch_axis or {})
        nodes, source.constants = simplified(source)
        sizes: dict[str, Sequence[Any]] = {
            name: source.inputs[name] for name in shapes or {} if name in source.inputs
        }
        trial = _Trial(source, nodes, sizes, batch)
        reading, model = trial.settled()
        if not sizes and not batch_axis:
            reading, model = _reopened(source, nodes, (reading, model))
    except MemoryError:
        raise FileError(path, "takes more memory than there is") from None
    check_axes(source, model.net, reading.opened)
    mark(model.net, trusted=False)
    model.metadata |= {
        **source.metadata,
        "inputs": describe_inputs(model.net, reading.opened, trial.lengths),
    }
    _tell_rounding(reading, str(path))
    return model


def _reopened(
    source: Source, nodes: list[OnnxNode], fixed: tuple[Reading, Model]
) -> tuple[Reading, Model]:
    """Return a model of a fixed number of records for any number, if this is safe."""
    records = fixed_records(source)
    if records is None or goes_on(fixed[1].net, source.outputs):
        return fixed
    dynamic = reopened(source, records)
    with suppress(FileError):
        reading, model = _Trial(dynamic, nodes, {}, records).settled()
        check_axes(dynamic, model.net, reading.opened)
        same = all(
            fixed[0].net.blobs[name].shape
            == of_fixed(reading.net.blobs[name].shape, reading.records, records)
            for name in source.outputs
        )
        if same and goes_on(model.net, source.outputs):
            return reading, model
    if records > 1:
        text = f"the net takes {records} records at a time, as the file says: no other number"
        warn(f"{source.path}: {text}", OnnxWarning)
    return fixed


@dataclass(eq=False)
class _Trial:
    """A model that is read for several numbers of records, if it leaves the number open."""

    source: Source
    nodes: list[OnnxNode]
    shapes: dict[str, Sequence[Any]]
    batch: int

    def __post_init__(self) -> None:
        self.lengths = open_lengths(self.source)
        self.images = image_names(self.source, self.lengths)
        self.pixels: Sequence[int] = PIXELS

    def settled(self) -> tuple[Reading, Model]:
        """Take several open lengths that do not fit each other for one."""
        try:
            return self._settled()
        except FileError:
            if len({*self.lengths.values()}.difference(self.images)) < 2:
                raise
            lengths = self.lengths
            self.lengths = dict.fromkeys(lengths, next(iter(lengths.values())))
            try:
                return self._settled()
            except FileError:
                self.lengths = lengths
            raise

    def _settled(self) -> tuple[Reading, Model]:
        if self.images:
            with suppress(FileError):
                return self.agreed(MEDIUM)
            self.pixels = FEW_PIXELS
        try:
            return self.agreed(MEDIUM if self.lengths else LARGE)
        except FileError as error:
            # A model of large images may be too large for so many records.
            try:
                return self.agreed(SMALL)
            except FileError as other:
                sized = {*self.lengths.values()} - {
                    *self.images
                } or f"more than {MAX_COUNT} values" in str(error)
                raise other if sized else error from None

    def agreed(self, primes: Sequence[int]) -> tuple[Reading, Model]:
        readings: list[Reading] = []
        problem: FileError | None = None
        least = 2 if is_open(self.source) else 1
        remaining = len({*self.lengths.values()}.difference(self.images))
        for records, *lengths in unlikely(
            self.source, primes, 1 + remaining, len(self.images), self.pixels
        ):
            reading = self._reading(records, lengths)
            try:
                reading.walk()
                readings.append(reading)
            except FixedSize as error:
                self._fix(error)
                return self.agreed(primes)
            except FileError as error:
                if problem is not None or least == 1:
                    raise (problem or counted(reading, error)) from None
                problem = counted(reading, error)
            if len(readings) == least:
                break
        if problem is not None and len(readings) < least:
            raise problem
        self._grow(readings)
        models = [reading.net.model(self._usual(reading, readings)) for reading in readings]
        if len(models) > 1:
            check_alike(self.source.path, models[0], models[1], bool(self.lengths))
            if not self.lengths:
                check_compared(*readings)
        return readings[0], models[0]

    def _fix(self, error: FixedSize) -> None:
        """Have a height or width as the exporter had it."""
        for (name, axis), size in [*self.lengths.items()]:
            if size == error.name:
                sizes = self.source.inputs[name]
                self.source.inputs[name] = (*sizes[:axis], error.size, *sizes[axis + 1 :])
                del self.lengths[name, axis]
        self.images = image_names(self.source, self.lengths)

    def _reading(self, records: int, lengths: Sequence[int]) -> Reading:
        names = dict.fromkeys(one for one in self.lengths.values() if one not in self.images)
        sizes = {
            name: Size.open(name, value)
            for name, value in zip((*names, *self.images), lengths, strict=True)
        }
        return Reading(
            self.source,
            self.nodes,
            self.shapes,
            records,
            {place: sizes[name] for place, name in self.lengths.items()},
            self.images,
        )

    def _usual(self, reading: Reading, readings: Sequence[Reading]) -> dict[int, int]:
        """Return what stands in the net for what stands for open sizes."""
        length = min(USUAL, _longest(readings))
        others = {size: self.images.get(str(size), length) for size in reading.lengths.values()}
        return {reading.records: self.batch, **others}

    def _grow(self, readings: Sequence[Reading]) -> None:
        """Put constants in for the longest input that the model takes."""
        longest = _longest(readings)
        for one in readings:
            if one.growths:
                grow(one, longest)


def _longest(readings: Sequence[Reading]) -> int:
    """Return what grows with the sequence itself is no table."""
    first, *others = (one.bounds for one in readings)
    bounds = [rows for name, rows in first.items() if all(one.get(name) == rows for one in others)]
    return min(*bounds, LONGEST) if bounds else UNBOUND


def _tell_rounding(reading: Reading, path: str) -> None:
    message = {
        "drop values in whatever they run; the net's Dropout layers do so in training alone": (
            reading.dropping
        ),
        "round to whole numbers; the net computes in float32 there": reading.unrounded,
        "round to eight bits; the net does so with precision='int8'": reading.rounded,
        "round around a zero point; the steps of precision='int8', around 0, are coarser there": (
            reading.coarser
        ),
    }
    for what, nodes in message.items():
        if nodes:
            text = f"{path}: {len(nodes)} nodes (the first is '{clean(nodes[0])}') {what}"
            warn(text, OnnxWarning)


def foreign_types(model: Model) -> list[str]:
    """Return the layer types of a model that stock Caffe lacks."""
    from sparknet.layers import LAYERS

    types = dict.fromkeys(layer.type for layer in model.net.layer)
    return [one for one in types if not LAYERS[one].is_stock]


def _tell(model: Model, path: str, strict: bool, allowed: Collection[str]) -> None:
    foreign = [kind for kind in foreign_types(model) if kind not in allowed]
    if not foreign:
        return
    layers = [(layer.type, f"'{clean(layer.name)}'") for layer in model.net.layer]
    names = {kind: ", ".join(name for own, name in layers if own == kind) for kind in foreign}
    operators = ", ".join(f"{kind} ({own})" for kind, own in names.items())
    if strict:
        raise FileError(path, f"needs layers that stock Caffe lacks: {operators}")
    message = f"{path}: stock Caffe does not read the net: it lacks {operators}"
    warn(message, OnnxWarning)


def open_model(
    path: StrPath,
    *,
    shapes: Shapes | None = None,
    batch_axis: Axes | None = None,
    trusted: bool | None = None,
) -> Model:
    """Return the net and weights of a .onnx, or of a caffemodel without the Splits in it."""
    if is_onnx(path):
        return converted(path, 1, shapes, batch_axis, bool(trusted))
    refuse_axes(path, shapes, batch_axis)
    return without_splits(proto.read_model(path))
