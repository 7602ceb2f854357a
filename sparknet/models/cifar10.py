"""CIFAR-10: Krizhevsky's cuda-convnet, full and quick, as Caffe's examples have them."""

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


def full_conv(name: str, bottom: str, filters: int, std: float, **options: Any) -> LayerSpec:
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
    layer: LayerSpec = LRN(
        name, bottom, local_size=3, alpha=5e-5, beta=0.75, norm_region="WITHIN_CHANNEL"
    )
    return layer


def cifar10_full(batch: int = 100, test_batch: int = 100) -> NetParams:
    """CIFAR-10, the full one: Krizhevsky's cuda-convnet, as Caffe's examples/cifar10 has it."""
    return NetParams(
        "CIFAR10_full",
        inputs(batch, test_batch, (3, 32, 32)),
        full_conv("conv1", "data", 32, 0.0001, lr_mult=[1, 2]),
        max_pool("pool1", "conv1", 3, 2),
        relu("relu1", "pool1"),
        norm("norm1", "pool1"),
        full_conv("conv2", "norm1", 32, 0.01, lr_mult=[1, 2]),
        relu("relu2", "conv2"),
        PoolLayer("pool2", "conv2", pool="ave", kernel=3, stride=2),
        norm("norm2", "pool2"),
        full_conv("conv3", "norm2", 64, 0.01),
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


def cifar10_full_solver() -> SolverParams:
    """Return the zoo's three files (a tenth of the rate after 60,000 and 65,000) as one."""
    return SolverParams(
        net=cifar10_full(),
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


def filled(std: float) -> dict[str, Any]:
    return {
        "lr_mult": [1, 2],
        "weight_filler": {"type": "gaussian", "std": std},
        "bias_filler": "constant",
    }


def quick_conv(name: str, bottom: str, filters: int, std: float) -> LayerSpec:
    return ConvLayer(name, bottom, kernel=5, pad=2, stride=1, num_filters=filters, **filled(std))


def cifar10_quick(batch: int = 100, test_batch: int = 100) -> NetParams:
    """CIFAR-10, the quick one: Krizhevsky's cuda-convnet, as Caffe's examples/cifar10 has it."""
    return NetParams(
        "CIFAR10_quick",
        inputs(batch, test_batch, (3, 32, 32)),
        quick_conv("conv1", "data", 32, 0.0001),
        max_pool("pool1", "conv1", 3, 2),
        relu("relu1", "pool1"),
        quick_conv("conv2", "pool1", 32, 0.01),
        relu("relu2", "conv2"),
        PoolLayer("pool2", "conv2", pool="ave", kernel=3, stride=2),
        quick_conv("conv3", "pool2", 64, 0.01),
        relu("relu3", "conv3"),
        PoolLayer("pool3", "conv3", pool="ave", kernel=3, stride=2),
        LinearLayer("ip1", "pool3", num_outputs=64, **filled(0.1)),
        LinearLayer("ip2", "ip1", num_outputs=10, **filled(0.1)),
        Accuracy("accuracy", ["ip2", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["ip2", "label"]),
    )


def cifar10_quick_solver() -> SolverParams:
    """Return the zoo's two files (rate 0.001 to 4,000, then 0.0001 to 5,000) as one."""
    return SolverParams(
        net=cifar10_quick(),
        snapshot_prefix="cifar10_quick",
        solver_mode="CPU",
        test_iter=100,
        test_interval=500,
        base_lr=0.001,
        momentum=0.9,
        weight_decay=0.004,
        lr_policy="multistep",
        gamma=0.1,
        stepvalue=4000,
        display=100,
        max_iter=5000,
        snapshot=4000,
    )
