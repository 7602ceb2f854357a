"""Fourier's transform, as a product with a matrix."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.operators.matrices import linear
from sparknet.onnx.operators.moving import turned
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_MOST = 1024
"""Places of an axis: the matrix has a row for each number, and a column."""


@reads("DFT")
def dft(step: Step) -> Outputs:
    """The last axis holds real parts alone, or beside each the imaginary one."""
    x = step.value(0)
    count = len(x.shape)
    if count < 2 or x.shape[-1] not in (1, 2):
        step.refuse("its last axis must hold real parts, and imaginary parts beside them or none")
    given = step.optional(2, "its axis") if step.opset >= 20 else None
    number = step.attribute("axis", 1) if step.opset < 20 else -2 if given is None else given
    axis = step.axis(int(np.ravel(number)[0]), count)
    if axis == count - 1:
        step.refuse("it transforms the axis of real and imaginary parts")
    size, parts = x.shape[axis], x.shape[-1]
    if step.is_open(size):
        step.refuse("it transforms along an axis of any length: give the input's whole shape")
    length = step.optional(1, "its length")
    wanted = size if length is None else int(np.ravel(length)[0])
    if not 0 < wanted <= _MOST or size > _MOST:
        step.refuse(f"it transforms {max(size, wanted)} places; {_MOST} is the most")
    onesided, inverse = (bool(step.attribute(name, 0)) for name in ("onesided", "inverse"))
    if onesided and inverse:
        step.refuse("it is the inverse of one half")
    weights = _matrix(size, parts, wanted, onesided, inverse)
    step.reading.room.take([weights], [])
    order = [one for one in range(count - 1) if one != axis] + [axis, count - 1]
    lead = [x.shape[one] for one in order[:-2]]
    flat = step.reshape(step.plain(turned(x, order)), (*lead, size * parts), part="numbers")
    made = linear(step, flat, weights, None, part="product")
    whole = step.reshape(made, (*lead, weights.shape[1] // 2, 2), part="parts")
    return turned(whole, [int(one) for one in np.argsort(order)])


def _matrix(size: int, parts: int, wanted: int, onesided: bool, inverse: bool) -> Array:
    """A column for each number that comes out; places beyond those wanted count nothing."""
    places = np.arange(size)[:, None]
    waves = np.arange(wanted // 2 + 1 if onesided else wanted)
    turns = np.exp((2j if inverse else -2j) * np.pi * (places * waves % wanted) / wanted)
    turns = np.where(places < wanted, turns / (wanted if inverse else 1), 0)
    rows = np.stack([turns, 1j * turns][:parts], 1)
    numbers = np.stack([rows.real, rows.imag], -1)
    found: Array = numbers.reshape(size * parts, -1).astype(np.float32)
    return found
