"""The layers of a net in a phase, at a level and stages (Caffe: net.cpp, FilterNet)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from sparknet.errors import LayerError, SpecError, clean
from sparknet.proto import caffe_pb2


def net_state(
    net: caffe_pb2.NetParameter, phase: int, level: int = 0, stages: Sequence[str] = ()
) -> caffe_pb2.NetState:
    """Return the state of a net that is opened without a solver.

    Phase and level replace what the file says; stages come on top of the file's.
    Caffe: net.cpp, Net(param_file, phase, level, stages)."""
    state = caffe_pb2.NetState()
    state.CopyFrom(net.state)
    state.phase = _phase(phase)
    state.level = _level(level)
    state.stage.extend([stages] if isinstance(stages, str) else stages)
    return state


def filter_net(net: caffe_pb2.NetParameter, state: caffe_pb2.NetState) -> caffe_pb2.NetParameter:
    """Return a copy of ``net`` in ``state`` (Caffe: net.cpp, FilterNet)."""
    filtered = caffe_pb2.NetParameter()
    filtered.CopyFrom(net)
    filtered.state.CopyFrom(state)
    del filtered.layer[:]
    filtered.layer.extend(layer for layer in net.layer if _included(layer, state))
    return filtered


def meets(state: caffe_pb2.NetState, rule: caffe_pb2.NetStateRule) -> bool:
    """Return whether a state satisfies every part of a rule.  Caffe: net.cpp, StateMeetsRule."""
    if rule.HasField("phase") and rule.phase != state.phase:
        return False
    if rule.HasField("min_level") and state.level < rule.min_level:
        return False
    if rule.HasField("max_level") and state.level > rule.max_level:
        return False
    stages = set(state.stage)
    return stages.issuperset(rule.stage) and stages.isdisjoint(rule.not_stage)


def _included(layer: caffe_pb2.LayerParameter, state: caffe_pb2.NetState) -> bool:
    if layer.include and layer.exclude:
        raise LayerError(layer.name, "it has both include and exclude rules; only one kind works")
    if layer.include:
        return any(meets(state, rule) for rule in layer.include)
    return not any(meets(state, rule) for rule in layer.exclude)


def _level(level: int) -> int:
    try:
        number = index(level)
    except TypeError:
        raise SpecError(f"level {clean(repr(level))} is no whole number") from None
    if not -(2**31) <= number < 2**31:
        raise SpecError(f"level {number} is no 32-bit number")
    return number


def _phase(phase: int) -> caffe_pb2.Phase:
    for number in (caffe_pb2.TRAIN, caffe_pb2.TEST):
        if phase == number:
            return number
    raise SpecError(f"phase {phase!r} is neither TRAIN (0) nor TEST (1)")
