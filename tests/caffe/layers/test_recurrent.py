"""RNN, LSTM, LSTMUnit and GRU against loops in numpy, and finite differences."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients
from tests.caffe.layers.passing import backward, draw, same, set_params

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


def params(kind: str, static: bool) -> list[Any]:
    width = UNITS * (4 if kind == "LSTM" else 1)
    shapes: list[tuple[int, ...]] = [(width, INPUTS), (width,)]
    shapes += [(width, FIXED)] if static else []
    shapes += [(width, UNITS)] + ([(UNITS, UNITS), (UNITS,)] if kind == "RNN" else [])
    return [draw(*shape, seed=20 + i) * 0.5 for i, shape in enumerate(shapes)]


def inputs(kind: str, static: bool, expose: bool, cont: Any, seed: int = 0) -> dict[str, Any]:
    found = {"x": draw(STEPS, STREAMS, INPUTS, seed=seed), "cont": cont}
    if static:
        found["s"] = draw(STREAMS, FIXED, seed=seed + 1)
    for i, name in enumerate(STATES[kind] if expose else ()):
        found[f"{name}0"] = draw(1, STREAMS, UNITS, seed=seed + 2 + i)
    return found


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


class Walk:
    """One pass there and back in double precision."""

    def __init__(self, kind: str, own: Sequence[Any], static: bool) -> None:
        own = [np.asarray(value, np.float64) for value in own]
        self.kind, self.w, self.b = kind, own[0], own[1]
        self.ws = own[2] if static else None
        self.wh, *self.out = own[3:] if static else own[2:]

    def forward(self, given: dict[str, Any], states: list[Any]) -> tuple[Any, list[Any]]:
        self.given, self.steps = given, []
        outputs = []
        for t in range(STEPS):
            cont = np.asarray(given["cont"][t], np.float64)[:, None]
            before, conted = states, cont * states[0]
            sums = given["x"][t] @ self.w.T + self.b + conted @ self.wh.T
            if self.ws is not None:
                sums = sums + given["s"] @ self.ws.T
            if self.kind == "RNN":
                states = [np.tanh(sums)]
                outputs.append(np.tanh(states[0] @ self.out[0].T + self.out[1]))
                gates: tuple[Any, ...] = ()
            else:
                i, f, o, g = np.split(sums, 4, 1)
                gates = i, f, o, g = sigmoid(i), cont * sigmoid(f), sigmoid(o), np.tanh(g)
                c = f * before[1] + i * g
                states = [o * np.tanh(c), c]
                outputs.append(states[0])
            self.steps.append((cont, before, conted, gates, states, outputs[-1]))
        return np.stack(outputs), states

    def backward(self, dy: Any) -> dict[str, Any]:
        d = {name: np.zeros_like(value, np.float64) for name, value in self.given.items()}
        own = [self.w, self.b, *([] if self.ws is None else [self.ws]), self.wh, *self.out]
        grads = [np.zeros_like(value) for value in own]
        hidden_param = 2 if self.ws is None else 3
        dh, dc = np.zeros((STREAMS, UNITS)), np.zeros((STREAMS, UNITS))
        for t in reversed(range(STEPS)):
            cont, before, conted, gates, states, y = self.steps[t]
            if self.kind == "RNN":
                do = dy[t] * (1 - y**2)
                grads[-2] += do.T @ states[0]
                grads[-1] += do.sum(0)
                dsums = (dh + do @ self.out[0]) * (1 - states[0] ** 2)
            else:
                i, f, o, g = gates
                squashed = np.tanh(states[1])
                dh = dh + dy[t]
                dc = dc + dh * o * (1 - squashed**2)
                parts = (
                    dc * g * i * (1 - i),
                    dc * before[1] * f * (1 - f),
                    dh * squashed * o * (1 - o),
                    dc * i * (1 - g**2),
                )
                dsums, dc = np.concatenate(parts, 1), dc * f
            grads[0] += dsums.T @ self.given["x"][t]
            grads[1] += dsums.sum(0)
            if self.ws is not None:
                grads[2] += dsums.T @ self.given["s"]
                d["s"] += dsums @ self.ws
            grads[hidden_param] += dsums.T @ conted
            d["x"][t] = dsums @ self.w
            dh = cont * (dsums @ self.wh)
        return {**d, "params": grads}


CONTS = {
    "starts": np.array([[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 1]], np.float32),
    "goes on": np.ones((STEPS, STREAMS), np.float32),
    "fractions": np.random.default_rng(8).uniform(0, 1, (STEPS, STREAMS)).astype(np.float32),
}


@pytest.mark.parametrize("cont", CONTS)
@pytest.mark.parametrize("expose", [False, True])
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("kind", STATES)
def test_passes(kind, static, expose, cont):
    """Three passes: the state of one is where the next begins, unless it is exposed."""
    own = params(kind, static)
    walk = Walk(kind, own, static)
    net = build(layer(kind, static, expose), inputs(kind, static, expose, CONTS[cont]))
    set_params(net, {"l": own})
    states = [np.zeros((STREAMS, UNITS)) for _ in STATES[kind]]
    for number in range(3):
        given = inputs(kind, static, expose, CONTS[cont], seed=10 * number)
        for name, value in given.items():
            net.blobs[name].data[...] = value
        if expose:
            states = [given[f"{name}0"][0].astype(np.float64) for name in STATES[kind]]
        net.forward()
        want, states = walk.forward(given, states)
        same(net.blobs["y"].data, want, 1e-4)
        diffs = walk.backward(backward(net)["y"])
        for name in given:
            same(net.blobs[name].diff, diffs[name], 1e-3, 1e-5)
        for blob, grad in zip(net.params["l"], diffs["params"], strict=True):
            same(blob.diff, grad, 1e-3, 1e-5)
        for name, state in zip(STATES[kind] if expose else (), states, strict=False):
            same(net.blobs[f"{name}T"].data[0], state, 1e-4)


@pytest.mark.parametrize("kind", STATES)
def test_more_units_than_vectors_have_lanes(kind, monkeypatch):
    """Two full vectors and a rest; hidden weights of more than one block."""
    monkeypatch.setitem(globals(), "UNITS", 37)
    test_passes(kind, True, False, "fractions")


@pytest.mark.parametrize("kind", STATES)
def test_weights_that_are_written_between_passes_count(kind):
    given = inputs(kind, False, True, CONTS["goes on"])
    net = build(layer(kind, False, True), given)
    states = [given[f"{name}0"][0].astype(np.float64) for name in STATES[kind]]
    for factor in (1, -2):
        own = [value * factor for value in params(kind, False)]
        set_params(net, {"l": own})
        net.forward()
        walk = Walk(kind, own, False)
        same(net.blobs["y"].data, walk.forward(given, states)[0], 1e-4)
        same(net.blobs["x"].diff, walk.backward(backward(net)["y"])["x"], 1e-3, 1e-5)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("kind", STATES)
def test_gradients_by_differences(kind, static):
    given = inputs(kind, static, False, CONTS["starts"])
    check_gradients(
        layer(kind, static),
        given,
        {"l": params(kind, static)},
        of=[n for n in given if n != "cont"],
    )


@pytest.mark.parametrize("kind", STATES)
def test_gradients_with_exposed_states(kind):
    """What reaches the exposed last states from above is dropped, so they take no part."""
    given = inputs(kind, True, True, CONTS["goes on"])
    silence = 'layer { name: "no" type: "Silence" ' + "".join(
        f'bottom: "{name}T" ' for name in STATES[kind]
    )
    text = layer(kind, True, True) + silence + "}"
    check_gradients(text, given, {"l": params(kind, True)}, of=["x", "s"])


def test_fractional_cont_by_differences():
    cont = CONTS["fractions"].copy()
    cont[0] = 0
    given = inputs("RNN", False, False, cont)
    check_gradients(layer("RNN"), given, {"l": params("RNN", False)}, of=["x"])


@pytest.mark.parametrize("kind", STATES)
def test_state_survives_a_reshape(kind):
    """As Caffe's blobs do: what fits stays, and a larger memory begins with zeros."""
    own = params(kind, False)
    ones = CONTS["goes on"]
    net = build(layer(kind), inputs(kind, False, False, ones))
    set_params(net, {"l": own})
    net.forward()
    _, states = Walk(kind, own, False).forward(
        inputs(kind, False, False, ones), [np.zeros((STREAMS, UNITS)) for _ in STATES[kind]]
    )
    for streams in (2, 3, 5):
        x = draw(STEPS, streams, INPUTS, seed=streams)
        net.blobs["x"].reshape(*x.shape)
        net.blobs["cont"].reshape(STEPS, streams)
        net.reshape()
        net.blobs["x"].data[...], net.blobs["cont"].data[...] = x, 1
        net.forward()
        if streams == 2:
            left = states
            want, states = Walk(kind, own, False).forward(
                {"x": x, "cont": ones[:, :2]}, [state[:2] for state in states]
            )
            states = [np.concatenate([now, old[2:]]) for now, old in zip(states, left, strict=True)]
        else:
            begin = states if streams == 3 else [np.zeros((5, UNITS)) for _ in states]
            want, states = Walk(kind, own, False).forward(
                {"x": x, "cont": np.ones((4, streams))}, begin
            )
        same(net.blobs["y"].data, want, 1e-4)


