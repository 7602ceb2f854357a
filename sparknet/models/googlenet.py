"""GoogLeNet: Szegedy et al. 2014, as the BVLC zoo's bvlc_googlenet has it."""

from __future__ import annotations

from typing import Any

from sparknet.dsl import (
    LRN,
    Accuracy,
    ActivationLayer,
    Concat,
    Dropout,
    LayerSpec,
    LinearLayer,
    NetParams,
    PoolLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import BIAS_TWICE, conv_relu, inputs, max_pool

PREPROCESSING = Preprocessing(mean=(104, 117, 123))

FILLED: dict[str, Any] = {
    **BIAS_TWICE,
    "weight_filler": "xavier",
    "bias_filler": {"type": "constant", "value": 0.2},
}


def conv(
    name: str, bottom: str, filters: int, kernel: int, relu: str = "", **options: Any
) -> list[LayerSpec]:
    stem, _, last = name.rpartition("/")
    relu = relu or f"{stem}/relu_{last}"
    return conv_relu(name, bottom, filters, kernel, relu, **options, **FILLED)


def inception(name: str, bottom: str, widths: tuple[int, ...]) -> list[LayerSpec]:
    """Four branches side by side: 1x1, 3x3, 5x5 and a pooled projection."""
    one, reduce3, three, reduce5, five, projected = widths
    into = f"inception_{name}"
    branches = [f"{into}/{branch}" for branch in ("1x1", "3x3", "5x5", "pool_proj")]
    return [
        *conv(f"{into}/1x1", bottom, one, 1),
        *conv(f"{into}/3x3_reduce", bottom, reduce3, 1),
        *conv(f"{into}/3x3", f"{into}/3x3_reduce", three, 3, pad=1),
        *conv(f"{into}/5x5_reduce", bottom, reduce5, 1),
        *conv(f"{into}/5x5", f"{into}/5x5_reduce", five, 5, pad=2),
        PoolLayer(f"{into}/pool", bottom, pool="max", kernel=3, stride=1, pad=1),
        *conv(f"{into}/pool_proj", f"{into}/pool", projected, 1),
        Concat(f"{into}/output", branches),
    ]


def classifier(name: str, bottom: str) -> LayerSpec:
    return LinearLayer(
        name,
        bottom,
        num_outputs=1000,
        **BIAS_TWICE,
        weight_filler="xavier",
        bias_filler={"type": "constant", "value": 0},
    )


def scores(head: str, bottom: str, loss: str, top: str, weight: float) -> list[LayerSpec]:
    return [
        SoftmaxWithLoss(loss, [bottom, "label"], tops=[top], loss_weight=weight),
        Accuracy(f"{head}/top-1", [bottom, "label"], include="TEST"),
        Accuracy(f"{head}/top-5", [bottom, "label"], include="TEST", top_k=5),
    ]


def side_head(number: int, bottom: str) -> list[LayerSpec]:
    """Return an auxiliary classifier in the middle of the net, with weight 0.3."""
    head = f"loss{number}"
    return [
        PoolLayer(f"{head}/ave_pool", bottom, pool="ave", kernel=5, stride=3),
        *conv(f"{head}/conv", f"{head}/ave_pool", 128, 1),
        LinearLayer(f"{head}/fc", f"{head}/conv", num_outputs=1024, **FILLED),
        ActivationLayer(f"{head}/relu_fc", f"{head}/fc", activation="relu", in_place=True),
        Dropout(f"{head}/drop_fc", f"{head}/fc", dropout_ratio=0.7, in_place=True),
        classifier(f"{head}/classifier", f"{head}/fc"),
        *scores(head, f"{head}/classifier", f"{head}/loss", f"{head}/loss1", 0.3),
    ]


def stem() -> list[LayerSpec]:
    return [
        *conv("conv1/7x7_s2", "data", 64, 7, "conv1/relu_7x7", pad=3, stride=2),
        max_pool("pool1/3x3_s2", "conv1/7x7_s2", 3, 2),
        LRN("pool1/norm1", "pool1/3x3_s2", local_size=5, alpha=0.0001, beta=0.75),
        *conv("conv2/3x3_reduce", "pool1/norm1", 64, 1),
        *conv("conv2/3x3", "conv2/3x3_reduce", 192, 3, pad=1),
        LRN("conv2/norm2", "conv2/3x3", local_size=5, alpha=0.0001, beta=0.75),
        max_pool("pool2/3x3_s2", "conv2/norm2", 3, 2),
    ]


def head() -> list[LayerSpec]:
    return [
        PoolLayer("pool5/7x7_s1", "inception_5b/output", pool="ave", kernel=7, stride=1),
        Dropout("pool5/drop_7x7_s1", "pool5/7x7_s1", dropout_ratio=0.4, in_place=True),
        classifier("loss3/classifier", "pool5/7x7_s1"),
        *scores("loss3", "loss3/classifier", "loss3/loss3", "loss3/loss3", 1),
    ]


def net(batch: int = 32, test_batch: int = 50) -> NetParams:
    return NetParams(
        "GoogLeNet",
        inputs(batch, test_batch, (3, 224, 224)),
        stem(),
        inception("3a", "pool2/3x3_s2", (64, 96, 128, 16, 32, 32)),
        inception("3b", "inception_3a/output", (128, 128, 192, 32, 96, 64)),
        max_pool("pool3/3x3_s2", "inception_3b/output", 3, 2),
        inception("4a", "pool3/3x3_s2", (192, 96, 208, 16, 48, 64)),
        side_head(1, "inception_4a/output"),
        inception("4b", "inception_4a/output", (160, 112, 224, 24, 64, 64)),
        inception("4c", "inception_4b/output", (128, 128, 256, 24, 64, 64)),
        inception("4d", "inception_4c/output", (112, 144, 288, 32, 64, 64)),
        side_head(2, "inception_4d/output"),
        inception("4e", "inception_4d/output", (256, 160, 320, 32, 128, 128)),
        max_pool("pool4/3x3_s2", "inception_4e/output", 3, 2),
        inception("5a", "pool4/3x3_s2", (256, 160, 320, 32, 128, 128)),
        inception("5b", "inception_5a/output", (384, 192, 384, 48, 128, 128)),
        head(),
    )


def solver() -> SolverParams:
    """Return the zoo's quick_solver: polynomial decay."""
    return SolverParams(
        net=net(),
        snapshot_prefix="googlenet",
        solver_mode="CPU",
        test_iter=1000,
        test_interval=4000,
        test_initialization=False,
        display=40,
        average_loss=40,
        base_lr=0.01,
        lr_policy="poly",
        power=0.5,
        max_iter=2400000,
        momentum=0.9,
        weight_decay=0.0002,
        snapshot=40000,
    )
