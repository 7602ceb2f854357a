"""RNN, LSTM, LSTMUnit and GRU against loops in numpy, and finite differences."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.passing import draw, same, set_params

STEPS, STREAMS, INPUTS, FIXED, UNITS = 4, 3, 5, 2, 3
STATES = {"RNN": ("h",), "LSTM": ("h", "c")}


def layer(kind: str, static: bool = False, expose: bool = False) -> str:
    states = STATES[kind] if expose else ()
    bottoms = ["x", "cont", *(["s"] if static else []), *(f"{name}0" for name in states)]
    tops = ["y", *(f"{name}T" for name in states)]
    return (
        f'layer {{ name: "l" type: "{kind}" '
        + "".join(f'bottom: "{name}" ' for name in bottoms)
        + "".join(f'top: "{name}" ' for name in tops)
        + f"recurrent_param {{ num_output: {UNITS} expose_hidden: {str(expose).lower()} "
        + 'weight_filler { type: "gaussian" } bias_filler { type: "gaussian" } } }'
    )


def params(kind, static):
    width = UNITS * (4 if kind == "LSTM" else 1)
    shapes: list[tuple[int, ...]] = [(width, INPUTS), (width,)]
    shapes += [(width, FIXED)] if static else []
    shapes += [(width, UNITS)] + ([(UNITS, UNITS), (UNITS,)] if kind == "RNN" else [])
    return [draw(*shape, seed=20 + i) * 0.5 for i, shape in enumerate(shapes)]


def inputs(kind, static, expose, cont, seed=0):
    found = {"x": draw(STEPS, STREAMS, INPUTS, seed=seed), "cont": cont}
    if static:
        found["s"] = draw(STREAMS, FIXED, seed=seed + 1)
    for i, name in enumerate(STATES[kind] if expose else ()):
        found[f"{name}0"] = draw(1, STREAMS, UNITS, seed=seed + 2 + i)
    return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


CONTS = {
    "starts": np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 1]], np.float32),
    "goes on": np.ones((STEPS, STREAMS), np.float32),
    "fractions": np.random.default_rng(8).uniform(0, 1, (STEPS, STREAMS)).astype(np.float32),
}


@pytest.mark.parametrize("kind", STATES)
def test_weights_that_are_written_between_passes_count(kind):
    given = inputs(kind, False, True, CONTS["goes on"])
    net = build(layer(kind, False, True), given)
    for factor in (1, -2):
        fresh = build(layer(kind, False, True), given)
        for one in (net, fresh):
            set_params(one, {"l": [value * factor for value in params(kind, False)]})
            one.forward()
        np.testing.assert_array_equal(net.blobs["y"].data, fresh.blobs["y"].data)


def test_fractional_cont_by_differences():
    cont = CONTS["fractions"].copy()
    cont[0] = 0
    given = inputs("RNN", False, False, cont)
    check_gradients(layer("RNN"), given, {"l": params("RNN", False)}, of=["x"])


def test_no_gradient_to_cont():
    """A cont that learns, as a net could have by mistake."""
    net = run(
        'layer { name: "p" type: "Parameter" top: "cont" '
        "parameter_param { shape { dim: 4 dim: 3 } } }"
        + layer("LSTM")
        + 'layer { name: "r" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 }',
        {"x": draw(STEPS, STREAMS, INPUTS)},
        force=False,
    )
    with pytest.raises(LayerError, match=r"'l'.*sequence indicators"):
        net.backward()


@pytest.mark.parametrize("expose", [False, True])
@pytest.mark.parametrize("kind", STATES)
def test_a_static_input_that_is_forced(kind, expose):
    """Frozen weights, other numbers of streams: its gradient is that of the objective."""
    frozen = "param { lr_mult: 0 } " * len(params(kind, True))
    net = build(
        layer(kind, True, expose).replace("recurrent_param", f"{frozen} recurrent_param"),
        inputs(kind, True, expose, CONTS["starts"]),
    )
    set_params(net, {"l": params(kind, True)})
    cont = np.array([[0], [1], [1], [0]], np.float32)
    for streams in (STREAMS, 1, STREAMS + 2):
        shapes = {"x": (STEPS, streams, INPUTS), "cont": (STEPS, streams), "s": (streams, FIXED)}
        shapes |= {f"{name}0": (1, streams, UNITS) for name in (STATES[kind] if expose else ())}
        for seed, (name, shape) in enumerate(shapes.items()):
            net.blobs[name].reshape(*shape)
            net.blobs[name].data[...] = cont if name == "cont" else draw(*shape, seed=seed)

        net.forward()
        weights = draw(STEPS, streams, UNITS, seed=9)
        net.blobs["y"].diff[...] = weights
        got = np.array(net.backward()["s"])
        assert np.abs(got).max() > 0.01
        values = net.blobs["s"].data
        for place in np.ndindex(streams, FIXED):
            values[place] += 1e-2
            above = np.sum(net.forward()["y"].astype(np.float64) * weights)
            values[place] -= 2e-2
            below = np.sum(net.forward()["y"].astype(np.float64) * weights)
            values[place] += 1e-2
            np.testing.assert_allclose(got[place], (above - below) / 2e-2, rtol=1e-2, atol=1e-2)


LAYER = (
    'layer { name: "l" type: "LSTMUnit" bottom: "c" bottom: "g" bottom: "cont" top: "d" top: "h" }'
)


def test_extremes():
    g = np.array([[[300, -300, 300, 300], [-300, 300, -300, -300]]])
    net = run(LAYER, {"c": np.ones((1, 2, 1)), "g": g, "cont": np.ones((1, 2))})
    same(net.blobs["d"].data.ravel(), [1, 1])
    same(net.blobs["h"].data.ravel(), [np.tanh(1), 0])


GRU_STEPS, GRU_STREAMS, GRU_INPUTS, GRU_UNITS = 4, 3, 5, 2


def gru_layer(after: bool, expose: bool = False) -> str:
    states = ('bottom: "h0" ', 'top: "hT" ') if expose else ("", "")
    return (
        f'layer {{ name: "l" type: "GRU" bottom: "x" bottom: "cont" {states[0]}top: "y" '
        f"{states[1]}recurrent_param {{ num_output: {GRU_UNITS} reset_after: {str(after).lower()} "
        f'expose_hidden: {str(expose).lower()} weight_filler {{ type: "gaussian" }} }} }}'
    )


def parameters():
    shapes = [
        (3 * GRU_UNITS, GRU_INPUTS),
        (3 * GRU_UNITS,),
        (3 * GRU_UNITS, GRU_UNITS),
        (GRU_UNITS,),
    ]
    return [draw(*shape, seed=20 + i) for i, shape in enumerate(shapes)]


def walk(x, cont, hidden, own, after):
    w, b, u, c = (np.asarray(one, np.float64) for one in own)
    parts = np.split(u, 3)
    found = []
    for t in range(GRU_STEPS):
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
@pytest.mark.parametrize(("streams", "units"), [(3, 2), (1, 37), (8, 37), (9, 37)])
def test_values(streams, units, after, expose, monkeypatch):
    """Up to eight streams have loops of their own."""
    monkeypatch.setitem(globals(), "GRU_STREAMS", streams)
    monkeypatch.setitem(globals(), "GRU_UNITS", units)
    starts = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 1, 1]], np.float32)
    cont = np.take(starts, np.arange(streams) % 3, axis=1)
    inputs = {"x": draw(GRU_STEPS, GRU_STREAMS, GRU_INPUTS), "cont": cont}
    if expose:
        inputs["h0"] = draw(1, GRU_STREAMS, GRU_UNITS, seed=5)
    own = parameters()
    net = build(gru_layer(after, expose), inputs)
    set_params(net, {"l": own})
    net.forward()
    start = inputs["h0"][0] if expose else np.zeros((GRU_STREAMS, GRU_UNITS))
    want = walk(inputs["x"], cont, start, own, after)
    same(net.blobs["y"].data, want, 1e-5, 1e-5)
    if expose:
        same(net.blobs["hT"].data[0], want[-1], 1e-5, 1e-5)
    else:
        net.forward()
        again = walk(inputs["x"], cont, want[-1], own, after)
        same(net.blobs["y"].data, again, 1e-5, 1e-5)


@pytest.mark.parametrize("after", [True, False])
def test_gradient(after):
    """Exposed states pass none on, as in LSTM."""
    cont = np.ones((GRU_STEPS, GRU_STREAMS), np.float32)
    cont[0] = cont[2, 1] = 0
    own = parameters()
    check_gradients(
        gru_layer(after),
        {"x": draw(GRU_STEPS, GRU_STREAMS, GRU_INPUTS), "cont": cont},
        {"l": own},
        of=["x"],
    )
