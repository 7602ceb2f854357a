"""On which axis of each blob records lie side by side."""

import pytest

from sparknet.errors import LayerError, SpecError
from sparknet.graph import build
from sparknet.graph.records import Outline
from sparknet.layers import TEST, Shape
from sparknet.proto import parse_net
from tests.graph.nets import dense, layer, text

RECURRENT = "recurrent_param { num_output: 6 }"
CLASSES = "inner_product_param { num_output: 4 axis: 2 }"


def lstm(name: str, bottoms: str, top: str, more: str = "") -> str:
    return layer("LSTM", name, bottoms, top, f"recurrent_param {{ num_output: 6 {more} }}")


def axes(inputs: dict[str, Shape], *layers: str) -> tuple[dict[str, int], dict[str, int]]:
    outline = Outline(parse_net(text(*layers)).layer, TEST)
    found = outline.input_axes(inputs)
    shapes, blobs = outline.axes(inputs, found)
    assert shapes.items() >= inputs.items()
    return found, {name: axis for name, axis in blobs.items() if name not in inputs}


@pytest.mark.parametrize("steps", [5, 3, 1])
@pytest.mark.parametrize("records", [3, 1])
def test_static_inputs_have_no_time(steps, records):
    inputs = {"x": (steps, records, 7), "cont": (steps, records), "still": (records, 9)}
    found, blobs = axes(inputs, lstm("r", "x cont still", "y"))
    assert found == {"x": 1, "cont": 1, "still": 0}
    assert blobs == {"y": 1}


def test_exposed_states():
    inputs = {"x": (5, 3, 7), "cont": (5, 3), "h": (1, 3, 6), "c": (1, 3, 6)}
    found, blobs = axes(inputs, lstm("r", "x cont h c", "y h1 c1", "expose_hidden: true"))
    assert set(found.values()) == {1}
    assert blobs == {"y": 1, "h1": 1, "c1": 1}


@pytest.mark.parametrize("batch", [4, 8, 3, 1])
def test_images_come_by_a_permute(batch):
    """CRNN: columns of pixels become time.  Sizes that are alike by chance decide nothing."""
    found, blobs = axes(
        {"image": (batch, 3, 4, 8), "cont": (8, batch), "label": (8, batch)},
        layer(
            "Convolution",
            "c",
            "image",
            "conv",
            "convolution_param { num_output: 2 kernel_size: 3 pad: 1 }",
        ),
        layer("Permute", "p", "conv", "columns", "permute_param { order: [3, 0, 1, 2] }"),
        lstm("r", "columns cont", "y"),
        layer("InnerProduct", "ip", "y", "ip", CLASSES),
        layer("SoftmaxWithLoss", "l", "ip label", "loss", "softmax_param { axis: 2 }"),
    )
    assert found == {"image": 0, "cont": 1, "label": 1}
    assert blobs == {"conv": 0, "columns": 1, "y": 1, "ip": 1}


@pytest.mark.parametrize(("steps", "records"), [(5, 3), (4, 4)])
@pytest.mark.parametrize("first", [True, False])
def test_labels_lie_as_what_they_are_compared_with(steps, records, first):
    """Whichever input is described first, and for Accuracy, which compares but a count, too."""
    inputs: dict[str, Shape] = {"label": (steps, records)} if first else {}
    inputs |= {"x": (steps, records, 7), "cont": (steps, records), "label": (steps, records)}
    found, _ = axes(
        inputs,
        lstm("r", "x cont", "y"),
        layer("InnerProduct", "ip", "y", "ip", CLASSES),
        layer("Accuracy", "a", "ip label", "a", "accuracy_param { axis: 2 }"),
    )
    assert found == {"x": 1, "cont": 1, "label": 1}


@pytest.mark.parametrize("records", [3, 5, 1])
def test_the_last_step_alone_has_records_first(records):
    found, blobs = axes(
        {"words": (5, records), "cont": (5, records), "label": (records,)},
        layer("Embed", "e", "words", "x", "embed_param { num_output: 7 input_dim: 9 }"),
        lstm("r", "x cont", "y"),
        layer("Slice", "s", "y", "early last", "slice_param { axis: 0 slice_point: 4 }"),
        layer("Reshape", "f", "last", "flat", "reshape_param { shape { dim: [-1, 6] } }"),
        dense("ip", "flat", "ip"),
        layer("Softmax", "p", "ip", "prob"),
        layer("SoftmaxWithLoss", "l", "ip label", "loss"),
    )
    assert found == {"words": 1, "cont": 1, "label": 0}
    assert blobs == {"x": 1, "y": 1, "early": 1, "last": 1, "flat": 0, "ip": 0, "prob": 0}


