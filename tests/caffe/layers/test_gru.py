"""GRU against a loop in numpy, and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import build, draw, same, set_params

STEPS, STREAMS, INPUTS, UNITS = 4, 3, 5, 2


def layer(after: bool, expose: bool = False) -> str:
    states = ('bottom: "h0" ', 'top: "hT" ') if expose else ("", "")
    return (
        f'layer {{ name: "l" type: "GRU" bottom: "x" bottom: "cont" {states[0]}top: "y" '
        f"{states[1]}recurrent_param {{ num_output: {UNITS} reset_after: {str(after).lower()} "
        f'expose_hidden: {str(expose).lower()} weight_filler {{ type: "gaussian" }} }} }}'
    )


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def parameters() -> list[Any]:
    shapes = [(3 * UNITS, INPUTS), (3 * UNITS,), (3 * UNITS, UNITS), (UNITS,)]
    return [draw(*shape, seed=20 + i) for i, shape in enumerate(shapes)]


def walk(x: Any, cont: Any, hidden: Any, own: list[Any], after: bool) -> Any:
    w, b, u, c = (np.asarray(one, np.float64) for one in own)
    parts = np.split(u, 3)
    found = []
    for t in range(STEPS):
        before = cont[t][:, None] * hidden
        z, r, n = np.split(x[t] @ w.T + b, 3, 1)
        z, r = sigmoid(z + before @ parts[0].T), sigmoid(r + before @ parts[1].T)
        if after:
            n = np.tanh(n + r * (before @ parts[2].T + c))
        else:
            n = np.tanh(n + (r * before) @ parts[2].T + c)
        hidden = (1 - z) * n + z * before
        found.append(hidden)
    return np.stack(found)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("expose", [True, False])
def test_values(after: bool, expose: bool) -> None:
    cont = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 1, 1]], np.float32)
    given = {"x": draw(STEPS, STREAMS, INPUTS), "cont": cont}
    if expose:
        given["h0"] = draw(1, STREAMS, UNITS, seed=5)
    own = parameters()
    net = build(layer(after, expose), given)
    set_params(net, {"l": own})
    net.forward()
    start = given["h0"][0] if expose else np.zeros((STREAMS, UNITS))
    want = walk(given["x"], cont, start, own, after)
    same(net.blobs["y"].data, want, 1e-5, 1e-5)
    if expose:
        same(net.blobs["hT"].data[0], want[-1], 1e-5, 1e-5)
    else:
        net.forward()
        again = walk(given["x"], cont, want[-1], own, after)
        same(net.blobs["y"].data, again, 1e-5, 1e-5)


@pytest.mark.parametrize("after", [True, False])
def test_gradient(after: bool) -> None:
    """Exposed states pass none on, as in LSTM."""
    cont = np.ones((STEPS, STREAMS), np.float32)
    cont[0] = cont[2, 1] = 0
    own = parameters()
    check_gradients(
        layer(after), {"x": draw(STEPS, STREAMS, INPUTS), "cont": cont}, {"l": own}, of=["x"]
    )
