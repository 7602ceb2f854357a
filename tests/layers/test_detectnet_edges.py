"""Boxes without area, and rectangles that just hold others."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.layers.detectnet import _inside


@pytest.mark.parametrize(("x", "wide", "held"), [(8, 10, True), (7, 10, False), (13, 10, False)])
def test_a_rectangle_of_few_within_one_of_many(x: int, wide: int, held: bool) -> None:
    """The larger one, from 10 to 20, is widened by 2 on each side."""
    boxes = np.array([[10, 10, 10, 10], [x, 12, wide, 4]], float)
    assert _inside(1, boxes, np.array([5, 1]), 0.2) is held
    assert _inside(1, np.array([boxes[0], [12, 12, 10, 10]]), np.array([5, 1]), 0.2)
