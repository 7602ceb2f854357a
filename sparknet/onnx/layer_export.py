"""One layer on its way into an ONNX model, and the functions that write layers by their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from sparknet.errors import LayerError
from sparknet.graph import Graph, Node
from sparknet.layers import Shape
from sparknet.onnx.source import Array
from sparknet.proto import caffe_pb2

MOST_STEPS = 127
"""The largest multiple of a weight's step."""
Writer = Callable[["LayerExport"], None]
WRITERS: dict[str, Writer] = {}


def writes(*types: str) -> Callable[[Writer], Writer]:
    """Registers a function as the writer of these layer types."""

    def registered(write: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(types, write))
        return write

    return registered


@dataclass(eq=False)
class Draft:
    """An ONNX graph so far: its nodes and its constants."""

    onnx: Any
    opset: int
    dynamic: bool
    """Whether the number of records is left open."""
    batch: int
    rounding: Rounding
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def node(
        self,
        op: str,
        layer: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: dict[str, Any],
    ) -> None:
        name = f"{layer}/{op}_{len(self.nodes)}" if layer in self.names else layer
        self.names.add(name)
        node = self.onnx.helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)
        self.nodes.append(node)

    def prune(self, outputs: Iterable[str]) -> set[str]:
        """Remove nodes that no output depends on; return the names of all values in use."""
        used = set(outputs)
        for node in reversed(self.nodes):
            if not used.isdisjoint(node.output):
                used.update(node.input)
        self.nodes = [node for node in self.nodes if not used.isdisjoint(node.output)]
        return used

    def constant(self, name: str, value: Any, dtype: Any) -> str:
        self.constants[name] = np.asarray(value, dtype, order="C")
        return name