def test_no_gradient_to_cont():
    """A cont that learns, as a net could have by mistake."""
    net = build(
        'layer { name: "p" type: "Parameter" top: "cont" '
        "parameter_param { shape { dim: 4 dim: 3 } } }"
        + layer("LSTM")
        + 'layer { name: "r" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 }',
        {"x": draw(STEPS, STREAMS, INPUTS)},
        force=False,
    )
    net.forward()
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


@pytest.mark.parametrize("cont", [[1, 0, 1], [0.5, 1, 0.25]])
def test_step(cont):
    c, g = draw(1, 3, 4), draw(1, 3, 16, seed=1)
    net = build(LAYER, {"c": c, "g": g, "cont": np.array([cont])})
    net.forward()
    i, f, o = (1 / (1 + np.exp(-part)) for part in np.split(g[0].astype(np.float64), 4, 1)[:3])
    t, f = np.tanh(g[0, :, 12:].astype(np.float64)), f * np.array(cont)[:, None]
    cell = f * c[0] + i * t
    same(net.blobs["d"].data[0], cell)
    same(net.blobs["h"].data[0], o * np.tanh(cell))
    gradients = backward(net)
    dh = gradients["h"][0]
    dc = gradients["d"][0] + dh * o * (1 - np.tanh(cell) ** 2)
    same(net.blobs["c"].diff[0], dc * f, 1e-4)
    gates = [dc * t * i * (1 - i), dc * c[0] * f * (1 - f)]
    gates += [dh * np.tanh(cell) * o * (1 - o), dc * i * (1 - t**2)]
    same(net.blobs["g"].diff[0], np.concatenate(gates, 1), 1e-4)


def test_lstm_unit_by_differences():
    inputs = {"c": draw(1, 3, 4), "g": draw(1, 3, 16, seed=1), "cont": np.array([[1, 0, 1]])}
    check_gradients(LAYER, inputs, of=["c", "g"])


def test_extremes():
    g = np.array([[[300, -300, 300, 300], [-300, 300, -300, -300]]])
    net = build(LAYER, {"c": np.ones((1, 2, 1)), "g": g, "cont": np.ones((1, 2))})
    net.forward()
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


def parameters() -> list[Any]:
    shapes = [
        (3 * GRU_UNITS, GRU_INPUTS),
        (3 * GRU_UNITS,),
        (3 * GRU_UNITS, GRU_UNITS),
        (GRU_UNITS,),
    ]
    return [draw(*shape, seed=20 + i) for i, shape in enumerate(shapes)]


def walk(x: Any, cont: Any, hidden: Any, own: list[Any], after: bool) -> Any:
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
def test_values(after, expose):
    cont = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 1, 1]], np.float32)
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
