"""From an ONNX file to a net with its weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sparknet import proto
from sparknet.errors import FileError, clean, warn
from sparknet.graph.splits import without_splits
from sparknet.onnx.conversion import Reading
from sparknet.onnx.inputs import (
    LONGEST,
    UNBOUND,
    USUAL,
    Axes,
    Place,
    Shapes,
    check_axes,
    describe_inputs,
    image_names,
    open_lengths,
    refuse_axes,
    tell,
)
from sparknet.onnx.other_sizes import check_shapes, grow, is_too_large, with_cure
from sparknet.onnx.patterns import simplified
from sparknet.onnx.records import example_sizes, fixed_records, goes_on, of_fixed, reopened
from sparknet.onnx.sizes import RECORDS, FixedSize, Size
from sparknet.onnx.source import OnnxNode, Source, StrPath, is_onnx, read_source
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
        reading, model = _convert(source, nodes, sizes, batch, open_lengths(source))
        if not sizes and not batch_axis:
            reading, model = _reopened(source, nodes, (reading, model))
    except MemoryError:
        raise FileError(path, "takes more memory than there is") from None
    check_axes(source, model.net, reading.opened)
    mark(model.net, trusted=False)
    model.metadata |= {
        **source.metadata,
        "inputs": describe_inputs(model.net, reading.opened, reading.lengths),
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
        reading, model = _convert(dynamic, nodes, {}, records, open_lengths(dynamic))
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


def _convert(
    source: Source,
    nodes: list[OnnxNode],
    shapes: Mapping[str, Sequence[Any]],
    batch: int,
    lengths: Mapping[Place, str],
) -> tuple[Reading, Model]:
    """Read a model; take several open lengths that do not fit each other for one."""
    images = image_names(source, lengths)
    names = [name for name in dict.fromkeys(lengths.values()) if name not in images]
    problems: list[FileError] = []
    for examples in example_sizes(source, names, images):
        sizes = {name: Size.open(name, one) for name, one in examples.items()}
        places = {place: sizes[name] for place, name in lengths.items()}
        reading = Reading(source, nodes, shapes, examples[RECORDS], places, images)
        try:
            reading.walk()
            longest = min([*reading.bounds, LONGEST]) if reading.bounds else UNBOUND
            grow(reading, longest)
            check_shapes(reading)
            length = min(USUAL, longest)
            usual = {size: images.get(name, length) for name, size in sizes.items()}
            return reading, reading.net.model({**usual, reading.records: batch})
        except FixedSize as error:
            return _convert(source, nodes, shapes, batch, _fixed(source, lengths, error))
        except FileError as error:
            problems.append(with_cure(reading, error))
            if len(problems) > 1 and not names and not is_too_large(problems[0]):
                break
    if len(names) > 1:
        with suppress(FileError):
            return _convert(source, nodes, shapes, batch, dict.fromkeys(lengths, names[0]))
    raise problems[-1 if is_too_large(problems[0]) else 0]


def _fixed(source: Source, lengths: Mapping[Place, str], error: FixedSize) -> dict[Place, str]:
    """Have a height or width as the exporter had it."""
    for name, axis in [place for place, size in lengths.items() if size == error.name]:
        sizes = source.inputs[name]
        source.inputs[name] = (*sizes[:axis], error.size, *sizes[axis + 1 :])
    return {place: size for place, size in lengths.items() if size != error.name}


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
