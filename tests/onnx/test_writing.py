"""Nets as ONNX models: onnxruntime computes the same, and so does what is read again."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet import Net, models
from sparknet.caffe.weights_io import as_model
from sparknet.cli import main
from sparknet.errors import LayerError, SettingError
from sparknet.graph.records import set_batch
from sparknet.onnx import write_model
from sparknet.onnx.onnxruntime_check import largest_difference
from sparknet.proto import parse_net, write_text
from tests.onnx.graphs import converted, draw, onnx, run

IMAGE = (2, 6, 9, 8)


def net_of(text, shapes, seed=0):
    """A net with Input layers and random parameters."""
    inputs = "".join(
        f'layer {{ name: "in_{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        + " ".join(f"dim: {size}" for size in shape)
        + " } } }\n"
        for name, shape in shapes.items()
    )
    net = caffe.Net.from_proto(parse_net(inputs + text), caffe.TEST)
    rng = np.random.default_rng(seed)
    for blobs in net.params.values():
        for blob in blobs:
            blob.data[...] = rng.uniform(0.2, 1.0, blob.data.shape)
    return net


def agree(net, folder, feeds, **options):
    path = folder / "net.onnx"
    write_model(path, as_model(net._runtime), **options)
    onnx.checker.check_model(str(path))
    for name, value in feeds.items():
        net.blobs[name].data[...] = value
    net.forward()
    wanted = {one.name for one in onnx.load(str(path)).graph.input}
    want = run(path, {name: value for name, value in feeds.items() if name in wanted})
    got = {name: np.array(net.blobs[name].data) for name in want}
    assert want
    assert largest_difference(got, want) <= 1e-4
    return path


LAYERS: dict[str, str] = {
    "AbsVal": "",
    "ArgMax": "argmax_param { axis: 1 }",
    "BN": "bn_param { frozen: false }",
    "BNLL": "",
    "BatchNorm": "",
    "Bias": "bias_param { axis: 1 num_axes: 2 }",
    "CumSum": "cum_sum_param { axis: 2 exclusive: true reverse: true }",
    "Clip": "clip_param { min: -0.5 max: 1 }",
    "Convolution": "convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 group: 2 }",
    "Deconvolution": "convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 }",
    "DepthwiseConvolution": "convolution_param { num_output: 6 group: 6 kernel_size: 3 }",
    "Dropout": "",
    "ELU": "elu_param { alpha: 0.6 }",
    "Exp": "exp_param { base: 2 scale: 0.5 shift: 0.1 }",
    "Flatten": "flatten_param { axis: 2 }",
    "GELU": "",
    "Gather": "gather_param { axis: 1 index: 3 index: 0 }",
    "InnerProduct": "inner_product_param { num_output: 5 }",
    "HardSwish": "",
    "Interp": "interp_param { zoom_factor: 2 pad_beg: -1 pad_end: -2 }",
    "LogSoftmax": "softmax_param { axis: 2 }",
    "LRN": "lrn_param { local_size: 3 alpha: 0.4 beta: 0.6 k: 2 }",
    "LayerNorm": "layer_norm_param { axis: 2 }",
    "Math": "math_param { function: TRUNC }",
    "Mish": "",
    "MVN": "",
    "Normalize": "norm_param { across_spatial: false channel_shared: false }",
    "PReLU": "",
    "Permute": "permute_param { order: 0 order: 3 order: 1 order: 2 }",
    "Pooling": "pooling_param { kernel_size: 3 stride: 2 pad: 1 }",
    "Power": "power_param { power: 2 scale: 0.5 shift: 0.25 }",
    "ReLU": "relu_param { negative_slope: 0.1 }",
    "ReLU6": "",
    "Reduction": "reduction_param { operation: ASUM axis: 2 coeff: 0.5 }",
    "Reshape": "reshape_param { shape { dim: 2 dim: -1 } axis: 1 num_axes: 2 }",
    "Resize": "resize_image_param { height: 5 width: 13 mode: LINEAR }",
    "Reverse": "reverse_param { axis: 3 }",
    "SPP": "spp_param { pyramid_height: 2 }",
    "Scale": "scale_param { bias_term: true }",
    "ShuffleChannel": "shuffle_channel_param { group: 3 }",
    "Sigmoid": "",
    "Softmax": "softmax_param { axis: 2 }",
    "Swish": "swish_param { beta: 1.5 }",
    "TanH": "",
    "Threshold": "threshold_param { threshold: 0.2 }",
    "Tile": "tile_param { axis: 1 tiles: 2 }",
    "Transpose": "transpose_param { dim: 0 dim: 3 dim: 1 dim: 2 }",
    "Upsample": "upsample_param { scale: 2 }",
}


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize("kind", LAYERS)
def test_layers_of_one_bottom(kind, opset, tmp_path):
    text = f'layer {{ name: "l" type: "{kind}" bottom: "x" top: "y" {LAYERS[kind]} }}'
    agree(net_of(text, {"x": IMAGE}), tmp_path, {"x": draw(*IMAGE)}, opset=opset)


@pytest.mark.parametrize("whole", ["true", "false"])
def test_a_normalize_that_learns_nothing(whole, tmp_path):
    options = f"norm_param {{ across_spatial: {whole} learned_scale: false }}"
    text = f'layer {{ name: "l" type: "Normalize" bottom: "x" top: "y" {options} }}'
    agree(net_of(text, {"x": IMAGE}), tmp_path, {"x": draw(*IMAGE)})


def test_rows_that_grow_with_the_records_stay_any_number(tmp_path):
    """Inputs of two numbers of records: no size is that of them all."""
    text = (
        'layer { name: "l" type: "Flatten" bottom: "x" top: "y" '
        "flatten_param { axis: 0 end_axis: 1 } }\n"
        'layer { name: "r" type: "ReLU" bottom: "z" top: "r" }'
    )
    path = tmp_path / "net.onnx"
    write_model(path, as_model(net_of(text, {"x": (2, 6, 2), "z": (3, 4)})._runtime))
    x = draw(5, 6, 2)
    assert np.array_equal(run(path, {"x": x, "z": draw(7, 4)})["y"], x.reshape(30, 2))


def test_steps_that_are_too_many_to_be_written_one_by_one(tmp_path):
    text = (
        'layer { name: "l" type: "RNN" bottom: "x" bottom: "m" top: "y" '
        "recurrent_param { num_output: 1 } }"
    )
    net = net_of(text, {"x": (513, 1, 1), "m": (513, 1)})
    says = "layer 'l': RNN: 513 steps would be written one by one; 512 are the most"
    with pytest.raises(LayerError, match=says):
        write_model(tmp_path / "net.onnx", as_model(net._runtime), dynamic_batch=False)


SEVERAL = {
    "axpy": 'type: "Axpy" bottom: "c" bottom: "x" bottom: "z"',
    "spread": (
        'type: "SizedLike" bottom: "c" bottom: "x" sized_like_param { size { axis: 2 } '
        "size { axis: 0 } size { axis: 1 } }"
    ),
    "cut": (
        'type: "SizedLike" bottom: "x" bottom: "s" sized_like_param { size { axis: 0 } '
        "size { dim: 6 } size { axis: 2 } size { axis: 3 } }"
    ),
    "reshaped": (
        'type: "SizedLike" bottom: "x" bottom: "c" sized_like_param { size { axis: 0 } '
        "size { dim: -1 } size { axis: 1 } reshape: true }"
    ),
    "matmul": 'type: "MatMul" bottom: "x" bottom: "z" matmul_param { transpose_b: true }',
}


@pytest.mark.parametrize("name", SEVERAL)
def test_layers_of_several_bottoms(name, tmp_path):
    shapes = {"x": IMAGE, "z": IMAGE, "c": IMAGE[:2], "s": (2, 6, 4, 5)}
    shapes = {key: shape for key, shape in shapes.items() if f'bottom: "{key}"' in SEVERAL[name]}
    net = net_of(f'layer {{ name: "l" top: "y" {SEVERAL[name]} }}', shapes)
    agree(net, tmp_path, {key: draw(*shape) for key, shape in shapes.items()})


def test_places_of_each_record(tmp_path):
    text = 'layer { name: "l" type: "BatchGather" bottom: "x" bottom: "p" top: "y" }'
    places = np.array([[0, 3], [2, 2]], np.float32)[: IMAGE[0]]
    net = net_of(text, {"x": IMAGE, "p": places.shape})
    agree(net, tmp_path, {"x": draw(*IMAGE), "p": places})


@pytest.mark.parametrize("opset", [16, 21])
@pytest.mark.parametrize("mode", ["NEAREST", "BILINEAR", "BICUBIC"])
def test_places_in_images(mode, opset, tmp_path):
    options = f"mode: {mode} padding_mode: REFLECTION align_corners: true"
    text = (
        'layer { name: "l" type: "GridSample" bottom: "x" bottom: "g" top: "y" '
        f"grid_sample_param {{ {options} }} }}"
    )
    grid = 1.5 * draw(IMAGE[0], 2, 3, 2, seed=1)
    net = net_of(text, {"x": IMAGE, "g": grid.shape})
    agree(net, tmp_path, {"x": draw(*IMAGE), "g": grid}, opset=opset)
    with pytest.raises(LayerError, match="GridSample is an operator of opset 16 and later"):
        write_model(tmp_path / "old.onnx", as_model(net._runtime), opset=13)


def test_choices(tmp_path):
    text = """layer { name: "t" type: "Threshold" bottom: "x" top: "t" }
        layer { name: "e" type: "Log" bottom: "x" top: "e" }
        layer { name: "l" type: "Where" bottom: "t" bottom: "e" bottom: "z" top: "y" }"""
    net = net_of(text, {"x": IMAGE, "z": (1, *IMAGE[1:])})
    agree(net, tmp_path, {"x": draw(*IMAGE), "z": draw(1, *IMAGE[1:], seed=1)})


@pytest.mark.parametrize("kind", ["LSTM", "RNN", "GRU"])
@pytest.mark.parametrize("expose", [False, True])
def test_recurrent_layers(kind, expose, tmp_path):
    states = {"LSTM": "hc", "RNN": "h", "GRU": "h"}[kind] if expose else ""
    text = (
        f'layer {{ name: "l" type: "{kind}" bottom: "x" bottom: "m" '
        + "".join(f'bottom: "{one}" ' for one in states)
        + 'top: "y" '
        + "".join(f'top: "{one}t" ' for one in states)
        + f"recurrent_param {{ num_output: 3 expose_hidden: {str(expose).lower()} }} }}"
    )
    shapes: dict[str, tuple[int, ...]] = {"x": (4, 2, 5), "m": (4, 2)}
    shapes.update(dict.fromkeys(states, (1, 2, 3)))
    feeds = {name: draw(*shape) for name, shape in shapes.items()}
    feeds["m"] = np.array([[0, 0], [1, 1], [0, 1], [1, 1]], np.float32)
    agree(net_of(text, shapes), tmp_path, feeds, dynamic_batch=False)


def test_a_small_kernel_with_padding_is_a_pad_and_a_convolution(tmp_path):
    """OpenCV 5.0 reads beyond the image where a 1 x 1 convolution has padding."""
    text = """layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param {
      num_output: 3 kernel_size: 1 pad_h: 1 pad_w: 2 weight_filler { type: "xavier" } } }"""
    feeds = {"x": draw(2, 4, 5, 6)}
    path = agree(net_of(text, {"x": (2, 4, 5, 6)}), tmp_path, feeds)
    pad, conv = onnx.load(str(path)).graph.node
    assert (pad.op_type, conv.op_type) == ("Pad", "Conv")
    model, _ = converted(path, feeds, tmp_path)
    options = model.net.layer[-1].convolution_param
    assert (options.pad_h, options.pad_w) == (1, 2) or list(options.pad) == [1, 2]


SSD = """
layer { name: "c" type: "Convolution" bottom: "x" top: "c"
  convolution_param { num_output: 32 kernel_size: 1 } }
