"""Threads that walk through the steps of an LSTM with streams of their own, against float64."""

from typing import Literal

import numpy as np
import pytest

from sparknet import caffe, native
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer

STEPS = 20
SIZES = [(8, 96, 192), (3, 96, 40), (1, 33, 12), (5, 260, 20), (40, 260, 20)]
"""Streams, units and inputs; the last weights but one are more than a second cache holds."""
NEAR: dict[Literal["float32", "bf16"], float] = {"float32": 1e-5, "bf16": 0.03}


@pytest.fixture(autouse=True)
def threads():
    before = native.threads()
    yield
    native.set_threads(before)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def expected(params, data, marks):
    inputs, bias, recurrent = (np.array(blob.data, np.float64) for blob in params)
    hidden = cell = np.zeros((data.shape[1], recurrent.shape[1]))
    found = []
    for x, mark in zip(data.astype(np.float64), marks[:, :, None], strict=True):
        gates = np.split(x @ inputs.T + bias + (mark * hidden) @ recurrent.T, 4, axis=1)
        keep, forget, out = (sigmoid(gate) for gate in gates[:3])
        cell = mark * forget * cell + keep * np.tanh(gates[3])
        hidden = out * np.tanh(cell)
        found.append(hidden)
    return np.array(found)


@pytest.mark.parametrize("precision", NEAR)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_streams_of_each_thread(sizes, precision):
    if precision == "bf16" and not has_bf16():
        pytest.skip("this processor has no bfloat16")
    streams, units, inputs = sizes
    filler = "weight_filler { type: 'xavier' } bias_filler { type: 'uniform' min: -1 max: 1 }"
    text = input_layer("x", (STEPS, streams, inputs)) + input_layer("cont", (STEPS, streams))
    text += f"""layer {{ name: "y" type: "LSTM" bottom: "x" bottom: "cont" top: "y"
        recurrent_param {{ num_output: {units} {filler} }} }}"""
    rng = np.random.default_rng(units)
    data = rng.standard_normal((STEPS, streams, inputs), np.float32)
    marks = (rng.random((STEPS, streams)) > 0.1).astype(np.float32)
    marks[0] = 0
    found = []
    for threads in (1, 2, 3):
        native.set_threads(threads)
        net = caffe.Net.from_proto(
            parse_net(text), caffe.TEST, seed=1, precision=precision, keep_blobs=False
        )
        for _ in range(2):
            found.append(np.array(net.forward(x=data, cont=marks)["y"]))
    want = expected(net.params["y"], data, marks)
    for values in found:
        np.testing.assert_allclose(values, want, rtol=0, atol=NEAR[precision])
