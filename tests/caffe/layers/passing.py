"""One forward and one backward pass of a layer, for comparison with a slow and obvious formula."""

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def set_params(net, params):
    for name, values in params.items():
        for blob, value in zip(net.params[name], values, strict=True):
            blob.data[...] = value


def backward(net, seed=1):
    """Random gradients into every output, and back; returns those gradients."""
    net.clear_param_diffs()
    given = {}
    for number, name in enumerate(net.outputs):
        given[name] = draw(*net.blobs[name].data.shape, seed=seed + number)
        net.blobs[name].diff[...] = given[name]
    net.backward()
    return given


def same(got, want, rtol=1e-5, atol=1e-6):
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
