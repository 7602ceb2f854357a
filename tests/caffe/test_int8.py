"""Nets that multiply numbers of eight bits stay close to those of float32."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.caffe.int8 import Calibration, Histogram
from sparknet.errors import FileError, SpecError
from sparknet.native import has_int8
from sparknet.proto import caffe_pb2, parse_net, read_model
from tests.caffe.gradient import input_layer
from tests.caffe.test_precision import convolution, distance, folded, layer, product, residual
from tests.goldens import ROOT

needs_int8 = pytest.mark.skipif(not has_int8(), reason="this processor has no int8")

CLOSE = 0.03
"""How far from float32, as a share of all values' norm, one layer is."""


def rounded(values, step, is_signed=True):
    """The nearest multiples of a step, by the obvious way."""
    low, high = (-128, 127) if is_signed else (0, 255)
    return np.clip(np.rint(values / step), low, high)


def filled(text, shape, seed=3):
    """A net of float32 in the test phase whose parameters are all drawn, and its input."""
    net = caffe.Net.from_proto(parse_net(input_layer("data", shape) + text), caffe.TEST, seed=1)
    rng = np.random.default_rng(seed)
    for blobs in net.params.values():
        for blob in blobs:
            blob.data[...] += rng.uniform(0.1, 0.5, blob.data.shape)
    net.blobs["data"].data[...] = rng.standard_normal(shape)
    net.forward()
    return net


def calibrated(net, method="max", float32=()):
    found = Calibration(net.graph)
    found.note({name: net.blobs[name].data for name in found.blobs})
    return found.done(method, float32)


def in_int8(net, param, keep_blobs=False):
    message = caffe_pb2.NetParameter()
    message.CopyFrom(net.graph.parameter)
    message.int8_param.CopyFrom(param)
    made = caffe.Net.from_proto(message, caffe.TEST, precision="int8", keep_blobs=keep_blobs)
    made.flat_params[...] = np.array(net.flat_params)
    made.blobs["data"].data[...] = net.blobs["data"].data
    return made


@needs_int8
@settings(max_examples=40, deadline=None)
@given(
    images=st.integers(1, 3),
    channels=st.integers(1, 40),
    outputs=st.integers(1, 40),
    groups=st.sampled_from([1, 2, 0]),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    pad=st.integers(0, 2),
    dilation=st.integers(1, 2),
    height=st.integers(1, 12),
    width=st.integers(1, 12),
    positive=st.booleans(),
)
def test_a_convolution_is_the_sum_of_products_of_whole_numbers(
    images, channels, outputs, groups, kernel, stride, pad, dilation, height, width, positive
):
    group = groups or channels
    channels, outputs = channels * groups or channels, outputs * groups or channels
    extent = dilation * (kernel - 1) + 1
    height, width = max(height, extent - 2 * pad), max(width, extent - 2 * pad)
    shape = (images, channels, height, width)
    text = convolution(
        "conv",
        "data",
        f"num_output: {outputs} kernel_size: {kernel} stride: {stride} pad: {pad} "
        f"dilation: {dilation} group: {group}",
    )
    net = filled(text, shape)
    if positive:
        net.blobs["data"].data[...] = np.abs(net.blobs["data"].data)
    param = calibrated(net)
    narrow = in_int8(net, param)
    narrow.forward()
    (step,) = [one for one in param.values if one.blob == "data"]
    # The same sums by float32's kernel: their factors are whole numbers, exact in float32.
    weights = net.params["conv"][0].data
    by = np.abs(weights).reshape(outputs, -1).max(1).astype(np.float32) / np.float32(127)
    weights[...] = rounded(weights, by.reshape(-1, 1, 1, 1))
    bias = net.params["conv"][1].data.copy()
    net.params["conv"][1].data[...] = 0
    data = net.blobs["data"].data
    data[...] = rounded(data, np.float32(step.step), step.is_signed)
    net.forward()
    axes = (1, -1, 1, 1)
    want = net.blobs["conv"].data * (by * step.step).reshape(axes) + bias.reshape(axes)
    # A number that lies between two multiples may be rounded either way.
    assert distance(narrow.blobs["conv"].data, want) < 2e-3