layer { name: "p" type: "Permute" bottom: "c" top: "p"
  permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "s" type: "Slice" bottom: "p" top: "l" top: "o"
  slice_param { axis: 3 slice_point: 16 } }
layer { name: "lf" type: "Flatten" bottom: "l" top: "lf" }
layer { name: "or" type: "Reshape" bottom: "o" top: "or"
  reshape_param { shape { dim: 0 dim: -1 dim: 4 } } }
layer { name: "os" type: "Softmax" bottom: "or" top: "os" softmax_param { axis: 2 } }
layer { name: "of" type: "Flatten" bottom: "os" top: "of" }
layer { name: "b" type: "PriorBox" bottom: "x" bottom: "image" top: "b" prior_box_param {
  min_size: 12 max_size: 20 aspect_ratio: 2 flip: true variance: 0.1 variance: 0.1
  variance: 0.2 variance: 0.2 } }
layer { name: "d" type: "DetectionOutput" bottom: "lf" bottom: "of" bottom: "b" top: "d"
  detection_output_param { num_classes: 4 code_type: CENTER_SIZE keep_top_k: KEEP
  confidence_threshold: 0.26 nms_param { nms_threshold: 0.4 top_k: TOP } } }
"""


@pytest.mark.parametrize(("keep", "top"), [(200, 400), (9, 12)])
def test_detections(keep, top, tmp_path):
    text = SSD.replace("KEEP", str(keep)).replace("TOP", str(top))
    shapes = {"x": (1, 6, 5, 5), "image": (1, 3, 40, 40)}
    net = net_of(text, shapes)
    rng = np.random.default_rng(2)
    for blob in net.params["c"]:
        blob.data[...] = rng.normal(0, 0.4, blob.data.shape)
    feeds = {name: draw(*shape) for name, shape in shapes.items()}
    path = agree(net, tmp_path, feeds)
    found = np.array(net.blobs["d"].data)
    assert found.shape[2] > 5
    written = onnx.load(str(path)).graph
    sizes = {node.input[1] for node in written.node if node.op_type == "TopK"}
    assert sizes <= {one.name for one in written.initializer}  # OpenCV 5 takes no TopK of nothing
    model, again = converted(path, {"x": feeds["x"]}, tmp_path)
    assert model.net.layer[-1].type == "DetectionOutput"
    np.testing.assert_allclose(again["d"], found, atol=1e-5)


def enliven(net):
    """Parameters that keep every layer's values apart from zero."""
    rng = np.random.default_rng(0)
    for layer, blobs in net.params.items():
        if net.layers[list(net._layer_names).index(layer)].type == "BatchNorm":
            blobs[0].data[...] = rng.normal(0, 0.1, blobs[0].data.shape)
            blobs[1].data[...] = rng.uniform(0.5, 1.5, blobs[1].data.shape)
            blobs[2].data[...] = 1
        elif not blobs[0].data.any():
            shape = blobs[0].data.shape
            blobs[0].data[...] = rng.normal(0, np.prod(shape[1:]) ** -0.5, shape)


