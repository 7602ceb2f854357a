"""Constants put into other constants, and picked out of them by their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparknet.onnx.limits import bounded
from sparknet.onnx.source import Array, OnnxNode

Inputs = Sequence[Any]


def _scatter_nd(node: OnnxNode, inputs: Inputs) -> Any:
    data, places, updates = inputs[0].copy(), inputs[1], inputs[2]
    if node.attributes.get("reduction", "none") != "none":
        raise ValueError("it adds up what falls on one place")
    data[_points(places)] = updates
    return data


def _gather_nd(node: OnnxNode, inputs: Inputs) -> Any:
    if node.attributes.get("batch_dims"):
        raise ValueError("batch_dims are not supported")
    data, places = inputs
    bounded((*places.shape[:-1], *data.shape[places.shape[-1] :]), inputs)
    return data[_points(places)]


def _points(places: Array) -> tuple[Array, ...]:
    """Return the indices of each axis, which lie side by side on the last one."""
    return tuple(np.moveaxis(places.astype(np.int64), -1, 0))


def _gather_elements(node: OnnxNode, inputs: Inputs) -> Any:
    axis = int(node.attributes.get("axis", 0))
    return np.take_along_axis(inputs[0], inputs[1].astype(np.int64), axis)


def _scatter_elements(node: OnnxNode, inputs: Inputs) -> Any:
    if node.attributes.get("reduction", "none") != "none":
        raise ValueError("it adds up what falls on one place")
    data = inputs[0].copy()
    axis = int(node.attributes.get("axis", 0))
    np.put_along_axis(data, inputs[1].astype(np.int64), inputs[2], axis)
    return data


def _cumsum(node: OnnxNode, inputs: Inputs) -> Any:
    if node.attributes.get("exclusive") or node.attributes.get("reverse"):
        raise ValueError("sums that leave their own value out, or go backwards")
    return np.cumsum(inputs[0], int(np.ravel(inputs[1])[0])).astype(inputs[0].dtype)


def _trilu(node: OnnxNode, inputs: Inputs) -> Any:
    diagonal = int(np.ravel(inputs[1])[0]) if len(inputs) > 1 and inputs[1] is not None else 0
    half = np.triu if node.attributes.get("upper", 1) else np.tril
    return half(inputs[0], diagonal)


def _one_hot(node: OnnxNode, inputs: Inputs) -> Any:
    places, depth, (off, on) = inputs[0].astype(np.int64), int(np.ravel(inputs[1])[0]), inputs[2]
    bounded((places.size, depth))
    rows = np.where(places[..., None] % max(depth, 1) == np.arange(depth), on, off)
    return np.moveaxis(rows, -1, int(node.attributes.get("axis", -1)))


def _pad(node: OnnxNode, inputs: Inputs) -> Any:
    data = inputs[0]
    numbers = node.attributes["pads"] if "pads" in node.attributes else np.ravel(inputs[1])
    pads = [int(one) for one in numbers]
    if node.attributes.get("mode", "constant") != "constant" or len(inputs) > 3 or min(pads) < 0:
        raise ValueError("constants are padded by one number on all axes")
    pairs = list(zip(pads[: data.ndim], pads[data.ndim :], strict=True))
    bounded([size + sum(pair) for size, pair in zip(data.shape, pairs, strict=True)], inputs)
    number = node.attributes.get("value", 0)
    if len(inputs) > 2 and inputs[2] is not None:
        number = np.ravel(inputs[2])[0]
    return np.pad(data, pairs, constant_values=number)


PLACING: dict[str, Callable[[OnnxNode, Inputs], Any]] = {
    "CumSum": _cumsum,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": lambda node, inputs: np.asarray(np.nonzero(inputs[0]), np.int64),
    "OneHot": _one_hot,
    "Pad": _pad,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Trilu": _trilu,
}
