"""Learning rate policies.  Caffe: sgd_solver.cpp, GetLearningRate, in its mix of precisions.

"multifixed" is of the YOLO forks: `stagelr` up to and with the iteration `stageiter`.  Intel's
`warmup_iter` (a line) and NVIDIA's `rampup_interval` (a parabola) come before any policy, and
NVIDIA's `min_lr` is the least that any gives.

"cosine" and "onecycle" are ours.  After the warm-up "cosine" falls from `base_lr` to `min_lr` at
`max_iter` by half a cosine.  "onecycle" (arXiv 1708.07120, with PyTorch's defaults) rises by half a
cosine from `warmup_start_lr`, or a 25th of `base_lr`, to `base_lr` in `warmup_iter` iterations, or
three tenths of `max_iter`, and falls to `min_lr`, or a 250,000th of `base_lr`."""

from __future__ import annotations

from math import cos, pi

import numpy as np

from sparknet.proto import caffe_pb2

_ONE = np.float32(1)


def current_step(solver: caffe_pb2.SolverParameter, iteration: int, before: int) -> int:
    """Return how often the rate has been lowered; multistep advances at most once per iteration."""
    if solver.lr_policy == "step":
        return iteration // solver.stepsize
    if solver.lr_policy == "multistep":
        values = solver.stepvalue
        return before + (before < len(values) and iteration >= values[before])
    return before


def learning_rate(solver: caffe_pb2.SolverParameter, iteration: int, step: int) -> float:
    """Return the rate of an iteration, a float32 number; ``step`` is what `current_step` gave."""
    rate = _rate(solver, iteration, step)
    return float(np.float32(max(rate, solver.min_lr))) if solver.min_lr else rate


def _rate(solver: caffe_pb2.SolverParameter, iteration: int, step: int) -> float:
    if solver.lr_policy == "onecycle":
        return float(np.float32(_one_cycle(solver, iteration)))
    for first, end, power in (
        (solver.warmup_start_lr, solver.warmup_iter, 1),
        (solver.rampup_lr, solver.rampup_interval, 2),
    ):
        if iteration < end:
            done: float = (iteration / end) ** power
            return float(np.float32(first + (solver.base_lr - first) * done))
    if solver.lr_policy == "poly" and solver.min_lr:
        above = solver.base_lr - solver.min_lr
        return above * _factor(solver, iteration, step) + solver.min_lr
    if solver.lr_policy == "cosine":
        begin = max(solver.warmup_iter, solver.rampup_interval)
        share = _share(iteration - begin, solver.max_iter - begin)
        return float(np.float32(_between(solver.base_lr, solver.min_lr, share)))
    if solver.lr_policy == "multifixed":
        rates, ends = solver.stagelr, solver.stageiter
        reached = (rate for rate, last in zip(rates, ends, strict=True) if iteration <= last)
        return float(np.float32(next(reached, rates[-1])))
    with np.errstate(all="ignore"):
        return float(np.float32(solver.base_lr * _factor(solver, iteration, step)))


def _factor(solver: caffe_pb2.SolverParameter, iteration: int, step: int) -> float:
    policy = solver.lr_policy
    if policy in ("step", "multistep"):
        return float(np.power(np.float64(solver.gamma), step))
    if policy == "exp":
        return float(np.power(np.float64(solver.gamma), iteration))
    gamma, power, now = map(np.float32, (solver.gamma, solver.power, iteration))
    if policy == "inv":
        return float(np.power(_ONE + gamma * now, -power))
    if policy == "poly":
        return float(np.power(_ONE - now / np.float32(solver.max_iter), power))
    if policy == "sigmoid":
        return float(_ONE / (_ONE + np.exp(-gamma * (now - np.float32(solver.stepsize)))))
    return 1.0


def _one_cycle(solver: caffe_pb2.SolverParameter, iteration: int) -> float:
    top = solver.base_lr
    first = solver.warmup_start_lr or top / 25
    last = solver.min_lr or top / 25 / 10_000
    summit = (solver.warmup_iter or 0.3 * solver.max_iter) - 1
    if iteration <= summit:
        return _between(first, top, _share(iteration, summit))
    return _between(top, last, _share(iteration - summit, solver.max_iter - 1 - summit))


def _share(done: float, of: float) -> float:
    return min(done / of, 1.0) if of > 0 else 1.0


def _between(first: float, last: float, share: float) -> float:
    """Half a cosine from one rate to another."""
    return last + (first - last) * (1 + cos(pi * share)) / 2