SMALL = ("lenet", "cifar10_quick", "mlp_tabular", "squeezenet")
LARGE = tuple(sorted(set(models.NAMES) - {*SMALL}))
LONG = {"fcn", "vgg16"}


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow, *([pytest.mark.long] if name in LONG else [])]


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(one, marks=marks(one)) for one in LARGE)])
def test_models_there_and_back(name, tmp_path):
    proto = models.net(name).to_proto()
    set_batch(proto, 1)
    net = caffe.Net.from_proto(proto, caffe.TEST, seed=1)
    enliven(net)
    feeds = {one: np.abs(draw(*net.blobs[one].data.shape)) for one in net.inputs}
    path = agree(net, tmp_path, feeds)
    graph = onnx.load(str(path)).graph
    wanted = {one.name for one in graph.input}
    if any(node.op_type == "NonMaxSuppression" for node in graph.node):
        assert wanted == {"data"}
        assert all(len(net.blobs[one.name].data[0, 0]) > 1 for one in graph.output)
    feeds = {name: value for name, value in feeds.items() if name in wanted}
    _, again = converted(path, feeds, tmp_path)
    names = [one.name for one in onnx.load(str(path)).graph.output]
    assert all(np.ptp(again[name]) > 0 for name in names)
    assert largest_difference(again, {n: np.array(net.blobs[n].data) for n in names}) <= 1e-5


