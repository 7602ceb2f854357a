"""What transformers and mobile nets are made of, in bfloat16, beside float32."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch

import sparknet.caffe as caffe
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer

ATTENTION = """
layer { name: "q" type: "InnerProduct" bottom: "x" top: "q" inner_product_param {
  num_output: 64 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "b" type: "Bias" bottom: "q" top: "b" bias_param { axis: 2 } }
layer { name: "scores" type: "MatMul" bottom: "b" bottom: "x" top: "scores"
  matmul_param { transpose_b: true } }
layer { name: "scaled" type: "Power" bottom: "scores" top: "scaled" power_param { scale: 0.125 } }
layer { name: "shares" type: "Softmax" bottom: "scaled" top: "shares" softmax_param { axis: 2 } }
layer { name: "y" type: "MatMul" bottom: "shares" bottom: "x" top: "y" }
layer { name: "gelu" type: "GELU" bottom: "y" top: "gelu" }
layer { name: "swish" type: "Swish" bottom: "gelu" top: "swish" }
layer { name: "hard" type: "HardSwish" bottom: "swish" top: "hard" }
layer { name: "scale" type: "Scale" bottom: "hard" top: "scale" scale_param {
  axis: 2 bias_term: true filler { value: 1.5 } } }
layer { name: "back" type: "Gather" bottom: "scale" top: "back"
  gather_param { axis: 1 index: 3 index: 0 index: -1 } }
layer { name: "norm" type: "LayerNorm" bottom: "back" top: "norm" layer_norm_param { axis: 2 } }
"""
KEPT = ("q", "b", "scores", "scaled", "y", "gelu", "swish", "hard", "scale", "back")


def build(precision, x):
    net = caffe.Net.from_proto(
        parse_net(input_layer("x", x.shape) + ATTENTION),
        caffe.TEST,
        seed=1,
        device="cpu",
        precision=precision,
    )
    net.forward(x=x)
    return net


def test_values_stay_in_bfloat16_and_near_float32():
    x = np.random.default_rng(1).normal(size=(3, 50, 64)).astype(np.float32)
    wide, narrow = build("float32", x), build("bf16", x)
    net = narrow._runtime.engine
    layers = {layer.name: layer for layer in net._layers}
    given = torch.from_numpy(x).bfloat16()
    for name in KEPT:
        layer = layers[name]
        bottoms = [given.new_zeros(blob.shape) for blob in layer.bottoms]
        top = layer.translation.compute(layer, bottoms, layer.factors)
        assert layer.translation.narrow, name
        assert top.dtype == torch.bfloat16, name
    shares = layers["shares"]
    probabilities = shares.translation.compute(shares, [given.new_zeros((3, 50, 50))], [])
    assert probabilities.dtype == torch.float32
    for name in (*KEPT, "shares", "norm"):
        want, got = (np.array(one.blobs[name].data) for one in (wide, narrow))
        assert got.dtype == np.float32
        least = 0.02 * np.abs(want).max()
        np.testing.assert_allclose(got, want, rtol=0.02, atol=least, err_msg=name)
        assert name == "shares" or not np.array_equal(got, want), name
