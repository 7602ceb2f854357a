"""CaffeNet: AlexNet with pooling before normalisation, the zoo's bvlc_reference_caffenet."""

from __future__ import annotations

from sparknet.dsl import NetParams, SolverParams
from sparknet.models.alexnet.net import PREPROCESSING, classifier, convolutions, imagenet
from sparknet.models.blocks import inputs

__all__ = ["PREPROCESSING", "net", "solver"]


def net(batch: int = 256, test_batch: int = 50) -> NetParams:
    return NetParams(
        "CaffeNet",
        inputs(batch, test_batch, (3, 227, 227)),
        convolutions(bias=1, norm_first=False),
        classifier(bias=1),
    )


def solver() -> SolverParams:
    return imagenet("caffenet", net())
