"""In the test phase softmax(Q K^T) V is one pass: the numbers of float64, wherever Q, K, V and the
masks lie, and the same as layer by layer."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import SpecError
from sparknet.native import has_bf16, has_int8, onednn_isa
from sparknet.proto import caffe_pb2, parse_text

Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.skipif(
    not any(one in str(onednn_isa()).replace("-", "") for one in ("AVX2", "AVX512", "AVX10")),
    reason="layers are as fast one by one on this processor",
)
HIDDEN = ("scores", "softmax", "qp", "kp", "vp")


def layer(name: str, kind: str, bottoms: str, options: str = "", top: str = "") -> str:
    read = " ".join(f'bottom: "{one}"' for one in bottoms.split())
    return f'layer {{ name: "{name}" type: "{kind}" {read} top: "{top or name}" {options} }}\n'


def input_text(name: str, *shape: int) -> str:
    dims = " ".join(f"dim: {size}" for size in shape)
    return layer(name, "Input", "", f"input_param {{ shape {{ {dims} }} }}")


def heads(name: str, order: str, *shape: int) -> str:
    dims = " ".join(f"dim: {size}" for size in shape)
    axes = " ".join(f"order: {axis}" for axis in order)
    return layer(f"{name}r", "Reshape", name, f"reshape_param {{ shape {{ {dims} }} }}") + layer(
        f"{name}p", "Permute", f"{name}r", f"permute_param {{ {axes} }}"
    )


@dataclass
class Attention:
    """The sizes of an attention, and what is added to its scores."""

    batch: int
    rows: int
    keys: int
    heads: int
    depth: int
    width: int = 0
    mask: str = ""
    guard: bool = False
    closing: bool = True
    scale: float = 0.25
    inputs: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self):
        self.width = self.width or self.depth
        rng = np.random.default_rng(self.rows + self.keys)
        sizes = {"q": (self.rows, self.depth), "k": (self.keys, self.depth)}
        sizes["v"] = (self.keys, self.width)
        self.inputs = {
            name: rng.standard_normal((self.batch, tokens, self.heads * size)).astype(np.float32)
            for name, (tokens, size) in sizes.items()
        }
        if self.mask == "tiled":
            hidden = rng.random((self.batch, 1, self.rows, self.keys)) < 0.4
            hidden[0, 0, self.rows // 2] = True
            self.inputs["m"] = np.where(hidden, -np.inf, 0).astype(np.float32)

    def text(self) -> str:
        b, m, n, h, d, w = (
            self.batch, self.rows, self.keys, self.heads, self.depth, self.width
        )  # fmt: skip
        text = "".join(input_text(name, *value.shape) for name, value in self.inputs.items())
        text += heads("q", "0213", b, m, h, d) + heads("k", "0231", b, n, h, d)
        text += heads("v", "0213", b, n, h, w)
        scaled = f"power_param {{ scale: {self.scale} }}"
        text += layer("qs", "Power", "qp", scaled)
        text += layer("scores", "MatMul", "qs kp")
        at = "scores"
        if self.mask == "tiled":
            text += layer("mt", "Tile", "m", f"tile_param {{ axis: 1 tiles: {h} }}")
            text += layer("masked", "Eltwise", f"mt {at}")
            at = "masked"
        if self.mask == "places":
            options = 'bias_param { axis: 1 num_axes: 3 filler { type: "gaussian" std: 1 } }'
            text += layer("placed", "Bias", at, options)
            at = "placed"
        text += layer("softmax", "Softmax", at, "softmax_param { axis: -1 }")
        at = "softmax"
        if self.guard:
            text += layer("size", "AbsVal", at)
            text += layer("number", "Threshold", "size", "threshold_param { threshold: -1 }")
            text += layer("none", "Power", "number", "power_param { scale: -1 shift: 1 }")
            text += layer("zero", "Parameter", "", "parameter_param { shape { dim: 1 } }")
            text += layer("kept", "Where", f"none zero {at}")
            at = "kept"
        text += layer("mixed", "MatMul", f"{at} vp")
        if self.closing:
            axes = "permute_param { order: 0 order: 2 order: 1 order: 3 }"
            text += layer("back", "Permute", "mixed", axes)
        return text

    def net(self, keep_blobs=False, precision="float32", more="", float32=()):
        message = parse_text(self.text() + more, caffe_pb2.NetParameter)
        if precision == "int8":
            message.int8_param.values.add(blob="q", step=0.1, is_signed=True)
            message.int8_param.float32_layer.extend(float32)
        net = caffe.Net.from_proto(
            message, caffe.TEST, keep_blobs=keep_blobs, precision=precision, seed=1
        )
        for name, value in self.inputs.items():
            net.blobs[name].data[...] = value
        return net

    def want(self, net):
        """The result in float64."""
        split = {
            name: value.astype(np.float64).reshape(*value.shape[:2], self.heads, -1)
            for name, value in self.inputs.items()
            if name in "qkv"
        }
        scores = np.einsum("bmhd,bnhd->bhmn", split["q"], split["k"]) * self.scale
        if "m" in self.inputs:
            scores = scores + self.inputs["m"]
        if self.mask == "places":
            scores = scores + np.asarray(net.params["placed"][0].data, np.float64)
        with np.errstate(invalid="ignore"):
            found = np.exp(scores - scores.max(-1, keepdims=True))
            found /= found.sum(-1, keepdims=True)
        if self.guard:
            found = np.where(np.isnan(found), 0, found)
        result = np.einsum("bhmn,bnhd->bmhd", found, split["v"])
        return result if self.closing else result.transpose(0, 2, 1, 3)


def alone(net):
    """The layers but inputs that took time by themselves in one pass."""
    net.time_layers(True)
    net.forward()
    spent = net._runtime.times()[0]
    times = zip(net._layer_names, spent, strict=True)
    return [name for name, time in times if time > 0 and name not in net.inputs]


CASES = {
    "one": Attention(1, 1, 1, 1, 8),
    "step": Attention(1, 1, 33, 2, 64),
    "vision": Attention(2, 197, 197, 12, 64),
    "odd": Attention(3, 7, 33, 1, 5, 19),
    "wide": Attention(2, 33, 7, 3, 80, 96),
    "places": Attention(2, 49, 49, 3, 32, mask="places"),
    "tiled": Attention(3, 31, 47, 4, 16, mask="tiled"),
    "guarded": Attention(2, 65, 63, 2, 32, mask="tiled", guard=True),
    "guarded only": Attention(2, 15, 17, 2, 8, guard=True),
    "open": Attention(2, 20, 40, 2, 24, closing=False),
    "long": Attention(1, 300, 1100, 1, 16),
}


@pytest.mark.parametrize("precision", ["float32", "bf16", "int8"])
@pytest.mark.parametrize("name", CASES)
def test_numbers(name, precision):
    if {"bf16": not has_bf16(), "int8": not has_int8()}.get(precision):
        pytest.skip(f"this processor has no {precision}")
    case = CASES[name]
    net = case.net(precision=precision)
    ran = alone(net)
    end = "back" if case.closing else "mixed"
    want = case.want(net)
    close = {"float32": 2e-5, "bf16": 0.03, "int8": 0.06}[precision]
    np.testing.assert_allclose(net.blobs[end].data, want, atol=close, rtol=close)
    assert "mixed" in ran
    assert not {*HIDDEN, "masked", "placed", "kept", "number", "mt", "back"} & set(ran)
    if precision == "float32":
        single = case.net(keep_blobs=True)
        single.forward()
        np.testing.assert_allclose(
            net.blobs[end].data, single.blobs[end].data, atol=2e-5, rtol=2e-5
        )


def test_a_product_that_is_named_stays_in_float32():
    if not has_int8():
        pytest.skip("this processor has no int8")
    case = CASES["vision"]
    single = case.net(precision="int8", float32=("mixed",))
    single.forward()
    np.testing.assert_allclose(single.blobs["back"].data, case.want(single), atol=2e-5, rtol=2e-5)


FEW = 128
"""So many keys and fewer are multiplied in bfloat16."""


@pytest.mark.parametrize("keys", [1, 49, FEW, FEW + 1])
def test_few_keys_are_multiplied_in_bf16_where_others_take_eight_bits(keys):
    if not str(onednn_isa()).startswith(("AVX-512 BF16", "AMX")):
        pytest.skip("this processor multiplies no pairs of bfloat16 in vectors of 512 bits")
    case = Attention(2, 49, keys, 3, 32)
    narrow, eight = case.net(precision="bf16"), case.net(precision="int8")
    narrow.forward()
    eight.forward()
    same = np.array_equal(eight.blobs["back"].data, narrow.blobs["back"].data)
    assert same == (keys <= FEW)


def in_whole_numbers(values, axis):
    """Multiples of one step along an axis, and the steps."""
    step = np.abs(values).max(axis, keepdims=True) / 127
    return np.rint(values / np.where(step > 0, step, 1)), step


@pytest.mark.skipif(
    not str(onednn_isa()).startswith(("AVX-512 ", "AMX")),
    reason="this processor multiplies no bytes in vectors of 512 bits",
)
@pytest.mark.parametrize("name", ["vision", "odd", "wide", "tiled", "guarded", "open", "long"])
def test_eight_bits_are_those_of_whole_numbers(name):
    """Rows of Q, keys without their mean and columns of V without theirs are rounded, and
    probabilities to 255ths of the largest; these are divided by the sum of what they were."""
    case = replace(CASES[name], keys=CASES[name].keys + FEW)
    net = case.net(precision="int8")
    net.forward()
    q, k, v = (
        case.inputs[one].astype(np.float64).reshape(case.batch, -1, case.heads, size)
        for one, size in (("q", case.depth), ("k", case.depth), ("v", case.width))
    )
    q, k, v = (one.transpose(0, 2, 1, 3) for one in (q, k, v))
    mean = v.mean(2, keepdims=True)
    (q, q_step), (k, k_step) = (
        in_whole_numbers(one, 3) for one in (q, k - k.mean(2, keepdims=True))
    )
    v, v_step = in_whole_numbers(v - mean, 2)
    scores = (q @ k.swapaxes(2, 3)) * q_step * k_step.swapaxes(2, 3) * case.scale
    scores = scores + case.inputs.get("m", 0)
    with np.errstate(invalid="ignore"):
        weights = 255 * np.exp(scores - scores.max(-1, keepdims=True))
        want = mean + np.rint(weights) @ v * v_step / weights.sum(-1, keepdims=True)
    if case.guard:
        want = np.where(np.isnan(want), 0, want)
    if case.closing:
        want = want.transpose(0, 2, 1, 3)
    actual = net.blobs["back" if case.closing else "mixed"].data
    # One step more or less where a number lies between two.
    np.testing.assert_allclose(actual, want, atol=6e-3, rtol=6e-3)
    close = np.abs(actual - want) <= 2e-4 * np.abs(want) + 2e-4
    assert np.mean(close | np.isnan(want)) > 0.9


@pytest.mark.parametrize("bad", ["q", "k", "v"])
def test_what_is_no_number_is_refused_in_eight_bits(bad):
    """In float32 a row of Q spoils its own, a key all, a value its column."""
    if not has_int8():
        pytest.skip("this processor has no int8")
    case = CASES["odd"]
    net, single = case.net(precision="int8"), case.net()
    for one in (net, single):
        one.blobs[bad].data[1, 3, 2] = np.nan
    single.forward()
    assert np.isnan(single.blobs["back"].data).any()
    with pytest.raises(SpecError, match=f"blob '{bad}' holds NaN in record 1, and eight bits have"):
        net.forward()


@pytest.mark.parametrize("looked_at", ["qp", "scores", "masked", "softmax", "mixed"])
def test_what_is_looked_at_is_computed(looked_at):
    case = CASES["tiled"]
    net, single = case.net(), case.net(keep_blobs=True)
    net.blobs[looked_at].data  # noqa: B018
    net.forward()
    single.forward()
    for name in (looked_at, "back"):
        np.testing.assert_allclose(
            net.blobs[name].data, single.blobs[name].data, atol=2e-5, rtol=2e-5
        )


def test_parts_of_a_pass():
    """A pass that ends within computes what it is asked for, and the next one goes on."""
    case = CASES["vision"]
    net = case.net()
    net.forward()
    whole = np.array(net.blobs["back"].data)
    net.forward(end="softmax")
    net.forward(start="mixed")
    np.testing.assert_allclose(net.blobs["back"].data, whole, atol=1e-5)
    net.forward()
    np.testing.assert_allclose(net.blobs["back"].data, whole, atol=1e-5)


def test_other_shapes():
    """Batches and lengths change from pass to pass."""
    text = "".join(input_text(name, 2, 1, 9, 8) for name in "qkv")
    text += layer("scores", "MatMul", "q k", "matmul_param { transpose_b: true }")
    text += layer("softmax", "Softmax", "scores", "softmax_param { axis: -1 }")
    text += layer("mixed", "MatMul", "softmax v")
    net = caffe.Net.from_proto(
        parse_text(text, caffe_pb2.NetParameter), caffe.TEST, keep_blobs=False
    )
    rng = np.random.default_rng(3)
    for batch, rows, keys in ((2, 9, 9), (5, 3, 20), (1, 40, 1), (2, 9, 9)):
        q, k, v = (rng.standard_normal((batch, 1, n, 8)) for n in (rows, keys, keys))
        for name, value in (("q", q), ("k", k), ("v", v)):
            net.blobs[name].reshape(*value.shape)
            net.blobs[name].data[...] = value
        net.reshape()
        assert alone(net) == ["mixed"]
        weights = np.exp(q @ k.swapaxes(-1, -2))
        want = weights / weights.sum(-1, keepdims=True) @ v
        np.testing.assert_allclose(net.blobs["mixed"].data, want, atol=2e-5, rtol=2e-5)


def test_logarithms_are_no_probabilities():
    text = "".join(input_text(name, 2, 1, 9, 8) for name in "qkv")
    text += layer("scores", "MatMul", "q k", "matmul_param { transpose_b: true }")
    text += layer("logs", "LogSoftmax", "scores", "softmax_param { axis: -1 }")
    text += layer("mixed", "MatMul", "logs v")
    net = caffe.Net.from_proto(
        parse_text(text, caffe_pb2.NetParameter), caffe.TEST, keep_blobs=False
    )
    rng = np.random.default_rng(4)
    q, k, v = (rng.standard_normal((2, 1, 9, 8)) for _ in "qkv")
    for name, value in (("q", q), ("k", k), ("v", v)):
        net.blobs[name].data[...] = value
    net.forward()
    scores = q @ k.swapaxes(-1, -2)
    want = (scores - np.log(np.exp(scores).sum(-1, keepdims=True))) @ v
    np.testing.assert_allclose(net.blobs["mixed"].data, want, atol=1e-4, rtol=1e-4)


def test_scores_with_a_second_reader_stay():
    case = CASES["odd"]
    net = case.net(more=layer("probabilities", "Power", "softmax", "power_param { scale: 2 }"))
    ran = alone(net)
    assert {"scores", "softmax", "mixed"} <= set(ran)
    np.testing.assert_allclose(net.blobs["back"].data, case.want(net), atol=2e-5)
    np.testing.assert_allclose(np.array(net.blobs["probabilities"].data).sum(-1), 2, atol=1e-5)


def test_slices_of_one_product():
    """Q, K and V are parts of one blob, as in timm's vision transformers."""
    b, n, h, d = 2, 50, 3, 16
    text = input_text("x", b, n, 3 * h * d)
    text += layer("r", "Reshape", "x", f"reshape_param {{ shape {{ {_dims(b, n, 3, h, d)} }} }}")
    order = " ".join(f"order: {axis}" for axis in (2, 0, 3, 1, 4))
    text += layer("p", "Permute", "r", f"permute_param {{ {order} }}")
    text += (
        'layer { name: "cut" type: "Slice" bottom: "p" top: "qc" top: "kc" top: "vc" '
        "slice_param { axis: 0 } }\n"
    )
    for name in "qkv":
        shape = f"reshape_param {{ shape {{ {_dims(b, h, n, d)} }} }}"
        text += layer(name, "Reshape", f"{name}c", shape)
    text += layer("scores", "MatMul", "q k", "matmul_param { transpose_b: true }")
    text += layer("softmax", "Softmax", "scores", "softmax_param { axis: -1 }")
    text += layer("mixed", "MatMul", "softmax v")
    message = parse_text(text, caffe_pb2.NetParameter)
    net = caffe.Net.from_proto(message, caffe.TEST, keep_blobs=False)
    x = np.random.default_rng(2).standard_normal((b, n, 3 * h * d)).astype(np.float32)
    net.blobs["x"].data[...] = x
    ran = alone(net)
    q, k, v = x.astype(np.float64).reshape(b, n, 3, h, d).transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-1, -2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(net.blobs["mixed"].data, want, atol=2e-5, rtol=2e-5)
    assert ran == ["mixed"]


def _dims(*sizes: int) -> str:
    return " ".join(f"dim: {size}" for size in sizes)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_make_no_difference(threads):
    from sparknet import native

    before = native.threads()
    try:
        native.set_threads(threads)
        case = CASES["long"]
        net = case.net()
        net.forward()
        np.testing.assert_allclose(net.blobs["back"].data, case.want(net), atol=2e-5)
    finally:
        native.set_threads(before)
