"""Layers that cannot learn, as their weights and those of all that follow start at zero."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

from sparknet.caffe.net import Net
from sparknet.errors import SolverError, outside, shown
from sparknet.graph import Node
from sparknet.proto.caffe_pb2 import SolverParameter

_MOST = 8


def missing_loss(net: Any) -> str | None:
    """Return the sentence about a net in which no blob has a loss weight; None where one has."""
    if any(net.blob_loss_weights.values()):
        return None
    outputs = ", ".join(f"'{shown(name)}'" for name in net.outputs[-_MOST:])
    return (
        f"net '{shown(getattr(net, 'name', ''))}' has no loss in its TRAIN phase, so nothing "
        f"learns: add a layer such as SoftmaxWithLoss, or say loss_weight: 1 in the layer that "
        f"computes the loss; the net's outputs are {outputs or 'none'}"
    )


def check_loss(net: Any) -> None:
    """Refuse to train a net without a loss, which Caffe does silently."""
    if fault := missing_loss(net):
        raise SolverError(fault)


class IdleWarning(UserWarning):
    """Layers of a net that is trained from scratch learn nothing."""


def warn_of_idle(net: Net, solver: SolverParameter) -> None:
    """Name the layers that learn nothing.  Caffe gives no warning: no filler means 0."""
    fault = missing_loss(net)
    if not fault and not (solver.base_lr or solver.stagelr or solver.warmup_iter):
        fault = "base_lr is 0, so no weight changes: give the solver a learning rate, such as 0.01"
    if fault:
        warnings.warn(fault, IdleWarning, stacklevel=outside())
        return
    if names := idle_layers(net):
        quoted = [f"'{shown(name)}'" for name in names]
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        many = len(names) > 1
        warnings.warn(
            f"{'layers' if many else 'layer'} {', '.join(quoted[:_MOST])}{more} "
            f"{'learn' if many else 'learns'} nothing: the weights there start at 0, and so do "
            "those of the layers that follow; give each a weight_filler, such as xavier, or "
            "weights to begin with",
            IdleWarning,
            stacklevel=outside(),
        )


def idle_layers(net: Net) -> list[str]:
    """The layers whose weights are 0 and get no gradient: every way to a loss leads through
    another layer whose weights are 0."""
    zeros = _zeros(net)
    live, idle = set[int](), list[str]()
    for node in reversed(net.graph.nodes):
        reaches = any(node.loss_weights) or not live.isdisjoint(node.top_ids)
        if not _is_zero(node, zeros):
            live.update(node.bottom_ids if reaches else ())
        elif node.needs_backward and not reaches and any(ref.needs_gradient for ref in node.params):
            idle.append(node.name)
    return idle[::-1]


def _zeros(net: Net) -> frozenset[int]:
    """The places of the learnable blobs that are 0."""
    flat, spans = net.flat_params, pairwise(net._runtime.parameters.offsets)
    return frozenset(
        place
        for place, (begin, end) in enumerate(spans)
        if not flat.subarray([begin], [end]).norm2()
    )


def _is_zero(node: Node, zeros: frozenset[int]) -> bool:
    """Whether a layer has weights, not only biases or one factor a channel, and they are 0."""
    weights = [ref for ref in node.params if len(ref.shape) > 1]
    return bool(weights) and all(ref.learnable in zeros for ref in weights)
