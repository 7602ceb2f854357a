"""SqueezeNet v1.1: Iandola et al. 2016, in the layer names of the authors' Caffe files."""

from __future__ import annotations

from typing import Any

from sparknet.dsl import (
    Accuracy,
    Concat,
    Dropout,
    LayerSpec,
    NetParams,
    PoolLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import conv_relu, inputs, max_pool

PREPROCESSING = Preprocessing(mean=(104, 117, 123))


def conv(
    name: str, bottom: str, filters: int, kernel: int, relu: str, **options: Any
) -> list[LayerSpec]:
    return conv_relu(name, bottom, filters, kernel, relu, weight_filler="xavier", **options)


def fire(number: int, bottom: str, squeeze: int, expand: int) -> list[LayerSpec]:
    """Squeeze to few channels, expand by 1x1 and 3x3 side by side."""
    name = f"fire{number}"
    squeezed = f"{name}/squeeze1x1"
    parts = [f"{name}/expand1x1", f"{name}/expand3x3"]
    return [
        *conv(squeezed, bottom, squeeze, 1, f"{name}/relu_squeeze1x1"),
        *conv(parts[0], squeezed, expand, 1, f"{name}/relu_expand1x1"),
        *conv(parts[1], squeezed, expand, 3, f"{name}/relu_expand3x3", pad=1),
        Concat(f"{name}/concat", parts),
    ]


def classifier() -> list[LayerSpec]:
    return [
        Dropout("drop9", "fire9/concat", dropout_ratio=0.5, in_place=True),
        *conv_relu(
            "conv10",
            "fire9/concat",
            1000,
            1,
            "relu_conv10",
            weight_filler={"type": "gaussian", "mean": 0, "std": 0.01},
        ),
        PoolLayer("pool10", "conv10", pool="ave", global_pooling=True),
        SoftmaxWithLoss("loss", ["pool10", "label"]),
        Accuracy("accuracy", ["pool10", "label"], include="TEST"),
        Accuracy("accuracy_top5", ["pool10", "label"], include="TEST", top_k=5),
    ]


def net(batch: int = 32, test_batch: int = 25) -> NetParams:
    return NetParams(
        "SqueezeNet_v1.1",
        inputs(batch, test_batch, (3, 227, 227)),
        conv("conv1", "data", 64, 3, "relu_conv1", stride=2),
        max_pool("pool1", "conv1", 3, 2),
        fire(2, "pool1", 16, 64),
        fire(3, "fire2/concat", 16, 64),
        max_pool("pool3", "fire3/concat", 3, 2),
        fire(4, "pool3", 32, 128),
        fire(5, "fire4/concat", 32, 128),
        max_pool("pool5", "fire5/concat", 3, 2),
        fire(6, "pool5", 48, 192),
        fire(7, "fire6/concat", 48, 192),
        fire(8, "fire7/concat", 64, 256),
        fire(9, "fire8/concat", 64, 256),
        classifier(),
    )


def solver() -> SolverParams:
    """Return the authors': an effective batch of 512 by gradient accumulation, a linear decay."""
    return SolverParams(
        net=net(),
        snapshot_prefix="squeezenet",
        solver_mode="CPU",
        test_iter=2000,
        test_interval=1000,
        test_initialization=False,
        base_lr=0.04,
        display=40,
        average_loss=40,
        max_iter=170000,
        iter_size=16,
        lr_policy="poly",
        power=1,
        momentum=0.9,
        weight_decay=0.0002,
        snapshot=1000,
        random_seed=42,
    )