CASES = {
    "convolution": convolution("last", "data", "num_output: 12 kernel_size: 3"),
    "grouped": convolution("last", "data", "num_output: 12 kernel_size: 3 group: 4"),
    "product": product("last", "data", "num_output: 20"),
    "transposed": product("last", "data", "num_output: 20 transpose: true"),
    "two": convolution("one", "data", "num_output: 12 kernel_size: 3")
    + layer("relu", "ReLU", "one", "", "one")
    + convolution("last", "one", "num_output: 12 kernel_size: 3"),
    "pooled": convolution("one", "data", "num_output: 12 kernel_size: 3")
    + layer("pool", "Pooling", "one", "pooling_param { kernel_size: 3 stride: 2 }")
    + convolution("last", "pool", "num_output: 12 kernel_size: 3"),
    "averaged": convolution("one", "data", "num_output: 12 kernel_size: 3")
    + layer("pool", "Pooling", "one", "pooling_param { pool: AVE kernel_size: 3 stride: 2 }")
    + product("last", "pool", "num_output: 12"),
    "joined": convolution("one", "data", "num_output: 12 kernel_size: 3")
    + convolution("two", "data", "num_output: 7 kernel_size: 3")
    + layer("both", "Concat", "one two")
    + convolution("last", "both", "num_output: 12 kernel_size: 3"),
    "through float32": convolution("one", "data", "num_output: 12 kernel_size: 3")
    + layer("soft", "Sigmoid", "one", "", "one")
    + convolution("last", "one", "num_output: 12 kernel_size: 3"),
}


@needs_int8
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("keep_blobs", [False, True])
@pytest.mark.parametrize("method", ["max", "mse"])
def test_nets_are_close_to_float32_and_the_same_each_time(case, keep_blobs, method):
    net = filled(CASES[case], (3, 8, 12, 11))
    narrow = in_int8(net, calibrated(net, method), keep_blobs)
    assert narrow.precision == "int8"
    found = narrow.forward()["last"].copy()
    assert 1e-4 < distance(found, net.blobs["last"].data) < 2 * CLOSE
    np.testing.assert_array_equal(narrow.forward()["last"], found)
    np.testing.assert_array_equal(narrow.forward(blobs=list(narrow.blobs))["last"], found)


@needs_int8
@pytest.mark.parametrize("channels", [3, 16, 33])
@pytest.mark.parametrize("deep", ["kernel_size: 3 pad: 1", "group: {0} kernel_size: 3 pad: 1"])
def test_sums_are_added_to_numbers_of_another_step(channels, deep):
    text = residual(channels, deep.format(channels)) + product("last", "pool", "num_output: 9")
    net = filled(text, (3, 5, 7, 8))
    narrow = in_int8(net, calibrated(net))
    narrow.time_layers(True)
    found = narrow.forward()["last"].copy()
    assert distance(found, net.blobs["last"].data) < 2 * CLOSE
    times = dict(zip(narrow._layer_names, narrow.layer_times()[0], strict=True))
    assert times["sum"] == times["again"] == times["long/scale"] == 0, "fused"
    np.testing.assert_array_equal(narrow.forward()["last"], found)


@needs_int8
@pytest.mark.parametrize(("images", "height", "width"), [(1, 1, 2), (3, 7, 5), (2, 28, 28)])
@pytest.mark.parametrize("channels", [16, 17, 33, 96, 240])
@pytest.mark.parametrize("is_signed", [False, True])
def test_means_and_factors_of_channels_are_those_of_whole_numbers(
    channels, is_signed, images, height, width
):
    """Squeeze-and-excitation: the mean reads eight bits, and the product is rounded to them."""
    text = convolution("a", "data", f"num_output: {channels} kernel_size: 1")
    text += "" if is_signed else layer("relu", "ReLU", "a", "", "a")
    text += layer("mean", "Pooling", "a", "pooling_param { pool: AVE global_pooling: true }")
    text += convolution("few", "mean", f"num_output: {channels} kernel_size: 1")
    text += layer("gate", "Sigmoid", "few", "") + layer("flat", "Flatten", "gate", "")
    text += layer("scaled", "Scale", "a", "scale_param { axis: 0 } bottom: 'flat'")
    text += convolution("last", "scaled", "num_output: 8 kernel_size: 1")
    net = filled(text, (images, 5, height, width))
    param = calibrated(net)
    steps = {one.blob: (np.float32(one.step), one.is_signed) for one in param.values}
    narrow = in_int8(net, param, keep_blobs=True)
    narrow.forward()
    a, mean, flat, scaled = (
        np.array(narrow.blobs[name].data) for name in ("a", "mean", "flat", "scaled")
    )
    np.testing.assert_allclose(mean, a.mean((2, 3), np.float64, keepdims=True), rtol=1e-5)
    step, below_zero = steps["scaled"]
    numbers = scaled / step
    np.testing.assert_allclose(numbers, np.rint(numbers), atol=1e-3)
    want = rounded(a.astype(np.float64) * flat[:, :, np.newaxis, np.newaxis], step, below_zero)
    off = np.abs(np.rint(numbers) - want)
    assert off.max() <= 1, "one step, in the middle between two"
    assert np.mean(off) < 1e-3
    lean = in_int8(net, param)
    np.testing.assert_array_equal(lean.forward()["last"], narrow.blobs["last"].data)


