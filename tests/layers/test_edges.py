"""Options at their bounds, and boxes counted by hand."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.layers.anchors import grid
from sparknet.layers.detectnet import _inside
from tests.graph.nets import graph, layer, source


def test_anchors_lie_a_stride_apart():
    base = np.array([[-1, -2, 3, 4], [0, 0, 7, 7]], float)
    found = grid(2, 3, 8, base)
    wanted = [base + np.array([x, y, x, y]) for y in (0, 8) for x in (0, 8, 16)]
    np.testing.assert_array_equal(found, np.concatenate(wanted))


@pytest.mark.parametrize(("blank", "fits"), [(0, True), (4, True), (5, False), (-1, False)])
def test_the_blank_is_one_of_the_alphabet(blank, fits):
    options = f"ctc_loss_param {{ alphabet_size: 5 blank_label: {blank} time_step: 6 }}"
    layers = (source("x", 6, 2, 5), source("t", 2, 3), layer("CtcLoss", "l", "x t", "l", options))
    if fits:
        assert graph(*layers).node("l").layer.plan([(6, 2, 5), (2, 3)]).values["blank"] == blank
        return
    with pytest.raises(LayerError, match=f"blank_label {blank} below it"):
        graph(*layers)


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        ("", True),
        ("low_scale: 2 high_scale: 2", True),
        ("high_scale: 0", True),
        ("low_scale: 0 high_scale: 2", False),
        ("low_scale: 3 high_scale: 2", False),
        ("low_scale: -1 high_scale: 2", False),
    ],
)
def test_a_range_of_scales(options, fits):
    more = f"scale_route_param {{ {options} }}"
    layers = (source("r", 3, 5), layer("ScaleRoute", "s", "r", "b", more))
    if fits:
        assert graph(*layers).blobs["b"] == (1, 5, 1, 1)
        return
    with pytest.raises(LayerError, match="needs a low_scale above 0 and at most high_scale"):
        graph(*layers)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "needs a height for each width; there are 0 and 0"),
        ("width: 3", "needs a height for each width; there are 1 and 0"),
        ("width: 3 height: 0", "width and height must be positive"),
    ],
)
def test_boxes_of_widths_and_heights(options, said):
    more = f"prior_box_param {{ {options} variance: 0.1 }}"
    box = layer("PriorBoxClustered", "p", "x i", "b", more)
    with pytest.raises(LayerError, match=said):
        graph(source("x", 1, 2, 3, 3), source("i", 1, 3, 9, 9), box)


@pytest.mark.parametrize(("size", "fits"), [((1, 1), True), ((0, 1), False), ((1, 0), False)])
def test_sizes_of_pictures_that_detections_are_scaled_to(size, fits):
    resize = f"resize_param {{ height: {size[0]} width: {size[1]} }}"
    more = f"detection_evaluate_param {{ num_classes: 3 overlap_threshold: 0.5 {resize} }}"
    sources = (source("d", 1, 1, 4, 7), source("t", 1, 1, 2, 8))
    layers = (*sources, layer("DetectionEvaluate", "e", "d t", "e", more))
    if fits:
        assert graph(*layers).blobs["e"] == (1, 1, 2 + 4, 5)
        return
    with pytest.raises(LayerError, match=f"they are {size[0]}, {size[1]}"):
        graph(*layers)


@pytest.mark.parametrize(("x", "wide", "held"), [(8, 10, True), (7, 10, False), (13, 10, False)])
def test_a_rectangle_of_few_within_one_of_many(x, wide, held):
    """The larger one, from 10 to 20, is widened by 2 on each side."""
    boxes = np.array([[10, 10, 10, 10], [x, 12, wide, 4]], float)
    assert _inside(1, boxes, np.array([5, 1]), 0.2) is held
    assert _inside(1, np.array([boxes[0], [12, 12, 10, 10]]), np.array([5, 1]), 0.2)
