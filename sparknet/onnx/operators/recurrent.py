"""Recurrent operators, of one direction or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.onnx.netlist import Computed, Value
from sparknet.onnx.operators.matrix_products import linear
from sparknet.onnx.operators.shapes import joined
from sparknet.onnx.operators.slicing import gather_places, slice_axis
from sparknet.onnx.source import Array
from sparknet.onnx.step import Outputs, Step, reads

_MOST_STEPS = 128
_SMALL = 1e-3
"""So near to zero tanh is the identity, within float32: Caffe's RNN ends in a tanh of its own."""


@dataclass
class _Way:
    """One direction."""

    number: int
    backward: bool
    part: str
    weights: Array
    recurrent: Array
    biases: tuple[Array, Array]


@reads("LSTM", "GRU", "RNN")
def recurrent(step: Step) -> Outputs:
    _check(step)
    x = step.blob()
    if step.attribute("layout"):
        x = _swapped(step, x, "time_first")
    if len(x.shape) != 3:
        step.refuse(f"its input has {len(x.shape)} axes, not 3")
    ways = _ways(step, x)
    # Both directions before what reads one of them: the engine runs them at the same time.
    marks = _Marks(step, x)
    runs = [_one_way(step, x, way, marks) for way in ways]
    whole: list[Value] = []
    hidden: list[Value] = []
    cell: list[Value] = []
    for way, (sequence, state) in zip(ways, runs, strict=True):
        if step.is_read(1):
            steps = sequence.shape[0]
            hidden.append(slice_axis(step, sequence, 0, steps - 1, steps, part=f"{way.part}_last"))
        if step.is_read(0):
            if way.backward:
                sequence = gather_places(
                    step, sequence, 0, _turned(sequence), part=f"{way.part}_back"
                )
            whole.append(_with_axis(step, sequence, 1, f"{way.part}_outputs"))
        if state is not None:
            cell.append(state)
    outputs: list[Value] = []
    for name, parts, axis in zip(step.node.outputs, (whole, hidden, cell), (1, 0, 0), strict=False):
        if not step.is_read(len(outputs)):
            outputs.append(np.zeros(0, np.float32))
            continue
        one = joined(step, parts, axis, part=f"joined_{axis}")
        outputs.append(_laid_out(step, one, name) if step.attribute("layout") else one)
    return outputs


