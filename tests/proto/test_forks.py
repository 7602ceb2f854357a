"""Names that only forks have: refused with a sentence that says whose they are, or passed over."""

import tempfile
import warnings

import numpy as np
import pytest

from sparknet import Net, caffe
from sparknet.cli import main
from sparknet.errors import LayerError, SpecError, TextError, WeightsError
from sparknet.graph import build
from sparknet.layers import LAYERS, TEST, TRAIN
from sparknet.proto import (
    ForkWarning,
    UnknownWarning,
    caffe_pb2,
    parse_model,
    parse_net,
    parse_text,
)
from sparknet.proto.forks import LACKED, origin
from sparknet.proto.wire import encode_varint
from tests.caffe.gradient import biased, check_gradients, input_layer
from tests.caffe.layers.oracle import layer_text

NET = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "odd" type: "Hotspot" bottom: "x" top: "h"
        hotspot_param { gaussian_std: 2 words: [1, -2.5, "a" "b"] }
        future < deep { er: YES } > }
layer { name: "behind" type: "TanH" bottom: "h" top: "t" }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 4 } }
"""


def test_whose_a_field_is():
    with pytest.raises(TextError, match="no field 'hotspot_param', which happynear/caffe-windows"):
        parse_net(NET)
    with pytest.raises(
        LayerError, match="unknown type 'Hotspot', which happynear/caffe-windows has"
    ):
        build(parse_net(NET.split("hotspot_param")[0] + "}"))
    with pytest.raises(TextError, match="'DEF_ALL' is no value of 'pool', which happynear"):
        parse_net('layer { type: "Pooling" pooling_param { pool: DEF_ALL } }')
    assert origin("type", "NobodyHasThis") == ""


def test_what_is_unknown_is_passed_over():
    skipped = []
    net = parse_text(NET, caffe_pb2.NetParameter, "n", skipped)
    found = [(one.message, one.name, one.line) for one in skipped]
    assert found == [("LayerParameter", "hotspot_param", 4), ("LayerParameter", "future", 5)]
    assert [layer.name for layer in net.layer] == ["in", "odd", "behind", "ip"]
    text = 'layer { name: "p" type: "Pooling" pooling_param { pool: LOWRES kernel_size: 2 } }'
    with pytest.warns(UnknownWarning, match=r"<text>:1: PoolingParameter.pool has no 'LOWRES'"):
        assert parse_net(text, unknown="skip").layer[0].pooling_param.kernel_size == 2


@pytest.mark.parametrize(
    "text",
    ["layer { future ", "layer { future: }", "layer { future: [1, }", "layer { future { 3 } }"],
)
def test_what_is_passed_over_must_still_be_text(text):
    with pytest.raises(TextError, match="<text>:1:"):
        parse_net(text, unknown="skip")


def test_values_cannot_lie_too_deep():
    with pytest.raises(TextError, match="100 deep"):
        parse_net("future " + "{ a " * 5000 + "}" * 5000, unknown="skip")


def test_a_net_goes_on_without_what_it_does_not_know():
    with pytest.warns(UnknownWarning) as caught:
        net = Net(NET, unknown="skip")
    said = " ".join(str(one.message) for one in caught)
    assert (
        "layer 'odd' (Hotspot): unknown type, which happynear/caffe-windows has: left out" in said
    )
    assert "layer 'behind' (TanH): reads 'h' of 'odd': left out" in said
    assert net.forward({"x": [[1, 2, 3]] * 2})["y"].shape == (2, 4)
    with pytest.raises(SpecError, match="unknown must be 'refuse' or 'skip'; it is 'hope'"):
        Net(NET, unknown="hope")


def test_show_marks_what_is_left_out(tmp_path, capsys):
    (tmp_path / "net.prototxt").write_text(NET)
    assert main(["show", str(tmp_path / "net.prototxt")]) == 0
    out, err = capsys.readouterr()
    assert "left out: odd (Hotspot): unknown type, which happynear/caffe-windows has" in out
    assert "left out: behind (TanH): reads 'h' of 'odd'" in out
    assert "net.prototxt:4: LayerParameter has no 'hotspot_param'" in err


def test_the_table_has_only_what_sparknet_lacks():
    pool = caffe_pb2.DESCRIPTOR
    for kinds in LACKED.values():
        for kind, names in kinds.items():
            if kind == "type":
                assert not set(names.split()) & set(LAYERS)
            elif kind in pool.message_types_by_name:
                fields = pool.message_types_by_name[kind].fields_by_name
                assert not set(names.split()) & set(fields)


def test_types_of_the_second_generation():
    text = """
    layers { name: "i" type: INTERP bottom: "x" top: "y" interp_param { zoom_factor: 8 } }
    layers { name: "c" type: CONVOLUTION bottom: "y" top: "z" strict_dim: false
             convolution_param { num_output: 2 kernel_size: 3 hole: 4 } blobs_lr: 1 }
    layers { name: "p" type: POOLING3D bottom: "z" top: "w" pooling_param { kernel_depth: 2 } }
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = parse_net(text)
    assert [layer.type for layer in net.layer] == ["Interp", "Convolution", "Pooling3D"]
    assert net.layer[0].interp_param.zoom_factor == 8
    assert net.layer[1].strict_dim is False
    assert list(net.layer[1].convolution_param.hole) == [4]


