"""What inputs leave open, and what the caller says about them: shapes, axes of records, lengths."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.errors import FileError, SpecError, clean
from sparknet.graph.records import Outline
from sparknet.layers import TEST
from sparknet.onnx.netlist import FLOAT
from sparknet.onnx.source import Array, OnnxNode, Source, StrPath
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean

Shapes = Mapping[str, Sequence[int | None] | float]
"""The shapes of inputs, where None is a size that stays open; of one number its value."""
Axes = Mapping[str, int]
"""The axis of records, by input."""
OPEN = "N"


def tell(source: Source, shapes: Shapes, batch_axis: Axes) -> None:
    """Have the model's inputs be as the caller says."""
    for what, names in (("shapes", shapes), ("batch_axis", batch_axis)):
        for name in names:
            if name not in source.inputs:
                near = did_you_mean(name, source.inputs)
                has = ", ".join(f"'{clean(one)}'" for one in source.inputs)
                raise FileError(
                    source.path, f"{what} names '{clean(name)}'; the model's inputs are {has}{near}"
                )
    for name, description in shapes.items():
        sizes = source.inputs[name]
        shape: Sequence[Any] = description if isinstance(description, Sequence) else (description,)
        if not sizes and len(shape) == 1:
            source.constants[name] = np.asarray(shape[0], source.integers.pop(name, FLOAT))
            del source.inputs[name]
            continue
        if len(shape) != len(sizes):
            raise FileError(
                source.path, f"input '{clean(name)}' has {len(sizes)} axes: {list(shape)}"
            )
        source.inputs[name] = tuple(OPEN if one is None else int(one) for one in shape)
    for name, axis in batch_axis.items():
        sizes = source.inputs[name]
        if not -len(sizes) <= axis < len(sizes):
            raise FileError(
                source.path,
                f"batch_axis says axis {axis} of input '{clean(name)}', which has {len(sizes)}",
            )
        axis %= len(sizes)
        symbol = OPEN if isinstance(sizes[axis], int) else sizes[axis]
        source.inputs[name] = (*sizes[:axis], symbol, *sizes[axis + 1 :])
        source.records[name] = axis


def one_number(names: Iterable[str]) -> str:
    """Ask for the values of inputs that are one number."""
    example = ", ".join(f"'{clean(name)}': …" for name in names)
    return f"say the value of an input of one number, shapes={{{example}}}"


def check_axes(source: Source, net: caffe_pb2.NetParameter, opened: Axes) -> None:
    """Refuse a model that leaves another axis open than that along which the net has records."""
    if not opened:
        return
    try:
        axes = record_axes(net)
        agreed = {source.inputs[name][axis] for name, axis in opened.items() if axes[name] == axis}
        agreed.discard(None)
        record_axis = {
            name: axis for name, axis in opened.items() if source.inputs[name][axis] in agreed
        }
    except SpecError:
        axes, record_axis = {}, {**opened}
    if any(axes.get(name) != axis for name, axis in record_axis.items()):
        # The layers do not tell, but the file does: one open size is that of all inputs.
        for layer in net.layer:
            for top in set(layer.top).intersection(record_axis):
                layer.input_param.record_axis[:] = [record_axis[top]]
        try:
            axes = record_axes(net)
        except SpecError as error:
            raise FileError(source.path, str(error)) from None
    for name, axis in opened.items():
        if axes.get(name, axis) == axis:
            continue
        sizes = " x ".join("?" if one is None else str(one) for one in source.inputs[name])
        raise FileError(
            source.path,
            f"input '{clean(name)}' ({clean(sizes)}) leaves axis {axis} open, and the net has its "
            f"records along axis {axes[name]}: give its whole shape, or say "
            f"batch_axis={{'{clean(name)}': {axes[name]}}} if that is the axis of records",
        )


def record_axes(net: caffe_pb2.NetParameter) -> dict[str, int]:
    """Return the axis of records of each input of a net."""
    shapes = dict(input_shapes(net))
    return Outline(net.layer, TEST).input_axes(shapes)


def input_shapes(net: caffe_pb2.NetParameter) -> Iterator[tuple[str, tuple[int, ...]]]:
    for layer in net.layer:
        if layer.type == "Input":
            for top, shape in zip(layer.top, layer.input_param.shape, strict=False):
                yield top, tuple(shape.dim)


