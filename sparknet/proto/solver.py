"""The rules of a solver file, and the nets that it names (Caffe: solver.cpp, sgd_solver.cpp)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sparknet.errors import SolverError
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath
from sparknet.proto.forks import in_dialect
from sparknet.proto.suggest import did_you_mean
from sparknet.proto.text import read_net
from sparknet.proto.upgrade import upgrade_net, upgrade_solver_in_place

Net = caffe_pb2.NetParameter
NetState = caffe_pb2.NetState
Solver = caffe_pb2.SolverParameter

SOLVER_TYPES = ("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW")
MOMENTUM_POLICIES = ("fixed", "poly", "opt")
DECAY_POLICIES = ("fixed", "poly")
LARC_POLICIES = ("scale", "clip")
RATE_POLICIES = (
    "fixed",
    "step",
    "exp",
    "inv",
    "multistep",
    "poly",
    "sigmoid",
    "multifixed",
    "cosine",
    "onecycle",
)
TO_THE_END = ("poly", "cosine", "onecycle")
"""The policies that depend on max_iter."""
_WITHOUT_MOMENTUM = ("AdaGrad", "RMSProp")
_WITH_GAMMA = ("step", "exp", "inv", "multistep", "sigmoid")
_WITH_STEPSIZE = ("step", "sigmoid")
_TRAIN_NETS = ("net", "net_param", "train_net", "train_net_param")


def check_solver(solver: Solver) -> None:
    """Raise SolverError for what Caffe refuses, without opening net files."""
    check_construction(solver)
    check_step(solver)


def check_construction(solver: Solver) -> None:
    """Check what Caffe checks when it builds the solver."""
    upgraded = Solver()
    upgraded.CopyFrom(solver)
    upgrade_solver_in_place(upgraded)
    _check_type(upgraded)
    if solver.average_loss < 1:
        raise SolverError(f"average_loss is {solver.average_loss}, it must be at least 1")
    _check_train_net(solver)
    _check_test_nets(solver)


def _check_type(solver: Solver) -> None:
    kind = solver.type
    if kind not in SOLVER_TYPES:
        hint = did_you_mean(kind, SOLVER_TYPES) or f": it is one of {', '.join(SOLVER_TYPES)}"
        raise SolverError(f"unknown solver type '{kind}'{hint}")
    if kind in _WITHOUT_MOMENTUM and solver.momentum != 0:
        raise SolverError(f"momentum is {solver.momentum:g}, but {kind} takes none")
    if kind == "RMSProp" and not 0 <= solver.rms_decay < 1:
        raise SolverError(f"rms_decay is {solver.rms_decay:g}, it must lie in [0, 1)")


def _check_train_net(solver: Solver) -> None:
    nets = [field for field in _TRAIN_NETS if solver.HasField(field)]
    if not nets:
        raise SolverError(f"no training net: set one of {', '.join(_TRAIN_NETS)}")
    if len(nets) > 1:
        raise SolverError(f"{' and '.join(nets)} are set, but there is one training net")


def _check_test_nets(solver: Solver) -> None:
    own = len(solver.test_net_param) + len(solver.test_net)
    count = len(solver.test_iter)
    is_shared = solver.HasField("net") or solver.HasField("net_param")
    if count < own or (count > own and not is_shared):
        raise SolverError(f"{own} test nets need a test_iter each, found {count}")
    if solver.test_state and len(solver.test_state) != count:
        raise SolverError(f"{count} test nets, but {len(solver.test_state)} test_state fields")
    if count and solver.test_interval <= 0:
        raise SolverError(f"test_interval is {solver.test_interval}, but there are test nets")


def check_step(solver: Solver) -> None:
    """Check what Caffe checks in its first step."""
    policy = solver.lr_policy
    if not policy:
        others = ", ".join(one for one in RATE_POLICIES if one != "fixed")
        raise SolverError(f"the solver has no lr_policy: 'fixed' keeps base_lr; {others} change it")
    if policy not in RATE_POLICIES:
        hint = did_you_mean(policy, RATE_POLICIES) or f": it is one of {', '.join(RATE_POLICIES)}"
        raise SolverError(f"unknown lr_policy '{policy}'{hint}")
    if policy in _WITH_STEPSIZE and solver.stepsize <= 0:
        raise SolverError(f"stepsize is {solver.stepsize}, but lr_policy '{policy}' divides by it")
    if policy in ("cosine", "onecycle") and solver.max_iter < 1:
        raise SolverError(
            f"max_iter is {solver.max_iter}, but lr_policy '{policy}' ends there: set it to the "
            "iterations of the training"
        )
    if policy in _WITH_GAMMA and not solver.gamma >= 0:
        raise SolverError(f"gamma is {solver.gamma:g}, but lr_policy '{policy}' needs gamma >= 0")
    if policy == "multifixed" and not 0 < len(solver.stagelr) == len(solver.stageiter):
        raise SolverError(
            f"lr_policy '{policy}' needs as many stagelr as stageiter, at least one of each; "
            f"there are {len(solver.stagelr)} and {len(solver.stageiter)}"
        )
    _check_forks(solver)
    if solver.weight_decay and solver.regularization_type not in ("L1", "L2"):
        raise SolverError(
            f"unknown regularization_type '{solver.regularization_type}': it is L1 or L2"
        )
    if solver.iter_size < 1:
        raise SolverError(f"iter_size is {solver.iter_size}, it must be at least 1")


def _check_forks(solver: Solver) -> None:
    """Refuse what NVIDIA's and Intel's solvers refuse."""
    for field, values in (
        ("momentum_policy", MOMENTUM_POLICIES),
        ("weight_decay_policy", DECAY_POLICIES),
        ("larc_policy", LARC_POLICIES),
    ):
        name = getattr(solver, field)
        if name not in values:
            raise SolverError(f"unknown {field} '{name}': it is one of {', '.join(values)}")
        if name == "poly" and solver.max_iter < 1:
            raise SolverError(f"max_iter is {solver.max_iter}, but {field} 'poly' divides by it")
    for field in ("min_lr", "rampup_interval", "warmup_iter"):
        if not getattr(solver, field) >= 0:
            raise SolverError(f"{field} is {getattr(solver, field):g}, it must be at least 0")
    if solver.larc and solver.local_lr_auto:
        raise SolverError("larc and local_lr_auto are both set: take one of them")


class SolverNets(NamedTuple):
    """The nets of a solver, upgraded, each with the state that it is built for."""

    train: Net
    tests: list[Net]


def solver_nets(solver: Solver, folder: StrPath = "", *, unknown: str = "refuse") -> SolverNets:
    """Read the nets that a solver names; file names are relative to `folder`.

    `unknown` is that of `read_net`. States merge as in Caffe: the phase, then the net's own state,
    then the solver's."""
    _check_train_net(solver)
    _check_test_nets(solver)

    def read(name: str) -> Net:
        path = os.path.join(folder, name)  # noqa: PTH118 (the name stays as it is written)
        return read_net(path, unknown=unknown)

    train = _train_net(solver, read)
    _settle(train, caffe_pb2.TRAIN, solver.train_state)
    tests = [upgrade_net(net) for net in solver.test_net_param]
    tests += [read(name) for name in solver.test_net]
    if len(tests) < len(solver.test_iter):
        shared = _shared_net(solver, read)
        tests += [upgrade_net(shared) for _ in range(len(solver.test_iter) - len(tests))]
    for index, net in enumerate(tests):
        own = solver.test_state[index] if solver.test_state else NetState()
        _settle(net, caffe_pb2.TEST, own)
    return SolverNets(train, tests)


