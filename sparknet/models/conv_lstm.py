"""ConvLSTM (Shi et al. 2015): an LSTM over maps, whose products with weights are convolutions."""

from __future__ import annotations

from typing import Any, NamedTuple

from sparknet.dsl import Convolution, Eltwise, LayerSpec, Sigmoid, Slice, TanH
from sparknet.errors import SpecError


class ConvLSTMState(NamedTuple):
    """The blobs of what a ConvLSTM remembers: its output and its memory."""

    hidden: str
    cell: str


def conv_lstm(
    name: str,
    step: int,
    bottom: str | None,
    before: ConvLSTMState | None,
    *,
    units: int,
    kernel: int = 3,
    **options: Any,
) -> tuple[list[LayerSpec], ConvLSTMState]:
    """One step in time of the ConvLSTM ``name``: its layers, and the state after it.

    ``bottom`` is a map, or None for a step that only goes on from its state; ``before`` is the
    state, which may be another ConvLSTM's, or None at the beginning.  All steps of one name share
    their weights.  Gates are in the order of Caffe's LSTM (input, forget, output, candidate),
    without the paper's peepholes.  ``options`` are the convolutions'.
    """
    at = f"{name}_{step}"
    layers: list[LayerSpec] = []
    products: list[str] = []
    for part, below in (("x", bottom), ("h", before and before.hidden)):
        if below is None:
            continue
        own = [f"{name}_{part}"] if products else [f"{name}_{part}", f"{name}_bias"]
        shape: dict[str, Any] = {"num_output": 4 * units, "kernel_size": kernel, "pad": kernel // 2}
        given: dict[str, Any] = {"weight_filler": "xavier", "bias_term": not products, "param": own}
        given |= options
        products.append(f"{at}_{part}")
        layers.append(Convolution(products[-1], below, **shape, **given))
    if not products:
        raise SpecError(f"step {step} of '{name}' has neither a bottom nor a state before it")
    sums, gates = f"{at}_sums", [f"{at}_{gate}" for gate in ("input", "forget", "output")]
    if len(products) > 1:
        layers.append(Eltwise(sums, products))
    else:
        sums = products[0]
    layers += [
        Slice(f"{at}_parts", sums, tops=[f"{at}_gates", f"{at}_new"], slice_point=3 * units),
        Sigmoid(f"{at}_sigmoid", f"{at}_gates", in_place=True),
        Slice(f"{at}_each", f"{at}_gates", tops=gates),
        TanH(f"{at}_tanh", f"{at}_new", in_place=True),
    ]
    cell, hidden = f"{at}_cell", f"{at}_hidden"
    if before is None:
        layers.append(Eltwise(cell, [gates[0], f"{at}_new"], operation="PROD"))
    else:
        layers += [
            Eltwise(f"{at}_kept", [gates[1], before.cell], operation="PROD"),
            Eltwise(f"{at}_added", [gates[0], f"{at}_new"], operation="PROD"),
            Eltwise(cell, [f"{at}_kept", f"{at}_added"]),
        ]
    layers += [
        TanH(f"{at}_squashed", cell),
        Eltwise(hidden, [gates[2], f"{at}_squashed"], operation="PROD"),
    ]
    return layers, ConvLSTMState(hidden, cell)
