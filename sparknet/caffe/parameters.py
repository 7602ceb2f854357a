"""The memory of a net's parameters: all values in one buffer, all gradients in another."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sparknet.caffe.blob import ParamBlob
from sparknet.errors import ArrayError, WeightsError
from sparknet.graph import Graph, Node, ParamRef
from sparknet.layers.fillers import fill
from sparknet.layers.layer import Shape, count, shape_text
from sparknet.layers.user_layer import BlobVec
from sparknet.native import NDArray
from sparknet.native.engine import NetEngine


class EngineParameters:
    """In order of first use; the engine knows each under every shape that shares it."""

    def __init__(self, graph: Graph, engine: NetEngine, given: NDArray | None) -> None:
        """``given`` are the values, which are used where they lie; else they are 0."""
        sizes = [count(param.shape) for param in graph.params]
        if given is not None and given.shape != (sum(sizes),):
            raise ArrayError(
                f"{shape_text(given.shape)} numbers are given for the net's {sum(sizes)} weights"
            )
        self._values = NDArray.zeros((sum(sizes),)) if given is None else given
        self._diffs = NDArray.zeros((sum(sizes),))
        engine.hold(self._values, self._diffs)
        self.offsets = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        self._params = graph.params
        self._engine = engine
        self._numbers: dict[tuple[int, Shape], int] = {}
        self._blobs: dict[tuple[int, Shape], ParamBlob] = {}
        self.apart: set[ParamBlob] = set()
        """Parameters that were reshaped, which the net does not compute with."""

    @property
    def values(self) -> NDArray:
        """All parameters, the newest ones; what is written there counts."""
        return self._engine.at_host(self._values)

    @property
    def diffs(self) -> NDArray:
        """All gradients, likewise."""
        return self._engine.at_host(self._diffs)

    def to_host(self) -> None:
        """Bring values and gradients to where they lie, for who keeps arrays over them."""
        self._engine.at_host(self._values)
        self._engine.at_host(self._diffs)

    def norm_of_diffs(self) -> float:
        """Return the Euclidean norm of all gradients."""
        return self._engine.norm(self._diffs)

    def clear_diffs(self) -> None:
        self._engine.clear(self._diffs)

    def fill(self, seed: int) -> None:
        """By the fillers."""
        values = np.asarray(self.values)
        rng = np.random.default_rng(seed)
        for number, param in enumerate(self._params):
            part = slice(self.offsets[number], self.offsets[number + 1])
            values[part] = fill(param.filler, param.shape, rng).ravel()

    def blob(self, learnable: int, shape: Shape) -> ParamBlob:
        """Return a parameter under one of the shapes that share it."""
        key = (learnable, shape)
        if key not in self._blobs:
            begin, end = self.offsets[learnable], self.offsets[learnable + 1]
            values = self._values[begin:end].reshape(shape)
            diffs = self._diffs[begin:end].reshape(shape)
            self._blobs[key] = ParamBlob(values, diffs, self.apart, self._engine)
            self._numbers[key] = self._engine.add_param(values, diffs)
        return self._blobs[key]

    def number(self, ref: ParamRef) -> int:
        """Return what the engine calls a parameter."""
        return self._numbers[ref.learnable, ref.shape]

    def check(self, nodes: Iterable[Node], own: Iterable[BlobVec]) -> None:
        """Refuse to compute with a parameter of more or fewer values than its layer has."""
        if not self.apart:
            return
        for node, blobs in zip(nodes, own, strict=True):
            for number, blob in enumerate(blobs):
                if blob in self.apart:
                    raise WeightsError(
                        node.name,
                        f"parameter {number} was reshaped to {shape_text(blob.shape)}: save the "
                        "net, and load the file into a net whose layer has that shape",
                    )

    def share(self, ref: ParamRef, mine: ParamBlob, source: ParamBlob) -> None:
        """Use the values of another net's parameter."""
        mine.share(source)
        self._engine.share_param(self.number(ref), source.array)

    def share_buffer(self, other: EngineParameters) -> None:
        """Have the other net's buffer for one's own, if every parameter lies there by now."""
        if self._blobs and all(one.shares_with(other._values) for one in self._blobs.values()):
            self._values = other._values
