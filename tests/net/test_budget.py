"""A few bytes of unknown origin take neither gigabytes nor hours."""

import numpy as np
import pytest

import sparknet
from sparknet import caffe
from sparknet.cli import main
from sparknet.errors import LayerError, SettingError
from sparknet.graph import build
from sparknet.graph.untrusted_budget import FOR_EACH_WEIGHT, MEMORY, check_budget, untrusted_numbers
from sparknet.proto import parse_net
from sparknet.proto.model import Model
from sparknet.proto.model_file import write_model
from sparknet.proto.untrusted import with_trust


def one(type_name: str, options: str, *shapes: str) -> str:
    """A net of one layer over inputs of these shapes."""
    text = ""
    for number, shape in enumerate(shapes):
        dims = " ".join(f"dim: {size}" for size in shape.split())
        text += (
            f'layer {{ name: "i{number}" type: "Input" top: "x{number}" '
            f"input_param {{ shape {{ {dims} }} }} }}\n"
        )
    bottoms = " ".join(f'bottom: "x{number}"' for number in range(len(shapes)))
    return f'{text}layer {{ name: "l" type: "{type_name}" {bottoms} top: "y" {options} }}\n'


TOO_MUCH = {
    # of 32 to 150 bytes in binary
    "Parameter": one("Parameter", "parameter_param { shape { dim: 2147483647 } }"),
    "Input": one("Power", "", "2147483647"),
    "DummyData": one("DummyData", "dummy_data_param { shape { dim: 65536 dim: 32000 } }"),
    "PriorBox": one(
        "PriorBox",
        "prior_box_param { min_size: 1 aspect_ratio: 2 aspect_ratio: 3 aspect_ratio: 4 }",
        *("1 1 8000 4000", "1 1 8000 8000"),
    ),
    "a bilinear filler": one(
        "Deconvolution",
        "convolution_param { num_output: 1 kernel_size: 40000 weight_filler { type: 'bilinear' } }",
        "1 1 1 1",
    ),
    "Interp": one("Interp", "interp_param { height: 40000 width: 40000 }", "1 1 2 2"),
    "Tile": one("Tile", "tile_param { tiles: 2000000000 }", "1 1"),
    "InnerProduct": one("InnerProduct", "inner_product_param { num_output: 200000 }", "1 10000"),
    "windows": one("Pooling", "pooling_param { kernel_size: 8191 pad: 4095 }", "1 1 8191 8191"),
    "products": one(
        "Convolution",
        "convolution_param { num_output: 8 kernel_size: 255 pad: 127 }",
        "1 8 2048 2048",
    ),
    "loops": one("InnerDistance", "inner_distance_param { num_output: 100000000 }", "1 1"),
    "LRN": one("LRN", "lrn_param { local_size: 100001 }", "1 100000 50 50"),
    "iterations": one(
        "MultiStageMeanfield",
        "multi_stage_meanfield_param { num_iterations: 1000 theta_alpha: 1 theta_beta: 1 "
        "theta_gamma: 1 }",
        *("1 2 4000 4000", "1 2 4000 4000", "1 3 4000 4000"),
    ),
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
def test_small_files_of_large_nets(text, tmp_path):
    net = parse_net(text)
    path = tmp_path / "w.caffemodel"
    write_model(path, Model(net, [[] for _ in net.layer]))
    assert path.stat().st_size < 300
    wanted = r"the layers up to this one would .*: the net is of unknown origin; give trusted=True"
    model = sparknet.read_model(path)
    with pytest.raises(LayerError, match=wanted):
        caffe.Net.from_proto(model.net, caffe.TEST, models=[model])
    prototxt = tmp_path / "net.prototxt"
    prototxt.write_text(text, encoding="utf-8")
    with pytest.raises(LayerError, match=wanted):
        caffe.Net(str(prototxt), caffe.TEST, trusted=False)
    check_budget(build(net, caffe.TEST), ())  # what a user names may be of any size


def test_weights_in_the_file_allow_more(monkeypatch):
    monkeypatch.setenv(MEMORY, "1g")
    text = one("Convolution", "convolution_param { num_output: 16 kernel_size: 1 }", "10 3 900 900")
    for number in range(2):
        text += (
            f'layer {{ name: "c{number}" type: "Convolution" bottom: "y" top: "y{number}" '
            "convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }\n"
        )
    graph = build(with_trust(parse_net(text), False), caffe.TEST)
    with pytest.raises(LayerError, match=r"layer 'c1'.* would hold"):
        check_budget(graph, ())
    weights = 4 * 16 + 2 * (16 * 16 * 9 + 16)
    numbers = 10 * 900 * 900 * (3 + 3 * 16)
    most = (1 << 28) + FOR_EACH_WEIGHT * weights
    assert most < numbers < (1 << 28) + 40000 * weights
    with pytest.raises(LayerError, match=f"{most} are the most"):
        check_budget(graph, range(len(graph.params)))
    few = build(with_trust(parse_net(text.replace("dim: 10 ", "dim: 6 ")), False), caffe.TEST)
    check_budget(few, ())


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", 1 << 30), ("1g", 1 << 28), ("500M", 125 << 20), ("4096", 1024), ("2kb", 512)],
)
def test_the_memory_is_a_setting(text, numbers, monkeypatch):
    monkeypatch.setenv(MEMORY, text)
    assert untrusted_numbers() == numbers