def _check(step: Step) -> None:
    for name in ("clip", "input_forget"):
        if step.attribute(name):
            step.refuse(f"'{name}' has no layer")
    if step.has(7):
        step.refuse("peepholes have no layer")
    usual = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
    names = [str(one).lower() for one in step.attribute("activations") or []]
    if _is_rectified(step):
        return
    if names and names != usual[step.op] * (len(names) // len(usual[step.op])):
        step.refuse(f"its activations are {', '.join(names)}; the layer has its own")


def _is_rectified(step: Step) -> bool:
    names = {str(one).lower() for one in step.attribute("activations") or []}
    return step.op == "RNN" and names == {"relu"}


def _ways(step: Step, x: Computed) -> list[_Way]:
    weights, hidden = step.constant(1, "the weights"), step.constant(2, "the recurrent weights")
    biases = step.optional(3, "the biases")
    if step.has(4):
        lengths = np.ravel(step.constant(4, "the lengths of the sequences"))
        if np.any(lengths != x.shape[0]):
            step.refuse("sequences of several lengths have no layer")
    direction = step.attribute("direction", "forward")
    if weights.ndim != 3 or weights.shape[0] != 1 + (direction == "bidirectional"):
        step.refuse(f"weights {list(weights.shape)} are not for the direction '{direction}'")
    if weights.shape[2] != x.shape[2] or hidden.shape != (*weights.shape[:2], hidden.shape[2]):
        step.refuse(f"weights {list(weights.shape)} do not fit the input {list(x.shape)}")
    ways = []
    for number in range(weights.shape[0]):
        both = np.zeros(2 * weights.shape[1], np.float32) if biases is None else biases[number]
        backward = direction == "reverse" or number == 1
        part = "backward" if backward else "forward"
        halves = (both[: weights.shape[1]], both[weights.shape[1] :])
        ways.append(_Way(number, backward, part, weights[number], hidden[number], halves))
    return ways


def _turned(x: Computed) -> list[int]:
    return list(range(x.shape[0]))[::-1]


def _one_way(step: Step, x: Computed, way: _Way, marks: _Marks) -> tuple[Computed, Computed | None]:
    """Return all hidden states in the order of its steps, and the last cell state if it is read."""
    if step.is_batched([x.shape[0]]):
        step.refuse("the number of time steps must be fixed: give the input's shape")
    if way.backward:
        x = gather_places(step, x, 0, _turned(x), part=f"{way.part}_turned")
    wants_cell = step.op == "LSTM" and step.is_read(2)
    states = _first_states(step, x, way, wants_cell)
    if _is_rectified(step):
        return _unrolled(step, x, way, states), None
    kind, arrays, options = _LAYERS[step.op](step, way)
    tops = [f"{step.node.outputs[0] or step.node.name}_{way.part}"]
    if states:
        options["expose_hidden"] = True
        tops += [f"{tops[0]}_{name}" for name in ("h", "c")[: len(states)]]
    layers = step.layers(
        kind, [x, marks.of(not states), *states], arrays, tops=tops, part=way.part, **options
    )
    outputs = layers[0]
    if step.op == "RNN":
        outputs = step.layer("Power", [outputs], part=f"{way.part}_unscaled", scale=1 / _SMALL)
    return outputs, layers[2] if wants_cell else None


def _unrolled(step: Step, x: Computed, way: _Way, states: Sequence[Computed]) -> Computed:
    """Caffe's RNN ends in tanh: with ReLU each step is a product of its own."""
    steps, part = x.shape[0], way.part
    if steps > _MOST_STEPS:
        step.refuse(f"with relu it is computed in {_MOST_STEPS} steps at most; it has {steps}")
    inputs = linear(step, x, way.weights.T, way.biases[0] + way.biases[1], f"{part}_inputs")
    weights = step.parameter(np.ascontiguousarray(way.recurrent.T[None]))
    hidden = states[0] if states else None
    rows: list[Value] = []
    for number in range(steps):
        one = slice_axis(step, inputs, 0, number, number + 1, part=f"{part}_input_{number}")
        if hidden is not None:
            memory = step.layer("MatMul", [hidden, weights], part=f"{part}_kept_{number}")
            one = step.layer("Eltwise", [one, memory], part=f"{part}_sum_{number}")
        hidden = step.layer("ReLU", [one], part=f"{part}_step_{number}")
        rows.append(hidden)
    return joined(step, rows, 0, part=f"{part}_steps")


class _Marks:
    """Where sequences go on: everywhere, or everywhere but in the first step."""

    def __init__(self, step: Step, x: Computed) -> None:
        self._step, self._x = step, x
        self._made: dict[bool, Computed] = {}

    def of(self, fresh: bool) -> Computed:
        if fresh not in self._made:
            self._made[fresh] = self._make(fresh)
        return self._made[fresh]

    def _make(self, fresh: bool) -> Computed:
        step, x, part = self._step, self._x, "fresh" if fresh else "going"
        values = step.layer("Gather", [x], part=f"{part}_values", axis=2, index=[0])
        rows = step.reshape(values, x.shape[:2], part=f"{part}_rows")
        if not fresh:
            return step.layer("Power", [rows], part=f"{part}_marks", scale=0.0, shift=1.0)
        if x.shape[0] == 1:
            return step.layer("Power", [rows], part=f"{part}_marks", scale=0.0)
        first, rest = step.layers(
            "Slice",
            [rows],
            tops=[f"{rows.name}_first", f"{rows.name}_rest"],
            part=f"{part}_steps",
            axis=0,
            slice_point=[1],
        )
        start = step.layer("Power", [first], part=f"{part}_start", scale=0.0)
        more = step.layer("Power", [rest], part=f"{part}_more", scale=0.0, shift=1.0)
        return step.layer("Concat", [start, more], part=f"{part}_marks", axis=0)


def _first_states(step: Step, x: Computed, way: _Way, wants_cell: bool) -> list[Computed]:
    """Return the states that a sequence starts from, if it does not start from nothing."""
    places = (5, 6) if step.op == "LSTM" else (5,)
    states = [step.value(place) if step.has(place) else None for place in places]
    zero = [one is None or (not isinstance(one, Computed) and not np.any(one)) for one in states]
    if all(zero) and not wants_cell and not step.is_open(x.shape[0]):
        return []
    units = way.recurrent.shape[1]
    rows = []
    for value, name, nothing in zip(states, ("h", "c"), zero, strict=False):
        part = f"{way.part}_first_{name}"
        if nothing:
            rows.append(_zeros(step, x, units, part))
        else:
            rows.append(_state(step, value, way, part))
    return rows


def _state(step: Step, value: Value | None, way: _Way, part: str) -> Computed:
    assert value is not None
    blob = step.plain(value)
    if step.attribute("layout"):
        blob = _swapped(step, blob, f"{part}_first")
    return slice_axis(step, blob, 0, way.number, way.number + 1, part=part)


def _zeros(step: Step, x: Computed, units: int, part: str) -> Computed:
    first = slice_axis(step, x, 0, 0, 1, part=f"{part}_step")
    rows = step.layer("Reduction", [first], part=f"{part}_rows", axis=2)
    one = step.reshape(rows, (1, x.shape[1], 1), part=f"{part}_axes")
    wide = step.layer("Tile", [one], part=f"{part}_wide", axis=2, tiles=units)
    return step.layer("Power", [wide], part=part, scale=0.0)


def _with_axis(step: Step, x: Computed, axis: int, part: str) -> Computed:
    return step.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]), part=part)


