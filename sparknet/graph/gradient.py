"""Which layers run backward, and which bottoms get a gradient (Caffe: net.cpp, Init)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Flow:
    """One layer, as far as gradients depend on it; blobs are numbers."""

    bottoms: Sequence[int]
    tops: Sequence[int]
    is_loss: bool
    """A top carries a loss weight."""
    param_needs: bool
    """A parameter has a learning rate."""
    propagate_down: Sequence[bool] = ()
    """The layer's ``propagate_down``: empty, or one entry for each bottom."""
    is_constant: bool = False
    """The tops do not depend on the bottoms' values."""
    needs: bool = False
    """Result: the layer runs backward."""
    wants: list[bool] = field(default_factory=list)
    """Result, for each bottom: the layer computes its gradient."""


def find_flow(flows: Sequence[Flow], blobs: int) -> None:
    """Fill in ``needs`` and ``wants`` of every layer, in layer order."""
    _forward(flows, [False] * blobs)
    _backward(flows)


def force(flows: Sequence[Flow], allowed: Callable[[int, int], bool]) -> None:
    """``force_backward``: every layer runs backward, to every bottom that it allows."""
    for number, flow in enumerate(flows):
        flow.needs = True
        flow.wants = [want or allowed(number, j) for j, want in enumerate(flow.wants)]


def _forward(flows: Sequence[Flow], blob_needs: list[bool]) -> None:
    for flow in flows:
        reached = [blob_needs[blob] and not flow.is_constant for blob in flow.bottoms]
        flow.wants = list(flow.propagate_down) or reached
        flow.needs = flow.param_needs or any(reached)
        if flow.needs:
            for blob in flow.tops:
                blob_needs[blob] = True


def _backward(flows: Sequence[Flow]) -> None:
    under_loss: set[int] = set()
    cut_off: set[int] = set()
    for flow in reversed(flows):
        leads_to_loss, is_cut = _look_at_tops(flow, under_loss, cut_off)
        if (flow.needs and is_cut) or not leads_to_loss:
            flow.wants = [False] * len(flow.wants)
        flow.needs = flow.needs and leads_to_loss and not is_cut
        if leads_to_loss:
            under_loss.update(flow.bottoms)
        cut_off.update(
            blob for blob, want in zip(flow.bottoms, flow.wants, strict=True) if not want
        )


def _look_at_tops(flow: Flow, under_loss: set[int], cut_off: set[int]) -> tuple[bool, bool]:
    leads_to_loss = flow.is_loss or any(blob in under_loss for blob in flow.tops)
    return leads_to_loss, all(blob in cut_off for blob in flow.tops)
