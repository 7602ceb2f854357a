"""Lengths of sequences, which a model may leave open beside the number of records.

Constants that are as long as the input (positions, a causal mask) are those of growing.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparknet.onnx.source import Array, OnnxNode, Source

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
    """The lengths that inputs leave open, by their names: the axis after that of the records, or
    the other one where the caller has said which has the records."""
    found: dict[Place, str] = {}
    opened = {
        name: [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
        for name, sizes in source.inputs.items()
    }
    apart = [axes for axes in opened.values() if axes[:1] != [0]]
    if len(apart) == len(opened) and any(len(axes) > 1 for axes in apart) and not source.records:
        return {
            (name, axis): str(source.inputs[name][axis] or f"axis {axis}")
            for name, axes in opened.items()
            for axis in axes
        }
    for name, axes in opened.items():
        sizes = source.inputs[name]
        if name in source.records:
            others = [axis for axis in axes if axis != source.records[name]]
        else:
            others = axes[1:] if axes[:1] == [0] else []
        for axis in others:
            named = sizes[axis] and sizes[axis] != "?"
            found[name, axis] = str(sizes[axis] if named else f"axis {axis}")
    for name, axes in opened.items():
        size = source.inputs[name][axes[0]] if len(axes) == 1 else None
        if name not in source.records and size in found.values():
            found[name, axes[0]] = str(size)
    return found


def image_names(source: Source, lengths: Mapping[Place, str]) -> dict[str, int]:
    """Return the names of open heights and widths, with usual values."""
    return {
        size: USUAL_IMAGE
        for (name, _), size in lengths.items()
        if len(source.inputs[name]) > _MOST_AXES
    }


def bound(
    node: OnnxNode, inputs: Sequence[Array | None], made: Array, lengths: Sequence[int]
) -> int | None:
    """For how long an input a table has rows, of which a node takes one for each place."""
    given = inputs[0]
    if node.op not in ("Gather", "GatherND", "Slice") or given is None:
        return None
    if node.op == "GatherND" and np.asarray(inputs[1]).shape[-1:] != (1,):
        return None
    times = [
        max((size // one for one in lengths if size and size % one == 0), default=0)
        for size in made.shape
    ]
    if not any(times) or any(size and size % one == 0 for one in lengths for size in given.shape):
        return None
    if node.op != "Slice":
        rows = int(given.shape[int(node.attributes.get("axis", 0))])
        beyond = int(np.max(np.asarray(inputs[1]), initial=-1)) + 1 - min(lengths)
        return rows - beyond if beyond >= 0 else None
    return min(int(have) // each for have, each in zip(given.shape, times, strict=True) if each)
