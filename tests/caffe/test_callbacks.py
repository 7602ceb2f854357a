"""Callbacks before and after each layer."""

from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.nets import make, small


def test_callbacks() -> None:
    net, seen = small(), list[tuple[str, int]]()
    want = net.forward()["sum"].copy()
    for name in ("before_forward", "after_forward", "before_backward", "after_backward"):
        getattr(net, name)(lambda layer, name=name: seen.append((name, layer)))
    np.testing.assert_array_equal(net.forward()["sum"], want)
    assert seen == [(f"{when}_forward", n) for n in range(3) for when in ("before", "after")]
    seen.clear()
    net.backward(end="ip")
    assert seen == [(f"{when}_backward", n) for n in (2, 1) for when in ("before", "after")]
    net.before_forward(lambda layer: net.blobs["ip"].data.fill(layer) if layer == 2 else None)
    assert (net.forward()["sum"] == net.blobs["more"].data + 2).all()


def test_callbacks_keep_the_loss() -> None:
    net = make()
    loss = net._forward(0, 3)
    assert loss == pytest.approx(0.5 * float(net.blobs["loss"].data))
    net.after_forward(lambda layer: None)
    assert net._forward(0, 3) == pytest.approx(loss)
