"""AlexNet: Krizhevsky et al. 2012, as the BVLC zoo's bvlc_alexnet has it."""

from __future__ import annotations

from typing import Any

from sparknet.dsl import (
    LRN,
    Accuracy,
    LayerSpec,
    LinearLayer,
    NetParams,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import BIAS_TWICE, conv_relu, inputs, linear_relu_dropout, max_pool

PREPROCESSING = Preprocessing(resize=(256, 256), crop=(227, 227), mean=(104, 117, 123), mirror=True)
"""The zoo's train_val.prototxt, with the channels' means that caffenet's names beside its image."""


def filled(std: float, bias: float) -> dict[str, Any]:
    return {
        **BIAS_TWICE,
        "weight_filler": {"type": "gaussian", "std": std},
        "bias_filler": {"type": "constant", "value": bias},
    }


def norm(name: str, bottom: str) -> LayerSpec:
    layer: LayerSpec = LRN(name, bottom, local_size=5, alpha=0.0001, beta=0.75)
    return layer


def convolutions(bias: float, norm_first: bool) -> list[LayerSpec]:
    """Return the five convolutions; `norm_first` puts each LRN before its pooling."""
    layers = conv_relu("conv1", "data", 96, 11, "relu1", stride=4, **filled(0.01, 0))
    layers += norm_and_pool("1", norm_first)
    below = "pool1" if norm_first else "norm1"
    layers += conv_relu("conv2", below, 256, 5, "relu2", pad=2, group=2, **filled(0.01, bias))
    layers += norm_and_pool("2", norm_first)
    below = "pool2" if norm_first else "norm2"
    layers += conv_relu("conv3", below, 384, 3, "relu3", pad=1, **filled(0.01, 0))
    layers += conv_relu("conv4", "conv3", 384, 3, "relu4", pad=1, group=2, **filled(0.01, bias))
    layers += conv_relu("conv5", "conv4", 256, 3, "relu5", pad=1, group=2, **filled(0.01, bias))
    return [*layers, max_pool("pool5", "conv5", 3, 2)]


def norm_and_pool(digit: str, norm_first: bool) -> list[LayerSpec]:
    conv, normed, pool = f"conv{digit}", f"norm{digit}", f"pool{digit}"
    if norm_first:
        return [norm(normed, conv), max_pool(pool, normed, 3, 2)]
    return [max_pool(pool, conv, 3, 2), norm(normed, pool)]


def classifier(bias: float) -> list[LayerSpec]:
    return [
        *linear_relu_dropout("6", "pool5", 4096, 0.5, **filled(0.005, bias)),
        *linear_relu_dropout("7", "fc6", 4096, 0.5, **filled(0.005, bias)),
        LinearLayer("fc8", "fc7", num_outputs=1000, **filled(0.01, 0)),
        Accuracy("accuracy", ["fc8", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["fc8", "label"]),
    ]


def net(batch: int = 256, test_batch: int = 50) -> NetParams:
    return NetParams(
        "AlexNet",
        inputs(batch, test_batch, (3, 227, 227)),
        convolutions(bias=0.1, norm_first=True),
        classifier(bias=0.1),
    )


def imagenet(name: str, net: NetParams) -> SolverParams:
    return SolverParams(
        net=net,
        snapshot_prefix=name,
        solver_mode="CPU",
        test_iter=1000,
        test_interval=1000,
        base_lr=0.01,
        lr_policy="step",
        gamma=0.1,
        stepsize=100000,
        display=20,
        max_iter=450000,
        momentum=0.9,
        weight_decay=0.0005,
        snapshot=10000,
    )


def solver() -> SolverParams:
    return imagenet("alexnet", net())


CAFFENET_PREPROCESSING = PREPROCESSING


def caffenet(batch: int = 256, test_batch: int = 50) -> NetParams:
    """CaffeNet: AlexNet with pooling before normalisation, the zoo's bvlc_reference_caffenet."""
    return NetParams(
        "CaffeNet",
        inputs(batch, test_batch, (3, 227, 227)),
        convolutions(bias=1, norm_first=False),
        classifier(bias=1),
    )


def caffenet_solver() -> SolverParams:
    return imagenet("caffenet", caffenet())
