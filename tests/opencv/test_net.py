"""Nets behind cv2.dnn's names hold what OpenCV 4 computed of them (record.py)."""

import json
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import LayerError, SpecError
from sparknet.opencv import dnn
from sparknet.proto import read_model
from tests.opencv import nets, record

RECORDED = np.load(record.RECORDED)
FACTS = json.loads(str(RECORDED["facts"]))
EPSILON = 1e-5


def assert_close(value: np.ndarray, name: str) -> None:
    expected = RECORDED[name]
    assert value.shape == expected.shape, name
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(value, expected, rtol=0, atol=EPSILON * scale, err_msg=name)


def read(name: str, folder: Path) -> dnn.Net:
    return dnn.readNetFromCaffe(*nets.write(name, folder))


@pytest.mark.parametrize("name", nets.NETS)
def test_every_layer_computes_what_opencv_does(name, tmp_path):
    for key, value in record.outputs(dnn.readNetFromCaffe, name, tmp_path).items():
        assert_close(value, f"{name}/{key}")


@pytest.mark.parametrize("name", nets.NETS)
def test_a_net_says_what_opencv_says(name, tmp_path):
    facts, expected = record.facts(read(name, tmp_path), name), FACTS[name]
    assert facts == expected


@pytest.mark.parametrize("name", nets.NETS)
def test_one_net_follows_its_inputs_sizes(name, tmp_path):
    net, sizes = read(name, tmp_path), nets.inputs(name)
    for number in (0, 1, 0, len(sizes) - 1, 1):
        for key, value in sizes[number].items():
            net.setInput(value, key)
        assert_close(net.forward(), f"{name}/{number}/last")


def test_a_registered_layer_computes_its_type(tmp_path):
    dnn.registerLayer("Crop", nets.CenteredCrop)
    try:
        for key, value in record.outputs(dnn.readNetFromCaffe, "two_inputs", tmp_path).items():
            assert_close(value, f"centred/{key}")
    finally:
        dnn.unregisterLayer("Crop")
    net = read("two_inputs", tmp_path)
    for key, value in nets.inputs("two_inputs")[0].items():
        net.setInput(value, key)
    assert_close(net.forward("crop"), "two_inputs/0/crop")


def test_a_convolution_is_found_by_its_own_name_too(tmp_path):
    net = read("named_by_top", tmp_path)
    assert net.getLayerNames()[0] == "map"
    assert net.getLayerId("first") == net.getLayerId("map") == 1
    net.setInput(nets.inputs("named_by_top")[0]["data"])
    np.testing.assert_array_equal(net.forward("first"), net.forward("map"))


SILENT = b"""input: "data" input_shape { dim: 1 dim: 2 dim: 3 dim: 4 }
layer { name: "twice" type: "Power" bottom: "data" top: "twice" power_param { scale: 2 } }
layer { name: "both" type: "Power" bottom: "twice" top: "both" power_param { scale: 3 } }
layer { name: "end" type: "Silence" bottom: "twice" bottom: "both" }"""


def test_silence_returns_its_first_input():
    """As OpenCV 4.14: colorization ends in such a layer, and scripts call forward()."""
    net = dnn.readNetFromCaffe(SILENT)
    values = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    net.setInput(values)
    np.testing.assert_array_equal(net.forward(), 2 * values)
    np.testing.assert_array_equal(net.forward("both"), 6 * values)
    assert net.getUnconnectedOutLayersNames() == ("end",)
    assert net.getLayer("end").type == "Silence"


def chain(folder: Path) -> dnn.Net:
    net = read("chain", folder)
    net.setInput(nets.inputs("chain")[0]["data"])
    return net


def test_forward_takes_a_name_a_list_or_nothing(tmp_path):
    net = chain(tmp_path)
    for outputs in (
        (net.forward(), net.forward("relu")),
        net.forward(["prob", "relu"]),
        net.forward(outBlobNames=("prob", "relu")),
        (net.forward(outputName="prob"), net.forward(outputName="relu")),
        tuple(row[0] for row in net.forwardAndRetrieve(["prob", "relu"])),
    ):
        assert isinstance(outputs, tuple)
        assert_close(outputs[0], "chain/0/last")
        assert_close(outputs[1], "chain/0/relu")