@dataclass(eq=False)
class LayerExport:
    """A layer in its place: the values that it reads and writes, and its numbers."""

    draft: Draft
    node: Node
    inputs: list[str]
    outputs: list[str]
    shapes: list[Shape]
    arrays: list[Array]
    _parts: int = 0

    def refuse(self, reason: str) -> NoReturn:
        raise LayerError(self.node.name, f"{self.node.type}: {reason}")

    @property
    def opset(self) -> int:
        return self.draft.opset

    @property
    def options(self) -> Any:
        return self.node.layer.options

    @property
    def values(self) -> Mapping[str, Any]:
        return self.node.plan.values

    @property
    def tops(self) -> Sequence[Shape]:
        return self.node.plan.tops

    def put(
        self,
        op: str,
        inputs: Sequence[str],
        outputs: Sequence[str] | str | None = None,
        **attributes: Any,
    ) -> str:
        """Append a node; without outputs it gets one of its own, which is returned."""
        if outputs is None:
            outputs = [self._part()]
        elif isinstance(outputs, str):
            outputs = [outputs]
        self.draft.node(op, self.node.name, inputs, outputs, attributes)
        return outputs[0]

    def last(self, op: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Append the node that makes the top."""
        self.put(op, inputs, self.outputs[0], **attributes)

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        return self.draft.constant(f"{self.node.name}/{len(self.draft.constants)}", value, dtype)

    def weights(self, weights: Array, axis: int = 0) -> str:
        """Return weights by outputs; whole numbers with steps if the layer is int8."""
        if not self.draft.rounding.multiplies(self.node):
            return self.constant(weights)
        others = tuple(one for one in range(weights.ndim) if one != axis)
        largest = np.abs(weights).max(others, initial=0, keepdims=True)
        if not np.isfinite(largest).all():
            return self.constant(weights)
        steps = np.where(largest > 0, largest, 1) / MOST_STEPS
        inputs = [
            self.constant(np.clip(np.rint(weights / steps), -MOST_STEPS, MOST_STEPS), np.int8),
            self.constant(steps.ravel()),
            self.constant(np.zeros(steps.size), np.int8),
        ]
        name = f"{self.node.name}/weights"
        self.draft.node("DequantizeLinear", name, inputs, [name], {"axis": axis})
        return name

    def biases(self) -> list[str]:
        """Return the bias, if there is one, with the correction of a layer of eight bits."""
        arrays, rounding = list(self.arrays[1:]), self.draft.rounding
        correction = rounding.biases.get(self.node.name)
        if correction is not None and rounding.multiplies(self.node):
            if correction.shape != (self.values["num_output"],):
                self.refuse(f"int8_param has a bias of {correction.size} values for it")
            arrays = [sum(arrays) + correction]
        return [self.constant(array) for array in arrays]

    def whole(self, value: Any) -> str:
        return self.constant(value, np.int64)

    def reduce(self, op: str, x: str, axes: Sequence[int], keep: bool = True) -> str:
        """Return a reduction, whose axes became an input in the course of time."""
        if self.opset >= 18 or op == "ReduceSum":
            return self.put(op, [x, self.whole(list(axes))], keepdims=int(keep))
        return self.put(op, [x], axes=list(axes), keepdims=int(keep))

    def view(self, x: str, shape: Shape, output: str | None = None) -> str:
        """Return the values under another shape, for any number of records."""
        sizes = list(shape)
        if self.draft.dynamic and sizes and shape[0] == self.draft.batch:
            sizes[0] = 0 if self.shapes and self.shapes[0][:1] == shape[:1] else -1
        if output is None:
            return self.before("view", "Reshape", [x, self.whole(sizes)])
        return self.put("Reshape", [x, self.whole(sizes)], output)

    def before(self, part: str, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Append a node that prepares: the layer's name is for what follows."""
        label = self._part()
        self.draft.node(op, f"{self.node.name}/{part}", inputs, [label], attributes)
        return label

    def _part(self) -> str:
        """Return a name for a value between the layer's own."""
        self._parts += 1
        return f"{self.outputs[0]}/{self.node.name}_{self._parts}"


class Rounding:
    """The blobs that a quantised net rounds for its int8 layers."""

    def __init__(self, graph: Graph, rounding: caffe_pb2.Int8Parameter) -> None:
        self._graph = graph
        self._float32 = set(rounding.float32_layer)
        self.biases = {one.layer: np.asarray(one.value, np.float32) for one in rounding.bias}
        """What layers of eight bits add to their biases."""
        grids = {one.blob: (one.step, one.is_signed) for one in rounding.values}
        self._steps = {
            blob: grids[name] for blob, name in enumerate(graph.blob_names) if name in grids
        }
        self._source: dict[int, int] = {}
        """What the copies that Split makes are copies of."""
        for node in graph.nodes:
            if node.layer.is_split:
                bottom = node.bottom_ids[0]
                whole = self._source.get(bottom, bottom)
                self._source.update(dict.fromkeys(node.top_ids, whole))
        self._rounded = self._find() if grids else set()

    def multiplies(self, node: Node) -> bool:
        """Return whether a layer multiplies numbers of eight bits."""
        return (
            bool(self._steps)
            and node.name not in self._float32
            and node.layer.multiplies_int8(node.plan)
            and all(self._whole(blob) in self._steps for blob in node.bottom_ids)
        )

    def step_for(self, blob: int, node: Node) -> tuple[float, bool] | None:
        """Return what a layer reads rounded."""
        whole = self._whole(blob)
        if whole not in self._rounded or node.layer.is_split or blob in node.top_ids:
            return None
        return self._steps[whole]

    def _whole(self, blob: int) -> int:
        return self._source.get(blob, blob)

    def _find(self) -> set[int]:
        readers: dict[int, list[Node]] = {}
        makers: dict[int, list[Node]] = {}
        for node in self._graph.nodes:
            if node.layer.is_split:
                continue
            for blob in node.top_ids:
                makers.setdefault(blob, []).append(node)
            for blob in set(node.bottom_ids).difference(node.top_ids):
                readers.setdefault(self._whole(blob), []).append(node)
        blobs = set()
        for blob in self._steps:
            users = readers.get(blob, [])
            multiplied = any(self.multiplies(node) for node in makers.get(blob, []))
            takes = all(one.layer.accepts_int8 or one.layer.passes_int8(one.plan) for one in users)
            if any(map(self.multiplies, users)) or (multiplied and users and takes):
                blobs.add(blob)
        return blobs
