"""RNN, LSTM and GRU; one step of an LSTM."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from sparknet.layers.fillers import learnable
from sparknet.layers.layer import (
    Layer,
    Param,
    Plan,
    Shape,
    at_least,
    count,
    exactly,
    layer,
    shape_text,
)


class Recurrent(Layer):
    """Bottoms: x (time x streams x ...), cont (time x streams), then a static input
    (streams x ...) if there is one more, then the first hidden states if expose_hidden.
    Tops: the output (time x streams x num_output), then the last hidden states if
    expose_hidden.

    The first `infer` fixes the number of time steps, as in Caffe, unless states are exposed."""

    field = "recurrent_param"
    bottoms = at_least(2)
    tops = at_least(1)
    is_time_major = True
    states: ClassVar[int]
    """How many hidden states the type carries from step to step."""
    plain_options = ("expose_hidden",)
    _steps: int | None = None
    """Of the last plan: Caffe's own types keep it, unless callers feed the hidden states."""

    @property
    def exposed(self) -> int:
        return self.states if self.options.expose_hidden else 0

    def force_backward(self, bottom: int) -> bool:
        """False for cont and the exposed states, which pass no gradient on."""
        if bottom == 0:
            return True
        return bottom == 2 and len(self.parameter.bottom) > 2 + self.exposed

    def vectors(self, bottoms: Sequence[Shape]) -> tuple[Shape, ...]:
        static = bottoms[2 : len(bottoms) - self.exposed]
        return (bottoms[0][2:], *(shape[1:] for shape in static))

    @abstractmethod
    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        """Return the parameters' shapes in Caffe's order; one axis means a bias."""

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self._check_counts(len(bottoms))
        hidden: int = self.options.num_output
        if hidden < 1:
            self.fail(f"num_output {hidden} must be positive")
        steps, streams = self._check_sequence(bottoms[0], bottoms[1])
        static = self._static_inputs(bottoms, streams)
        state = (1, streams, hidden)
        self._check_states(bottoms[len(bottoms) - self.exposed :], state)
        inputs = count(bottoms[0][2:])
        params = self._params(hidden, inputs, static)
        values: dict[str, Any] = {
            "steps": steps,
            "streams": streams,
            "inputs": inputs,
            "num_output": hidden,
            "static_inputs": static,
            "states": self.states,
        }
        tops = ((steps, streams, hidden), *(state,) * self.exposed)
        return Plan(tops=tops, params=params, values=values)

    def takes(self, bottom: int) -> str:
        return "marks" if bottom == 1 else "numbers"

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        """Count each matrix once a step and stream, the static input's once a stream."""
        values = plan.values
        matrices = [param.shape for param in plan.params if len(param.shape) == 2]
        fixed = count(matrices.pop(1)) if values["static_inputs"] else 0
        steps, streams = int(values["steps"]), int(values["streams"])
        return streams * (steps * sum(map(count, matrices)) + fixed)

    def multiplies_narrow(self, plan: Plan) -> bool:
        return True

    def _check_counts(self, bottoms: int) -> None:
        least, tops = 2 + self.exposed, 1 + self.exposed
        exposing = f" (expose_hidden adds {self.exposed})" if self.exposed else ""
        if not least <= bottoms <= least + 1:
            self.fail(f"takes {least} to {least + 1} bottoms{exposing}; it has {bottoms}")
        if len(self.parameter.top) != tops:
            self.fail(f"makes {tops} tops{exposing}; it has {len(self.parameter.top)}")

    def _check_sequence(self, data: Shape, cont: Shape) -> tuple[int, int]:
        if len(data) < 2:
            self.fail(f"the input needs the axes time x streams x ...; it is {shape_text(data)}")
        if cont != data[:2]:
            self.fail(
                f"the sequence indicators must be time x streams, {shape_text(data[:2])}; "
                f"they are {shape_text(cont)}"
            )
        if self.is_stock and not self.exposed and self._steps not in (None, data[0]):
            self.fail(f"the number of time steps cannot change from {self._steps} to {data[0]}")
        self._steps = data[0]
        return data[0], data[1]

    def _static_inputs(self, bottoms: Sequence[Shape], streams: int) -> int:
        if len(bottoms) == 2 + self.exposed:
            return 0
        static = bottoms[2]
        if not static or static[0] != streams:
            self.fail(
                f"the static input must have {streams} streams on its first axis; "
                f"it is {shape_text(static)}"
            )
        if not count(static[1:]):
            self.fail(f"the static input is empty; it is {shape_text(static)}")
        return count(static[1:])

    def _check_states(self, exposed: Sequence[Shape], state: Shape) -> None:
        for shape in exposed[: self.exposed]:
            if shape != state:
                self.fail(f"a hidden state must be {shape_text(state)}; it is {shape_text(shape)}")

    def _params(self, hidden: int, inputs: int, static: int) -> tuple[Param, ...]:
        params = []
        for shape in self.weights(hidden, inputs, static):
            bias = len(shape) == 1
            filler = self.options.bias_filler if bias else self.options.weight_filler
            params.append(learnable(self, shape, filler))
        return tuple(params)


