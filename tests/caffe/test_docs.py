"""docs/pycaffe.md is true: its names exist, and what varies varies."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.native import set_threads, threads
from sparknet.proto import parse_net
from tests.guides import guide


@pytest.mark.parametrize("page", ["pycaffe.md", "compatibility.md", "scripts.md"])
def test_every_name_exists(page: str) -> None:
    made = {"net": caffe.Net, "solver": caffe.SGDSolver, "blob": caffe.Blob, "caffe": caffe}
    for owner, name in re.findall(r"`(net|solver|blob|caffe)\.(\w+)", guide(page)):
        instance = owner == "net" and name in vars(caffe.Net.from_proto(parse_net(""), caffe.TEST))
        instance |= (owner, name) == ("solver", "param")
        assert instance or hasattr(made[owner], name), f"{page}: {owner}.{name}"


CONV = """
force_backward: true
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 16 dim: 3 dim: 12 dim: 12 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 } }
layer { name: "norm" type: "LRN" bottom: "pool" top: "norm" }
layer { name: "drop" type: "Dropout" bottom: "norm" top: "norm" }
"""


def run(count: int) -> dict[str, Any]:
    before = threads()
    set_threads(count)
    try:
        net = caffe.Net.from_proto(parse_net(CONV), caffe.TRAIN, seed=2)
        net.blobs["x"].data[...] = np.random.default_rng(0).normal(size=(16, 3, 12, 12))
        out = net.forward()["norm"].copy()
        grads = net.backward(norm=np.ones_like(out))
        return {"out": out, "x": grads["x"].copy(), "w": np.array(net.flat_diffs)}
    finally:
        set_threads(before)


def test_what_varies_with_the_number_of_threads() -> None:
    once, again, more = run(2), run(2), run(1)
    for name in once:
        np.testing.assert_array_equal(once[name], again[name])
    np.testing.assert_array_equal(once["out"] != 0, more["out"] != 0)
    for name in once:
        np.testing.assert_allclose(once[name], more[name], rtol=1e-4, atol=1e-4)
