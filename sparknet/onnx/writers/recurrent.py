"""Recurrent layers: ONNX's operator where the marks have the usual form, else a step each."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.layer_export import LayerExport, writes

MOST_STEPS = 512


def _steps(place: LayerExport, name: str, keep: bool = False) -> list[str]:
    """Return each step of a sequence, without the axis of time."""
    steps = place.shapes[0][0]
    if steps > MOST_STEPS:
        place.refuse(f"{steps} steps would be written one by one; {MOST_STEPS} are the most")
    states = []
    for step in range(steps):
        index = place.whole([step] if keep else step)
        states.append(place.put("Gather", [name, index], axis=0))
    return states


def _linear(place: LayerExport, x: str, weights: object, bias: object | None) -> str:
    product = place.put("MatMul", [x, place.constant(np.asarray(weights).T)])
    return product if bias is None else place.put("Add", [product, place.constant(bias)])


def _walk(place: LayerExport) -> tuple[list[str], list[str], list[object]]:
    """Return the products with the input of all steps, the marks, and the weights that are left."""
    values, arrays = place.values, list(place.arrays)
    x = place.inputs[0]
    if len(place.shapes[0]) != 3:
        x = place.put("Reshape", [x, place.whole([0, 0, -1])])
    sums = _linear(place, x, arrays[0], arrays[1])
    rest = arrays[2:]
    if values["static_inputs"]:
        fixed = place.put("Reshape", [place.inputs[2], place.whole([0, -1])])
        sums = place.put("Add", [sums, _linear(place, fixed, rest[0], None)])
        rest = rest[1:]
    marks = place.put("Unsqueeze", [place.inputs[1], place.whole([2])])
    return _steps(place, sums), _steps(place, marks), list(rest)


def _first(place: LayerExport) -> list[str]:
    """Return the states before the first step: blobs, or nothing."""
    states, values = int(place.values["states"]), place.values
    if values["expose_hidden"]:
        states_given = place.inputs[len(place.inputs) - states :]
        return [place.put("Squeeze", [name, place.whole([0])]) for name in states_given]
    return [place.constant(np.zeros((1, int(values["num_output"]))))] * states


def _finish(place: LayerExport, outputs: list[str], states: list[str]) -> None:
    whole = [place.put("Unsqueeze", [one, place.whole([0])]) for one in outputs]
    place.last("Concat", whole, axis=0)
    for name, output in zip(states, place.outputs[1:], strict=False):
        place.put("Unsqueeze", [name, place.whole([0])], output)


@writes("RNN")
def rnn(place: LayerExport) -> None:
    sums, marks, rest = _walk(place)
    (hidden,) = _first(place)
    outputs = []
    for x, mark in zip(sums, marks, strict=True):
        before = _linear(place, place.put("Mul", [mark, hidden]), rest[0], None)
        hidden = place.put("Tanh", [place.put("Add", [x, before])])
        outputs.append(place.put("Tanh", [_linear(place, hidden, rest[1], rest[2])]))
    _finish(place, outputs, [hidden])


@writes("LSTM")
def lstm(place: LayerExport) -> None:
    sums, marks, rest = _walk(place)
    hidden, cell = _first(place)
    sizes = place.whole([int(place.values["num_output"])] * 4)
    outputs = []
    for x, mark in zip(sums, marks, strict=True):
        before = _linear(place, place.put("Mul", [mark, hidden]), rest[0], None)
        gates = place.put("Add", [x, before])
        hidden, cell = _cell(place, gates, mark, cell, sizes)
        outputs.append(hidden)
    _finish(place, outputs, [hidden, cell])


def _cell(place: LayerExport, gates: str, mark: str, cell: str, sizes: str) -> tuple[str, str]:
    """Gates in Caffe's order: input, forget, output, candidate."""
    parts = [f"{gates}/{name}" for name in "ifog"]
    place.put("Split", [gates, sizes], parts, axis=-1)
    i, f, o = (place.put("Sigmoid", [part]) for part in parts[:3])
    g = place.put("Tanh", [parts[3]])
    memory = place.put("Mul", [place.put("Mul", [mark, f]), cell])
    cell = place.put("Add", [memory, place.put("Mul", [i, g])])
    return place.put("Mul", [o, place.put("Tanh", [cell])]), cell


@writes("LSTMUnit")
def lstm_unit(place: LayerExport) -> None:
    units = int(place.values["units"])
    mark = place.put("Unsqueeze", [place.inputs[2], place.whole([2])])
    sizes = place.whole([units] * 4)
    hidden, cell = _cell(place, place.inputs[1], mark, place.inputs[0], sizes)
    place.put("Identity", [cell], place.outputs[0])
    place.put("Identity", [hidden], place.outputs[1])


@writes("GRU")
def gru(place: LayerExport) -> None:
    sums, marks, rest = _walk(place)
    (hidden,) = _first(place)
    units, after = int(place.values["num_output"]), bool(place.values["reset_after"])
    weights = np.split(np.asarray(rest[0]), 3)
    sizes = place.whole([units] * 3)
    outputs = []
    for x, mark in zip(sums, marks, strict=True):
        before = place.put("Mul", [mark, hidden])
        parts = [f"{x}/{name}" for name in "zrn"]
        place.put("Split", [x, sizes], parts, axis=-1)
        z, r = (
            place.put("Sigmoid", [place.put("Add", [part, _linear(place, before, w, None)])])
            for part, w in zip(parts[:2], weights[:2], strict=True)
        )
        if after:
            inner = place.put("Mul", [r, _linear(place, before, weights[2], rest[1])])
        else:
            inner = _linear(place, place.put("Mul", [r, before]), weights[2], rest[1])
        n = place.put("Tanh", [place.put("Add", [parts[2], inner])])
        # (1 - z) n + z h
        apart = place.put("Mul", [z, place.put("Sub", [before, n])])
        hidden = place.put("Add", [n, apart])
        outputs.append(hidden)
    _finish(place, outputs, [hidden])