@needs_int8
def test_a_layer_that_is_named_stays_in_float32():
    net = filled(CASES["convolution"], (2, 8, 9, 9))
    narrow = in_int8(net, calibrated(net, float32=("last",)))
    np.testing.assert_array_equal(narrow.forward()["last"], net.blobs["last"].data)
    with pytest.raises(SpecError, match="no layer 'lost' to keep in float32"):
        calibrated(net, float32=("lost",))


@needs_int8
def test_what_python_writes_counts():
    net = filled(CASES["two"], (2, 8, 9, 9))
    narrow = in_int8(net, calibrated(net))
    before = narrow.forward()["last"].copy()
    narrow.params["last"][0].data[...] *= 2
    narrow.params["last"][1].data[...] *= 2
    np.testing.assert_allclose(narrow.forward()["last"], 2 * before, rtol=1e-5, atol=1e-4)
    narrow.blobs["data"].reshape(3, 8, 7, 10)
    data = np.random.default_rng(0).standard_normal((3, 8, 7, 10))
    net.blobs["data"].reshape(3, 8, 7, 10)
    want = net.forward(data=data)["last"]
    np.testing.assert_array_less(distance(narrow.forward(data=data)["last"] / 2, want), 2 * CLOSE)


@needs_int8
def test_a_file_has_a_quarter_of_the_size_and_loads_everywhere(tmp_path):
    text = folded("one", "data", "num_output: 64 kernel_size: 3") + product(
        "last", "one", "num_output: 50"
    )
    net = filled(text, (2, 8, 12, 11))
    narrow = in_int8(net, calibrated(net))
    found = narrow.forward()["last"].copy()
    wide, small = tmp_path / "wide.caffemodel", tmp_path / "small.caffemodel"
    net.save(str(wide))
    narrow.save(str(small))
    assert small.stat().st_size < 0.27 * wide.stat().st_size
    for precision in ("int8", "float32"):
        again = caffe.Net.from_proto(
            net.graph.parameter, caffe.TEST, precision=precision, keep_blobs=False
        )
        again.copy_from(str(small))
        again.blobs["data"].data[...] = net.blobs["data"].data
        made = again.forward()["last"]
        if precision == "int8":
            np.testing.assert_allclose(made, found, atol=1e-3 * np.abs(found).max())
        else:
            assert distance(made, net.blobs["last"].data) < CLOSE
    rows, before = read_model(small).layer_arrays("last")[0], net.params["last"][0].data
    assert rows is not None
    most = np.abs(before).max(1, keepdims=True) / 127 / 2
    assert (np.abs(rows - before) <= most * 1.0001).all()


def test_damaged_numbers_are_refused(tmp_path):
    blob = caffe_pb2.BlobProto(int8_data=b"\x01" * 6, int8_step=[1, 1])
    blob.shape.dim.extend((2, 3))
    for damage, said in (
        (caffe_pb2.BlobProto(int8_data=b"\x01" * 5, int8_step=[1, 1]), "5 numbers of eight bits"),
        (caffe_pb2.BlobProto(int8_data=b"\x01" * 6, int8_step=[1]), "1 steps for 2 rows"),
    ):
        damage.shape.dim.extend((2, 3))
        net = caffe_pb2.NetParameter()
        net.layer.add(name="ip", type="InnerProduct").blobs.append(damage)
        path = tmp_path / "damaged.caffemodel"
        path.write_bytes(net.SerializeToString())
        with pytest.raises(FileError, match=said):
            read_model(path)
    net = caffe_pb2.NetParameter()
    net.layer.add(name="ip", type="InnerProduct").blobs.append(blob)
    path.write_bytes(net.SerializeToString())
    np.testing.assert_array_equal(read_model(path).layer_arrays("ip")[0], np.ones((2, 3)))


