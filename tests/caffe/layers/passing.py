"""One forward and one backward pass of a layer, for comparison with a slow and obvious formula."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer

Arrays = dict[str, Any]


def draw(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def build(
    layers: str,
    inputs: Mapping[str, Any],
    *,
    force: bool = True,
    phase: int = 0,
    precision: str = "float32",
    keep_blobs: bool = True,
) -> Any:
    text = "force_backward: true\n" if force else ""
    text += "".join(input_layer(name, np.shape(value)) for name, value in inputs.items())
    net = caffe.Net.from_proto(
        parse_net(text + layers), phase, precision=precision, keep_blobs=keep_blobs
    )
    for name, value in inputs.items():
        net.blobs[name].data[...] = value
    return net


def set_params(net: Any, params: Mapping[str, Sequence[Any]]) -> None:
    for name, values in params.items():
        for blob, value in zip(net.params[name], values, strict=True):
            blob.data[...] = value


def backward(net: Any, seed: int = 1) -> Arrays:
    """Random gradients into every output, and back; returns those gradients."""
    net.clear_param_diffs()
    given = {}
    for number, name in enumerate(net.outputs):
        given[name] = draw(*net.blobs[name].data.shape, seed=seed + number)
        net.blobs[name].diff[...] = given[name]
    net.backward()
    return given


def same(got: Any, want: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