def test_a_net_of_silent_ends_has_them_as_outputs(tmp_path):
    """Colorization's last layer is a Silence."""
    ends = """layer { name: "c" type: "Power" bottom: "x" top: "c" power_param { scale: 2 } }
    layer { name: "quiet" type: "Silence" bottom: "c" }"""
    path = agree(net_of(ends, {"x": (2, 3)}), tmp_path, {"x": draw(2, 3)})
    assert [one.name for one in onnx.load(str(path)).graph.output] == ["c"]


def test_what_prepares_labels_alone_is_left_out(tmp_path):
    """But not what a layer that judges takes as its prediction, without parameters as it is."""
    net = net_of(
        """layer { name: "p" type: "Power" bottom: "x" top: "p" power_param { scale: 2 } }
        layer { name: "q" type: "Power" bottom: "y" top: "q" power_param { scale: 3 } }
        layer { name: "q2" type: "Power" bottom: "q" top: "q2" power_param { scale: 3 } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "p" bottom: "q2" top: "loss" }""",
        {"x": (2, 3), "y": (2, 3)},
    )
    graph = onnx.load(str(agree(net, tmp_path, {"x": draw(2, 3), "y": draw(2, 3)}))).graph
    assert [one.name for one in graph.input] == ["x"]
    assert [one.name for one in graph.output] == ["p"]


@pytest.mark.parametrize("reverse", ["true", "false"])
def test_cells_of_yolo(reverse, tmp_path):
    text = (
        'layer { name: "l" type: "Reorg" bottom: "x" top: "y" '
        f"reorg_param {{ stride: 2 reverse: {reverse} }} }}"
    )
    x = draw(2, 8, 4, 6)
    agree(net_of(text, {"x": x.shape}), tmp_path, {"x": x})