def test_what_forward_returns_is_the_callers(tmp_path):
    net = chain(tmp_path)
    first = net.forward()
    first[:] = 7
    assert_close(net.forward(), "chain/0/last")
    kept = net.forward()
    net.setInput(np.zeros((1, 3, 9, 8), np.float32))
    net.forward()
    assert_close(kept, "chain/0/last")


@pytest.mark.parametrize("kind", ["u1", "i4", "f4", "f8"])
def test_an_input_is_scaled_after_its_mean(kind, tmp_path):
    values = np.random.RandomState(3).randint(0, 99, (1, 3, 9, 8)).astype(kind)
    net = chain(tmp_path)
    built = chain(tmp_path)
    built.forward()
    scaled = (values.astype(np.float32) - np.float32([1, 2, 3]).reshape(3, 1, 1)) * np.float32(0.25)
    net.setInput(scaled)
    expected = net.forward("conv")
    for other in (net, built):
        other.setInput(values, "data", 0.25, (1, 2, 3))
        np.testing.assert_allclose(other.forward("conv"), expected, atol=1e-5)
        other.setInput(values, scalefactor=0.5, mean=2)
        np.testing.assert_allclose(
            other.forward("conv")[0, 0, 4, 4],
            net_of(tmp_path, (values - [[[[2]], [[0]], [[0]]]]) / 2),
            atol=1e-4,
        )


def net_of(folder: Path, values: np.ndarray) -> float:
    net = chain(folder)
    net.setInput(values.astype(np.float32))
    return net.forward("conv")[0, 0, 4, 4]


def test_weights_are_read_and_set(tmp_path):
    net = chain(tmp_path)
    before = net.forward("conv")
    weights = net.getParam("conv")
    assert weights.shape == (6, 3, 3, 3)
    np.testing.assert_array_equal(weights, net.getParam(net.getLayerId("conv"), 0))
    net.setParam("conv", 0, 2 * weights)
    net.setParam("conv", 1, 2 * net.getParam("conv", 1))
    np.testing.assert_allclose(net.forward("conv"), 2 * before, rtol=1e-5, atol=1e-5)
    layer = net.getLayer("conv")
    layer.blobs = [weights, layer.blobs[1] / 2]
    np.testing.assert_allclose(net.forward("conv"), before, rtol=1e-5, atol=1e-5)
    assert (layer.name, layer.type, layer.outputNameToIndex("conv")) == ("conv", "Convolution", 0)
    assert [net.getLayer(0).outputNameToIndex(name) for name in ("data", "nothing")] == [0, -1]
    scale = net.getLayer("scale").blobs[0]
    net.getLayer("scale").blobs = [scale.reshape(1, -1), *net.getLayer("scale").blobs[1:]]
    np.testing.assert_allclose(net.forward("conv"), before, rtol=1e-5, atol=1e-5)
    assert net.getParam("scale").shape == scale.shape
    net.setParam("conv", 1, 0 * layer.blobs[1])
    expected = net.forward("conv")
    layer.blobs = [weights]
    np.testing.assert_allclose(net.forward("conv"), expected, rtol=1e-5, atol=1e-5)
    assert not np.allclose(expected, before)


def test_weights_may_be_set_where_the_file_has_none(tmp_path):
    prototxt, _ = nets.write("chain", tmp_path)
    full, bare = read("chain", tmp_path), dnn.readNetFromCaffe(prototxt)
    for layer in full.getLayerNames():
        if full.getLayer(layer).blobs:
            bare.getLayer(bare.getLayerId(layer)).blobs = full.getLayer(layer).blobs
    bare.setInput(nets.inputs("chain")[0]["data"])
    assert_close(bare.forward(), "chain/0/last")


