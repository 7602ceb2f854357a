"""A word-level language model: the LSTM of Donahue et al. 2015 (LRCN), without images.

Time comes first: every blob is (steps, streams).  ``cont`` is 0 where a
sentence begins and 1 where it goes on; targets of -1 do not count.
"""

from __future__ import annotations

from sparknet.dsl import (
    LSTM,
    Accuracy,
    Embed,
    InnerProduct,
    LayerSpec,
    NetParams,
    RDDLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.models.blocks import BIAS_TWICE

WORDS = 8801
"""The vocabulary and an end-of-sentence token."""
UNITS = 1000
STEPS = 20
UNIFORM = {"type": "uniform", "min": -0.08, "max": 0.08}
ZERO = {"type": "constant", "value": 0}


def inputs(train: int, test: int) -> list[LayerSpec]:
    return [
        RDDLayer(blob, shape=[STEPS, streams], include=phase)
        for phase, streams in (("TRAIN", train), ("TEST", test))
        for blob in ("data", "cont", "label")
    ]


def net(batch: int = 100, test_batch: int = 100) -> NetParams:
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


def solver() -> SolverParams:
    return SolverParams(
        net=net(),
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
