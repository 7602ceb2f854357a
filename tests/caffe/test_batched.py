"""Batches of any number of inputs."""

from __future__ import annotations

import numpy as np

from tests.caffe.nets import make, small


def test_forward_all_cuts_the_padding_off() -> None:
    net = small()
    rng = np.random.default_rng(2)
    for count in (1, 4, 7, 8):
        x, more = rng.normal(size=(count, 3)), rng.normal(size=(count, 2))
        outs = net.forward_all(data=x, more=more, blobs=["ip"])
        w, b = (blob.data for blob in net.params["ip"])
        np.testing.assert_allclose(outs["ip"], x @ w.T + b, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(outs["sum"], x @ w.T + b + more, rtol=1e-4, atol=1e-6)


def test_forward_all_gives_a_loss_for_each_batch() -> None:
    net = make()
    x, labels = np.random.default_rng(2).normal(size=(7, 2, 3, 4)), np.arange(7)
    losses = net.forward_all(data=x, label=labels)["loss"]
    assert losses.shape == (2,)
    assert losses[0] == net.forward(data=x[:5], label=labels[:5])["loss"]


def test_forward_backward_all() -> None:
    net = small()
    rng = np.random.default_rng(3)
    x, more, top = (rng.normal(size=(6, n)).astype(np.float32) for n in (3, 2, 2))
    outs, grads = net.forward_backward_all(data=x, more=more, sum=top, blobs=["ip"], diffs=["ip"])
    w, b = (blob.data for blob in net.params["ip"])
    np.testing.assert_allclose(outs["sum"], x @ w.T + b + more, rtol=1e-4, atol=1e-6)
    assert sorted(outs) == ["ip", "sum"]
    assert sorted(grads) == ["data", "ip", "more"]
    np.testing.assert_array_equal(grads["more"], top)
    np.testing.assert_allclose(grads["data"], top @ w, rtol=1e-4, atol=1e-6)
