"""CIFAR-10, the full one: Krizhevsky's cuda-convnet, as Caffe's examples/cifar10 has it."""

from __future__ import annotations

from typing import Any

from sparknet.dsl import (
    LRN,
    Accuracy,
    ActivationLayer,
    ConvLayer,
    LayerSpec,
    LinearLayer,
    NetParams,
    PoolLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.models.blocks import inputs, max_pool


def conv(name: str, bottom: str, filters: int, std: float, **options: Any) -> LayerSpec:
    return ConvLayer(
        name,
        bottom,
        kernel=5,
        pad=2,
        stride=1,
        num_filters=filters,
        weight_filler={"type": "gaussian", "std": std},
        bias_filler="constant",
        **options,
    )


def relu(name: str, bottom: str) -> LayerSpec:
    return ActivationLayer(name, bottom, activation="relu", in_place=True)


def norm(name: str, bottom: str) -> LayerSpec:
    made: LayerSpec = LRN(
        name, bottom, local_size=3, alpha=5e-5, beta=0.75, norm_region="WITHIN_CHANNEL"
    )
    return made


def net(batch: int = 100, test_batch: int = 100) -> NetParams:
    return NetParams(
        "CIFAR10_full",
        inputs(batch, test_batch, (3, 32, 32)),
        conv("conv1", "data", 32, 0.0001, lr_mult=[1, 2]),
        max_pool("pool1", "conv1", 3, 2),
        relu("relu1", "pool1"),
        norm("norm1", "pool1"),
        conv("conv2", "norm1", 32, 0.01, lr_mult=[1, 2]),
        relu("relu2", "conv2"),
        PoolLayer("pool2", "conv2", pool="ave", kernel=3, stride=2),
        norm("norm2", "pool2"),
        conv("conv3", "norm2", 64, 0.01),
        relu("relu3", "conv3"),
        PoolLayer("pool3", "conv3", pool="ave", kernel=3, stride=2),
        LinearLayer(
            "ip1",
            "pool3",
            num_outputs=10,
            lr_mult=[1, 2],
            decay_mult=[250, 0],
            weight_filler={"type": "gaussian", "std": 0.01},
            bias_filler="constant",
        ),
        Accuracy("accuracy", ["ip1", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["ip1", "label"]),
    )


def solver() -> SolverParams:
    """The zoo's three files (a tenth of the rate after 60,000 and 65,000) as one."""
    return SolverParams(
        net=net(),
        snapshot_prefix="cifar10_full",
        solver_mode="CPU",
        test_iter=100,
        test_interval=1000,
        base_lr=0.001,
        momentum=0.9,
        weight_decay=0.004,
        lr_policy="multistep",
        gamma=0.1,
        stepvalue=[60000, 65000],
        display=200,
        max_iter=70000,
        snapshot=10000,
    )
