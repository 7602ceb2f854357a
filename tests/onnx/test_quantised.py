"""Models of eight bits: what onnxruntime quantised, read; and quantised nets, written."""

import logging
from pathlib import Path

import numpy as np
import pytest

import sparknet
from sparknet.cli import main
from sparknet.native import has_int8
from sparknet.onnx import OnnxWarning, read_model, write_model
from tests.onnx.graphs import converted, draw, graph, node, onnx, refused, run, save

X = (2, 3, 8, 9)
PAIR = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "d")]
quiet = pytest.mark.filterwarnings("ignore::sparknet.onnx.OnnxWarning")
eight_bits = pytest.mark.skipif(not has_int8(), reason="the processor has no products of int8")


def quantised(zero, weights=None, **constants):
    known = {"s": np.float32(0.02), "z": zero, "w": draw(4, 3, 3, 3), **constants}
    stored = [] if weights is None else [node("DequantizeLinear", "v t", "w", axis=0)]
    if weights is not None:
        del known["w"]
        known |= {"v": weights, "t": np.linspace(0.01, 0.02, 4, dtype=np.float32)}
    nodes = [*PAIR, *stored, node("Conv", "d w")]
    return graph(nodes, {"x": ["n", *X[1:]]}, constants=known)


@pytest.mark.parametrize(
    ("zero", "step", "is_signed", "says"),
    [
        (np.uint8(0), 0.02, False, "1 nodes .the first is 'QuantizeLinear_q'. round to eight bits"),
        (np.int8(-128), 0.02, False, "round to eight bits"),
        (np.uint8(128), 0.02, True, "round to eight bits"),
        (np.int8(0), 0.02, True, "round to eight bits"),
        (np.uint8(100), 0.02 * 155 / 127, True, "steps of precision='int8', around 0, are coarser"),
        (np.uint16(40000), None, None, "round to whole numbers; the net computes in float32"),
    ],
)
def test_pairs_are_steps_of_eight_bits(zero, step, is_signed, says, tmp_path):
    path = save(quantised(zero), tmp_path)
    with pytest.warns(OnnxWarning, match=says):
        model = read_model(path)
    assert [layer.type for layer in model.net.layer] == ["Input", "Clip", "Convolution"]
    found = [(one.blob, one.step, one.is_signed) for one in model.net.int8_param.values]
    assert found == ([] if step is None else [("q", pytest.approx(step), is_signed)])
    # Its weights are not of eight bits.
    assert list(model.net.int8_param.float32_layer) == ([] if step is None else ["Conv_y"])
    if step is None:
        return  # onnxruntime knows these types from opset 21 on.
    x = 4 * draw(*X)
    want = run(path, {"x": x})["y"]
    _, got = converted(path, {"x": x}, tmp_path)
    # Half a step of the scale for each of the products.
    assert np.abs(got["y"] - want).max() <= 0.01 * np.abs(draw(4, 3, 3, 3)).sum((1, 2, 3)).max()
    assert np.abs(got["y"] - want).max() <= 0.02 * np.abs(want).max()


@quiet
@eight_bits
@pytest.mark.parametrize("zero", [np.uint8(0), np.uint8(128), np.int8(0)])
def test_one_convolution_of_eight_bits_computes_what_onnxruntime_does(zero, tmp_path):
    """Inputs, weights and sums are the same whole numbers."""
    path = tmp_path / "model.onnx"
    weights = np.random.default_rng(0).integers(-127, 128, (4, 3, 3, 3), np.int8)
    weights[:, 0, 0, 0] = 127
    onnx.save(quantised(zero, weights), str(path))
    x = 3 * draw(*X)
    want = run(path, {"x": x})["y"]
    net = sparknet.Net(path, precision="int8")
    assert net.precision == "int8"
    assert not net.described.int8_param.float32_layer
    got = net.forward({"x": x})["y"]
    # A half may be rounded to either side.
    assert np.mean(np.abs(got - want) > 1e-5 * np.abs(want).max()) < 0.01
    rough = sparknet.Net(path).forward({"x": x})["y"]
    assert np.abs(rough - want).max() > 1e-3 * np.abs(want).max()


