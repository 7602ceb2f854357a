"""ResNet-50: He et al. 2015, in the layer names of the authors' Caffe files."""

from __future__ import annotations

from sparknet.dsl import (
    Accuracy,
    ActivationLayer,
    BatchNorm,
    ConvLayer,
    Eltwise,
    LayerSpec,
    LinearLayer,
    NetParams,
    PoolLayer,
    Scale,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.models.blocks import inputs, max_pool

STAGES = ((2, 64, 3), (3, 128, 4), (4, 256, 6), (5, 512, 3))
"""Stage, width of the bottleneck, blocks."""


def normalised(name: str, blob: str) -> list[LayerSpec]:
    """BatchNorm and Scale in place, e.g. bn2a_branch1 and scale2a_branch1."""
    return [
        BatchNorm(f"bn{name}", blob, in_place=True),
        Scale(f"scale{name}", blob, in_place=True, bias_term=True),
    ]


def conv(
    name: str, bottom: str, filters: int, kernel: int, stride: int = 1, *, relu: bool = True
) -> list[LayerSpec]:
    blob = f"res{name}"
    layers = [
        ConvLayer(
            blob,
            bottom,
            kernel=kernel,
            num_filters=filters,
            stride=stride,
            pad=kernel // 2,
            bias_term=False,
            weight_filler="msra",
        ),
        *normalised(name, blob),
    ]
    if relu:
        layers.append(ActivationLayer(f"{blob}_relu", blob, activation="relu", in_place=True))
    return layers


def block(name: str, bottom: str, width: int, stride: int, project: bool) -> list[LayerSpec]:
    """Return a bottleneck; `project` puts a convolution on the short cut."""
    out = f"res{name}"
    short = conv(f"{name}_branch1", bottom, 4 * width, 1, stride, relu=False) if project else []
    return [
        *short,
        *conv(f"{name}_branch2a", bottom, width, 1, stride),
        *conv(f"{name}_branch2b", f"{out}_branch2a", width, 3),
        *conv(f"{name}_branch2c", f"{out}_branch2b", 4 * width, 1, relu=False),
        Eltwise(out, [f"{out}_branch1" if project else bottom, f"{out}_branch2c"]),
        ActivationLayer(f"{out}_relu", out, activation="relu", in_place=True),
    ]


def stages() -> list[LayerSpec]:
    layers: list[LayerSpec] = []
    below = "pool1"
    for stage, width, count in STAGES:
        for step in range(count):
            name = f"{stage}{'abcdef'[step]}"
            stride = 2 if step == 0 and stage > 2 else 1
            layers += block(name, below, width, stride, project=step == 0)
            below = f"res{name}"
    return layers


def stem() -> list[LayerSpec]:
    """Return the first layers; conv1 keeps a bias, so that the authors' weights load."""
    return [
        ConvLayer("conv1", "data", kernel=7, num_filters=64, pad=3, stride=2, weight_filler="msra"),
        *normalised("_conv1", "conv1"),
        ActivationLayer("conv1_relu", "conv1", activation="relu", in_place=True),
        max_pool("pool1", "conv1", 3, 2),
    ]


def net(batch: int = 256, test_batch: int = 50) -> NetParams:
    return NetParams(
        "ResNet-50",
        inputs(batch, test_batch, (3, 224, 224)),
        stem(),
        stages(),
        PoolLayer("pool5", "res5c", pool="ave", kernel=7, stride=1),
        LinearLayer(
            "fc1000", "pool5", num_outputs=1000, weight_filler="msra", bias_filler="constant"
        ),
        Accuracy("accuracy", ["fc1000", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["fc1000", "label"]),
    )


def solver() -> SolverParams:
    """Return the paper's; it lowers the rate by hand at plateaus, here at every 150,000."""
    return SolverParams(
        net=net(),
        snapshot_prefix="resnet50",
        solver_mode="CPU",
        test_iter=1000,
        test_interval=5000,
        base_lr=0.1,
        lr_policy="multistep",
        gamma=0.1,
        stepvalue=[150000, 300000, 450000],
        display=20,
        max_iter=600000,
        momentum=0.9,
        weight_decay=0.0001,
        snapshot=10000,
    )