def solver_in_dialect(solver: Solver, dialect: str | None, *, unknown: str = "refuse") -> Solver:
    """Return the solver with its nets, each in a dialect, in place of files' names."""
    if dialect is None:
        return solver
    _check_train_net(solver)
    converted = Solver()
    converted.CopyFrom(solver)
    for net in put_nets_inside(converted, partial(read_net, unknown=unknown)):
        net.CopyFrom(in_dialect(upgrade_net(net), dialect))
    return converted


_OWN = {"net_param": "net", "train_net_param": "train_net"}


def put_nets_inside(solver: Solver, read: Callable[[str], Net] = read_net) -> list[Net]:
    """Put the nets that a solver names into it, in place; return all of its nets."""
    for own, source in _OWN.items():
        if path := getattr(solver, source):
            getattr(solver, own).CopyFrom(read(path))
            solver.ClearField(source)
    solver.test_net_param.extend(map(read, solver.test_net))
    solver.ClearField("test_net")
    trained = [getattr(solver, own) for own in _OWN if solver.HasField(own)]
    return [*trained, *solver.test_net_param]


def _train_net(solver: Solver, read: Callable[[str], Net]) -> Net:
    if solver.HasField("train_net_param"):
        return upgrade_net(solver.train_net_param)
    if solver.HasField("train_net"):
        return read(solver.train_net)
    return _shared_net(solver, read)


def _shared_net(solver: Solver, read: Callable[[str], Net]) -> Net:
    if solver.HasField("net_param"):
        return upgrade_net(solver.net_param)
    return read(solver.net)


def _settle(net: Net, phase: caffe_pb2.Phase, own: NetState) -> None:
    state = NetState(phase=phase)
    state.MergeFrom(net.state)
    state.MergeFrom(own)
    net.state.CopyFrom(state)