@pytest.mark.parametrize("text", ["much", "-1", "1.5g", "8x"])
def test_a_setting_that_is_none(text, monkeypatch):
    monkeypatch.setenv(MEMORY, text)
    says = f"SPARKNET_UNTRUSTED_MEMORY is '{text}'; it is a number of bytes, as 500m or 8g"
    with pytest.raises(SettingError, match=says):
        untrusted_numbers()


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A caffemodel with more weights than a net of unknown origin may make up."""
    monkeypatch.setenv(MEMORY, "4k")
    options = "inner_product_param { num_output: 100 weight_filler { type: 'xavier' } }"
    (tmp_path / "net.prototxt").write_text(one("InnerProduct", options, "2 30"))
    caffe.Net(str(tmp_path / "net.prototxt"), caffe.TRAIN).save(tmp_path / "own.caffemodel")
    return str(tmp_path / "own.caffemodel")


@pytest.mark.parametrize("phase", ["train", "test"])
@pytest.mark.parametrize("weights", [False, True])
def test_time_counts_the_weights_at_hand(own, weights, phase):
    words = ["time", "-model", own, "-phase", phase, "-iterations", "1"]
    assert main([*words, "-weights", own] if weights else words) == 0


def test_time_of_a_solver_counts_the_weights_that_it_names(own, tmp_path):
    (tmp_path / "solver.prototxt").write_text(f'base_lr: 0.1 lr_policy: "fixed" weights: "{own}"')
    solver = str(tmp_path / "solver.prototxt")
    assert main(["time", "-solver", solver, "-model", own, "-iterations", "1"]) == 0


def test_copies_count_the_weights_at_hand(own):
    net = sparknet.Net(sparknet.read_model(own).net, own)
    x = np.random.default_rng(0).normal(size=(5, 30)).astype(np.float32)
    copy = net.copy()
    np.testing.assert_array_equal(copy.forward({"x0": x})["y"], net.forward({"x0": x})["y"])
    assert copy.flat_weights is not net.flat_weights
    copy.net.params["l"][0].data[...] = 0
    assert net.net.params["l"][0].data.any()


def test_quantize_counts_the_weights_at_hand(own, tmp_path):
    np.savez(tmp_path / "x.npz", x0=np.ones((5, 30), np.float32))
    words = ["quantize", "-model", own, "--calibrate", str(tmp_path / "x.npz")]
    assert main([*words, str(tmp_path / "q.caffemodel")]) == 0