@quiet
def test_values_that_no_pair_cuts_off_get_no_layer(tmp_path):
    """A ReLU before the pair is part of its Clip; pooling keeps within it."""
    nodes = [
        node("Relu", "x", "r"),
        node("QuantizeLinear", "r s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("MaxPool", "d", "m", kernel_shape=[2, 2]),
        node("QuantizeLinear", "m s z", "q2"),
        node("DequantizeLinear", "q2 s z", "d2"),
        node("GlobalAveragePool", "d2", "y"),
    ]
    constants = {"s": np.float32(0.02), "z": np.uint8(0)}
    path = save(graph(nodes, {"x": X}, constants=constants), tmp_path)
    types = [layer.type for layer in read_model(path).net.layer]
    assert types == ["Input", "Clip", "Pooling", "Pooling"]


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([PAIR[0]], "whole numbers are computed with"),
        ([PAIR[0], node("DequantizeLinear", "q t z", "y")], "its scale is another than that of"),
        ([node("QuantizeLinear", "x n z", "y")], "its scale is -1"),
        ([node("QuantizeLinear", "x p z", "y")], "with one scale for all"),
        ([node("DequantizeLinear", "v w", "c"), node("Add", "x c")], r"\[2, 1, 3\] scales do not"),
    ],
)
def test_what_has_no_step_is_refused(nodes, says, tmp_path):
    constants = {
        "s": np.float32(0.02),
        "t": np.float32(0.03),
        "n": np.float32(-1),
        "p": np.ones(3, np.float32),
        "z": np.uint8(0),
        "v": np.zeros((1, 9, 3), np.int8),
        "w": np.ones((2, 1, 3), np.float32),
    }
    refused(graph(nodes, {"x": X}, [nodes[-1].output[0]], constants), tmp_path, says)


@quiet
def test_inputs_may_be_whole_numbers(tmp_path):
    """DequantizeLinear of an input is a line."""
    path = tmp_path / "model.onnx"
    constants = {"s": np.float32(0.5), "z": np.uint8(3)}
    types = {"x": onnx.TensorProto.UINT8}
    nodes = [node("DequantizeLinear", "x s z", "y")]
    onnx.save(graph(nodes, {"x": [2, 4]}, constants=constants, types=types), str(path))
    x = np.arange(8, dtype=np.uint8).reshape(2, 4)
    _, got = converted(path, {"x": x}, tmp_path)
    np.testing.assert_array_equal(got["y"], run(path, {"x": x})["y"])


# -- whole nets ------------------------------------------------------------------------------

NET = """
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 8 dim: 3 dim: 12 dim: 12 } } }
layer { name: "one" type: "Convolution" bottom: "data" top: "one"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "r1" type: "ReLU" bottom: "one" top: "one" }
layer { name: "two" type: "Convolution" bottom: "one" top: "two"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 group: 8
                            weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "one" bottom: "two" top: "sum" }
layer { name: "r2" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool"
        pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
"""


@pytest.fixture
def images():
    return draw(64, 3, 12, 12, seed=3)


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "net.prototxt"
    path.write_text(NET)
    return sparknet.Net(path, seed=1)


def share(got, want):
    return float(np.abs(got - want).max() / np.abs(want).max())


@quiet
@eight_bits
@pytest.mark.parametrize("opset", [13, 21])
def test_a_quantised_net_is_written_as_pairs(opset, plain, images, tmp_path):
    exact = plain.forward({"data": images})["ip"]
    plain.quantize({"data": images}, method="max")
    own, path = plain.forward({"data": images})["ip"], tmp_path / "net.onnx"
    write_model(path, plain, opset=opset)
    model = onnx.load(str(path))
    kinds = [one.op_type for one in model.graph.node]
    assert kinds.count("DequantizeLinear") == kinds.count("QuantizeLinear") + 3
    stored = [one for one in model.graph.initializer if one.data_type == onnx.TensorProto.INT8]
    assert {tuple(one.dims) for one in stored} >= {(8, 3, 3, 3), (8, 1, 3, 3), (288, 5)}
    there = run(path, {"data": images})["ip"]
    assert 1e-4 < share(there, exact) < 0.03
    assert share(there, own) < 0.02
    again = sparknet.Net(path, precision="int8")
    assert again.precision == "int8"
    assert share(again.forward({"data": images})["ip"], there) < 0.02
    steps = {one.blob: one.step for one in plain.described.int8_param.values}
    found = {one.blob: one.step for one in again.described.int8_param.values}
    assert {name.removesuffix("/whole") for name in found} == {"data", "one", "two", "pool"}
    assert all(steps[name.removesuffix("/whole")] == step for name, step in found.items())
    for name in ("one", "two", "ip"):
        rows = plain.get_weights()[name][0]
        rows = rows.reshape(len(rows), -1)
        half = np.abs(rows).max(1, keepdims=True) / 254
        difference = again.get_weights()[name][0].reshape(rows.shape) - rows
        assert (np.abs(difference) <= 1.001 * half).all()