def numbered(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content


@pytest.mark.parametrize(
    ("number", "content"),
    [
        (
            145,
            numbered(1, b"\xff\xfesome/path"),
        ),  # PSPNet's mat_write_param, Caffe's parameter_param
        (138, numbered(1, b"list.txt")),  # SegNet's dense_image_data_param, Caffe's tile_param
        (202, numbered(16, b"\x00\x00\x80\x3f")),  # YOLOv2's region_loss_param, SSD's permute_param
        (150, b"\x08\x01"),  # cascade's bbox_reg_param, R-FCN's box_annotator_ohem_param
        (143, b"\xff\xff\xff"),  # nothing that anybody could read
    ],
)
def test_weights_of_a_fork_load_whatever_its_numbers_mean_here(number, content):
    layer = caffe_pb2.LayerParameter(name="ip", type="Mystery", bottom=["x"])
    blob = layer.blobs.add(data=range(6))
    blob.shape.dim.extend([2, 3])
    data = numbered(1, b"net") + numbered(
        100, layer.SerializeToString() + numbered(number, content)
    )
    model = parse_model(data)
    assert model.layer_arrays("ip")[0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (model.net.layer[0].type, list(model.net.layer[0].bottom)) == ("Mystery", ["x"])


def test_strict_dim():
    """DeepLab takes the weights of a fully connected layer for a convolution."""
    source = Net(NET_OF.format("InnerProduct", "inner_product_param { num_output: 4 }", ""))
    with pytest.raises(WeightsError, match="parameter 0 of the model has shape"):
        copy_into(CONVOLUTION, source, "")
    made = copy_into(CONVOLUTION, source, "strict_dim: false")
    weights = source.net.params["l"][0].data
    assert (made.net.params["l"][0].data == weights.reshape(4, 2, 3, 3)).all()


NET_OF = (
    'layer {{ name: "i" type: "Input" top: "x" '
    "input_param {{ shape {{ dim: 1 dim: 2 dim: 3 dim: 3 }} }} }}\n"
    'layer {{ name: "l" type: "{}" bottom: "x" top: "y" {} {} }}\n'
)
CONVOLUTION = "convolution_param { num_output: 4 kernel_size: 3 }"


def copy_into(options: str, source: Net, strict: str) -> Net:
    made = Net(NET_OF.format("Convolution", options, strict))
    with tempfile.TemporaryDirectory() as folder:
        source.save(f"{folder}/m.caffemodel")
        made.load(f"{folder}/m.caffemodel")
    return made


EDGES = (
    'layer { name: "i" type: "Input" top: "x" input_param { shape { dim: 2 dim: 8 } } }'
    'layer { name: "j" type: "Input" top: "t" input_param { shape { dim: 2 dim: 8 } } }'
    'layer { name: "l" type: "SigmoidCrossEntropyLoss" bottom: "x" bottom: "t" top: "loss" }'
)


def test_the_dialect_of_hed():
    """The losses of ones count by the share of zeros, and the other way round."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 8)).astype(np.float32)
    target = np.zeros_like(x)
    target[0, 1] = 1
    target[1, 5:] = 1
    target[1, 0] = 0.5
    each = np.log1p(np.exp(x)) - x * target
    want = 0.0
    for n in (0, 1):
        ones, zeros = (target[n] == 1), (target[n] == 0)
        both = ones.sum() + zeros.sum()
        want += (each[n][ones].sum() * zeros.sum() + each[n][zeros].sum() * ones.sum()) / both
    net = Net(EDGES, dialect="hed")
    assert float(net.forward({"x": x, "t": target})["loss"]) == pytest.approx(want / 2, rel=1e-5)
    plain = Net(EDGES).forward({"x": x, "t": target})["loss"]
    assert float(plain) == pytest.approx(each.sum() / 2, rel=1e-5)
    own = biased("x") + layer_text(
        "SigmoidCrossEntropyLoss", "loss_param { class_balanced: true }", "xb t", "loss"
    )
    check_gradients(own, {"x": x, "t": target}, of=[], force=False)


def test_hed_aligns_its_crops():
    """A 1 x 1 convolution of weight 1 and pad 7 is cut back to what it came from."""
    text = (
        'layer { name: "i" type: "Input" top: "data" '
        "input_param { shape { dim: 1 dim: 1 dim: 20 dim: 20 } } }"
        'layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param '
        '{ num_output: 1 kernel_size: 1 pad: 7 weight_filler { type: "constant" value: 1 } } }'
        'layer { name: "crop" type: "Crop" bottom: "c" bottom: "data" top: "y" }'
    )
    x = np.random.default_rng(0).standard_normal((1, 1, 20, 20)).astype(np.float32)
    np.testing.assert_array_equal(Net(text, dialect="hed").forward({"data": x})["y"], x)
    with pytest.warns(ForkWarning, match=r"layer 'crop' .*BVLC's.* at 7: dialect=\"hed\""):
        net = Net(text)
    cut = net.forward({"data": x})["y"]
    np.testing.assert_array_equal(cut[:, :, 7:, 7:], x[:, :, :13, :13])
    assert not cut[:, :, :7].any()


BARE = (
    'layer {{ name: "i" type: "Input" top: "x" input_param {{ shape {{ dim: 2 dim: 3 }} }} }}'
    'layer {{ name: "b" type: "{}" bottom: "x" top: "y" {} }}'
)


@pytest.mark.parametrize(
    ("type_", "words", "dialect", "blobs"),
    [
        ("BN", "", "segnet", 2),
        ("BN", "", "pspnet", 4),
        ("BN", "bn_param { bn_mode: LEARN }", None, 2),
        ("BN", "param { } param { }", None, 2),
        ("BN", "param { } param { } param { } param { }", None, 4),
        ("BN", "bn_param { frozen: false }", None, 4),
        ("BN", "", "tsn", 4),
        ("BN", "", "happynear", 4),
        ("Normalize", "", "happynear", 0),
        ("Normalize", "", "tsn", 0),
        ("Normalize", "norm_param { across_spatial: true }", None, 1),
        ("Normalize", "norm_param { channel_shared: false }", "happynear", 1),
    ],
)
@pytest.mark.parametrize("phase", [0, 1])
def test_whose_layer_it_is(type_, words, dialect, blobs, phase):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = Net(BARE.format(type_, words), dialect=dialect, phase=phase)
    assert len(net.net.params.get("b", ())) == blobs


@pytest.mark.parametrize(
    ("type_", "blobs", "said"),
    [
        ("BN", 4, r'dialect="segnet".*dialect="pspnet".* PSPNet\'s is taken'),
        ("Normalize", 1, r'norm_param.*dialect="happynear".* SSD\'s is taken'),
    ],
)
def test_a_layer_that_says_nothing(type_, blobs, said):
    """It is refused where training would differ, and otherwise taken with a word."""
    with pytest.raises(LayerError, match=f"layer 'b': {type_}: .*train differently: .*{said}"):
        Net(BARE.format(type_, ""), phase=0)
    with pytest.warns(ForkWarning, match=f"layer 'b' \\({type_}\\): .*{said}"):
        net = Net(BARE.format(type_, ""))
    assert len(net.net.params["b"]) == blobs


@pytest.mark.parametrize(
    ("words", "bottoms", "said"),
    [
        ("loss_param { normalization: NONE }", 2, 'dialect="rfcn".* follow normalization NONE'),
        ("loss_param { normalize: true }", 4, "follow normalization VALID"),
        ("", 3, 'dialect="rfcn".* by N x H x W'),
        ("", 2, ""),
        ("", 4, ""),
        ("loss_param { normalization: BATCH_SIZE }", 3, ""),
        ("loss_param { normalize: false }", 3, ""),
    ],
)
def test_what_the_smooth_loss_is_divided_by(words, bottoms, said):
    names = "abcd"[:bottoms]
    text = "".join(input_layer(name, (2, 3, 4, 1)) for name in names)
    text += layer_text("SmoothL1Loss", words, " ".join(names))
    if not said:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            build(parse_net(text), TRAIN)
        return
    with pytest.raises(LayerError, match=f"SmoothL1Loss: .*{said}.* Fast R-CNN's is taken"):
        build(parse_net(text), TRAIN)
    with pytest.warns(ForkWarning, match=said):
        build(parse_net(text), TEST)


def test_the_normalize_of_happynear_and_tsn():
    """Each place, or the whole image, is divided by its norm; nothing learns (both forks'
    normalize_layer.cpp, L2)."""
    text = BARE.replace("dim: 3", "dim: 3 dim: 2 dim: 2").format("Normalize", "")
    x = np.random.default_rng(0).standard_normal((2, 3, 2, 2)).astype(np.float32)
    want = np.zeros_like(x)
    for n, i, j in np.ndindex(2, 2, 2):
        want[n, :, i, j] = x[n, :, i, j] / np.sqrt((x[n, :, i, j] ** 2).sum() + 1e-6)
    got = Net(text, dialect="happynear").forward({"x": x})["y"]
    np.testing.assert_allclose(got, want, rtol=1e-5)
    whole = np.stack([image / np.sqrt((image**2).sum()) for image in x])
    got = Net(text, dialect="tsn").forward({"x": x})["y"]
    np.testing.assert_allclose(got, whole, rtol=1e-5)
    options = "norm_param { across_spatial: false learned_scale: false }"
    check_gradients(layer_text("Normalize", options), {"x": x})
    with pytest.raises(LayerError, match="learned_scale: false has no factor"):
        Net(BARE.format("Normalize", "norm_param { learned_scale: false scale_filler { } }"))


@pytest.mark.parametrize(
    ("words", "divisor"),
    [
        ("", 2 * 4 * 5),
        ("loss_param { normalization: FULL }", 2 * 4 * 5),
        ("loss_param { normalization: BATCH_SIZE }", 2),
        ("loss_param { normalization: NONE }", 1),
        ("loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 128 }", 128),
        ("smooth_l1_loss_param { sigma: 3 }", 2 * 4 * 5),
    ],
)
@pytest.mark.parametrize("bottoms", [2, 3])
def test_the_smooth_loss_of_rfcn(words, divisor, bottoms):
    """Its smooth_L1_loss_layer.cu, whose weights are not once more in the gradient."""
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(2, 3, 4, 5)).astype(np.float32) for name in "abw"[:bottoms]}
    inputs["a"] *= 2
    text = "".join(input_layer(name, (2, 3, 4, 5)) for name in inputs)
    text += layer_text("SmoothL1Loss", words, " ".join(inputs))
    net = caffe.Net.from_proto(parse_net(f"{text}force_backward: true", dialect="rfcn"), TRAIN)
    for name, value in inputs.items():
        net.blobs[name].data[...] = value
    net.forward()
    away = inputs.get("w", 1) * (inputs["a"] - inputs["b"]).astype(np.float64)
    each = np.where(np.abs(away) < 1, away**2 / 2, np.abs(away) - 0.5)
    np.testing.assert_allclose(net.blobs["y"].data, each.sum() / divisor, rtol=1e-5)
    net.backward()
    slope = np.clip(away, -1, 1) / divisor
    np.testing.assert_allclose(net.blobs["a"].diff, slope, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(net.blobs["b"].diff, -slope, rtol=1e-4, atol=1e-7)


def test_the_smooth_loss_of_four_bottoms_is_fast_rcnns_everywhere():
    text = layer_text("SmoothL1Loss", "smooth_l1_loss_param { sigma: 3 }", "a b i o")
    layer = parse_net(text, dialect="rfcn").layer[0]
    assert (layer.type, layer.smooth_l1_loss_param.sigma) == ("SmoothL1Loss", 3)
