"""`sparknet time`."""

import json

import numpy as np
import pytest

from sparknet.cli import main
from sparknet.native import has_bf16, set_threads, threads

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 4 dim: 3 dim: 9 dim: 9 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
NAMES = ["data", "label", "conv", "relu", "ip", "loss"]


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    return str(tmp_path / "net.prototxt")


def report(capsys, *words):
    assert main(["time", "-iterations", "3", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_table(net, capsys):
    assert main(["time", "-model", net, "-iterations=3"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split()[:3] == ["Layer", "Type", "Forward"]
    assert [line.split()[0] for line in lines[2:8]] == NAMES
    assert "GFLOP/s (float32 matrix product)" in lines[-1]
    assert "small, train, float32:" in lines[-2]
    assert "3 iterations" in err


def test_json_of_a_training_pass(net, capsys):
    found = report(capsys, "--model", net)
    layers = {row["name"]: row for row in found["layers"]}
    assert list(layers) == NAMES
    assert (found["iterations"], found["phase"], found["net"]) == (3, "train", "small")
    assert found["threads"] == threads()
    assert found["peak_gflops"] > 0.1
    assert found["memory_gbs"] > 0.1
    forward = 2 * (4 * 6 * 7 * 7) * (3 * 3 * 3)
    assert layers["conv"]["flops"] == 2 * forward  # no gradient goes to the data
    assert layers["ip"]["flops"] == 3 * 2 * 4 * (6 * 7 * 7) * 2
    for name in ("conv", "ip"):
        row = layers[name]
        assert row["forward_ms"] > 0
        assert row["backward_ms"] > 0
        seconds = (row["forward_ms"] + row["backward_ms"]) / 1e3
        assert row["gflops"] == pytest.approx(row["flops"] / seconds / 1e9)
        assert row["of_peak"] == pytest.approx(row["gflops"] / found["peak_gflops"])
    assert layers["data"]["backward_ms"] == 0
    assert found["update_ms"] == 0
    assert sum(row["share"] for row in found["layers"]) == pytest.approx(1)
    assert found["step_ms"] > 0
    assert {kind["type"]: kind["layers"] for kind in found["types"]}["Input"] == 2


@pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")
def test_layers_in_bf16_are_held_against_its_peak(tmp_path, capsys):
    deep = 'layer { name: "deep" type: "Convolution" bottom: "conv" top: "deep"'
    options = "convolution_param { num_output: 6 kernel_size: 3 group: 6 } }"
    (tmp_path / "net.prototxt").write_text(NET + f"{deep} {options}")
    found = report(capsys, "--model", str(tmp_path / "net.prototxt"), "--precision", "bf16")
    layers = {row["name"]: row for row in found["layers"]}
    assert found["peak_bf16_gflops"] > 0.1
    for name, peak in (
        ("conv", "peak_bf16_gflops"),
        ("ip", "peak_bf16_gflops"),
        ("deep", "peak_gflops"),
    ):
        assert layers[name]["of_peak"] == pytest.approx(layers[name]["gflops"] / found[peak])


def test_the_test_phase_goes_forward_only(net, capsys):
    found = report(capsys, "-model", net, "-phase", "TEST")
    assert found["backward_ms"] == 0
    assert all(row["backward_ms"] == 0 for row in found["layers"])
    assert found["forward_ms"] > 0
    assert {row["name"]: row for row in found["layers"]}["relu"]["forward_ms"] == 0  # in conv


def test_batch_and_threads(net, capsys):
    before = threads()
    try:
        found = report(capsys, "-model", net, "--batch", "8", "--threads", "1")
    finally:
        set_threads(before)
    assert found["threads"] == 1
    layers = {row["name"]: row for row in found["layers"]}
    assert layers["conv"]["flops"] == 2 * 2 * (8 * 6 * 7 * 7) * (3 * 3 * 3)


def test_a_solver(net, capsys, tmp_path):
    solver = tmp_path / "solver.prototxt"
    settings = 'base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 test_iter: 1 test_interval: 1 '
    solver.write_text(settings + f'net: "{net}"')
    assert report(capsys, "-solver", str(solver), "--batch", "2")["update_ms"] > 0
    solver.write_text(settings)
    found = report(capsys, "-solver", str(solver), "-model", net)
    assert found["update_ms"] > 0
    parts = found["forward_ms"] + found["backward_ms"] + found["update_ms"]
    assert (
        parts / 10 < found["step_ms"] < parts * 10
    )  # medians of three, on a machine that may be busy


def test_weights(net, capsys, tmp_path):
    from sparknet.caffe import TEST, Net

    model = str(tmp_path / "net.caffemodel")
    Net(net, TEST).save(model)
    report(capsys, "-model", net, "-weights", model)
    report(capsys, "-model", model)
    assert main(["time", "-model", net, "-weights", str(tmp_path / "no.caffemodel")]) == 1
    assert "no.caffemodel" in capsys.readouterr().err


def test_the_trace(net, capsys, tmp_path):
    file = tmp_path / "trace.json"
    report(capsys, "-model", net, "--trace", str(file))
    events = json.loads(file.read_text())["traceEvents"]
    assert [event["name"] for event in events if event["cat"] == "pass"] == [
        "forward",
        "backward",
    ] * 3
    assert all(event["ph"] == "X" and event["dur"] > 0 for event in events)
    first = [e["name"] for e in events if e["cat"] == "forward"][: len(NAMES)]
    assert first == NAMES
    backward = [e["name"] for e in events if e["cat"] == "backward"]
    assert backward[:4] == ["loss", "ip", "relu", "conv"]
    for outer in (event for event in events if event["cat"] == "pass"):
        inner = [e for e in events if e["cat"] == outer["name"] and _within(e, outer)]
        assert len(inner) >= 4
    assert main(["time", "-model", net, "--trace", str(tmp_path / "no" / "t.json")]) == 1
    assert "t.json" in capsys.readouterr().err


def _within(event, outer):
    end = float(outer["ts"]) + float(outer["dur"])
    return bool(outer["ts"] <= event["ts"] and event["ts"] + event["dur"] <= end)


def test_layers_that_live_in_python(capsys, tmp_path):
    file = tmp_path / "net.prototxt"
    file.write_text(
        'layer { name: "noise" type: "DummyData" top: "x" dummy_data_param { '
        'shape { dim: 100 dim: 50 } data_filler { type: "gaussian" } } }'
        'layer { name: "s" type: "Sigmoid" bottom: "x" top: "y" }'
    )
    rows = report(capsys, "-model", str(file), "--batch", "30")["layers"]
    assert rows[0]["name"] == "noise"
    assert rows[0]["forward_ms"] > 0
    assert rows[1]["bytes"] == 4 * 2 * 30 * 50


def test_wrong_use(net, capsys):
    assert main(["time"]) == 2
    assert main(["time", "-solver", "x", "-phase", "test"]) == 2
    capsys.readouterr()
    for words in (["-iterations", "0"], ["--batch", "-3"], ["--threads", "many"]):
        with pytest.raises(SystemExit) as caught:
            main(["time", "-model", net, *words])
        assert caught.value.code == 2


def test_clocks_stand_still_unless_asked(net):
    from sparknet.caffe import TRAIN, Net

    made = Net(net, TRAIN)
    made.forward()
    assert sum(map(sum, made.layer_times())) == 0
    made.time_layers(True)
    made.forward()
    once = made.layer_times()[0]
    assert once[2] > 0
    made.forward()
    assert made.layer_times()[0][2] > once[2]
    made.time_layers(False)
    made.forward()
    assert sum(map(sum, made.layer_times())) == 0


def test_the_kernels_of_each_convolution(net, capsys):
    """oneDNN names its own; layers that are computed in one way have none."""
    layers = {row["name"]: row["kernels"] for row in report(capsys, "--model", net)["layers"]}
    assert set(layers["conv"]) == {"forward", "weights"}  # the data needs no gradient
    assert all(text.startswith("oneDNN ") for text in layers["conv"].values())
    assert [name for name, kernels in layers.items() if kernels] == ["conv"]
    assert main(["time", "-model", net, "-iterations=2", "--kernels"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("Layer") and "Kernel" in line)
    assert lines[begin + 2].split()[:2] == ["conv", "forward"]
    assert lines[begin + 2].endswith(layers["conv"]["forward"])


AXES = """
name: "axes"
layer { name: "data" type: "Input" top: "data"
        input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 dim: 4 dim: 4 } } }
layer { name: "four" type: "Convolution" bottom: "data" top: "four"
        convolution_param { num_output: 2 kernel_size: 2 weight_filler { type: "xavier" } } }
"""


def test_kernels_of_our_own_say_why(tmp_path, capsys):
    (tmp_path / "net.prototxt").write_text(AXES)
    rows = report(capsys, "--model", str(tmp_path / "net.prototxt"), "-phase", "test")["layers"]
    assert rows[1]["kernels"]["forward"] == "patches and products: more than three axes"


def test_a_shape_that_onnx_needs_holds_for_its_weights_too(tmp_path, capsys):
    graphs = pytest.importorskip("tests.onnx.graphs")
    first = graphs.node("Slice", "x begin end axis", "first")
    flat = graphs.node("MatMul", "first w")
    constants = {name: np.array([value]) for name, value in (("begin", 0), ("end", 1), ("axis", 0))}
    constants["w"] = np.ones((2, 1), np.float32)
    model = graphs.graph([first, flat], {"x": ["N", 2]}, constants=constants)
    graphs.onnx.save(model, tmp_path / "net.onnx")
    words = [str(tmp_path / "net.onnx"), "--shape", "x=1x2", "-forward_only"]
    assert any(row["type"] == "InnerProduct" for row in report(capsys, *words)["layers"])
