"""Warnings about nets and solvers that cannot learn, such as weights that start at zero."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from sparknet.caffe.net import Net
from sparknet.errors import SolverError, clean, warn
from sparknet.graph import Node
from sparknet.proto.caffe_pb2 import SolverParameter

_MOST = 8


def missing_loss(net: Any) -> str | None:
    """Return the sentence about a net in which no blob has a loss weight; None where one has."""
    if any(net.blob_loss_weights.values()):
        return None
    outputs = ", ".join(f"'{clean(name)}'" for name in net.outputs[-_MOST:])
    return (
        f"net '{clean(getattr(net, 'name', ''))}' has no loss in its TRAIN phase, so nothing "
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
    """Warn of what keeps a net from learning, of which Caffe says nothing."""
    for doubt in _doubts(net, solver):
        warn(doubt, IdleWarning)


def _doubts(net: Net, solver: SolverParameter) -> Iterator[str]:
    """Yield a sentence about each."""
    if fault := missing_loss(net):
        yield fault
        return
    if not (solver.base_lr or solver.stagelr or solver.warmup_iter):
        yield "base_lr is 0, so no weight changes: give the solver a learning rate, such as 0.01"
        return
    yield from _odd_settings(solver)
    learnable = [ref for node in net.graph.nodes for ref in node.params]
    if learnable and not any(ref.needs_gradient for ref in learnable):
        yield "no layer learns: each lr_mult is 0, or no loss depends on weights"
    if names := idle_layers(net):
        quoted = [f"'{clean(name)}'" for name in names]
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        many = len(names) > 1
        yield (
            f"{'layers' if many else 'layer'} {', '.join(quoted[:_MOST])}{more} "
            f"{'learn' if many else 'learns'} nothing: the weights there start at 0, and so do "
            "those of the layers that follow; give each a weight_filler, such as xavier, or "
            "weights to begin with"
        )
    yield from _squashed_twice(net)


def _odd_settings(solver: SolverParameter) -> Iterator[str]:
    """Yield a sentence about each setting that no training wants."""
    policy, gamma, clip = solver.lr_policy, solver.gamma, solver.clip_gradients
    decay = solver.base_lr * solver.weight_decay
    if solver.base_lr < 0:
        yield f"base_lr is {solver.base_lr:g}: below 0 the loss rises; give a rate above 0"
    if solver.momentum >= 1:
        yield f"momentum is {solver.momentum:g}: updates grow without end from 1 on; 0.9 is usual"
    if solver.weight_decay < 0:
        yield f"weight_decay is {solver.weight_decay:g}: below 0 the weights grow without end"
    if decay >= 1:
        yield f"base_lr x weight_decay is {decay:g}: from 1 on a step takes more than the weights"
    if not clip:
        yield "clip_gradients is 0, so no weight changes: leave it out, or give a norm above 0"
    if policy in ("step", "multistep", "exp") and not gamma:
        begin = {"step": solver.stepsize, "exp": 1}.get(policy, next(iter(solver.stepvalue), None))
        if begin is not None:
            yield f"gamma is 0: by lr_policy '{policy}' the rate is 0 from iteration {begin} on"
    elif policy in ("step", "multistep") and gamma > 1:
        yield f"gamma is {gamma:g}: by lr_policy '{policy}' the rate grows; 0.1 is usual"
    elif policy == "inv" and not (gamma and solver.power):
        yield f"gamma is {gamma:g} and power {solver.power:g}: by lr_policy 'inv' the rate stays"
    if policy == "multistep" and not solver.stepvalue:
        yield "lr_policy 'multistep' has no stepvalue: the rate stays base_lr"
    if 0 < solver.max_iter < solver.warmup_iter:
        yield (
            f"warmup_iter is {solver.warmup_iter}, and training ends at max_iter "
            f"{solver.max_iter}: the rate never reaches base_lr"
        )


def _squashed_twice(net: Net) -> Iterator[str]:
    """Yield a sentence about each loss that takes scores and is given something else."""
    makers: dict[str, Node] = {}
    for node in net.graph.nodes:
        maker = makers.get(node.bottoms[0]) if node.bottoms else None
        while maker is not None and maker.layer.is_split:
            maker = makers.get(maker.bottoms[0])
        how = type(node.layer).score_function
        if any(node.loss_weights) and how is not None:
            loss = f"layer '{clean(node.name)}' ({node.type}) takes scores"
            if how == "softmax" and node.plan.values.get("channels") == 1:
                yield f"{loss} of at least 2 classes, and there is 1: the loss is always 0"
            if maker is not None and type(maker.layer).score_function == how:
                yield (
                    f"{loss}, and layer '{clean(maker.name)}' ({maker.type}) makes probabilities "
                    "of them: leave that layer out in training"
                )
            elif maker is not None and maker.type == "ReLU":
                yield (
                    f"{loss}, and layer '{clean(maker.name)}' (ReLU) cuts them off at 0: leave "
                    "that layer out"
                )
        makers |= dict.fromkeys(node.tops, node)


def idle_layers(net: Net) -> list[str]:
    """Return the layers that learn nothing, because all later weights are 0 too."""
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
    """Return the places of the learnable blobs that are 0."""
    flat, spans = net.flat_params, pairwise(net._runtime.parameters.offsets)
    return frozenset(
        place for place, (begin, end) in enumerate(spans) if not flat[begin:end].norm2()
    )


def _is_zero(node: Node, zeros: frozenset[int]) -> bool:
    """Return whether a layer has weights (not only biases or channels' factors) that are 0."""
    weights = [ref for ref in node.params if len(ref.shape) > 1]
    return bool(weights) and all(ref.learnable in zeros for ref in weights)
