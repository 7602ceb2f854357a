"""Nodes that exporters write for one thing, as that one thing; and what need not be done at all."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean
from sparknet.onnx.folding import fold, foldable
from sparknet.onnx.limits import MALFORMED, Room
from sparknet.onnx.operators.detection import DetectionSearch
from sparknet.onnx.operators.pointwise import ACTIVATIONS, PROBE
from sparknet.onnx.source import Array, OnnxNode, Source

_NUMBER_OR_WORD = (int, float, str, bytes)
_SMALL = 16
"""Values of a constant that is compared with others."""
_DEEPEST = 16
"""Nodes in the expression of one activation."""


def simplified(source: Source) -> tuple[list[OnnxNode], dict[str, Array]]:
    """Return the nodes that the outputs need, simplified, and all constants."""
    source.nodes = _in_order(source)
    _check_order(source)
    try:
        return _simplified(source)
    except MALFORMED as error:
        raise FileError(source.path, f"has a malformed node: {clean(error)}") from error


def _simplified(source: Source) -> tuple[list[OnnxNode], dict[str, Array]]:
    graph = _Graph(source)
    graph.fold()
    graph.skip_nothing()
    graph.index()
    graph.drop_unused()
    graph.share()
    graph.index()
    graph.data_tops()
    graph.find_detections()
    graph.find_activations()
    graph.find_normalisations()
    graph.drop_unused()
    return graph.nodes, graph.constants


def _in_order(source: Source) -> list[OnnxNode]:
    """Return nodes behind those that they read; circles and nodes without inputs last."""
    makers = {name: at for at, node in enumerate(source.nodes) for name in node.outputs if name}
    waits = [{makers[name] for name in node.inputs if name in makers} for node in source.nodes]
    readers: dict[int, list[int]] = {}
    for at, before in enumerate(waits):
        for one in before:
            readers.setdefault(one, []).append(at)
    ready = [at for at, before in enumerate(waits) if not before]
    heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heappop(ready))
        for at in readers.get(order[-1], ()):
            waits[at].discard(order[-1])
            if not waits[at]:
                heappush(ready, at)
    done = set(order)
    order += [at for at in range(len(source.nodes)) if at not in done]
    return [source.nodes[at] for at in order]


def _check_order(source: Source) -> None:
    """Check that nodes read only earlier values and that nothing is computed twice."""
    available = {"", *source.constants, *source.inputs}
    for node in source.nodes:
        for name in node.inputs:
            if name not in available:
                raise source.refuse(
                    node, f"it reads '{clean(name)}', which nothing before it makes"
                )
        for name in node.outputs:
            if name and name in available:
                raise source.refuse(node, f"it makes '{clean(name)}', which is there already")
            available.add(name)


class _Graph:
    """Nodes in order, and who makes and who reads each value."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes = list(source.nodes)
        self.constants = dict(source.constants)
        self.makers: dict[str, OnnxNode] = {}
        self.readers: dict[str, list[OnnxNode]] = {}

    def index(self) -> None:
        """Note who makes and who reads each value."""
        self.makers = {name: node for node in self.nodes for name in node.outputs if name}
        self.readers = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                self.readers.setdefault(name, []).append(node)

    def skip_nothing(self) -> None:
        """Let readers of a copy read what is copied."""
        same: dict[str, str] = {}
        remaining: list[OnnxNode] = []
        for node in self.nodes:
            node.read(same)
            if self._does_nothing(node) and node.outputs[0] not in self.source.outputs:
                same[node.outputs[0]] = node.inputs[0]
            else:
                remaining.append(node)
        self.nodes = remaining

    def _does_nothing(self, node: OnnxNode) -> bool:
        if node.op == "Dropout" and self.source.opset >= 12 and node.inputs:
            training = self.constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
            return training is None or not training.any()
        return node.op == "Identity" and bool(node.inputs)

    def share(self) -> None:
        """Compute once what several nodes compute alike from the same values."""
        same: dict[str, str] = {}
        first: dict[Any, OnnxNode] = {}
        remaining: list[OnnxNode] = []
        for node in self.nodes:
            node.read(same)
            twin = first.setdefault(self._content(node), node)
            if twin is node or not set(self.source.outputs).isdisjoint(node.outputs):
                remaining.append(node)
            else:
                same.update(zip(node.outputs, twin.outputs, strict=True))
        self.nodes = remaining

    def _content(self, node: OnnxNode) -> Any:
        """Return a key of what a node computes; small constants count by value."""
        constants = [self.constants.get(name) for name in node.inputs]
        for attribute in node.attributes.values():
            each = attribute if isinstance(attribute, list | tuple) else [attribute]
            if not all(isinstance(one, _NUMBER_OR_WORD) for one in each):
                return id(node)
        inputs = tuple(
            name if one is None or one.size > _SMALL else (one.dtype.str, one.shape, one.tobytes())
            for name, one in zip(node.inputs, constants, strict=True)
        )
        outputs = tuple(bool(name) for name in node.outputs)
        return (
            node.op,
            inputs,
            outputs,
            tuple(sorted((k, repr(v)) for k, v in node.attributes.items())),
        )

    def fold(self) -> None:
        """Do what needs constants only."""
        remaining: list[OnnxNode] = []
        room = Room(self.constants.values(), self.source.is_trusted)
        for node in self.nodes:
            constants = [self.constants.get(name) for name in node.inputs if name]
            inputs = [self.constants.get(name) if name else None for name in node.inputs]
            if not foldable(node.op) or any(one is None for one in constants):
                remaining.append(node)
                continue
            try:
                results = fold(node, inputs)
                room.take(results, inputs)
            except MALFORMED as error:
                raise self.source.refuse(node, clean(error)) from error
            self.constants.update(zip(node.outputs, results, strict=False))
            if self._is_quantised(node, inputs):
                self.source.quantised.update(node.outputs)
        self.nodes = remaining

    def _is_quantised(self, node: OnnxNode, values: list[Array | None]) -> bool:
        """Return whether a constant, perhaps turned since, was stored in eight bits."""
        if node.op == "DequantizeLinear":
            return values[0] is not None and values[0].dtype.itemsize == 1
        return not self.source.quantised.isdisjoint(node.inputs)

    def drop_unused(self) -> None:
        """Leave out the nodes that no output needs."""
        needed, remaining = set(self.source.outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.outputs):
                remaining.append(node)
                needed.update(node.inputs)
        self.nodes = remaining[::-1]
        missing = [name for name in self.source.outputs if not self._is_made(name)]
        if missing:
            raise FileError(self.source.path, f"nothing makes the output '{clean(missing[0])}'")

    def _is_made(self, name: str) -> bool:
        exists = name in self.makers or name in self.constants
        return exists or name in self.source.inputs

    # -- places --------------------------------------------------------------------------

    def data_tops(self) -> None:
        """Find indices below 0, which count from the end: Embed refuses those."""
        for node in [one for one in self.nodes if one.op == "Where" and len(one.inputs) == 3]:
            below, added = self._maker(node.inputs[0], "Less"), self._maker(node.inputs[1], "Add")
            readers, places = self.readers.get(node.outputs[0], []), node.inputs[2]
            if below is None or added is None or not all(one.op == "Gather" for one in readers):
                continue
            least = self._scalar(below.inputs[1]) if len(below.inputs) == 2 else None
            if least == 0 and below.inputs[0] == places and places in added.inputs:
                for one in readers:
                    one.inputs = [places if it in node.outputs else it for it in one.inputs]
        self.index()

    def find_detections(self) -> None:
        """Find what a detector ends with."""
        detections = DetectionSearch(self.makers, self.constants)
        for end in [node for node in self.nodes if node.op == "Reshape" and len(node.inputs) > 1]:
            detection = detections.detection(end)
            if detection is not None:
                self._replace(end, detection)

    # -- activations ---------------------------------------------------------------------

    def find_activations(self) -> None:
        """Find GELU, HardSwish and the like by what an expression computes."""
        for start in [node for node in self.nodes if node.op in _STARTS]:
            activation = self._activation(start)
            if activation is not None:
                op, name, end = activation
                self._replace(end, OnnxNode(op, end.name, [name], list(end.outputs)))

    def _activation(self, start: OnnxNode) -> tuple[str, str, OnnxNode] | None:
        for end in self._ends(start):
            for name in self._above(start):
                inside = self._between(name, end)
                op = self._recognised(inside, name, end) if inside else None
                if op is not None:
                    return op, name, end
        return None

    def _ends(self, start: OnnxNode) -> list[OnnxNode]:
        """Return the products that a value leads to, the farthest first."""
        ends: list[OnnxNode] = []
        node = start
        for _ in range(4):
            readers = self.readers.get(node.outputs[0], [])
            if len(readers) != 1 or readers[0].op not in ("Add", "Mul", "Div"):
                break
            node = readers[0]
            if node.op != "Add":
                ends.append(node)
        return ends[::-1]

    def _above(self, start: OnnxNode) -> list[str]:
        """Values that a node is computed from, value by value, the nearest first."""
        names: list[str] = []
        waiting = list(start.inputs)
        while waiting and len(names) < _DEEPEST:
            name = waiting.pop(0)
            if name in self.constants or name in names:
                continue
            names.append(name)
            maker = self.makers.get(name)
            if maker is not None and maker.op in _POINTWISE:
                waiting.extend(maker.inputs)
        return names

    def _between(self, name: str, end: OnnxNode) -> list[OnnxNode] | None:
        """Return the nodes from one value to the end; None if the end needs another value too."""
        inside: dict[int, OnnxNode] = {}
        waiting = [end]
        while waiting:
            node = waiting.pop()
            inside[id(node)] = node
            if len(inside) > _DEEPEST:
                return None
            for one in node.inputs:
                maker = self.makers.get(one)
                if one == name or one in self.constants:
                    continue
                if maker is None or maker.op not in _POINTWISE:
                    return None
                waiting.append(maker)
        return [node for node in self.nodes if id(node) in inside]

    def _recognised(self, inside: list[OnnxNode], name: str, end: OnnxNode) -> str | None:
        values: dict[str, Array] = {name: PROBE}
        try:
            for node in inside:
                feeds = []
                for one in node.inputs:
                    value = values.get(one, self.constants.get(one))
                    feeds.append(value if value is None or value.size != 1 else np.ravel(value)[:1])
                if any(one is None or one.size not in (1, PROBE.size) for one in feeds):
                    return None
                values[node.outputs[0]] = fold(node, feeds)[0]
        except MALFORMED:
            return None
        result = values[end.outputs[0]]
        for op, function in ACTIVATIONS.items():
            if result.shape == PROBE.shape and np.allclose(result, function(PROBE), atol=2e-6):
                return op
        return None

    # -- normalisations ------------------------------------------------------------------

    def find_normalisations(self) -> None:
        """Find (x - mean) / sqrt(variance + eps)."""
        for end in [node for node in self.nodes if node.op == "Div"]:
            norm = self._normalisation(end)
            if norm is not None:
                x, axes, eps = norm
                node = OnnxNode("LayerNormalization", end.name, [x], list(end.outputs))
                node.attributes = {"axes": axes, "epsilon": eps}
                self._replace(end, node)

    def _normalisation(self, end: OnnxNode) -> tuple[str, list[int], float] | None:
        centred = self._maker(end.inputs[0], "Sub")
        root = self._maker(end.inputs[1], "Sqrt") if len(end.inputs) > 1 else None
        added = self._maker(root.inputs[0], "Add") if root else None
        if centred is None or added is None:
            return None
        eps = next((self._scalar(one) for one in added.inputs if one in self.constants), None)
        spread = next((one for one in added.inputs if one not in self.constants), "")
        variance = self._maker(spread, "ReduceMean")
        mean = self._maker(centred.inputs[1], "ReduceMean")
        if eps is None or variance is None or mean is None:
            return None
        if not self._is_square(variance.inputs[0], centred):
            return None
        axes, others = self._axes(mean), self._axes(variance)
        if mean.inputs[0] != centred.inputs[0] or axes is None or axes != others:
            return None
        return centred.inputs[0], axes, eps

    def _is_square(self, name: str, centred: OnnxNode) -> bool:
        maker = self.makers.get(name)
        if maker is None:
            return False
        same = [self._is_centred(one, centred) for one in maker.inputs]
        if maker.op == "Mul":
            return all(same)
        return maker.op == "Pow" and same[0] and self._scalar(maker.inputs[1]) == 2

    def _is_centred(self, name: str, centred: OnnxNode) -> bool:
        """Return whether a value is this difference, or the same difference written again."""
        other = self._maker(name, "Sub")
        return other is not None and other.inputs == centred.inputs

    def _axes(self, node: OnnxNode) -> list[int] | None:
        if not node.attributes.get("keepdims", 1):
            return None
        if "axes" in node.attributes:
            return [int(axis) for axis in node.attributes["axes"]]
        axes = self.constants.get(node.inputs[1]) if len(node.inputs) > 1 else None
        return None if axes is None else [int(axis) for axis in np.ravel(axes)]

    def _maker(self, name: str, op: str) -> OnnxNode | None:
        maker = self.makers.get(name)
        while maker is not None and maker.op == "Cast" and op != "Cast":
            maker = self.makers.get(maker.inputs[0])
        return maker if maker is not None and maker.op == op else None

    def _scalar(self, name: str) -> float | None:
        value = self.constants.get(name)
        return float(np.ravel(value)[0]) if value is not None and value.size == 1 else None

    def _replace(self, end: OnnxNode, replacement: OnnxNode) -> None:
        self.nodes = [replacement if node is end else node for node in self.nodes]
        self.index()


_STARTS = ("Clip", "Erf", "Tanh")
_POINTWISE = ("Add", "Cast", "Clip", "Div", "Erf", "Mul", "Pow", "Sub", "Tanh")
