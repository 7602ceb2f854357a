import pytest

from sparknet.errors import LayerError, SpecError
from tests.graph.nets import dense, graph, layer, source

CONV = "convolution_param { num_output: 2 kernel_size: 3 }"
NET = graph(
    source("x", 2, 3, 5, 5),
    source("t", 2, 4),
    layer("Convolution", "c", "x", "y", CONV),
    layer("ReLU", "r", "y", "y"),
    layer("TanH", "u", "t", "v"),
)


def test_new_input_shapes_reach_every_blob():
    other = NET.reshape({"x": [7, 3, 9, 8]})
    assert other.blobs == {"x": (7, 3, 9, 8), "t": (2, 4), "y": (7, 2, 7, 6), "v": (2, 4)}
    assert other.node("c").plan.tops == ((7, 2, 7, 6),)
    assert other.params == NET.params
    assert NET.blobs["y"] == (2, 2, 3, 3)


def test_what_does_not_change_is_kept():
    other = NET.reshape({"x": [7, 3, 9, 8]})
    assert other.node("u") is NET.node("u")
    assert NET.reshape({}).blobs == NET.blobs


def test_parameters_keep_their_shapes():
    with pytest.raises(LayerError, match=r"layer 'c': .*2 x 3 x 3 x 3.*2 x 4 x 3 x 3"):
        NET.reshape({"x": [2, 4, 5, 5]})
    with pytest.raises(LayerError, match="layer 'f'"):
        graph(source("x", 2, 3), dense("f", "x", "y")).reshape({"x": (2, 4)})


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"y": [1]}, "no input 'y'.*'t', 'x'"),
        ({"x": [-1, 3]}, "input 'x' has a negative size"),
        ({"x": [1] * 33}, "input 'x' has 33 axes"),
        ({"x": [2**16, 2**16]}, "input 'x' has more than 2147483647 values"),
        ({"x": [2**40, 0]}, "input 'x' has more than"),
    ],
)
def test_impossible_requests_are_refused(shapes, says):
    with pytest.raises(SpecError, match=says):
        NET.reshape(shapes)


def test_sources_other_than_inputs_can_be_reshaped():
    dummy = "dummy_data_param { shape { dim: 2 dim: 3 } }"
    net = graph(layer("DummyData", "d", "", "x", dummy), dense("f", "x", "y"))
    assert net.reshape({"x": (5, 3)}).blobs == {"x": (5, 3), "y": (5, 2)}
