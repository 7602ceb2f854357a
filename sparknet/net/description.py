"""Description: the nets and the solver that the source of a Net describes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from sparknet.errors import FileError, SpecError, TextError, clean, warn
from sparknet.graph.splits import find_readers
from sparknet.graph.state import filter_net, net_state
from sparknet.graph.unknown import check_policy, leave_out_unknown
from sparknet.layers import LAYERS, TEST, TRAIN
from sparknet.onnx import is_onnx, open_model
from sparknet.proto import (
    UnknownWarning,
    caffe_pb2,
    parse_net,
    parse_solver,
    read_net,
    read_solver,
    solver_in_dialect,
    solver_nets,
    upgrade_net,
    upgrade_solver,
)
from sparknet.proto.byte_source import exists
from sparknet.proto.forks import in_dialect
from sparknet.proto.message_fields import HasMessage
from sparknet.proto.untrusted import solver_with_trust, with_trust

NetMessage = caffe_pb2.NetParameter
SolverMessage = caffe_pb2.SolverParameter
NetSource: TypeAlias = NetMessage | SolverMessage | HasMessage | str | os.PathLike[str]
"""What a `Net` is made from: a message, what makes one of itself, a file, or a prototxt's text."""

LEFT_TO_THE_CALLER = (
    "net",
    "net_param",
    "train_net",
    "train_net_param",
    "train_state",
    "test_net",
    "test_net_param",
    "test_state",
    "test_iter",
    "test_interval",
    "test_initialization",
    "snapshot",
    "snapshot_after_train",
    "display",
    "debug_info",
    "weights",
)
"""Settings of a solver that `Net` does not follow: whoever calls it decides."""


class MeanWarning(UserWarning):
    """A solver's net names a mean file that is not there."""


class UsualSolverWarning(UserWarning):
    """A net is trained by a solver that nobody described."""


@dataclass(frozen=True)
class Description:
    """The net that is trained (or only run), the nets for testing, and the solver.

    The nets are filtered: they hold only the layers of their phase."""

    main: NetMessage
    tests: tuple[NetMessage, ...]
    solver: SolverMessage | None = None
    train: NetMessage | None = None
    """Of a net without a solver: the net that is trained once there is one."""

    def usual_solver(self) -> SolverMessage | None:
        """Return a solver for a net that has none but a loss, and warn of its settings."""
        layers = () if self.train is None else self.train.layer
        judges = any(layer.type in LAYERS and LAYERS[layer.type].is_loss for layer in layers)
        if not (judges or any(any(layer.loss_weight) for layer in layers)):
            return None
        message = (
            "the net comes without a solver and learns by SGD with base_lr 0.01 and momentum 0.9: "
            "SolverParams(net=…) says otherwise"
        )
        warn(message, UsualSolverWarning)
        return SolverMessage(base_lr=0.01, momentum=0.9, lr_policy="fixed", type="SGD")

    def with_solver(self, solver: SolverMessage) -> Description:
        return replace(self, main=self.train or self.main, solver=solver, train=None)

    def known_part(self) -> Description:
        """Return the same without layers of unknown types, of which a warning tells."""
        nets = {id(net): leave_out_unknown(net) for net in (self.main, *self.tests)}
        for layer in dict.fromkeys(one for _, left_out in nets.values() for one in left_out):
            message = f"layer '{clean(layer.name)}' ({clean(layer.type)}): {layer.reason}: left out"
            warn(message, UnknownWarning)
        tests = tuple(nets[id(net)][0] for net in self.tests)
        return replace(self, main=nets[id(self.main)][0], tests=tests, train=None)

    def bare_solver(self, net: NetMessage) -> SolverMessage:
        """Return a solver of one net, without the settings that Net or its callers handle."""
        assert self.solver is not None
        bare = SolverMessage()
        bare.CopyFrom(self.solver)
        for field in LEFT_TO_THE_CALLER:
            bare.ClearField(field)
        bare.net_param.CopyFrom(net)
        return bare


def describe(
    source: NetSource,
    phase: int | None,
    level: int = 0,
    stages: Sequence[str] = (),
    trusted: bool | None = None,
    unknown: str = "refuse",
    dialect: str | None = None,
) -> Description:
    """Return the description in a net, a solver, their text or their file."""
    check_policy(unknown)
    message = _message(source, unknown)
    if dialect is not None:
        message = _in_dialect(message, dialect, trusted, unknown)
    described = _describe(message, phase, level, stages, trusted, unknown)
    if unknown == "skip":
        return described.known_part()
    # While inputs that nobody reads are still there: a misspelt bottom is told the right name.
    for net in (described.main, *described.tests):
        find_readers(net)
    return described