JOINED = {
    "Reduction": "",
    "Crop": 'bottom: "z" crop_param { axis: 0 }',
    "Slice": 'top: "w" slice_param { axis: 0 slice_point: 1 }',
    "BatchNorm": "batch_norm_param { use_global_stats: false }",
    "Reshape": "reshape_param { shape { dim: 4 dim: -1 } }",
    "Permute": "permute_param { order: 1 order: 0 order: 2 order: 3 }",
}


@pytest.mark.parametrize("kind", JOINED)
def test_what_joins_records_is_for_one_number_of_them(kind, tmp_path):
    text = f'layer {{ name: "l" type: "{kind}" bottom: "x" top: "y" {JOINED[kind]} }}'
    feeds = {"x": draw(2, 8, 4, 6)}
    if kind == "Crop":
        feeds["z"] = draw(1, 8, 4, 6)
    net = net_of(text, {name: value.shape for name, value in feeds.items()})
    path = agree(net, tmp_path, feeds)
    sizes = onnx.load(str(path)).graph.input[0].type.tensor_type.shape.dim
    assert [one.dim_value for one in sizes] == [2, 8, 4, 6]


def test_a_value_that_is_read_for_its_size_is_no_output(tmp_path):
    """The reference of a Crop; nodes that only it needs are left out."""
    text = (
        'layer { name: "a" type: "Power" bottom: "x" top: "a" power_param { shift: 1 } }\n'
        'layer { name: "b" type: "Pooling" bottom: "a" top: "b" pooling_param { kernel_size: 3 } }'
        '\nlayer { name: "c" type: "Crop" bottom: "a" bottom: "b" top: "c" crop_param { offset: 1 '
        "} }"
    )
    x = draw(2, 3, 6, 5)
    graph = onnx.load(str(agree(net_of(text, {"x": x.shape}), tmp_path, {"x": x}))).graph
    assert [one.name for one in graph.output] == ["c"]
    assert "MaxPool" not in {one.op_type for one in graph.node}


def test_what_is_silenced_is_no_output(tmp_path):
    text = (
        'layer { name: "s" type: "Slice" bottom: "x" top: "y" top: "z" }\n'
        'layer { name: "q" type: "Silence" bottom: "z" }'
    )
    x = draw(2, 6, 3)
    path = agree(net_of(text, {"x": x.shape}), tmp_path, {"x": x})
    assert [one.name for one in onnx.load(str(path)).graph.output] == ["y"]


def test_an_input_that_a_layer_works_on_in_place(tmp_path):
    text = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 5 } } }\n'
    text += 'layer { name: "relu" type: "ReLU" bottom: "x" top: "x" }\n'
    net, out = tmp_path / "net.prototxt", tmp_path / "net.onnx"
    net.write_text(text)
    caffe.Net(str(net), caffe.TEST).save(str(tmp_path / "net.caffemodel"))
    weights = str(tmp_path / "net.caffemodel")
    assert main(["export", str(net), "-weights", weights, str(out), "--check"]) == 0
    assert [one.name for one in onnx.load(str(out)).graph.output] == ["x/relu"]


def test_refusals(tmp_path):
    python = 'layer { name: "l" type: "Filter" bottom: "x" bottom: "c" top: "y" }'
    net = net_of(python, {"x": IMAGE, "c": (2, 1)})
    with pytest.raises(LayerError, match="layer 'l': Filter: ONNX has no operator for it"):
        write_model(tmp_path / "net.onnx", as_model(net._runtime))
    with pytest.raises(SettingError, match="opset 12 is none of 13 to 22"):
        write_model(tmp_path / "net.onnx", as_model(net._runtime), opset=12)
    assert not list(tmp_path.iterdir())


def test_export(tmp_path, capsys):
    text = (
        'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 '
        "dim: 8 dim: 8 } } transform_param { scale: 0.5 "
        "mean_value: 1 mean_value: 2 mean_value: 3 } }\n"
        'layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { '
        'num_output: 2 kernel_size: 3 weight_filler { type: "xavier" } } }\n'
    )
    files = [str(tmp_path / name) for name in ("n.prototxt", "n.caffemodel", "n.onnx", "n.npz")]
    proto = parse_net(text)
    write_text(files[0], proto)
    Net(proto, seed=1).save(files[1])
    np.savez(files[3], data=draw(4, 3, 8, 8))
    call = ["export", files[0], "-weights", files[1], files[2], "--check"]
    for more in ([], ["--preprocessing"], ["--inputs", files[3]], ["--opset", "13", "-batch", "5"]):
        assert main([*call, *more]) == 0
        assert "largest difference: " in capsys.readouterr().out
    assert main(["export", files[0], files[2]]) == 2
