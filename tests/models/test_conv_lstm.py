"""conv_lstm: an LSTM where maps have one pixel, and numpy's convolutions where they have more."""

import numpy as np
import pytest

from sparknet import Net, NetParams, RDDLayer
from sparknet.dsl import LSTM
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


def test_one_pixel_is_caffes_lstm():
    net, state = unrolled(1, 1, last=False)
    plain = Net(
        NetParams(
            "plain",
            RDDLayer("x", shape=[STEPS, 2, 3]),
            RDDLayer("cont", shape=[STEPS, 2]),
            LSTM("lstm", ["x", "cont"], num_output=UNITS, weight_filler="xavier"),
        )
    )
    shared = net.net.params["memory_0_x"], net.net.params["memory_1_h"]
    weights, bias, hidden = plain.net.params["lstm"]
    weights.data[...] = shared[0][0].data[:, :, 0, 0]
    bias.data[...] = shared[0][1].data[...] = np.linspace(-1, 1, 4 * UNITS)
    hidden.data[...] = shared[1][0].data[:, :, 0, 0]
    x = np.random.default_rng(0).normal(size=(STEPS, 2, 3)).astype(np.float32)
    cont = np.ones((STEPS, 2)) * (np.arange(STEPS) > 0)[:, None]
    want = plain.net
    want.blobs["x"].data[...], want.blobs["cont"].data[...] = x, cont
    wanted = want.forward()["lstm"][-1]
    batch = {f"x{step}": x[step][:, :, None, None] for step in range(STEPS)}
    found = net.forward(batch, [state.hidden])[state.hidden]
    np.testing.assert_allclose(found[:, :, 0, 0], wanted, rtol=1e-5, atol=1e-6)


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
