"""DetectNet's layers against loops, and against boxes that are put where they must be found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.forks.detectnet.readers.turning import bounds, turned, turning
from sparknet.forks.detectnet.rectangles import grouped
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import build, draw, same

WIDE, HIGH, STRIDE = 48, 32, 8
GRID = f"image_size_x: {WIDE} image_size_y: {HIGH} stride: {STRIDE}"
NEVER = " ".join(
    f"{name}_prob: -1" for name in ("crop", "scale", "flip", "rotation", "hue_rotation")
)


def _labels(*boxes: tuple[float, ...]) -> Any:
    found = np.zeros((1, 1, 5, 16), np.float32)
    found[0, 0, 0, :2] = len(boxes), 16
    for row, (x, y, wide, high, kind) in enumerate(boxes, 1):
        found[0, 0, row, [0, 1, 2, 3, 5]] = x, y, wide, high, kind
    return found


def _net(inputs: Any, truth: str = "", chances: str = NEVER, phase: int = 0) -> Any:
    options = (
        f"detectnet_groundtruth_param {{ {GRID} {truth} }} "
        f"detectnet_augmentation_param {{ {chances} desaturation_prob: -1 }} "
        "transform_param { mean_value: 7 }"
    )
    text = layer_text("DetectNetTransformation", options, "x l", "y m")
    net = build(text, inputs, force=False, phase=phase)
    net.forward()
    return net


def _maps(boxes: Any, classes: dict[int, int], coverage: Any, norm: bool) -> Any:
    found = np.zeros((8 + max(classes.values()) + 1, HIGH // STRIDE, WIDE // STRIDE))
    for x, y, wide, high, kind in boxes:
        x2, y2 = min(x + wide, WIDE), min(y + high, HIGH)
        x, y = max(x, 0), max(y, 0)
        if kind not in classes or x2 <= x or y2 <= y:
            continue
        cw, ch = coverage(x2 - x), coverage(y2 - y)
        left, top = (x + x2 - cw) / 2, (y + y2 - ch) / 2
        for row in range(HIGH // STRIDE):
            for column in range(WIDE // STRIDE):
                px, py = column * STRIDE, row * STRIDE
                w = min(px + STRIDE, left + cw) - max(px, left)
                h = min(py + STRIDE, top + ch) - max(py, top)
                if w > 0 and h > 0:
                    value = STRIDE**2 / (cw * ch)
                    found[:, row, column] = [
                        1, x - px, y - py, x2 - px, y2 - py, 1 / (x2 - x), 1 / (y2 - y),
                        value if norm else max(1, value),
                        *(float(classes[kind] == c) for c in range(found.shape[0] - 8)),
                    ]  # fmt: skip
    return found


BOXES = ((5.0, 3.0, 20.0, 16.0, 1), (30.0, 20.0, 30.0, 9.0, 3), (60.0, 2.0, 9.0, 9.0, 1),
         (2.0, 2.0, 9.0, 9.0, 8))  # fmt: skip


@pytest.mark.parametrize(
    ("truth", "coverage", "norm"),
    [
        ("scale_cvg: 0.5 max_cvg_len: 9", lambda size: min(9, size / 2), False),
        ("scale_cvg: 0.4 gridbox_type: GRIDBOX_MIN min_cvg_len: 11 obj_norm: true",
         lambda size: min(size, max(11, size * 0.4)), True),
    ],
)  # fmt: skip
def test_boxes_as_maps(truth: str, coverage: Any, norm: bool) -> None:
    pixels = np.random.default_rng(0).uniform(0, 255, (1, 3, HIGH, WIDE)).astype("f4")
    pairs = "object_class { src: 1 dst: 0 } object_class { src: 3 dst: 1 }"
    net = _net({"x": pixels, "l": _labels(*BOXES)}, f"{truth} {pairs}")
    same(net.blobs["y"].data, pixels - 7, 1e-5, 1e-3)
    want = _maps(BOXES, {1: 0, 3: 1}, coverage, norm)
    same(net.blobs["m"].data[0], want.astype(np.float32), 1e-4, 1e-4)


def test_tests_scale_pictures() -> None:
    pixels = np.full((1, 3, 16, 24), 50, np.float32)
    net = _net({"x": pixels, "l": _labels((2.0, 1.0, 10.0, 8.0, 1))}, phase=1)
    same(net.blobs["y"].data, np.full((1, 3, HIGH, WIDE), 43, np.float32), 1e-5)


def test_mirrored_pictures() -> None:
    pixels = draw(1, 3, HIGH, WIDE) * 40
    inputs = {"x": pixels, "l": _labels(*BOXES)}
    net = _net(inputs, chances=NEVER.replace("flip_prob: -1", "flip_prob: 1"))
    same(net.blobs["y"].data, pixels[..., ::-1] - 7, 1e-4, 1e-3)
    there = [(WIDE - x - w, y, w, h, kind) for x, y, w, h, kind in BOXES]
    want = _maps(there, {1: 0}, lambda size: min(50, size / 2), False)
    same(net.blobs["m"].data[0], want.astype(np.float32), 1e-4, 1e-4)


def test_whatever_happens_boxes_stay_on_their_objects() -> None:
    """A bright patch moves with its box through scaling, rotation, mirroring and cutting."""
    pixels = np.full((1, 3, 64, 96), 7, np.float32)
    pixels[:, :, 20:44, 30:60] = 207
    inputs = {"x": pixels, "l": _labels((30.0, 20.0, 30.0, 24.0, 1))}
    chances = (
        "crop_prob: 1 scale_prob: 1 scale_min: 0.6 scale_max: 0.9 flip_prob: 0.5 "
        "rotation_prob: 1 max_rotate_degree: 5 hue_rotation_prob: 1 hue_rotation: 90"
    )
    net = _net(inputs, "crop_bboxes: true", chances)
    seen = 0
    for _ in range(20):
        net.forward()
        bright, maps = net.blobs["y"].data[0, 0] > 100, net.blobs["m"].data[0]
        rows, columns = np.nonzero(maps[0])
        if not len(rows):
            continue
        row, column = rows[0], columns[0]
        corners = maps[1:5, row, column] + np.array([column, row, column, row]) * STRIDE
        y, x = np.nonzero(bright)
        found = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])
        assert abs(corners - found).max() < 4
        seen += 1
    assert seen > 10


def test_colours_turn() -> None:
    """A third of a turn of the hue moves red to green, and no saturation is grey."""
    pixels = np.zeros((1, 3, HIGH, WIDE), np.float32)
    pixels[:, 2] = 200
    from sparknet.forks.detectnet.hosts.detectnet_transformation import recoloured

    image = pixels[0].transpose(1, 2, 0)
    same(recoloured(image, 120, 1)[0, 0], np.float32([0, 200, 0]), 1e-5, 1e-3)
    same(recoloured(image, -120, 1)[0, 0], np.float32([200, 0, 0]), 1e-5, 1e-3)
    same(recoloured(image, 0, 0)[0, 0], np.float32([200, 200, 200]), 1e-5, 1e-3)
    noise = np.random.default_rng(0).uniform(0, 255, (4, 5, 3)).astype("f4")
    same(recoloured(noise, 0, 1), noise, 1e-4, 1e-2)
    same(recoloured(noise, 360, 1), noise, 1e-4, 1e-2)


def test_turning() -> None:
    image = draw(6, 10, 2)
    low, size = bounds((6, 10), 90)
    assert size == (11, 7)
    assert low.tolist() == [2, -2]
    found = turned(image, 90)
    same(found[:10, 1:7], np.rot90(image, -1), 1e-4, 1e-4)
    x, y = turning((6, 10), 30) @ [5, 3, 1]
    same(np.array([x, y]), np.array([5, 3]) - bounds((6, 10), 30)[0])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"l": np.full((1, 1, 5, 16), 9)}, "begin with 9 and 9; they are the number of boxes"),
        ({"l": np.zeros((1, 1, 5, 12))}, "needs labels of 1 x 1 x R x 16"),
        ({"x": np.zeros((1, 1, 9, 9))}, "needs pictures of N x 3 x H x W"),
    ],
)
def test_what_does_not_fit(change: Any, says: str) -> None:
    inputs = {"x": np.zeros((1, 3, HIGH, WIDE)), "l": _labels(), **change}
    with pytest.raises(LayerError, match=says):
        _net(inputs)


# -- the layers in Python --------------------------------------------------------------------


def _python(module: str, layer: str, settings: str, bottom: str, top: str) -> str:
    options = (
        f"python_param {{ module: 'caffe.layers.detectnet.{module}' layer: '{layer}' "
        f"param_str: '{settings}' }}"
    )
    return layer_text("Python", options, bottom, top).replace('"l"', f'"{layer}"')


def test_found_boxes_are_scored() -> None:
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
    text = (
        _python("clustering", "ClusterDetections", f"{size}, 0.5, 3, 0.02, 8, 1", "c b", "found")
        + _python("clustering", "ClusterGroundtruth", f"{size}, 1", "r e", "real")
        + _python("mean_ap", "ScoreDetections", "", "real found", "scored")
        + _python("mean_ap", "mAP", size, "scored", "map precision recall")
    )
    net = build(text, {"c": coverage, "b": corners, "r": real, "e": edges}, force=False, phase=1)
    net.forward()
    found = net.blobs["found"].data
    assert found.shape == (1, 50, 5)
    same(found[0, 0], np.float32([6, 5, 25, 27, np.float16(math.log(4))]))
    assert not found[0, 1:].any()
    assert net.blobs["real"].data[0, :3].tolist() == [
        [5, 5, 25, 27, 0], [30, 20, 40, 30, 0], [0] * 5,
    ]  # fmt: skip
    assert net.blobs["scored"].data[0, :2].tolist() == [[6, 5, 25, 27, 1], [30, 20, 40, 30, 3]]
    figures = [float(net.blobs[name].data[0]) for name in ("map", "precision", "recall")]
    assert figures == [50, 100, 50]


def test_rectangles_that_agree() -> None:
    """Groups of more than two; the small one inside the large one goes."""
    boxes = np.array(
        [[10, 10, 40, 40], [11, 10, 40, 40], [10, 12, 39, 40], [10, 10, 40, 41],
         [20, 20, 8, 8], [20, 20, 8, 8], [20, 21, 8, 8],
         [90, 90, 9, 9], [90, 90, 9, 9], [91, 90, 9, 9], [0, 80, 5, 5]]
    )  # fmt: skip
    found, many = grouped(boxes, 2, 0.2)
    assert found.tolist() == [[10, 10, 40, 40], [90, 90, 9, 9]]
    assert many.tolist() == [4, 3]
    assert len(grouped(boxes, 0, 0.2)[0]) == len(boxes)


def test_settings_of_the_python_layers() -> None:
    text = _python("clustering", "ClusterDetections", "48, 32", "c b", "found")
    with pytest.raises(LayerError, match="needs 7 numbers in param_str"):
        build(text, {"c": np.zeros((1, 1, 4, 6)), "b": np.zeros((1, 4, 4, 6))})
