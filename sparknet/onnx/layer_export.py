"""One layer on its way into an ONNX model, and the functions that write layers by their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from sparknet.errors import LayerError
from sparknet.graph import Node
from sparknet.layers import Shape
from sparknet.onnx.rounding import Rounding
from sparknet.onnx.source import Array

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
    named: set[str] = field(default_factory=set)

    def node(
        self,
        op: str,
        layer: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: dict[str, Any],
    ) -> None:
        name = f"{layer}/{op}_{len(self.nodes)}" if layer in self.named else layer
        self.named.add(name)
        made = self.onnx.helper.make_node(op, list(inputs), list(outputs), name=name, **attributes)
        self.nodes.append(made)

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
        """Weights, of which an axis counts the outputs; whole numbers, with a step for each
        index of that axis, if the layer computes in eight bits."""
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

    def whole(self, value: Any) -> str:
        return self.constant(value, np.int64)

    def reduce(self, op: str, x: str, axes: Sequence[int], keep: bool = True) -> str:
        """A reduction, whose axes became an input in the course of time."""
        if self.opset >= 18 or op == "ReduceSum":
            return self.put(op, [x, self.whole(list(axes))], keepdims=int(keep))
        return self.put(op, [x], axes=list(axes), keepdims=int(keep))

    def view(self, x: str, shape: Shape, output: str | None = None) -> str:
        """The values under another shape, for any number of records."""
        sizes = list(shape)
        if self.draft.dynamic and sizes and shape[0] == self.draft.batch:
            sizes[0] = 0 if self.shapes and self.shapes[0][:1] == shape[:1] else -1
        if output is None:
            return self.before("view", "Reshape", [x, self.whole(sizes)])
        return self.put("Reshape", [x, self.whole(sizes)], output)

    def before(self, part: str, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Append a node that prepares: the layer's name is for what follows."""
        made = self._part()
        self.draft.node(op, f"{self.node.name}/{part}", inputs, [made], attributes)
        return made

    def _part(self) -> str:
        """A name for a value between the layer's own."""
        self._parts += 1
        return f"{self.outputs[0]}/{self.node.name}_{self._parts}"
