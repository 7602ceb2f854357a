"""A layer in its place in the net."""

from __future__ import annotations

from dataclasses import dataclass

from sparknet.graph.params import ParamRef
from sparknet.layers import Layer, Plan
from sparknet.layers.layer import count


@dataclass(frozen=True, eq=False)
class Node:
    """A layer in its place."""

    name: str
    type: str
    layer: Layer
    plan: Plan
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    bottom_ids: tuple[int, ...]
    """Each bottom's place in ``Graph.blob_names``."""
    top_ids: tuple[int, ...]
    loss_weights: tuple[float, ...]
    """One for each top; 0 where the top is no loss."""
    needs_backward: bool
    propagate_down: tuple[bool, ...]
    """For each bottom, whether the layer computes its gradient."""
    params: tuple[ParamRef, ...] = ()

    @property
    def phase(self) -> int:
        return self.layer.phase

    @property
    def in_place(self) -> bool:
        return any(top in self.bottom_ids for top in self.top_ids)

    @property
    def param_count(self) -> int:
        """Values in this layer's parameter blobs, shared ones among them."""
        return sum(count(ref.shape) for ref in self.params)
