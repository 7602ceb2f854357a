"""Checks how the layers of a phase fit together, before shapes (Caffe: net.cpp, Init)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.errors import FileError, LayerError, MissingExtra
from sparknet.graph import build
from sparknet.graph.state import filter_net, net_state
from sparknet.layers import LAYERS
from sparknet.layers.python import Python
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean

TRAIN, TEST = caffe_pb2.TRAIN, caffe_pb2.TEST


def missing_source(layers: Sequence[Any], everything: Sequence[Any]) -> tuple[str, str] | None:
    """Return the first layer and bottom that only layers of another phase could feed."""
    _check_names(layers)
    producers = _producers(layers)
    elsewhere = _producers(everything)
    available: dict[str, str] = {}
    for index, layer in enumerate(layers):
        for bottom in layer.bottom:
            if bottom in available:
                continue
            later = [i for i in producers.get(bottom, ()) if i >= index]
            if not later and bottom in elsewhere:
                return layer.name, bottom
            _refuse_bottom(layers, index, bottom, later, available)
        _add_tops(layer, available)
    return None


def _check_names(layers: Sequence[Any]) -> None:
    names: set[str] = set()
    for layer in layers:
        if layer.name and layer.name in names:
            raise LayerError(
                layer.name, "two layers have this name; rename one, or separate them with include"
            )
        names.add(layer.name)


def _producers(layers: Sequence[Any]) -> dict[str, list[int]]:
    """Blob name → the layers that make it (not those that work in place)."""
    producers: dict[str, list[int]] = {}
    for index, layer in enumerate(layers):
        for position, top in enumerate(layer.top):
            if layer.bottom[position : position + 1] != [top]:
                producers.setdefault(top, []).append(index)
    return producers


def _add_tops(layer: Any, available: dict[str, str]) -> None:
    for position, top in enumerate(layer.top):
        if layer.bottom[position : position + 1] == [top] and top in available:
            continue
        if top in available:
            raise LayerError(
                layer.name, f"top '{top}' is already made by layer '{available[top]}'; rename one"
            )
        available[top] = layer.name


def _refuse_bottom(
    layers: Sequence[Any], index: int, bottom: str, later: Sequence[int], producers: dict[str, str]
) -> None:
    layer = layers[index]
    if not later:
        names = ({name for other in layers for name in other.top} | set(producers)) - {bottom}
        raise LayerError(
            layer.name, f"bottom '{bottom}' is made by no layer{did_you_mean(bottom, names)}"
        )
    loop = _cycle(layers, index, later[0])
    if loop:
        path = " → ".join(layers[i].name for i in loop)
        raise LayerError(layer.name, f"bottom '{bottom}' closes a cycle: {path}")
    maker = layers[later[0]].name
    raise LayerError(
        layer.name,
        f"bottom '{bottom}' is produced later, by layer '{maker}'; move '{maker}' up",
    )


def _cycle(layers: Sequence[Any], start: int, maker: int) -> list[int]:
    """Return the way from `start` over its consumers to `maker` and back, if there is one."""
    consumers: dict[str, list[int]] = {}
    for index, layer in enumerate(layers):
        for bottom in layer.bottom:
            consumers.setdefault(bottom, []).append(index)
    came: dict[int, int] = {start: start}
    waiting = [start]
    for current in waiting:
        if current == maker:
            break
        for top in layers[current].top:
            for follower in consumers.get(top, ()):
                if follower not in came:
                    came[follower] = current
                    waiting.append(follower)
    if maker not in came:
        return []
    path = [maker]
    while path[-1] != start:
        path.append(came[path[-1]])
    return [*reversed(path), start]


def check_net(net: Any) -> None:
    """Check a net in each phase that it serves; missing files leave the shapes open."""
    gaps = []
    for phase in (TRAIN, TEST):
        layers = filter_net(net, net_state(net, phase)).layer
        gap = missing_source(layers, net.layer)
        gaps.append(gap)
        if gap is None:
            _check_shapes(net, phase)
    if None not in gaps and not _has_stages(net):
        layer, bottom = next(gap for gap in gaps if gap is not None)
        raise LayerError(
            layer, f"bottom '{bottom}' comes only from layers that include rules leave out"
        )


def _check_shapes(net: Any, phase: int) -> None:
    if any(layer.type in LAYERS and issubclass(LAYERS[layer.type], Python) for layer in net.layer):
        return  # to know its shapes is to run its code
    try:
        build(net, phase)
    except (FileError, MissingExtra):
        pass
    except LayerError as error:
        if not isinstance(error.__context__, OSError):
            raise


def served_phase(net: Any) -> int:
    """TRAIN, or TEST where the net has sources for TEST only."""
    layers = filter_net(net, net_state(net, TRAIN)).layer
    served = bool(layers) and missing_source(layers, net.layer) is None
    return TRAIN if served or not net.layer else TEST


def _has_stages(net: Any) -> bool:
    """Return whether a rule asks for a stage or level, which a caller may still set."""
    rules = [rule for layer in net.layer for rule in (*layer.include, *layer.exclude)]
    return any(
        rule.stage or rule.not_stage or rule.HasField("min_level") or rule.HasField("max_level")
        for rule in rules
    )
