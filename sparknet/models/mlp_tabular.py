"""A multilayer perceptron over rows of 1,000 numbers, for two classes."""

from __future__ import annotations

from typing import Any

from sparknet.dsl import (
    Accuracy,
    ActivationLayer,
    Dropout,
    LayerSpec,
    LinearLayer,
    NetParams,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.models.blocks import BIAS_TWICE, inputs

FEATURES = 1000
CLASSES = 2
FILLED: dict[str, Any] = {**BIAS_TWICE, "bias_filler": "constant"}


def hidden(number: int, bottom: str, units: int) -> list[LayerSpec]:
    name = f"ip{number}"
    return [
        LinearLayer(name, bottom, num_outputs=units, weight_filler="msra", **FILLED),
        ActivationLayer(f"relu{number}", name, activation="relu", in_place=True),
        Dropout(f"drop{number}", name, dropout_ratio=0.2, in_place=True),
    ]


def net(
    batch: int = 256, test_batch: int = 256, features: int = FEATURES, units: int = 512
) -> NetParams:
    return NetParams(
        "mlp_tabular",
        inputs(batch, test_batch, (features,)),
        hidden(1, "data", units),
        hidden(2, "ip1", units // 2),
        LinearLayer("ip3", "ip2", num_outputs=CLASSES, weight_filler="xavier", **FILLED),
        Accuracy("accuracy", ["ip3", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["ip3", "label"]),
    )


def solver() -> SolverParams:
    return SolverParams(
        net=net(),
        snapshot_prefix="mlp_tabular",
        solver_mode="CPU",
        type="Adam",
        test_iter=40,
        test_interval=500,
        base_lr=0.001,
        lr_policy="fixed",
        momentum=0.9,
        momentum2=0.999,
        weight_decay=0.0001,
        display=100,
        max_iter=10000,
        snapshot=5000,
    )