def _in_dialect(
    message: Any, dialect: str, trusted: bool | None, unknown: str
) -> NetMessage | SolverMessage:
    if isinstance(message, NetMessage):
        return in_dialect(upgrade_net(message), dialect)
    solver = solver_with_trust(upgrade_solver(message), trusted)
    return solver_in_dialect(solver, dialect, unknown=unknown)


def _describe(
    message: Any,
    phase: int | None,
    level: int,
    stages: Sequence[str],
    trusted: bool | None,
    unknown: str,
) -> Description:
    if isinstance(message, NetMessage):
        net = upgrade_net(message) if trusted is None else with_trust(message, trusted)
        state = net_state(net, TEST if phase is None else phase, level, stages)
        main = _filtered(net, state)
        train = None
        if phase is None:
            train = _filtered(net, net_state(net, TRAIN, level, stages))
        _leave_out_missing_means(*filter(None, (main, train)))
        return Description(main, (main,), train=train)
    if phase is not None or level or stages:
        raise SpecError("phase, level and stages are for a net alone: a solver has its own")
    return _of_solver(upgrade_solver(message), trusted, unknown)


def solver_of(source: NetSource) -> SolverMessage | None:
    """Return the solver in a source; None if it describes a net alone."""
    message = _message(source, "refuse")
    return upgrade_solver(message) if isinstance(message, SolverMessage) else None


def _of_solver(solver: SolverMessage, trusted: bool | None, unknown: str) -> Description:
    nets = solver_nets(solver_with_trust(solver, trusted), unknown=unknown)
    train, tests = nets.train, [_filtered(net, net.state) for net in nets.tests]
    if not tests:
        tests = [_filtered(train, net_state(train, TEST))]
    main = _filtered(train, train.state)
    _leave_out_missing_means(main, *tests)
    return Description(main, tuple(tests), solver)


def _leave_out_missing_means(*nets: NetMessage) -> None:
    """Subtract nothing where a mean file is not there: it is of other data than a user's own."""
    for net in nets:
        for layer in net.layer:
            path = layer.transform_param.mean_file
            if path and not layer.untrusted and not exists(path):
                layer.transform_param.ClearField("mean_file")
                warn(
                    f"layer '{clean(layer.name)}': there is no mean file '{clean(path)}': unless "
                    "mean= is given, nothing is subtracted",
                    MeanWarning,
                )


def _filtered(net: NetMessage, state: caffe_pb2.NetState) -> NetMessage:
    """Return the net with only the layers of a state, and without its filters."""
    filtered = filter_net(net, state)
    filtered.ClearField("state")
    for layer in filtered.layer:
        layer.ClearField("include")
        layer.ClearField("exclude")
    return filtered


def _message(source: NetSource, unknown: str) -> Any:
    if hasattr(source, "to_proto"):
        source = source.to_proto()
    if isinstance(source, (NetMessage, SolverMessage)):
        return source
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not _is_text(source)):
        if is_onnx(source):
            return open_model(source).net
        return _either(partial(read_net, source), lambda: read_solver(source), unknown)
    if isinstance(source, str):
        return _either(partial(parse_net, source), lambda: parse_solver(source), unknown)
    what = "nothing" if source is None else f"this {type(source).__name__}"
    if hasattr(source, "state_dict") or getattr(source, "module", None) is not None:
        raise SpecError(
            f"a Net cannot be made from {what}, a module of PyTorch: give the file that "
            "torch.onnx.export makes of it"
        )
    raise SpecError(
        f"a Net cannot be made from {what}: give a net or a solver as a path, text, NetParams, "
        "SolverParams or message"
    )


def _is_text(source: str) -> bool:
    """Return whether a string is the text of a prototxt and not its path."""
    if any(mark in source for mark in "{\n"):
        return True
    if exists(source):
        return False
    if ":" not in source:
        raise FileError(source, "no such file or folder")
    return True


def _either(net: Any, solver: Any, unknown: str) -> Any:
    """Return a message as a net if it parses as one, else as a solver."""
    try:
        return net()
    except TextError as error:
        try:
            return solver()
        except TextError as other:
            # The error at the later place belongs to the type that was meant.
            if unknown == "skip" and (error.line, error.column) >= (other.line, other.column):
                return net(unknown=unknown)
            raise max(error, other, key=lambda e: (e.line, e.column)) from None