@layer("RNN", stock=True)
class RNN(Recurrent):
    """h = tanh(W_xh x + b_h + W_hh h), o = tanh(W_ho h + b_o) (Caffe: rnn_layer.cpp).

    Bottoms: time x records x values, and ``cont`` of time x records, 0 where a sequence begins,
    else 1; then what is the same at all steps, records x values, if there is such an input.
    docs/cookbook.md has a time series."""

    states = 1

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        fixed: list[Shape] = [(hidden, static)] if static else []
        own: list[Shape] = [(hidden, hidden), (hidden, hidden), (hidden,)]
        return [(hidden, inputs), (hidden,), *fixed, *own]


@layer("LSTM", stock=True)
class LSTM(Recurrent):
    """Gates in the order input, forget, output, candidate (Caffe: lstm_layer.cpp).

    Bottoms: time x records x values, and ``cont`` of time x records, 0 where a sequence begins,
    else 1; then what is the same at all steps, records x values, if there is such an input.
    docs/cookbook.md has a time series.
    Exposed states: h, then c."""

    states = 2

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        gates = 4 * hidden
        fixed: list[Shape] = [(gates, static)] if static else []
        return [(gates, inputs), (gates,), *fixed, (gates, hidden)]


@layer("GRU")
class GRU(Recurrent):
    """Gates in the order update, reset, candidate; h' = (1 - z) n + z h (Cho et al., 2014).

    Bottoms: time x records x values, and ``cont`` of time x records, 0 where a sequence begins,
    else 1; then what is the same at all steps, records x values, if there is such an input.
    docs/cookbook.md has a time series.
    ``reset_after`` gates the product of the hidden state and the candidate's weights, else the
    hidden state before it.  Parameters: weights of the input, biases, weights of the hidden state,
    bias of the candidate's product."""

    states = 1
    plain_options = ("reset_after",)

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        if static:
            self.fail("takes no static input")
        return [(3 * hidden, inputs), (3 * hidden,), (3 * hidden, hidden), (hidden,)]


@layer("LSTMUnit", stock=True)
class LSTMUnit(Layer):
    """Computes the next cell and hidden state from the cell (1 x streams x units), the gates
    (1 x streams x 4 units) and cont (1 x streams) (Caffe: lstm_unit_layer.cpp)."""

    bottoms = exactly(3)
    tops = exactly(2)
    bottoms_without_gradient = (2,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        cell, gates, cont = bottoms
        if len(cell) != 3 or cell[0] != 1:
            self.fail(f"the cell must be 1 x streams x units; it is {shape_text(cell)}")
        streams, units = cell[1:]
        if gates != (1, streams, 4 * units):
            self.fail(
                f"the gates must be 1 x {streams} x {4 * units}; they are {shape_text(gates)}"
            )
        if cont != (1, streams):
            self.fail(f"the sequence indicators must be 1 x {streams}; they are {shape_text(cont)}")
        return Plan(tops=(cell, cell), values={"streams": streams, "units": units})
