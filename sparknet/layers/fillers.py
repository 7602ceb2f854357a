"""Fillers: the first values of a learnable blob (Caffe: filler.hpp).

Fan-in is the blob's count over its first axis, fan-out its count over its second.  "diagonal" is
ours: `value` where the last two axes have the same place, else 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparknet.errors import LayerError
from sparknet.layers.layer import Layer, Param, Shape, count, shape_text
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean

Array = np.ndarray[Any, np.dtype[np.float32]]
Fill = Callable[[caffe_pb2.FillerParameter, Shape, np.random.Generator], Any]


def constant(value: float = 0.0) -> caffe_pb2.FillerParameter:
    """Return a filler that sets every value to ``value``."""
    return caffe_pb2.FillerParameter(type="constant", value=value)


def check_filler(layer_name: str, filler: caffe_pb2.FillerParameter, shape: Shape) -> None:
    """Refuse what Caffe's fillers refuse, naming the layer."""
    problem = _problem(filler, shape)
    if problem:
        raise LayerError(layer_name, problem)


def fill(filler: caffe_pb2.FillerParameter, shape: Shape, rng: np.random.Generator) -> Array:
    """Return the first values of a blob whose filler and shape ``check_filler`` has accepted."""
    values = np.asarray(FILLERS[filler.type](filler, shape, rng), np.float32)
    return values if values.shape == shape else np.broadcast_to(values, shape).copy()


def _problem(filler: caffe_pb2.FillerParameter, shape: Shape) -> str | None:
    kind = filler.type
    if kind not in FILLERS:
        hint = did_you_mean(kind, FILLERS) or f"; the fillers are {', '.join(FILLERS)}"
        return f"unknown filler '{kind}'{hint}"
    if kind == "gaussian":
        return _gaussian_problem(filler, shape)
    if filler.sparse != -1:
        return f"filler '{kind}' does not support sparse ({filler.sparse}); only gaussian does"
    if kind == "uniform" and not -math.inf < filler.min <= filler.max < math.inf:
        return f"filler 'uniform' needs min <= max; they are {filler.min:g} and {filler.max:g}"
    if kind == "bilinear" and (len(shape) != 4 or shape[2] != shape[3]):
        return f"filler 'bilinear' needs 4 axes and a square kernel; the shape is {_text(shape)}"
    if kind == "diagonal" and len(shape) < 2:
        return f"filler 'diagonal' needs at least 2 axes; the shape is {_text(shape)}"
    if kind in ("xavier", "msra", "positive_unitball") and not shape:
        return f"filler '{kind}' needs at least 1 axis; the blob is a scalar"
    if kind == "positive_unitball" and len(shape) > 4:
        return f"filler 'positive_unitball' allows at most 4 axes; the shape is {_text(shape)}"
    return None


def _gaussian_problem(filler: caffe_pb2.FillerParameter, shape: Shape) -> str | None:
    if not (0 < filler.std < math.inf and math.isfinite(filler.mean)):
        return f"filler 'gaussian' needs a positive std; it is {filler.std:g}"
    if filler.sparse == -1:
        return None
    if filler.sparse < -1 or not shape or filler.sparse > shape[0]:
        return (
            f"filler 'gaussian' needs sparse from 0 to the first axis; "
            f"it is {filler.sparse}, the shape {_text(shape)}"
        )
    return None


def _text(shape: Shape) -> str:
    return shape_text(shape)


def _constant(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    return np.float32(filler.value)


def _uniform(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    return _between(filler.min, filler.max, shape, rng)


def _gaussian(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    values = _normal(filler.mean, filler.std, shape, rng)
    if filler.sparse < 0 or not values.size:
        return values
    return values * (rng.random(shape, dtype=np.float32) < filler.sparse / shape[0])


def _xavier(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    scale = math.sqrt(3.0 / _fan(filler, shape))
    return _between(-scale, scale, shape, rng)


def _msra(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    return _normal(0.0, math.sqrt(2.0 / _fan(filler, shape)), shape, rng)


def _positive_unitball(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    values = rng.random(shape, dtype=np.float32)
    if not values.size:
        return values
    rows = values.reshape(shape[0], -1)
    rows /= rows.sum(axis=1, keepdims=True)
    return values


def _bilinear(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    width = shape[3]
    factor = math.ceil(width / 2)
    if not factor:
        return np.float32(0)
    centre = (width - 1) / (2 * factor)
    line = 1 - np.abs(np.arange(width) / factor - centre)
    return np.outer(line, line)


def _diagonal(filler: Any, shape: Shape, rng: np.random.Generator) -> Any:
    return np.eye(*shape[-2:], dtype=np.float32) * np.float32(filler.value)


def _between(low: float, high: float, shape: Shape, rng: np.random.Generator) -> Array:
    values = rng.random(shape, dtype=np.float32)
    values *= np.float32(high - low)
    values += np.float32(low)
    return values


def _normal(mean: float, std: float, shape: Shape, rng: np.random.Generator) -> Array:
    values = rng.standard_normal(shape, dtype=np.float32)
    values *= np.float32(std)
    values += np.float32(mean)
    return values


def _fan(filler: Any, shape: Shape) -> float:
    """Return the number of values that ``variance_norm`` divides by; at least one."""
    total = count(shape)
    fan_in = total / max(shape[0], 1)
    fan_out = total / max(shape[1], 1) if len(shape) > 1 else total
    norms = caffe_pb2.FillerParameter
    if filler.variance_norm == norms.AVERAGE:
        fan: float = (fan_in + fan_out) / 2
    else:
        fan = fan_out if filler.variance_norm == norms.FAN_OUT else fan_in
    return max(fan, 1.0)


FILLERS: dict[str, Fill] = {
    "constant": _constant,
    "gaussian": _gaussian,
    "positive_unitball": _positive_unitball,
    "uniform": _uniform,
    "xavier": _xavier,
    "msra": _msra,
    "bilinear": _bilinear,
    "diagonal": _diagonal,
}


def learnable(layer: Layer, shape: Shape, filler: caffe_pb2.FillerParameter) -> Param:
    check_filler(layer.name, filler, shape)
    return Param(shape, filler)


def weights(layer: Layer, weight: Shape, bias: Shape) -> tuple[Param, ...]:
    """Return the weights and, with ``bias_term``, the biases of conv, InnerProduct and Embed."""
    options = layer.options
    params: tuple[Param, ...] = (learnable(layer, weight, options.weight_filler),)
    if options.bias_term:
        params += (learnable(layer, bias, options.bias_filler),)
    return params
