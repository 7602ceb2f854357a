from __future__ import annotations

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import backward, build, draw, same

LAYER = (
    'layer { name: "l" type: "LSTMUnit" bottom: "c" bottom: "g" bottom: "cont" top: "d" top: "h" }'
)


@pytest.mark.parametrize("cont", [[1, 0, 1], [0.5, 1, 0.25]])
def test_step(cont: list[float]) -> None:
    c, g = draw(1, 3, 4), draw(1, 3, 16, seed=1)
    net = build(LAYER, {"c": c, "g": g, "cont": np.array([cont])})
    net.forward()
    i, f, o = (1 / (1 + np.exp(-part)) for part in np.split(g[0].astype(np.float64), 4, 1)[:3])
    t, f = np.tanh(g[0, :, 12:].astype(np.float64)), f * np.array(cont)[:, None]
    cell = f * c[0] + i * t
    same(net.blobs["d"].data[0], cell)
    same(net.blobs["h"].data[0], o * np.tanh(cell))
    given = backward(net)
    dh = given["h"][0]
    dc = given["d"][0] + dh * o * (1 - np.tanh(cell) ** 2)
    same(net.blobs["c"].diff[0], dc * f, 1e-4)
    gates = [dc * t * i * (1 - i), dc * c[0] * f * (1 - f)]
    gates += [dh * np.tanh(cell) * o * (1 - o), dc * i * (1 - t**2)]
    same(net.blobs["g"].diff[0], np.concatenate(gates, 1), 1e-4)


def test_gradients_by_differences() -> None:
    inputs = {"c": draw(1, 3, 4), "g": draw(1, 3, 16, seed=1), "cont": np.array([[1, 0, 1]])}
    check_gradients(LAYER, inputs, of=["c", "g"])


def test_extremes() -> None:
    g = np.array([[[300, -300, 300, 300], [-300, 300, -300, -300]]])
    net = build(LAYER, {"c": np.ones((1, 2, 1)), "g": g, "cont": np.ones((1, 2))})
    net.forward()
    same(net.blobs["d"].data.ravel(), [1, 1])
    same(net.blobs["h"].data.ravel(), [np.tanh(1), 0])
