"""DetectNet's layers against loops, and against boxes that are put where they must be found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.layers.detectnet import group_rectangles
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import build, same

WIDE, HIGH, STRIDE = 48, 32, 8


# -- the layers in Python --------------------------------------------------------------------


def _python(module: str, layer: str, settings: str, bottom: str, top: str) -> str:
    options = (
        f"python_param {{ module: 'caffe.layers.detectnet.{module}' layer: '{layer}' "
        f"param_str: '{settings}' }}"
    )
    return layer_text("Python", options, bottom, top).replace('"l"', f'"{layer}"')


def test_boxes_are_clustered() -> None:
    coverage, corners = np.zeros((1, 1, 4, 6)), np.zeros((1, 4, 4, 6))
    for row, column in ((1, 1), (1, 2), (2, 1), (2, 2)):
        coverage[0, 0, row, column] = 0.9
        corners[0, :, row, column] = np.array([6, 5, 25, 27]) - np.tile([column, row], 2) * STRIDE
    coverage[0, 0, 3, 5], corners[0, :, 3, 5] = 0.9, [-3, -3, 6, 6]
    real, edges = np.zeros((1, 1, 4, 6)), np.zeros((1, 4, 4, 6))
    for row, column, box in (
        (1, 1, (5, 5, 25, 27)),
        (1, 2, (5, 5, 25, 27)),
        (3, 4, (30, 20, 40, 30)),
    ):
        real[0, 0, row, column] = 1
        edges[0, :, row, column] = np.array(box) - np.tile([column, row], 2) * STRIDE
    size = f"{WIDE}, {HIGH}, {STRIDE}"
    text = _python(
        "clustering", "ClusterDetections", f"{size}, 0.5, 3, 0.02, 8, 1", "c b", "found"
    ) + _python("clustering", "ClusterGroundtruth", f"{size}, 1", "r e", "real")
    net = build(text, {"c": coverage, "b": corners, "r": real, "e": edges}, force=False, phase=1)
    net.forward()
    found = net.blobs["found"].data
    assert found.shape == (1, 50, 5)
    same(found[0, 0], np.float32([6, 5, 25, 27, np.float16(math.log(4))]))
    assert not found[0, 1:].any()
    assert net.blobs["real"].data[0, :3].tolist() == [
        [5, 5, 25, 27, 0], [30, 20, 40, 30, 0], [0] * 5,
    ]  # fmt: skip


def test_rectangles_that_agree() -> None:
    """Groups of more than two; the small one inside the large one goes."""
    boxes = np.array(
        [[10, 10, 40, 40], [11, 10, 40, 40], [10, 12, 39, 40], [10, 10, 40, 41],
         [20, 20, 8, 8], [20, 20, 8, 8], [20, 21, 8, 8],
         [90, 90, 9, 9], [90, 90, 9, 9], [91, 90, 9, 9], [0, 80, 5, 5]]
    )  # fmt: skip
    found, many = group_rectangles(boxes, 2, 0.2)
    assert found.tolist() == [[10, 10, 40, 40], [90, 90, 9, 9]]
    assert many.tolist() == [4, 3]
    assert len(group_rectangles(boxes, 0, 0.2)[0]) == len(boxes)


def test_settings_of_the_python_layers() -> None:
    text = _python("clustering", "ClusterDetections", "48, 32", "c b", "found")
    with pytest.raises(LayerError, match="needs 7 numbers in param_str"):
        build(text, {"c": np.zeros((1, 1, 4, 6)), "b": np.zeros((1, 4, 4, 6))})
