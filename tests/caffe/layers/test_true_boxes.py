"""TrueBoxes; a detector whose prior boxes are joined trains."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet import Net, NetParams, RDDLayer, SolverParams
from sparknet.dsl import Convolution
from sparknet.errors import LayerError
from sparknet.models import Map, ssd
from tests.caffe.gradient import make_net
from tests.caffe.layers.oracle import layer_text


def test_boxes_become_rows() -> None:
    boxes = np.full((3, 2, 6), -1, np.float32)
    boxes[0, 0] = [2, 0.1, 0.2, 0.3, 0.4, 1]
    boxes[2] = [[1, 0.5, 0.6, 0.7, 0.8, 0], [3, 0, 0, 1, 1, 0]]
    net = make_net(layer_text("TrueBoxes"), {"x": boxes})
    net.forward()
    rows = np.array(net.blobs["y"].data)
    assert rows.shape == (1, 1, 6, 8)
    there = rows[0, 0][rows[0, 0, :, 0] >= 0]
    want = [
        [0, 2, 0, 0.1, 0.2, 0.3, 0.4, 1],
        [2, 1, 0, 0.5, 0.6, 0.7, 0.8, 0],
        [2, 3, 1, 0, 0, 1, 1, 0],
    ]
    np.testing.assert_array_equal(there, np.array(want, np.float32))


@pytest.mark.parametrize("shape", [(2, 5), (2, 3, 4), (2, 3, 7), (1, 2, 3, 5)])
def test_other_shapes_are_no_boxes(shape: tuple[int, ...]) -> None:
    with pytest.raises(LayerError, match=r"'l': .* records x boxes x 5 or 6; they are "):
        make_net(layer_text("TrueBoxes"), {"x": np.zeros(shape, np.float32)})


def detector(batch: int) -> NetParams:
    return NetParams(
        "small",
        RDDLayer("data", shape=[batch, 3, 16, 16]),
        RDDLayer("boxes", shape=[batch, 2, 5]),
        Convolution("map", "data", num_output=4, kernel_size=4, stride=4, weight_filler="xavier"),
        Convolution("map2", "map", num_output=4, kernel_size=2, stride=2, weight_filler="xavier"),
        ssd([Map("map", least=6), Map("map2", least=10, most=14, ratios=[2])], 3),
    )


def test_a_detector_with_joined_priors_trains_in_shared_memory() -> None:
    """The prior boxes need no gradient, and so nothing waits for it."""
    rng = np.random.default_rng(0)
    boxes = np.full((8, 2, 5), -1, np.float32)
    boxes[:, 0] = [1, 0.2, 0.2, 0.6, 0.6]
    rows = {"data": rng.normal(size=(8, 3, 16, 16)).astype(np.float32), "boxes": boxes}
    trained = []
    for keep in (False, True):
        solver = SolverParams(net=detector(4), base_lr=0.01, lr_policy="fixed", random_seed=1)
        net = Net(solver, keep_blobs=keep)
        net.set_training_data(rows)
        net.train(4)
        trained.append(net.get_weights().flat.numpy().copy())
    np.testing.assert_allclose(*trained, rtol=1e-5, atol=1e-7)
    assert not any(name.endswith("priorbox") for name in backward(net))


def backward(net: Net) -> list[str]:
    graph = net.net.graph
    return [node.name for node in graph.nodes if node.needs_backward]
