from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same

LAYER = (
    'layer {{ name: "roi" type: "ROIPooling" bottom: "x" bottom: "r" top: "y" '
    "roi_pooling_param {{ pooled_h: {} pooled_w: {} spatial_scale: {} }} }}"
)
REGIONS = [
    [0, 0, 0, 5, 5],
    [1, 1, 2, 3, 4],
    [1, 4, 4, 2, 1],
    [0, -3, -2, 1, 9],
    [0, 5, 5, 5, 5],
    [1, 20, 20, 30, 30],
    [0, -1e30, -math.inf, 1e30, math.inf],
]


def half_up(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def span(first: int, number: int, length: Any) -> range:
    """The pixels of a bin, in single precision as Caffe has it."""
    begin = math.floor(np.float32(number) * length)
    end = math.ceil(np.float32(number + 1) * length)
    return range(max(first + begin, 0), min(first + end, 6))


def pooled(x: Any, regions: Any, size: tuple[int, int], scale: float) -> tuple[Any, Any]:
    y = np.zeros((len(regions), x.shape[1], *size), np.float32)
    where = np.full(y.shape, -1)
    for n, (image, *corners) in enumerate(regions):
        x1, y1, x2, y2 = (half_up(float(np.clip(c * scale, -1e9, 1e9))) for c in corners)
        high = np.float32(max(y2 - y1 + 1, 1)) / np.float32(size[0])
        wide = np.float32(max(x2 - x1 + 1, 1)) / np.float32(size[1])
        for c, i, j in np.ndindex(*y.shape[1:]):
            rows, columns = span(y1, i, high), span(x1, j, wide)
            places = [(x[int(image), c, h, w], -(h * 6 + w)) for h in rows for w in columns]
            if places:
                y[n, c, i, j], place = max(places)
                where[n, c, i, j] = -place
    return y, where


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 7)])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_values_and_gradients(size: tuple[int, int], scale: float) -> None:
    x, regions = draw(2, 3, 6, 6), np.array(REGIONS, np.float32)
    x[0, 0, 1, 1] = x[0, 0, 3, 3] = 9
    net = build(LAYER.format(*size, scale), {"x": x, "r": regions})
    net.forward()
    want, where = pooled(x, REGIONS, size, scale)
    same(net.blobs["y"].data, want, 0, 0)
    given, diff = backward(net)["y"], np.zeros((2, 3, 36), np.float32)
    for at in np.argwhere(where >= 0):
        n, c, _, _ = at
        diff[int(REGIONS[n][0]), c, where[tuple(at)]] += given[tuple(at)]
    same(net.blobs["x"].diff, diff.reshape(x.shape))
    assert not net.blobs["r"].diff.any()


def test_gradient_by_differences() -> None:
    x = np.random.default_rng(0).permutation(72).reshape(1, 2, 6, 6) / 5
    regions = np.array([[0, 0, 0, 4, 5], [0, 2, 1, 4, 4]])
    check_gradients(LAYER.format(2, 2, 1.0), {"x": x, "r": regions}, of=["x"])


@pytest.mark.parametrize("image", [2, -1, float("nan")])
def test_image_out_of_range(image: float) -> None:
    net = build(LAYER.format(2, 2, 1.0), {"x": draw(2, 1, 6, 6), "r": [[image, 0, 0, 2, 2]]})
    with pytest.raises(LayerError, match=r"'roi'.*region 0 is of image"):
        net.forward()
    net.backward()


def test_corner_is_no_number() -> None:
    net = build(LAYER.format(2, 2, 1.0), {"x": draw(2, 1, 6, 6), "r": [[0, 0, math.nan, 2, 2]]})
    with pytest.raises(LayerError, match="corner 1 of region 0 is nan"):
        net.forward()
