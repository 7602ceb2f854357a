"""Net.quantize and `sparknet quantize`."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparknet import Net
from sparknet.cli import main
from sparknet.errors import SpecError
from sparknet.proto import parse_net, write_text
from tests.caffe.gradient import input_layer
from tests.caffe.test_int8 import CLOSE, needs_int8
from tests.caffe.test_precision import convolution, distance, layer, product

NET = (
    input_layer("data", (4, 3, 12, 12))
    + convolution("conv", "data", "num_output: 16 kernel_size: 3")
    + layer("relu", "ReLU", "conv", "", "conv")
    + convolution("next", "conv", "num_output: 16 kernel_size: 3")
    + product("scores", "next", "num_output: 5")
)


def images(count: int = 30) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((count, 3, 12, 12)).astype(np.float32)


@needs_int8
def test_a_net_is_quantised_saved_and_loaded(tmp_path):
    message, data = parse_net(NET), images()
    net = Net(message, seed=1)
    want = net.forward({"data": data})["scores"]
    net.quantize({"data": data}, method="max")
    assert net.precision == "int8"
    found = net.forward({"data": data})["scores"]
    assert 1e-4 < distance(found, want) < 2 * CLOSE
    np.testing.assert_array_equal(net.copy().forward({"data": data})["scores"], found)
    path = tmp_path / "net.caffemodel"
    net.save(path)
    again = Net(message, path, precision="int8")
    made = again.forward({"data": data})["scores"]
    np.testing.assert_allclose(made, found, atol=1e-3 * np.abs(found).max())
    wide = Net(message, path)
    assert wide.precision == "float32"
    assert distance(wide.forward({"data": data})["scores"], want) < CLOSE


@needs_int8
def test_a_net_with_a_loss_calibrates_on_photographs_without_labels(tmp_path):
    text = NET + input_layer("label", (4,)) + layer("loss", "SoftmaxWithLoss", "scores label")
    pixels = np.random.default_rng(2).integers(0, 256, (6, 12, 12, 3), np.uint8)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{number}.png")
    mean = (100, 110, 120)
    net = Net(parse_net(text), seed=1, mean=mean, scale=1 / 64)
    model, weights, out = (str(tmp_path / name) for name in ("n.prototxt", "n.caffemodel", "q"))
    write_text(model, parse_net(text))
    net.save(weights)
    words = ["-model", model, "-weights", weights, "--calibrate", str(tmp_path)]
    assert main(["quantize", *words, f"{out}.caffemodel"]) == 0
    steps = Net(model, f"{out}.caffemodel", precision="int8").net.int8_param
    net.quantize({"data": pixels[..., ::-1].transpose(0, 3, 1, 2)})
    assert steps == net.net.int8_param
    plain = Net(parse_net(text), weights)
    values = (pixels[..., ::-1].astype(np.float32) - mean).transpose(0, 3, 1, 2) / 64
    want = plain.forward({"data": values})["scores"]
    found = net.forward({"data": pixels[..., ::-1].transpose(0, 3, 1, 2)})["scores"]
    assert 1e-4 < distance(found, want) < 2 * CLOSE


@needs_int8
def test_the_command_writes_what_predict_reads(tmp_path, capsys):
    message, data = parse_net(NET), images()
    net = Net(message, seed=1)
    model, weights, out = (
        str(tmp_path / name) for name in ("n.prototxt", "n.caffemodel", "q.caffemodel")
    )
    write_text(model, message)
    net.save(weights)
    np.savez(tmp_path / "data.npz", data=data)
    words = ["-model", model, "-weights", weights, "--calibrate", str(tmp_path / "data.npz")]
    assert main(["quantize", *words]) == 2
    assert "name the model to write: OUT.caffemodel" in capsys.readouterr().err
    assert main(["quantize", *words, out]) == 0  # --calibrate takes several sources
    assert list(Net(message, out, precision="int8").net.int8_param.float32_layer) == []
    assert main(["quantize", *words, "--records", "20", "--exclude", "next", out]) == 0
    assert Path(out).stat().st_size < Path(weights).stat().st_size
    assert "bytes" in capsys.readouterr().err
    made = Net(message, out, precision="int8")
    want = net.forward({"data": data})["scores"]
    assert 1e-4 < distance(made.forward({"data": data})["scores"], want) < 2 * CLOSE
    assert list(made.net.int8_param.float32_layer) == ["next"]
    assert main(["predict", "-model", model, "-weights", out, "--precision", "int8",
                 "--top", "0", str(tmp_path / "data.npz")]) == 0  # fmt: skip
    assert capsys.readouterr().out.count("\n") >= len(data)


def test_what_cannot_be_quantised_is_refused():
    net = Net(parse_net(NET), seed=1)
    with pytest.raises(SpecError, match="is 'auto', 'max' or 'mse'; it is 'kl'"):
        net.quantize({"data": images(4)}, method="kl")
    with pytest.raises(SpecError, match="at least 1 record, not 0"):
        net.quantize({"data": images(4)}, most_records=0)
    assert net.precision == "float32"


@needs_int8
def test_nan_is_refused_with_its_blob_and_record():
    data = images()
    net = Net(parse_net(NET), seed=1)
    net.quantize({"data": data}, method="max")
    want = net.forward({"data": data})["scores"]
    spoilt = data.copy()
    spoilt[6, 1, 2, 3] = np.nan
    with pytest.raises(SpecError, match="blob 'data' holds NaN in record 6, and eight bits have"):
        net.forward({"data": spoilt})
    np.testing.assert_array_equal(net.forward({"data": data})["scores"], want)
    net = Net(parse_net(NET), seed=1)
    with pytest.raises(SpecError, match="blob 'data' holds NaN in record 6, and eight bits have"):
        net.quantize({"data": spoilt})
    net.net.params["next"][1].data[3] = np.nan
    with pytest.raises(SpecError, match="blob 'next' holds NaN in record 0, and eight bits have"):
        net.quantize({"data": data})


@needs_int8
def test_a_layer_that_loses_too_much_stays_in_float32_and_a_warning_names_it():
    net = Net(parse_net(NET), seed=1)
    data = images()
    # One channel of a hundred times the size of the others takes all steps of the blob.
    net.net.params["conv"][0].data[3] *= 1000
    net.net.params["next"][0].data[:, 3] *= 1e-4
    want = net.forward({"data": data})["scores"]
    with pytest.warns(UserWarning, match="layer 'next' stays in float32: in eight bits .* more"):
        net.quantize({"data": data}, method="max", most_loss=0.05)
    assert list(net.net.int8_param.float32_layer) == ["next"]
    assert distance(net.forward({"data": data})["scores"], want) < 2 * CLOSE
    again = Net(parse_net(NET), seed=1)
    again.quantize({"data": data}, method="max", most_loss=1e9)
    assert not again.net.int8_param.float32_layer


WIDE = input_layer("data", (500, 16)) + product("scores", "data", "num_output: 5")


def rare(weight: float, each: int) -> tuple[Net, np.ndarray]:
    """A net, and records of which one in so many has a large value, which has a weight of this
    size."""
    random = np.random.default_rng(5)
    data = random.standard_normal((16_000, 16)).astype(np.float32)
    data[:, 0] = np.where(np.arange(1, 16_001) % each, 0, 40)
    net = Net(parse_net(WIDE), seed=1)
    rows = net.net.params["scores"][0].data
    rows[...] = random.standard_normal(rows.shape)
    rows[:, 0] *= weight
    return net, data


@needs_int8
@pytest.mark.parametrize(("weight", "best"), [(30, "max"), (0, "mse")])
def test_the_method_is_that_by_which_the_outputs_lose_least(weight, best):
    lost = {}
    for method in ("auto", "max", "mse"):
        net, data = rare(weight, 2000 if weight else 16_000)
        want = net.forward({"data": data})["scores"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            net.quantize({"data": data}, method=method, most_records=16_000, most_loss=1e9)
        lost[method] = distance(net.forward({"data": data})["scores"], want)
    assert lost["auto"] == lost[best] < 0.9 * max(lost.values())


@needs_int8
def test_means_of_outputs_are_those_of_float32():
    """Weights of one sign make rounding errors of one sign: each method shifts the scores."""
    data = np.random.default_rng(2).exponential(size=(400, 16)).astype(np.float32)
    shifts = {}
    for method in ("auto", "max", "mse"):
        net = Net(parse_net(WIDE), seed=1)
        rows = net.net.params["scores"][0].data
        rows[...] = 1 + 0.4 / 127 * np.arange(5)[:, None]
        rows[:, 0] = 0.01 * 127
        want = net.forward({"data": data})["scores"].mean(0)
        net.quantize({"data": data}, method=method)
        shifts[method] = np.abs(net.forward({"data": data})["scores"].mean(0) - want).max()
    assert shifts["auto"] < 0.1 * min(shifts["max"], shifts["mse"])


@needs_int8
def test_a_warning_says_when_eight_bits_change_answers():
    net, data = rare(0, 100)
    said = r"change the net's answers: output 'scores' is \d.*\d of 500 records another value"
    with pytest.warns(UserWarning, match=said):
        net.quantize({"data": data}, method="max", most_records=16_000, most_loss=1e9)


@needs_int8
@pytest.mark.parametrize("lengths", [(7,), (5, 11, 23)])
def test_padded_texts_of_any_length_calibrate(tmp_path, lengths):
    """The mask's -3.4e38 sets no step, and the net's own length, 128 places, is not demanded."""
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    from tests.onnx.test_lengths import CONSTANTS, EMBEDDED, FLOAT, KINDS, MASKED, graph, onnx

    nodes = [
        *EMBEDDED,
        *(onnx.helper.make_node(*words) for words in (
            ("MatMul", ["x", "weights"], ["q"]),
            ("MatMul", ["x", "weights"], ["v"]),
        )),
        onnx.helper.make_node("Transpose", ["x"], ["k"], perm=[0, 2, 1]),
        onnx.helper.make_node("MatMul", ["q", "k"], ["scores"]),
        onnx.helper.make_node("Cast", ["mask"], ["seen"], to=FLOAT),
        onnx.helper.make_node("Unsqueeze", ["seen", "second"], ["row"]),
        onnx.helper.make_node("Sub", ["real", "row"], ["hidden"]),
        onnx.helper.make_node("Mul", ["hidden", "low"], ["far"]),
        onnx.helper.make_node("Add", ["scores", "far"], ["sum"]),
        onnx.helper.make_node("Softmax", ["sum"], ["shares"], axis=-1),
        onnx.helper.make_node("MatMul", ["shares", "v"], ["z"]),
        onnx.helper.make_node("MatMul", ["z", "w"], ["y"]),
    ]  # fmt: skip
    more = {"real": np.float32(1), "low": np.float32(-3.4e38)}
    path = tmp_path / "model.onnx"
    onnx.save(graph(nodes, MASKED, constants=CONSTANTS | more, types=KINDS), str(path))
    net, texts = Net(str(path)), []
    for length in lengths:
        for record in range(3):
            mask = (np.arange(length) < length - record).astype(np.int64)
            texts.append({"ids": (np.arange(length) + 7 * record) % 20, "mask": mask})
    want = [net.forward({k: v[None] for k, v in text.items()})["y"] for text in texts]
    net.quantize(texts)
    made = [net.forward({k: v[None] for k, v in text.items()})["y"] for text in texts]
    assert 1e-4 < max(map(distance, made, want)) < 2 * CLOSE
    assert all(one.step < 1e3 for one in net.net.int8_param.values)


@needs_int8
def test_a_net_whose_output_is_boxes_of_any_number():
    """What makes the boxes is compared: eight bits may give another number of them."""
    text = (
        input_layer("data", (1, 3, 12, 12))
        + convolution("conv", "data", "num_output: 16 kernel_size: 3")
        + convolution("places", "conv", "num_output: 4 kernel_size: 3")
        + convolution("classes", "conv", "num_output: 2 kernel_size: 3")
        + "".join(
            layer(f"{name}_last", "Permute", name, "permute_param { order: [0, 2, 3, 1] }")
            + layer(f"{name}_flat", "Flatten", f"{name}_last")
            for name in ("places", "classes")
        )
        + "layer { name: 'priors' type: 'PriorBox' bottom: 'places' bottom: 'data' top: 'priors' "
        "prior_box_param { min_size: 4 } }"
        "layer { name: 'boxes' type: 'DetectionOutput' bottom: 'places_flat' bottom: 'classes_flat'"
        " bottom: 'priors' top: 'boxes' detection_output_param { num_classes: 2 "
        "confidence_threshold: 0 nms_param { nms_threshold: 1 } } }"
    )
    net, data = Net(parse_net(text), seed=1), images(8)
    wide = net.forward({"data": data})["boxes"]
    net.quantize({"data": data})
    assert net.precision == "int8"
    assert net.forward({"data": data})["boxes"].shape[3] == wide.shape[3] == 7
