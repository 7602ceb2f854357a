"""conv_lstm against convolutions in numpy."""

import numpy as np
import pytest

from sparknet import Net, NetParams, RDDLayer
from sparknet.errors import SpecError
from sparknet.models import ConvLSTMState, conv_lstm

STEPS, UNITS = 3, 4


def unrolled(size: int, kernel: int, last: bool) -> tuple[Net, ConvLSTMState]:
    """A net of steps over inputs x0, x1 …; the ``last`` step has no input."""
    layers = []
    state = None
    for step in range(STEPS):
        bottom = None if last and step == STEPS - 1 else f"x{step}"
        if bottom:
            layers.append(RDDLayer(bottom, shape=[2, 3, size, size]))
        made, state = conv_lstm("memory", step, bottom, state, units=UNITS, kernel=kernel)
        layers += made
    assert state is not None
    return Net(NetParams("unrolled", layers), seed=3), state


def convolved(x, weights):
    """The sums of a convolution that keeps the size."""
    pad = weights.shape[2] // 2
    wide = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    out = np.zeros((len(x), len(weights), *x.shape[2:]))
    for row, column in np.ndindex(x.shape[2:]):
        part = wide[:, :, row : row + 2 * pad + 1, column : column + 2 * pad + 1]
        out[:, :, row, column] = np.einsum("nchw,ochw->no", part, weights)
    return out


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_maps_and_a_step_without_input():
    net, state = unrolled(5, 3, last=True)
    params = net.net.params
    bias = params["memory_0_x"][1].data
    bias[...] = np.linspace(-1, 1, 4 * UNITS)
    rng = np.random.default_rng(1)
    batch = {f"x{step}": rng.normal(size=(2, 3, 5, 5)).astype("f") for step in range(STEPS - 1)}
    hidden, cell = np.zeros((2, 2, UNITS, 5, 5))
    for step in range(STEPS):
        sums = convolved(hidden, params["memory_1_h"][0].data) + bias[:, None, None]
        if step < STEPS - 1:
            sums += convolved(batch[f"x{step}"], params["memory_0_x"][0].data)
        gates, new = sigmoid(sums[:, : 3 * UNITS]), np.tanh(sums[:, 3 * UNITS :])
        cell = gates[:, UNITS : 2 * UNITS] * cell + gates[:, :UNITS] * new
        hidden = gates[:, 2 * UNITS :] * np.tanh(cell)
    found = net.forward(batch, [state.hidden, state.cell])
    np.testing.assert_allclose(found[state.hidden], hidden, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[state.cell], cell, rtol=1e-4, atol=1e-5)


def test_steps_share_their_weights():
    net, _ = unrolled(5, 3, last=True)
    assert net.get_weights().flat.size == 4 * UNITS * (3 * 9 + UNITS * 9 + 1)


def test_a_step_reads_something():
    with pytest.raises(SpecError, match="step 0 of 'memory' has neither a bottom nor a state"):
        conv_lstm("memory", 0, None, None, units=2)
