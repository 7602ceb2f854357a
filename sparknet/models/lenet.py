"""LeNet on MNIST: LeCun et al. 1998, with ReLU, as Caffe's examples/mnist has it."""

from __future__ import annotations

from sparknet.dsl import (
    Accuracy,
    ActivationLayer,
    ConvLayer,
    LinearLayer,
    NetParams,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.blocks import inputs, max_pool

PREPROCESSING = Preprocessing(scale=1 / 255)

FILLED = {"weight_filler": "xavier", "bias_filler": "constant", "lr_mult": [1, 2]}


def net(batch: int = 64, test_batch: int = 100) -> NetParams:
    return NetParams(
        "LeNet",
        inputs(batch, test_batch, (1, 28, 28)),
        ConvLayer("conv1", "data", kernel=5, stride=1, num_filters=20, **FILLED),
        max_pool("pool1", "conv1", 2, 2),
        ConvLayer("conv2", "pool1", kernel=5, stride=1, num_filters=50, **FILLED),
        max_pool("pool2", "conv2", 2, 2),
        LinearLayer("ip1", "pool2", num_outputs=500, **FILLED),
        ActivationLayer("relu1", "ip1", activation="relu", in_place=True),
        LinearLayer("ip2", "ip1", num_outputs=10, **FILLED),
        Accuracy("accuracy", ["ip2", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["ip2", "label"]),
    )


def solver() -> SolverParams:
    return SolverParams(
        net=net(),
        snapshot_prefix="lenet",
        solver_mode="CPU",
        test_iter=100,
        test_interval=500,
        base_lr=0.01,
        momentum=0.9,
        weight_decay=0.0005,
        lr_policy="inv",
        gamma=0.0001,
        power=0.75,
        display=100,
        max_iter=10000,
        snapshot=5000,
    )