def _swapped(step: Step, x: Computed, part: str) -> Computed:
    """Time and records exchanged."""
    order = [1, 0, *range(2, len(x.shape))]
    return step.layer("Permute", [x], part=part, order=order)


def _laid_out(step: Step, x: Computed, name: str) -> Computed:
    order = [2, 0, 1, 3] if len(x.shape) == 4 else [1, 0, 2]
    return step.layer("Permute", [x], part=f"laid_out_{name}", order=order)


# -- weights: the gates in the layers' order ---------------------------------------------------


def _gates(array: Array, order: list[int]) -> Array:
    blocks = np.split(array, len(order))
    return np.concatenate([blocks[place] for place in order])


def _lstm(step: Step, way: _Way) -> tuple[str, list[Array], dict[str, Any]]:
    """ONNX: input, output, forget, cell; Caffe: input, forget, output, cell."""
    order = [0, 2, 1, 3]
    bias = _gates(way.biases[0] + way.biases[1], order)
    arrays = [_gates(way.weights, order), bias, _gates(way.recurrent, order)]
    return "LSTM", arrays, {"num_output": way.recurrent.shape[1]}


def _gru(step: Step, way: _Way) -> tuple[str, list[Array], dict[str, Any]]:
    """Both: update, reset, candidate."""
    units = way.recurrent.shape[1]
    one, other = way.biases
    bias = np.concatenate([one[: 2 * units] + other[: 2 * units], one[2 * units :]])
    arrays = [way.weights, bias, way.recurrent, other[2 * units :]]
    after = bool(step.attribute("linear_before_reset"))
    return "GRU", arrays, {"num_output": units, "reset_after": after}


def _rnn(step: Step, way: _Way) -> tuple[str, list[Array], dict[str, Any]]:
    units = way.recurrent.shape[1]
    ending = [_SMALL * np.eye(units, dtype=np.float32), np.zeros(units, np.float32)]
    arrays = [way.weights, way.biases[0] + way.biases[1], way.recurrent, *ending]
    return "RNN", arrays, {"num_output": units}


_LAYERS = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
