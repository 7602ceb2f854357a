"""BatchGather and CumSum against numpy and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same


def gather(axis: int) -> str:
    return (
        'layer { name: "l" type: "BatchGather" bottom: "x" bottom: "p" top: "y" '
        f"batch_gather_param {{ axis: {axis} }} }}"
    )


@pytest.mark.parametrize(
    ("axis", "shape", "places"),
    [
        (1, (3, 4, 5), (3,)),
        (1, (3, 4), (3, 2)),
        (0, (4, 2), (3,)),
        (-1, (2, 3, 4), (2, 3, 5)),
        (1, (2, 3, 2, 2), (2, 1, 3)),
    ],
)
def test_places(axis: int, shape: tuple[int, ...], places: tuple[int, ...]) -> None:
    own = axis % len(shape)
    drawn = np.random.default_rng(3).integers(-shape[own], shape[own], places)
    inputs = {"x": draw(*shape), "p": drawn.astype(np.float32)}
    net = build(gather(axis), inputs)
    net.forward()
    want = np.stack(
        [inputs["x"][(*lead[:own], drawn[lead])] for lead in np.ndindex(*places)]
    ).reshape(*places, *shape[own + 1 :])
    same(net.blobs["y"].data, want, 0, 0)
    given, diff = backward(net)["y"], np.zeros(shape, np.float32)
    for lead in np.ndindex(*places):
        diff[(*lead[:own], drawn[lead])] += given[lead]
    same(net.blobs["x"].diff, diff)
    check_gradients(gather(axis), inputs, of=["x"])


@pytest.mark.parametrize(("place", "says"), [(4, "4"), (-5, "-5"), (np.nan, "nan")])
def test_places_out_of_range(place: float, says: str) -> None:
    inputs = {"x": draw(2, 4), "p": np.array([0, place], np.float32)}
    net = build(gather(1), inputs)
    with pytest.raises(LayerError, match=f"place {says} is out of range for an axis of 4"):
        net.forward()


def test_places_of_other_records() -> None:
    with pytest.raises(LayerError, match="the places 3 have other axes before axis 1 than 2 x 4"):
        build(gather(1), {"x": draw(2, 4), "p": np.zeros(3, np.float32)})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums(axis: int, exclusive: bool, reverse: bool) -> None:
    options = f"axis: {axis} exclusive: {exclusive} reverse: {reverse}".lower()
    text = (
        f'layer {{ name: "l" type: "CumSum" bottom: "x" top: "y" cum_sum_param {{ {options} }} }}'
    )
    x = draw(2, 3, 4)
    net = build(text, {"x": x})
    net.forward()
    turned = np.flip(x, axis) if reverse else x
    want = np.cumsum(turned, axis, np.float64) - (turned if exclusive else 0)
    same(net.blobs["y"].data, (np.flip(want, axis) if reverse else want).astype(np.float32))
    check_gradients(text, {"x": x})