@pytest.mark.parametrize("records", [20, 50, 1])
@pytest.mark.parametrize("rows", ["-1", "{records}"])
def test_a_reshape_of_fixed_size_is_followed(records, rows):
    """As many steps as records, too: records of the one are not steps of the other."""
    found, blobs = axes(
        {"data": (records, 20, 1), "cont": (20, records)},
        layer("Permute", "p", "data", "turned", "permute_param { order: [1, 0, 2] }"),
        lstm("r", "turned cont", "y"),
        layer("Slice", "s", "y", "early last", "slice_param { axis: 0 slice_point: 19 }"),
        layer(
            *("Reshape", "f", "last", "flat"),
            f"reshape_param {{ shape {{ dim: [{rows.format(records=records)}, 6] }} }}",
        ),
        dense("ip", "flat", "ip"),
    )
    assert found == {"data": 0, "cont": 1}
    assert blobs.items() >= {"turned": 1, "y": 1, "last": 1}.items()


def test_an_image_beside_states_of_one_record():
    """The file fixes one record in a Reshape, which joins it with columns."""
    found, _ = axes(
        {"image": (1, 3, 4, 8), "h": (1, 1, 6), "c": (1, 1, 6), "cont": (8, 1)},
        layer(
            *("Convolution", "c", "image", "conv"),
            "convolution_param { num_output: 2 kernel_size: 3 pad: 1 }",
        ),
        layer("Permute", "p", "conv", "turned", "permute_param { order: [3, 0, 1, 2] }"),
        layer("Reshape", "f", "turned", "columns", "reshape_param { shape { dim: [8, 1, 8] } }"),
        lstm("r", "columns cont h c", "y h1 c1", "expose_hidden: true"),
    )
    assert found == {"image": 0, "h": 1, "c": 1, "cont": 1}


def test_blobs_behind_a_reshape_of_fixed_size_have_their_axis():
    """As many steps as records: the first axis is that of steps, though its size fits."""
    inputs = {"x": (4, 4, 7), "cont": (4, 4)}
    split = "reshape_param { shape { dim: [4, 4, 2, 3] } }"
    layers = lstm("r", "x cont", "y"), layer("Reshape", "f", "y", "z", split)
    outline = Outline(parse_net(text(*layers)).layer, TEST)
    actual = outline.input_axes(inputs)
    assert outline.axes(inputs, actual, follows=True)[1] == {"x": 1, "cont": 1, "y": 1, "z": 1}
    assert outline.axes(inputs, actual)[1] == {"x": 1, "cont": 1, "y": 1}


def joined(steps: int, records: int) -> tuple[dict[str, Shape], tuple[str, ...]]:
    """Steps and records in one axis, both of fixed number."""
    sizes = "reshape_param {{ shape {{ dim: [{}] }} }}"
    return {"x": (steps, records, 7), "cont": (steps, records)}, (
        layer("Reshape", "f", "x", "flat", sizes.format(f"{steps * records}, 7")),
        dense("ip", "flat", "ip"),
        layer("Reshape", "g", "ip", "steps", sizes.format(f"{steps}, {records}, 2")),
        lstm("r", "steps cont", "y"),
    )


def test_an_axis_of_as_many_records_as_others_have():
    inputs, layers = joined(5, 3)
    assert axes(inputs, *layers)[0] == {"x": 1, "cont": 1}


def test_an_axis_that_no_layer_tells_is_demanded():
    inputs, layers = joined(3, 3)
    with pytest.raises(SpecError, match=r"axis of input 'x' \(3 x 3 x 7\) records lie: layer 'r'"):
        axes(inputs, *layers)
    said = "input_param { shape { dim: [3, 3, 7] } record_axis: 1 }"
    assert axes(inputs, layer("Input", "i", "", "x", said), *layers)[0] == {"x": 1, "cont": 1}
    wrong = layer("Input", "i", "", "x", said.replace("axis: 1", "axis: 3"))
    with pytest.raises(LayerError, match="record_axis 3: the shape is 3 x 3 x 7"):
        build(parse_net(text(wrong)), TEST)


def test_frames_of_videos():
    """LRCN: as many frames as steps times clips, cut into both by a Reshape."""
    found, blobs = axes(
        {"frames": (12, 3, 8, 8), "cont": (4, 3)},
        dense("ip", "frames", "features"),
        layer("Reshape", "f", "features", "x", "reshape_param { shape { dim: [4, -1, 2] } }"),
        lstm("r", "x cont", "y"),
    )
    assert found == {"frames": 0, "cont": 1}
    assert blobs == {"features": 0, "x": 1, "y": 1}


def test_nets_without_time():
    found, blobs = axes(
        {"image": (2, 2, 2, 2), "label": (2, 2)},
        layer("Permute", "p", "image", "last", "permute_param { order: [1, 2, 3, 0] }"),
        layer("Flatten", "f", "image", "flat"),
        layer("Reduction", "s", "flat", "sum"),
        layer("Flatten", "m", "image", "mixed", "flatten_param { axis: 0 end_axis: 1 }"),
    )
    assert found == {"image": 0, "label": 0}
    assert blobs == {"last": 3, "flat": 0}


def test_a_user_s_own_code_is_not_run():
    """No module of this name exists: who imported it would be told so."""
    found, blobs = axes(
        {"x": (5, 3, 7), "cont": (5, 3)},
        lstm("r", "x cont", "y"),
        layer("Python", "u", "y", "own", 'python_param { module: "no" layer: "No" }'),
        dense("ip", "own", "ip"),
    )
    assert found == {"x": 1, "cont": 1}
    assert blobs == {"y": 1}