def test_steps_that_no_calibration_makes_are_refused():
    net = parse_net(input_layer("data", (1, 2)))
    for step in (0, -1, float("nan"), float("inf")):
        net.int8_param.Clear()
        net.int8_param.values.add(blob="data", step=step)
        with pytest.raises(SpecError, match="the step of blob 'data' is"):
            caffe.Net.from_proto(net, caffe.TEST)


CORRECTED = {
    "a product": ((6, 10), product("out", "data", "num_output: 7")),
    "a product without a bias": ((6, 10), product("out", "data", "num_output: 7 bias_term: false")),
    "a convolution": ((2, 16, 6, 6), convolution("out", "data", "num_output: 9 kernel_size: 3")),
    "a picture's": ((2, 3, 32, 32), convolution("out", "data", "num_output: 9 kernel_size: 3")),
    "groups": ((2, 9, 6, 6), convolution("out", "data", "num_output: 9 group: 9 kernel_size: 3")),
}


@needs_int8
@pytest.mark.parametrize("case", CORRECTED)
def test_corrections_are_added_to_biases_in_eight_bits_alone(case):
    shape, text = CORRECTED[case]
    net = filled(text, shape)
    param = calibrated(net)
    want = np.array(net.blobs["out"].data)
    plain = in_int8(net, param).forward()["out"]
    bias = np.arange(want.shape[1], dtype=np.float32)
    param.bias.add(layer="out", value=bias)
    made = in_int8(net, param).forward()["out"]
    shift = np.moveaxis(made - plain, 1, -1)
    np.testing.assert_allclose(shift, np.broadcast_to(bias, shift.shape), atol=1e-4)
    param.float32_layer.append("out")
    np.testing.assert_allclose(in_int8(net, param).forward()["out"], want, rtol=1e-4, atol=1e-5)


@needs_int8
@pytest.mark.parametrize("values", [[1.0], [1.0, float("nan"), 1.0]])
def test_corrections_that_no_calibration_makes_are_refused(values):
    net = filled(product("out", "data", "num_output: 3"), (2, 4))
    param = calibrated(net)
    param.bias.add(layer="out", value=values)
    with pytest.raises(SpecError, match="the bias of layer 'out' has"):
        in_int8(net, param)


@needs_int8
def test_a_net_that_is_not_quantised_says_so():
    net = caffe.Net.from_proto(
        parse_net(input_layer("data", (2, 8, 9, 9)) + CASES["two"]), caffe.TEST, precision="int8"
    )
    with pytest.raises(SpecError, match="needs a quantised model"):
        net.forward()
    with pytest.raises(SpecError, match="is for the test phase"):
        caffe.Net.from_proto(parse_net(""), caffe.TRAIN, precision="int8")


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=200), st.integers(1, 5))
def test_a_histogram_keeps_the_largest_value(values, parts):
    found = Histogram()
    for part in np.array_split(np.array(values, np.float32), parts):
        found.note(part)
    array = np.array(values, np.float32)
    assert found.clip("max") == np.abs(array).max()
    assert found.is_signed == bool((array < 0).any())
    assert found.counts.sum() == np.count_nonzero(array)
    assert 0 <= found.clip("mse") <= found.clip("max")


def test_a_rare_large_value_is_clipped_by_mse():
    found = Histogram()
    found.note(np.random.default_rng(0).standard_normal(100_000))
    found.note(np.array([1000.0]))
    assert found.clip("max") == 1000
    plain = Histogram()
    plain.note(np.random.default_rng(0).standard_normal(100_000))
    assert 2 < plain.clip("mse") <= plain.largest


ELSEWHERE = """
import warnings
from sparknet.caffe import Net
from sparknet.proto import parse_net
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    net = Net.from_proto(parse_net(''), 1, precision="int8")
print(net.precision, *(str(one.message) for one in said), sep="|")
"""


def test_a_processor_without_int8_computes_in_float32_and_one_sentence_says_so():
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", ELSEWHERE]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == (
        "float32|precision='int8' needs a processor with AVX-VNNI, AVX512_VNNI or AMX; "
        "this one computes in float32"
    )
