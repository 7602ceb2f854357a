"""What a layer that lives in Python does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.graph import Node


class Host(ABC):
    """A layer of a runtime; blobs are views of the engine's memory.

    A host may give its tops other shapes in `reshape` and in `forward`; the layers
    that follow adopt them when they run.
    """

    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        self.node = node
        self.params = params
        self.seed = seed

    def reshape(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:  # noqa: B027
        """Before the first pass, and before each `forward`."""

    @abstractmethod
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None: ...

    def backward(  # noqa: B027
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        """Sources have no gradients to compute."""

    def reseed(self, seed: int) -> None:
        """Random numbers start again."""
        self.seed = seed

    def close(self) -> None:  # noqa: B027
        """Close files and end threads."""


class DrawingHost(Host):
    """A layer that draws random numbers."""

    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.rng = np.random.default_rng(seed)

    def reseed(self, seed: int) -> None:
        super().reseed(seed)
        self.rng = np.random.default_rng(seed)
