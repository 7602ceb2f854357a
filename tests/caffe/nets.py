"""Two small nets that several tests use."""

import numpy as np

import sparknet.caffe as caffe
from sparknet.proto import parse_net

TEXT = """
name: "testnet"
force_backward: true
layer { name: "in" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 5 dim: 2 dim: 3 dim: 4 } shape { dim: 5 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  param { decay_mult: 1 } param { decay_mult: 0 }
  convolution_param { num_output: 11 kernel_size: 2 pad: 3
    weight_filler { type: "gaussian" std: 1 } bias_filler { type: "constant" value: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip_blob"
  inner_product_param { num_output: 13
    weight_filler { type: "gaussian" std: 0.1 } bias_filler { type: "constant" value: -3 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip_blob" bottom: "label" top: "loss"
  loss_weight: 0.5 }
"""

SMALL = """
layer { name: "in" type: "Input" top: "data" top: "more"
  input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "sum" type: "Eltwise" bottom: "ip" bottom: "more" top: "sum" }
"""


def make(text: str = TEXT, phase: int = caffe.TRAIN) -> caffe.Net:
    net = caffe.Net.from_proto(parse_net(text), phase, seed=1)
    rng = np.random.default_rng(0)
    for name in net.inputs:
        blob = net.blobs[name].data
        blob[...] = (
            rng.integers(0, 5, blob.shape) if name == "label" else rng.normal(size=blob.shape)
        )
    return net


def small() -> caffe.Net:
    return make("force_backward: true " + SMALL)
