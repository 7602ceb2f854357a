"""Values of bf16 and int8 nets that all readers round are stored rounded; what somebody reads in
float32 is not, and no result changes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet import caffe
from sparknet.native import has_bf16
from sparknet.proto import caffe_pb2, parse_text
from tests.caffe.layers.test_attention import input_text as input_of
from tests.caffe.layers.test_attention import layer
from tests.caffe.layers.test_narrow import is_narrow, rounded

pytestmark = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")
Array = Any
WIDTH = 96


def product(name: str, bottom: str, outputs: int = WIDTH, axis: int = -1) -> str:
    fillers = 'weight_filler { type: "xavier" } bias_filler { type: "gaussian" std: 0.5 }'
    options = f"num_output: {outputs} axis: {axis} {fillers}"
    return layer(name, "InnerProduct", bottom, f"inner_product_param {{ {options} }}")


def net_of(text, *, keep_blobs=False, precision="bf16"):
    message = parse_text(text, caffe_pb2.NetParameter)
    return caffe.Net.from_proto(
        message, caffe.TEST, keep_blobs=keep_blobs, precision=precision, seed=5
    )


def filled(net, seed=0):
    rng = np.random.default_rng(seed)
    for name in net.inputs:
        net.blobs[name].data[...] = rng.standard_normal(net.blobs[name].shape)
    net.forward()
    return net


def multiplied(x, net, name):
    """Products of rounded factors, in float64."""
    weights, bias = (np.asarray(blob.data) for blob in net.params[name])
    factors = (rounded(np.asarray(x, np.float32)), rounded(weights))
    return factors[0].astype(np.float64) @ factors[1].T.astype(np.float64) + bias


def near(found, want, share=0.97):
    """The same but for numbers in the middle, which a sum in another order rounds otherwise."""
    most = np.abs(want).max()
    np.testing.assert_allclose(found, want, atol=6e-3 * most)
    assert np.mean(np.abs(found - want) <= 2e-5 * most) >= share


def test_what_a_second_reader_takes_in_float32_stays_so():
    text = input_of("x", 37, 200) + product("hidden", "x")
    text += product("y", "hidden") + layer("twice", "Power", "hidden", "power_param { scale: 2 }")
    net = filled(net_of(text))
    hidden = multiplied(net.blobs["x"].data, net, "hidden")
    most = np.abs(hidden).max()
    np.testing.assert_allclose(net.blobs["twice"].data, 2 * hidden, atol=1e-5 * most)
    near(net.blobs["y"].data, multiplied(hidden, net, "y"))


@pytest.mark.parametrize("rows", [1, 37, 512])
@pytest.mark.parametrize("between", ["", "GELU", "ReLU", "Swish", "Sigmoid"])
def test_a_value_that_is_looked_at_is_float32_and_changes_no_result(between, rows):
    text = input_of("x", rows, 200) + product("hidden", "x")
    top = "hidden"
    if between:
        text, top = text + layer("after", between, "hidden"), "after"
    text += product("y", top)
    lean, looked_at = filled(net_of(text)), net_of(text)
    looked_at.blobs[top].data  # noqa: B018
    values = filled(looked_at).blobs[top].data
    assert not is_narrow(values)
    near(lean.blobs["y"].data, multiplied(values, lean, "y"))
    np.testing.assert_array_equal(looked_at.blobs["y"].data, lean.blobs["y"].data)


STEPS = st.lists(
    st.sampled_from(
        ["product", "gelu", "relu", "scale", "turn", "back", "flat", "norm", "twice", "sum"]
    ),
    min_size=2,
    max_size=9,
)


def net_text(steps: list[str], shape: tuple[int, int, int, int]) -> str:
    """A net of such layers; `twice` adds an output that reads the blob in float32."""
    images, width = shape[0], shape[-1]
    text = input_of("x0", *shape)
    at, sizes = "x0", list(shape)
    for number, step in enumerate(["product", *steps, "product"], start=1):
        to = f"x{number}"
        if step == "product":
            text += product(to, at, width)
            sizes[-1] = width
        elif step in ("gelu", "relu"):
            text += layer(to, {"gelu": "GELU", "relu": "ReLU"}[step], at)
        elif step == "scale":
            options = 'axis: -1 num_axes: 1 bias_term: true filler { type: "gaussian" std: 1 }'
            text += layer(to, "Scale", at, f"scale_param {{ {options} }}")
        elif step in ("turn", "back"):
            order = {"turn": [0, 2, 1, 3], "back": [0, 3, 1, 2]}[step]
            axes = " ".join(f"order: {axis}" for axis in order)
            text += layer(to, "Permute", at, f"permute_param {{ {axes} }}")
            sizes = [sizes[axis] for axis in order]
        elif step == "flat":
            sizes = [images, 1, int(np.prod(sizes[1:-1])), sizes[-1]]
            dims = " ".join(f"dim: {size}" for size in sizes)
            text += layer(to, "Reshape", at, f"reshape_param {{ shape {{ {dims} }} }}")
        elif step == "norm":
            text += layer(to, "LayerNorm", at, "layer_norm_param { axis: -1 }")
        elif step == "twice":
            text += layer(f"out{number}", "Power", at, "power_param { scale: 2 }")
            continue
        elif step == "sum":
            text += layer(to, "Eltwise", f"{at} {at}")
        at = to
    return text


@settings(max_examples=60, deadline=None)
@given(
    STEPS,
    st.tuples(
        st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.sampled_from([91, 96, 128])
    ),
    st.integers(0, 99),
)
def test_drawn_nets(steps, shape, seed):
    """As a net does that keeps all its blobs, and so stores none of them rounded."""
    text = net_text(steps, shape)
    lean, whole = filled(net_of(text), seed), filled(net_of(text, keep_blobs=True), seed)
    assert lean.outputs == whole.outputs
    for name in lean.outputs:
        near(lean.blobs[name].data, np.asarray(whole.blobs[name].data, np.float64), 0.8)
    before = {name: np.array(lean.blobs[name].data) for name in lean.outputs}
    lean.forward()
    for name, values in before.items():
        np.testing.assert_array_equal(lean.blobs[name].data, values)
