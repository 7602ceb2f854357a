"""Lengths of sequences, which a model may leave open beside the number of records.

A constant that is as long as the input (positions, a causal mask) is put into the net for the
longest input that the model takes, and SizedLike cuts it off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparknet.errors import FileError, shown
from sparknet.onnx.netlist import Made, Netlist, Value
from sparknet.onnx.source import Array, OnnxNode, Source

Place = tuple[str, int]
"""An input and its axis."""

LONGEST = 2048
"""Of constants that grow with the length: a square of them has 4 million numbers."""
UNBOUND = 512
"""The longest where no table of the model says one."""
USUAL = 128
"""What an open length is until a caller gives another."""
_MOST_AXES = 3
"""Images, of four axes, are no sequences."""


def open_lengths(source: Source) -> dict[Place, str]:
    """The lengths that inputs leave open, by their names: the axis after that of the records, or
    the other one where the caller has said which has the records."""
    found: dict[Place, str] = {}
    opened = {
        name: [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
        for name, sizes in source.inputs.items()
    }
    for name, axes in opened.items():
        sizes = source.inputs[name]
        if name in source.records:
            others = [axis for axis in axes if axis != source.records[name]]
        else:
            others = axes[1:] if axes[:1] == [0] and len(sizes) <= _MOST_AXES else []
        if len(others) == 1:
            found[name, others[0]] = str(sizes[others[0]] or f"axis {others[0]}")
    for name, axes in opened.items():
        size = source.inputs[name][axes[0]] if len(axes) == 1 else None
        if name not in source.records and size in found.values():
            found[name, axes[0]] = str(size)
    return found


def bound(
    node: OnnxNode, inputs: Sequence[Array | None], made: Array, lengths: Sequence[int]
) -> int | None:
    """For how long an input a table has rows, of which a node takes one for each place."""
    given = inputs[0]
    if node.op not in ("Gather", "Slice") or given is None:
        return None
    grows = [any(size and size % one == 0 for one in lengths) for size in made.shape]
    if not any(grows) or any(size and size % one == 0 for one in lengths for size in given.shape):
        return None
    if node.op == "Gather":
        rows = int(given.shape[int(node.attributes.get("axis", 0))])
        beyond = int(np.max(np.asarray(inputs[1]), initial=-1)) + 1 - min(lengths)
        return rows - beyond if beyond >= 0 else None
    return min(int(have) for have, long in zip(given.shape, grows, strict=True) if long)


def grow(path: str, net: Netlist, values: Mapping[str, Value]) -> None:
    """Let each constant that is as long as the input be as long as in `values`."""
    for made in net.layers:
        if made.grows:
            _lengthen(path, net, made, values[made.grows])


def _lengthen(path: str, net: Netlist, made: Made, whole: Value) -> None:
    short = made.arrays[0]
    what = f"'{shown(made.grows)}' is a constant that changes with the length of the input"
    if not isinstance(whole, np.ndarray) or whole.ndim != short.ndim:
        raise FileError(path, f"{what}: give the input's whole shape")
    pairs = list(zip(whole.shape, short.shape, strict=True))
    long = whole[tuple(slice(have if want != 1 else 1) for have, want in pairs)]
    long = np.ascontiguousarray(long, np.float32)
    if not np.array_equal(long[tuple(map(slice, short.shape))], short, equal_nan=True):
        raise FileError(path, f"{what} otherwise than by its end: give the input's whole shape")
    made.arrays = [long]
    made.parameter.parameter_param.shape.dim[:] = long.shape
    net.blobs[made.parameter.top[0]].stored = long.shape
    net.replan(made)
