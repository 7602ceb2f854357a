"""LSTM: a language model of words, and the steps of a ConvLSTM (Shi et al. 2015)."""

from __future__ import annotations

from typing import Any, NamedTuple

from sparknet.dsl import (
    LSTM,
    Accuracy,
    Convolution,
    Eltwise,
    Embed,
    InnerProduct,
    LayerSpec,
    NetParams,
    RDDLayer,
    Sigmoid,
    Slice,
    SoftmaxWithLoss,
    SolverParams,
    TanH,
)
from sparknet.errors import SpecError
from sparknet.models.blocks import BIAS_TWICE


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
    """Return one step in time of the ConvLSTM ``name``: its layers, and the state after it.

    ``bottom`` is a map, or None for a step that only goes on from its state; ``before`` is the
    state, which may be another ConvLSTM's, or None at the beginning.  All steps of one name share
    their weights.  Gates are in the order of Caffe's LSTM (input, forget, output, candidate),
    without the paper's peepholes.  ``options`` are the convolutions'."""
    at = f"{name}_{step}"
    layers: list[LayerSpec] = []
    products: list[str] = []
    for part, below in (("x", bottom), ("h", before and before.hidden)):
        if below is None:
            continue
        own = [f"{name}_{part}"] if products else [f"{name}_{part}", f"{name}_bias"]
        shape: dict[str, Any] = {"num_output": 4 * units, "kernel_size": kernel, "pad": kernel // 2}
        settings: dict[str, Any] = {
            "weight_filler": "xavier",
            "bias_term": not products,
            "param": own,
        }
        settings |= options
        products.append(f"{at}_{part}")
        layers.append(Convolution(products[-1], below, **shape, **settings))
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


WORDS = 8801
"""The vocabulary and an end-of-sentence token."""
UNITS = 1000
STEPS = 20
UNIFORM = {"type": "uniform", "min": -0.08, "max": 0.08}
ZERO = {"type": "constant", "value": 0}


def inputs(train: int, test: int) -> list[LayerSpec]:
    """Return inputs with time first; ``cont`` is 0 where a sentence begins."""
    return [
        RDDLayer(blob, shape=[STEPS, streams], include=phase)
        for phase, streams in (("TRAIN", train), ("TEST", test))
        for blob in ("data", "cont", "label")
    ]


def lstm_text(batch: int = 100, test_batch: int = 100) -> NetParams:
    """Return a word-level language model, the LSTM of Donahue et al. 2015, without images."""
    return NetParams(
        "lstm_text",
        inputs(batch, test_batch),
        Embed(
            "embedding",
            "data",
            input_dim=WORDS,
            num_output=UNITS,
            bias_term=False,
            weight_filler=UNIFORM,
            lr_mult=1,
        ),
        LSTM(
            "lstm1",
            ["embedding", "cont"],
            num_output=UNITS,
            weight_filler=UNIFORM,
            bias_filler=ZERO,
        ),
        InnerProduct(
            "predict",
            "lstm1",
            num_output=WORDS,
            axis=2,
            weight_filler=UNIFORM,
            bias_filler=ZERO,
            **BIAS_TWICE,
        ),
        Accuracy("accuracy", ["predict", "label"], include="TEST", axis=2, ignore_label=-1),
        SoftmaxWithLoss("loss", ["predict", "label"], loss_weight=20, axis=2, ignore_label=-1),
    )


def lstm_text_solver() -> SolverParams:
    return SolverParams(
        net=lstm_text(),
        snapshot_prefix="lstm_text",
        solver_mode="CPU",
        test_iter=25,
        test_interval=1000,
        base_lr=0.1,
        lr_policy="step",
        gamma=0.5,
        stepsize=20000,
        display=1,
        max_iter=110000,
        momentum=0.9,
        weight_decay=0,
        snapshot=5000,
        random_seed=1701,
        average_loss=100,
        clip_gradients=10,
    )