def describe_inputs(
    net: caffe_pb2.NetParameter, record_axes: Axes, lengths: Collection[tuple[str, int]]
) -> str:
    """Return each input with its axes, for people to read."""
    lines = []
    for name, shape in input_shapes(net):
        axes = [axis for one, axis in lengths if one == name]
        sizes = [
            "records"
            if axis == record_axes.get(name)
            else "any length"
            if axis in axes
            else str(size)
            for axis, size in enumerate(shape)
        ]
        fixed = "" if name in record_axes else ", as the file says"
        lines.append(f"input {clean(name)}: {' x '.join(sizes) or 'one number'}{fixed}")
    return "\n".join(lines)


Place = tuple[str, int]
"""An input and its axis."""

LONGEST = 2048
"""Of constants that grow with the length: a square of them has 4 million numbers."""
UNBOUND = 512
"""The longest where no table of the model says one."""
USUAL = 128
"""What an open length is until a caller gives another."""
USUAL_IMAGE = 320
"""What an open height or width is until a caller gives another."""
_MOST_AXES = 3
"""Images, of four axes, are no sequences."""


def open_lengths(source: Source) -> dict[Place, str]:
    """Return the open lengths of inputs: the axis after the records', or the other one."""
    places: dict[Place, str] = {}
    symbols = {
        name: [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
        for name, sizes in source.inputs.items()
    }
    apart = [axes for axes in symbols.values() if axes[:1] != [0]]
    if len(apart) == len(symbols) and any(len(axes) > 1 for axes in apart) and not source.records:
        return {
            (name, axis): _symbol(source.inputs[name][axis], axis)
            for name, axes in symbols.items()
            for axis in axes
        }
    for name, axes in symbols.items():
        sizes = source.inputs[name]
        if name in source.records:
            others = [axis for axis in axes if axis != source.records[name]]
        else:
            others = axes[1:] if axes[:1] == [0] else []
        for axis in others:
            places[name, axis] = _symbol(sizes[axis], axis)
    for name, axes in symbols.items():
        size = source.inputs[name][axes[0]] if len(axes) == 1 else None
        if name not in source.records and size in places.values():
            places[name, axes[0]] = str(size)
    return places


def _symbol(name: int | str | None, axis: int) -> str:
    """Return the name of an open size, which is never that of the number of records."""
    return f"axis {axis}" if name in (None, "", "?", OPEN) else str(name)


def image_names(source: Source, lengths: Mapping[Place, str]) -> dict[str, int]:
    """Return the names of open heights and widths, with usual values."""
    return {
        size: USUAL_IMAGE
        for (name, _), size in lengths.items()
        if len(source.inputs[name]) > _MOST_AXES
    }


def bound(
    node: OnnxNode, inputs: Sequence[Array | None], array: Array, lengths: Sequence[int]
) -> int | None:
    """For how long an input a table has rows, of which a node takes one for each place."""
    default = inputs[0]
    if node.op not in ("Gather", "GatherND", "Slice") or default is None:
        return None
    if node.op == "GatherND" and np.asarray(inputs[1]).shape[-1:] != (1,):
        return None
    times = [
        max((size // one for one in lengths if size and size % one == 0), default=0)
        for size in array.shape
    ]
    if not any(times) or any(size and size % one == 0 for one in lengths for size in default.shape):
        return None
    if node.op != "Slice":
        rows = int(default.shape[int(node.attributes.get("axis", 0))])
        beyond = int(np.max(np.asarray(inputs[1]), initial=-1)) + 1 - min(lengths)
        return rows - beyond if beyond >= 0 else None
    return min(int(have) // each for have, each in zip(default.shape, times, strict=True) if each)


def refuse_axes(path: StrPath, shapes: Shapes | None, batch_axis: Axes | None) -> None:
    """SpecError where the inputs of something else than a .onnx are described."""
    for name, argument in (("shapes", shapes), ("batch_axis", batch_axis)):
        if argument:
            raise SpecError(f"{os.fspath(path)}: {name} is for the inputs of a .onnx")
