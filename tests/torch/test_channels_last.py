"""Convolutions whose pixels have their channels side by side, tried where there is no GPU."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch

from sparknet import caffe
from sparknet.proto import parse_net
from sparknet.torch.translations import convolutions
from tests.caffe.gradient import input_layer

NET = (
    input_layer("data", (2, 3, 13, 11))
    + """
    force_backward: true
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param {
      num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "norm" type: "BatchNorm" bottom: "conv1" top: "norm" }
    layer { name: "scale" type: "Scale" bottom: "norm" top: "norm" scale_param { bias_term: true } }
    layer { name: "relu" type: "ReLU" bottom: "norm" top: "norm" }
    layer { name: "lrn" type: "LRN" bottom: "norm" top: "lrn" }
    layer { name: "pool" type: "Pooling" bottom: "lrn" top: "pool"
      pooling_param { kernel_size: 3 stride: 2 } }
    layer { name: "left" type: "Convolution" bottom: "pool" top: "left" convolution_param {
      num_output: 4 kernel_size: 1 group: 2 weight_filler { type: "xavier" } } }
    layer { name: "right" type: "Convolution" bottom: "pool" top: "right" convolution_param {
      num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
    layer { name: "both" type: "Concat" bottom: "left" bottom: "right" top: "both" }
    layer { name: "first" type: "Slice" bottom: "both" top: "first" top: "rest"
      slice_param { slice_point: 5 } }
    layer { name: "sum" type: "Eltwise" bottom: "first" bottom: "rest" top: "sum" }
    layer { name: "wide" type: "Deconvolution" bottom: "sum" top: "wide" convolution_param {
      num_output: 2 kernel_size: 2 stride: 2 weight_filler { type: "xavier" } } }
    layer { name: "flat" type: "Flatten" bottom: "wide" top: "flat" }
    layer { name: "ip" type: "InnerProduct" bottom: "flat" top: "ip" inner_product_param {
      num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1
      reduction_param { operation: SUMSQ } }
"""
)


def passed(keep_blobs=True):
    """All that a pass forward and back leaves."""
    net = caffe.Net.from_proto(
        parse_net(NET), caffe.TRAIN, seed=3, device="apart", keep_blobs=keep_blobs
    )
    net.blobs["data"].data[...] = np.random.default_rng(0).normal(size=(2, 3, 13, 11))
    net.clear_param_diffs()
    loss = net.forward()["loss"].copy()
    net.backward()
    found = {"loss": loss, "gradients": np.array(net.flat_diffs), "weights": net.flat_params.copy()}
    if keep_blobs:
        for name, blob in net.blobs.items():
            found |= {f"{name}.data": blob.data.copy(), f"{name}.diff": blob.diff.copy()}
    return found


@pytest.mark.parametrize("keep_blobs", [True, False])
def test_the_same_numbers(keep_blobs, monkeypatch):
    usual, laid = passed(keep_blobs), convolutions._laid
    seen: list[bool] = []

    def watched(layer, x):
        made = laid(layer, x)
        if x.ndim == 4:
            assert made.is_contiguous(memory_format=torch.channels_last)
            seen.append(made is x)
        return made

    monkeypatch.setattr(convolutions, "_wants_channels_last", lambda layer, x: True)
    monkeypatch.setattr(convolutions, "_laid", watched)
    found = passed(keep_blobs)
    assert len(seen) == 8  # four layers' bottoms and weights
    for name, values in usual.items():
        np.testing.assert_allclose(
            np.asarray(found[name]), np.asarray(values), rtol=1e-4, atol=1e-5, err_msg=name
        )


def test_blobs_stay_as_they_are_between_convolutions(monkeypatch):
    """So that only the data and the weights are laid out anew."""
    laid, kept = convolutions._laid, list[tuple[int, ...]]()

    def watched(layer, x):
        made = laid(layer, x)
        if made is x and x.ndim == 4:
            kept.append(tuple(x.shape))
        return made

    monkeypatch.setattr(convolutions, "_wants_channels_last", lambda layer, x: True)
    monkeypatch.setattr(convolutions, "_laid", watched)
    net = caffe.Net.from_proto(parse_net(NET), caffe.TEST, device="apart", keep_blobs=False)
    net.forward()
    # Through BatchNorm, Scale, ReLU, LRN and Pooling, and through Concat, Slice and Eltwise;
    # weights of one pixel lie both ways.
    assert kept == [(2, 8, 5, 4), (4, 4, 1, 1), (2, 8, 5, 4), (2, 5, 5, 4)]
