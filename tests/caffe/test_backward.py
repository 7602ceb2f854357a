"""Small nets of every layer type whose inputs change between passes."""

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import LayerError, SparkNetError
from sparknet.layers import LAYERS
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.fuzz.layer_cases import CASES, READ_FILES, USERS, Case, Shape

HOSTS = {name for name in LAYERS if LAYERS[name].host}
DRAW_OR_COUNT = {
    *("DummyData", "MMDLoss"),
    *("MarginInnerProduct", "SegAccuracy"),
}
"""Layers in Python whose values follow from the passes before, too."""


def built(type_name, case, shapes=None):
    shapes = case.shapes if shapes is None else shapes
    names = " ".join(f'bottom: "x{i}"' for i in range(len(shapes)))
    tops = " ".join(f'top: "y{i}"' for i in range(case.tops))
    text = "force_backward: true\n"
    text += "".join(input_layer(f"x{i}", shape) for i, shape in enumerate(shapes))
    text += f'layer {{ name: "l" type: "{type_name}" {names} {tops} {case.options} }}'
    return caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=1)


def fewer(case: Case) -> tuple[Shape, ...]:
    """The bottoms' shapes with one record less in each that has as many as the first one."""
    many = case.shapes[0][0]
    return tuple(
        (shape[0] - 1 if shape[0] == many else shape[0], *shape[1:]) for shape in case.shapes
    )


def fill(net):
    """Class numbers and places; zeros and ones where they may be either."""
    for name in net.inputs:
        data = net.blobs[name].data
        data[...] = 1 if data.ndim < 2 else np.linspace(0, 0.9, data.size).reshape(data.shape)


def told(work):
    """What refuses it."""
    try:
        work()
    except SparkNetError as error:
        return str(error)
    return ""


def all_cases(chosen=CASES):
    return [
        pytest.param(name, case, id=f"{name}-{number}")
        for name, cases in CASES.items()
        for number, case in enumerate(cases)
        if case.shapes and name in chosen
    ]


def test_every_type_has_a_case():
    assert set(CASES) | READ_FILES | USERS == set(LAYERS)
    assert not set(CASES) & (READ_FILES | USERS)


@pytest.mark.parametrize(("type_name", "case"), all_cases())
def test_after_a_reshape_backward_needs_a_forward(type_name, case):
    net = built(type_name, case)
    if not net.graph.nodes[-1].needs_backward:
        return
    fill(net)
    assert "cannot be computed" not in told(net.forward)
    told(net.backward)
    for name, shape in zip(net.inputs, fewer(case), strict=True):
        net.blobs[name].reshape(*shape)
    changes = not told(net.reshape)
    if not changes:  # a number of steps or images that the layer cannot change
        return
    assert "run it forward first" in told(net.backward)
    fill(net)
    assert told(net.forward) or "run it forward first" not in told(net.backward)


@pytest.mark.parametrize(("type_name", "case"), all_cases(HOSTS - DRAW_OR_COUNT))
def test_layers_in_python_follow_a_reshape(type_name, case):
    """What the old shapes had decided counts no longer."""
    net, shapes = built(type_name, case), fewer(case)
    fill(net)
    told(net.forward)
    for name, shape in zip(net.inputs, shapes, strict=True):
        net.blobs[name].reshape(*shape)
    try:
        fresh = built(type_name, case, shapes)
    except LayerError:
        assert told(net.reshape)
        return
    for one in (net, fresh):
        fill(one)
    fresh.flat_params.copy_from(net.flat_params)
    assert told(net.forward) == told(fresh.forward)
    for name in fresh.outputs:
        np.testing.assert_array_equal(net.blobs[name].data, fresh.blobs[name].data)


def test_the_mean_of_a_loss_in_python_is_that_of_the_batch():
    """Of four records, then of three: log 3 where all scores are equal."""
    options = "focal_loss_param { gamma: 0 alpha: 1 } loss_param { normalization: FULL }"
    net = built("FocalLoss", Case(options, ((4, 3), (4,))))
    net.forward()
    assert net.blobs["y0"].data == pytest.approx(np.log(3))
    net.blobs["x0"].reshape(3, 3)
    net.blobs["x1"].reshape(3)
    net.forward()
    assert net.blobs["y0"].data == pytest.approx(np.log(3))


@pytest.mark.parametrize("type_name", ["Convolution", "Deconvolution"])
def test_image_files_without_rows(type_name):
    options = "convolution_param { num_output: 2 kernel_size: 1 }"
    net = built(type_name, Case(options, ((2, 3, 6, 5),)))
    net.blobs["x0"].data[...] = 1
    net.forward()
    net.blobs["x0"].reshape(2, 3, 0, 5)
    net.reshape()
    with pytest.raises(LayerError, match="run it forward first"):
        net.backward()
    net.forward()
    net.backward()
    assert not np.any(net.params["l"][0].diff)


def test_maps_of_different_numbers_of_images():
    case = CASES["Yolov3DetectionOutput"][0]
    with pytest.raises(LayerError, match="one number of images; they are 3 x 14 x 2 x 3, 2 x 14"):
        built("Yolov3DetectionOutput", case, ((3, 14, 2, 3), (2, 14, 4, 6)))
    case = CASES["BoxGroupOutput"][0]
    shapes = ((4, 2, 3, 3), (4, 4, 3, 3), (3, 2, 5, 4), (3, 4, 5, 4))
    with pytest.raises(LayerError, match="group 1 has 3 images, and group 0 has 2"):
        built("BoxGroupOutput", case, shapes)


@pytest.mark.parametrize(
    ("type_name", "shapes", "message"),
    [
        ("DecodeBBox", ((4, 8, 2), (4, 5)), "N x 8 deltas"),
        ("FrcnnOutput", ((4, 3), (4, 8), (4, 5, 2), (1, 2)), "boxes of 5"),
        ("Proposal", ((1, 4, 0, 3), (1, 8, 0, 3), (1, 3)), "need scores of 1 x 4 x H x W"),
    ],
)
def test_odd_shapes_are_refused_at_once(type_name, shapes, message):
    with pytest.raises(LayerError, match=message):
        built(type_name, CASES[type_name][0], shapes)


def test_what_no_rule_refuses_names_the_layer(monkeypatch):
    def broken(*_):
        raise IndexError("index 7\nis out of bounds")

    net = built("TripletLoss", CASES["TripletLoss"][0])
    monkeypatch.setattr("sparknet.layers.metric_learning.TripletLossHost.forward", broken)
    wanted = "layer 'l': TripletLoss: cannot be computed for inputs of 3 x 4, 3 x 4, 3 x 4: "
    with pytest.raises(
        LayerError, match=f"^{wanted}IndexError: index 7 is out of bounds$"
    ) as error:
        net.forward()
    assert isinstance(error.value.__cause__, IndexError)