def test_halves_compute_almost_the_same(tmp_path):
    prototxt, caffemodel = nets.write("chain", tmp_path)
    dnn.shrinkCaffeModel(caffemodel, str(tmp_path / "half.caffemodel"))
    net = dnn.readNetFromCaffe(prototxt, str(tmp_path / "half.caffemodel"))
    net.setInput(nets.inputs("chain")[0]["data"])
    np.testing.assert_allclose(net.forward(), RECORDED["chain/0/last"], atol=5e-3)
    assert (tmp_path / "half.caffemodel").stat().st_size < Path(caffemodel).stat().st_size
    full, halves = (read_model(name) for name in (caffemodel, tmp_path / "half.caffemodel"))
    same = {
        layer.type: bool((a[0] == b[0]).all())
        for layer, a, b in zip(full.net.layer, full.arrays, halves.arrays, strict=True)
        if a and a[0] is not None
    }
    assert same["Scale"]
    assert not same["Convolution"]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda net: net.forward("nothing"), SpecError, "no layer 'nothing'"),
        (lambda net: net.forward("cnov"), SpecError, "did you mean 'conv'"),
        (lambda net: net.forward("_input"), LayerError, "has the net's inputs"),
        (
            lambda net: net.setInput(np.zeros((1, 3, 9, 8)), "nothing"),
            SpecError,
            "no input 'nothing'",
        ),
        (lambda net: net.setInput("text"), SpecError, "takes numbers"),
        (lambda net: net.getLayer(99), SpecError, "no layer 99; it has 8"),
        (lambda net: net.getParam("conv", 2), SpecError, "2 weight blobs, no number 2"),
        (lambda net: setattr(net.getLayer(0), "blobs", []), LayerError, "no weights"),
        (lambda net: dnn.Net().forward(), SpecError, "empty"),
    ],
)
def test_what_cannot_be_done_is_said(call, kind, words, tmp_path):
    with pytest.raises(Exception, match=words):
        call(chain(tmp_path))


def test_a_net_asks_for_its_weights_and_sizes(tmp_path):
    prototxt, _ = nets.write("chain", tmp_path)
    with pytest.raises(SpecError, match=r"'conv'.*give readNetFromCaffe the caffemodel"):
        dnn.readNetFromCaffe(prototxt).forward()
    with pytest.raises(SpecError, match="input 'a' has no size yet: call setInput"):
        read("two_inputs", tmp_path).forward()


def test_an_input_of_other_channels_is_named(tmp_path):
    new, used = read("chain", tmp_path), chain(tmp_path)
    used.forward()
    for net in (new, used):
        net.setInput(np.zeros((1, 1, 20, 20), np.float32))
        with pytest.raises(SpecError, match="input 'data' has 1 channels, the prototxt names 3"):
            net.forward()
    used.setInput(nets.inputs("chain")[0]["data"])
    assert_close(used.forward(), "chain/0/last")


def test_targets_are_accepted_and_said(tmp_path):
    net = chain(tmp_path)
    net.setPreferableBackend(dnn.DNN_BACKEND_OPENCV)
    net.setPreferableTarget(dnn.DNN_TARGET_CPU)
    for target in (dnn.DNN_TARGET_OPENCL, dnn.DNN_TARGET_CPU_FP16):
        with pytest.warns(UserWarning, match="float32 on the CPU"):
            net.setPreferableTarget(target)
    net.enableFusion(False)
    net.enableWinograd(True)
    assert_close(net.forward(), "chain/0/last")


def test_times_and_the_graph_are_there(tmp_path):
    net = chain(tmp_path)
    with pytest.raises(SpecError, match="call forward"):
        net.getPerfProfile()
    net.forward()
    ticks, layers = net.getPerfProfile()
    assert ticks > 0
    assert layers.shape == (8, 1)
    assert layers.sum() > 0
    net.dumpToFile(tmp_path / "net.dot")
    lines = (tmp_path / "net.dot").read_text().splitlines()
    assert '\t"data" -> "conv"' in lines
    assert '\t"fc" -> "drop"' in lines
    assert (net.empty(), dnn.Net().empty()) == (False, True)
    assert net.getLayersCount("Convolution") == 2