@quiet
@eight_bits
def test_corrections_are_written_into_biases(plain, images, tmp_path):
    plain.quantize({"data": images}, method="max")
    steps = plain.net.int8_param
    scores = []
    for bias in ([0] * 5, range(5)):
        steps.bias.add(layer="ip", value=bias)
        plain.described.int8_param.CopyFrom(steps)
        plain.net.use_int8(steps)
        write_model(tmp_path / "net.onnx", plain)
        scores.append(run(tmp_path / "net.onnx", {"data": images})["ip"])
    np.testing.assert_allclose(scores[1] - scores[0], [range(5)] * len(images), atol=1e-5)


@quiet
@eight_bits
@pytest.mark.parametrize(
    ("values", "weights", "per_channel", "symmetric"),
    [("QInt8", "QInt8", True, True), ("QUInt8", "QUInt8", False, False)],
)
def test_what_onnxruntime_quantised_runs_in_eight_bits(
    values, weights, per_channel, symmetric, plain, images, tmp_path
):
    quantization = pytest.importorskip("onnxruntime.quantization")

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.batches = iter([{"data": images}])

        def get_next(self):
            return next(self.batches, None)

    exact = plain.forward({"data": images})["ip"]
    write_model(tmp_path / "float.onnx", plain)
    logging.disable(logging.WARNING)
    try:
        quantization.quantize_static(
            tmp_path / "float.onnx",
            tmp_path / "int8.onnx",
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType[values],
            weight_type=quantization.QuantType[weights],
            per_channel=per_channel,
            extra_options={"ActivationSymmetric": symmetric},
        )
    finally:
        logging.disable(logging.NOTSET)
    want = run(tmp_path / "int8.onnx", {"data": images})["ip"]
    net = sparknet.Net(tmp_path / "int8.onnx", precision="int8")
    assert not net.described.int8_param.float32_layer
    got = net.forward({"data": images})["ip"]
    allowed = 0.02 if symmetric else 0.04  # Steps around 0 are coarser where the model's are not.
    assert share(got, want) < allowed
    assert share(got, exact) < 1.5 * allowed
    tops = {one.blob for one in net.described.int8_param.values}
    assert len(tops) >= 5


@quiet
@eight_bits
def test_a_converted_caffemodel_keeps_the_steps(plain, images, tmp_path):
    """The prototxt holds nothing that stock Caffe does not read."""
    plain.quantize({"data": images})
    write_model(tmp_path / "net.onnx", plain)
    names = [str(tmp_path / name) for name in ("net.onnx", "made.prototxt", "made.caffemodel")]
    assert main(["convert", "onnx", *names, "--strict"]) == 0
    assert "int8" not in Path(names[1]).read_text()
    straight = sparknet.Net(names[0], precision="int8").forward({"data": images})["ip"]
    by_file = sparknet.Net(names[1], names[2], precision="int8").forward({"data": images})["ip"]
    np.testing.assert_array_equal(by_file, straight)


@quiet
@eight_bits
def test_checking_allows_for_rounding(plain, images, tmp_path, capsys):
    plain.quantize({"data": images}, method="max")
    (tmp_path / "net.prototxt").write_text(NET)
    plain.save(tmp_path / "net.caffemodel")
    np.savez(tmp_path / "values.npz", data=images)
    files = ["net.prototxt", "net.onnx", "net.caffemodel", "values.npz"]
    net, out, weights, values = (str(tmp_path / name) for name in files)
    assert main(["export", net, "-weights", weights, out, "--check", "--inputs", values]) == 0
    said = capsys.readouterr().out
    assert 1e-4 < float(said.split()[2]) < 0.05
