"""From an ONNX model to a net: the walk over its nodes, for one choice of its open sizes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from operator import mul
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean
from sparknet.graph.untrusted_budget import Budget
from sparknet.onnx.folding import fold, foldable
from sparknet.onnx.inputs import Place, bound, one_number
from sparknet.onnx.length_constants import Growth, grown, of_length
from sparknet.onnx.limits import MALFORMED, WHY_NO_LAYER, Room, problem_of, spread
from sparknet.onnx.netlist import FLOAT, Computed, Netlist, Value
from sparknet.onnx.operators.binary import exact_quotients
from sparknet.onnx.records import COMPUTES, COMPUTES_WITH_LENGTH, beside
from sparknet.onnx.replay import Folds
from sparknet.onnx.sizes import RECORDS, Size, symbols
from sparknet.onnx.source import Array, Branch, OnnxNode, Source
from sparknet.onnx.step import OPERATORS, Step
from sparknet.onnx.value_types import (
    FILLING,
    MOST_SIZES,
    MOVING,
    PICKING,
    ROUNDING,
    SPREADING,
    WITH_SIZES,
    WRAPPING,
    constant_type,
    is_whole,
    result_type,
    set_type,
)


@dataclass(eq=False)
class Reading:
    """One model on its way into a net."""

    source: Source
    nodes: list[OnnxNode]
    shapes: Mapping[str, Sequence[Any]]
    records: int
    """How many an open size stands for."""
    lengths: Mapping[Place, int] = field(default_factory=dict)
    """What stands for the other sizes that are open, of sequences and images."""
    images: dict[str, int] = field(default_factory=dict)
    """The names of open sizes of images, with usual values."""

    def __post_init__(self) -> None:
        source = self.source
        supplied_bytes = sum(
            prod(size for size in shape if isinstance(size, int))
            for name, shape in self.shapes.items()
            if name in source.inputs
        )
        budget = Budget.unlimited() if source.is_trusted else Budget.of(source.size, supplied_bytes)
        lengths = dict.fromkeys(one for one in self.lengths.values() if str(one) not in self.images)
        self.net = Netlist(
            source.name, self.records, budget, tuple(map(int, lengths)), images=self.images
        )
        self.opened: dict[str, int] = {}
        """The axis of records of each input that leaves their number open."""
        self.bounds: list[int] = []
        """For how long a sequence each table of the model has places."""
        self.grown: dict[str, Computed] = {}
        """Constants that change with the length, as blobs."""
        self.growths: list[Growth] = []
        self.whole: dict[str, Computed] = {}
        """The blobs of whole numbers that casts make, by what they are made from."""
        self.symbolic: dict[str, Array] = {}
        """Constants of sizes that depend on open ones, as arrays of `Size`."""
        self.exact = exact_quotients(self.nodes)
        """Values that shall be what a division gives, to the last digit."""
        self.values: dict[str, Value] = dict(source.constants)
        values_by_name = {str(one): int(one) for one in self.lengths.values()}
        open_sizes = {RECORDS: self.records, **values_by_name}
        self.folds = Folds(
            source,
            self.values,
            open_sizes,
            values_by_name.keys() - self.images.keys(),
            self.net.is_open,
        )
        self.readers: defaultdict[str, list[OnnxNode]] = defaultdict(list)
        self.uses: Counter[str] = Counter()
        self._note_uses(self.nodes, source.outputs)
        self.held: Counter[str] = Counter()
        """How often each blob is read, by all its names."""
        self.unrounded: list[str] = []
        """Nodes that round to whole numbers of a scale, which the net does not."""
        self.rounded: list[str] = []
        """Nodes that round to eight bits."""
        self.coarser: list[str] = []
        """Nodes that round to eight bits around another number than 0."""
        self.dropping: list[str] = []
        """Nodes that are exported to drop values."""
        self.scales: dict[str, tuple[float, float]] = {}
        """Scale and zero point of whole numbers, by the name of the value."""
        self.room = Room(source.constants.values(), source.is_trusted)

    def walk(self) -> None:
        for name, sizes in self.source.inputs.items():
            if self.uses[name]:
                self._input(name, sizes)
        self._run(self.nodes)
        self._name_outputs()
        keep = set(self.source.outputs)
        self.net.silence(keep)
        self.net.work_in_place(keep)

    # -- what converters ask -------------------------------------------------------------

    def layer_name(self, node: OnnxNode) -> str:
        """Return the name of its weights without their ending, or the node's own."""
        weights = node.inputs[1] if len(node.inputs) > 1 else ""
        if weights.endswith(".weight") and weights in self.source.constants:
            return weights.removesuffix(".weight")
        if self.source.is_ours or not node.name.startswith("/"):
            return node.name or node.op
        return node.name.strip("/").replace("/", ".") or node.op  # a module of PyTorch

    def bind(self, name: str, value: Value) -> None:
        self.values[name] = value
        if isinstance(value, Computed):
            self.held[value.name] += self.uses[name]

    # -- the walk ------------------------------------------------------------------------

    def _run(self, nodes: Sequence[OnnxNode]) -> None:
        for node in nodes:
            values = self._branch(node) if node.op == "If" else self._outputs(node)
            for name, value in zip(node.outputs, values, strict=False):
                if name:
                    self.bind(name, value)

    def _note_uses(self, nodes: Sequence[OnnxNode], outputs: Sequence[str]) -> None:
        for node in nodes:
            self.uses.update(node.inputs)
            for name in node.inputs:
                self.readers[name].append(node)
        self.uses.update(outputs)

    def _branch(self, node: OnnxNode) -> list[Value]:
        """Return the results of one branch of an If, whose condition is known."""
        condition = self.values[node.inputs[0]]
        if isinstance(condition, Computed) or condition.size != 1:
            numbers = [name for name, sizes in self.source.inputs.items() if not sizes]
            cure = f": {one_number(numbers)}" if numbers else ""
            raise self.source.refuse(
                node, f"its condition depends on values, and a net has no branches{cure}"
            )
        if self.folds.varies(node.inputs[0]):
            raise self.source.refuse(node, COMPUTES_WITH_LENGTH if self.lengths else COMPUTES)
        branch = node.attributes.get("then_branch" if condition.any() else "else_branch")
        if not isinstance(branch, Branch):
            raise self.source.refuse(node, "it lacks a branch")
        self._note_uses(branch.nodes, branch.outputs)
        self.values.update(branch.constants)
        results = set[str]()
        for one in branch.nodes:
            inputs = (name for name in one.inputs if name and name not in self.values)
            missing = next((name for name in inputs if name not in results), None)
            if missing is not None:
                problem = f"it reads '{clean(missing)}', which nothing before it makes"
                raise self.source.refuse(one, problem)
            results.update(one.outputs)
        self._run(branch.nodes)
        missing_output = next((name for name in branch.outputs if name not in self.values), None)
        if missing_output is not None:
            raise self.source.refuse(node, f"nothing makes its output '{clean(missing_output)}'")
        return [self.values[name] for name in branch.outputs]

    def _input(self, name: str, sizes: tuple[int | str | None, ...]) -> None:
        what = f"input '{clean(name)}'"
        described = self.shapes.get(name)
        sizes = sizes if described is None else tuple(described)
        lengths = {axis: size for (one, axis), size in self.lengths.items() if one == name}
        sizes = tuple(lengths.get(axis, size) for axis, size in enumerate(sizes))
        unknown = [place for place, size in enumerate(sizes) if not isinstance(size, int)]
        if len(unknown) > 1:
            raise FileError(
                self.source.path, f"{what} leaves {len(unknown)} sizes open: give its shape"
            )
        if unknown:
            self.opened[name] = unknown[0]
        records = Size.open(RECORDS, self.net.batch)
        shape = [size if isinstance(size, int) else records for size in sizes]
        node = OnnxNode("Input", name, [], [name])
        try:
            blob = Step(self, node, []).layer("Input", [], shape={"dim": shape})
        except MALFORMED as error:
            raise self.source.refuse(node, problem_of(error)) from error
        blob.stored = tuple(shape)
        self.net.note_sizes(blob)
        for axis, size in enumerate(shape):
            if axis in lengths or axis in unknown:
                self.net.anchors.setdefault(size, (blob, axis))
        set_type(blob, self.source.integers.get(name, FLOAT))
        self.bind(name, blob)

    def _outputs(self, node: OnnxNode) -> list[Value]:
        inputs = [self.values[name] if name else None for name in node.inputs]
        try:
            return self.converted(node, inputs)
        except MALFORMED as error:
            raise self.source.refuse(node, problem_of(error)) from error

    def converted(self, node: OnnxNode, inputs: list[Value | None]) -> list[Value]:
        """Return what a node makes of its inputs."""
        if inputs and isinstance(inputs[0], np.ndarray) and self._is_several(node, inputs):
            inputs = [self._as_blob(node, inputs[0]), *inputs[1:]]
        constants = [one for one in inputs if not isinstance(one, Computed)]
        if len(constants) == len(inputs) and foldable(node.op) and not self._is_image(node):
            return list(self._fold(node, constants))
        if node.op in ("EyeLike", "Shape", "Size") and isinstance(inputs[0], Computed):
            shape = inputs[0].shape
            if node.op == "Shape":
                sizes = np.array([*map(self.net.size_of, shape)], object)
                self.symbolic[node.outputs[0]] = sizes[
                    node.attributes.get("start", 0) : node.attributes.get("end")
                ]
            self.folds.note(node, [*map(self.net.size_of, shape)])
            return list(fold(node, [np.broadcast_to(np.float32(0), shape)]))
        if self.source.fixed and node.op in SPREADING:
            inputs = self._for_any(inputs)
        if node.op in SPREADING:
            step = Step(self, node, [])
            inputs = [of_length(step, *pair) for pair in zip(node.inputs, inputs, strict=True)]
        given_inputs = inputs
        inputs = [
            self._sliced_constant(node, name, one) if isinstance(one, np.ndarray) else one
            for name, one in zip(node.inputs, inputs, strict=True)
        ]
        convert = OPERATORS.get(node.op)
        if convert is None:
            raise ValueError("no layer does this" + WHY_NO_LAYER.get(node.op, ""))
        kind = result_type(node, inputs)
        is_known = len(constants) == len(inputs) and node.op not in FILLING
        if is_known and inputs and isinstance(inputs[0], np.ndarray):
            blob = set_type(Step(self, node, inputs).blob(), kind)
            inputs = [blob, *inputs[1:]]
        step = Step(self, node, inputs)
        if node.op in WRAPPING and kind.kind in "iu" and not np.can_cast(np.int32, kind):
            step.refuse(f"it computes in {kind}, and no layer wraps whole numbers")
        if node.op in ROUNDING and kind.kind in "iu":
            step.refuse("it computes fractions of whole numbers, and no layer rounds")
        output = convert(step)
        outputs = output if isinstance(output, list) else [output]
        if node.op in SPREADING and isinstance(outputs[0], Computed):
            shape = spread(*(one.shape for one in given_inputs if one is not None))
            if outputs[0].shape != shape:
                outputs = [step.sized(outputs[0], shape, part="spread")]
        computed = [one for one in inputs if isinstance(one, Computed)]
        moved = inputs[:1] if node.op in (*PICKING, "GatherElements") else inputs
        whole = node.op in MOVING and all(map(is_whole, moved))
        return [
            set_type(one, kind, whole) if isinstance(one, Computed) and one not in computed else one
            for one in outputs
        ]

    def _for_any(self, inputs: list[Value | None]) -> list[Value | None]:
        """Constants that hold the same for each of the records of the file, for any number."""
        for blob in [one for one in inputs if isinstance(one, Computed)]:
            inputs = [
                beside(one, blob.shape, self.records, self.source.fixed)
                if isinstance(one, np.ndarray)
                else one
                for one in inputs
            ]
        return inputs

    def _is_several(self, node: OnnxNode, inputs: Sequence[Value | None]) -> bool:
        """Return whether a constant of rows is repeated several times for each record."""
        if node.op not in ("Expand", "Tile") or len(inputs) != 2:
            return False
        data, indices = inputs
        if not isinstance(data, np.ndarray) or not isinstance(indices, np.ndarray):
            return False
        sizes = [int(one) for one in np.ravel(indices)]
        old = (1,) * (len(sizes) - data.ndim) + data.shape
        new = spread(old, sizes) if node.op == "Expand" else tuple(map(mul, old, sizes))
        step = Step(self, node, [])
        grown = [one for one, its in zip(new, old, strict=False) if one != its]
        return sum(size > 1 for size in old) > 1 and any(map(step.is_several, grown))

    def _as_blob(self, node: OnnxNode, array: Array) -> Computed:
        """Return a constant as a blob, cut off where the input ends if it is as long."""
        piece = self._sliced_constant(node, node.inputs[0], array)
        if isinstance(piece, Computed):
            return piece
        return set_type(Step(self, node, [array]).blob(), constant_type(array))

    def _sliced_constant(self, node: OnnxNode, name: str, array: Array) -> Value:
        """Return a constant as long as the input: one repeated number, or a table cut there."""
        if (node.op in PICKING and name != node.inputs[0]) or not self._has_length(array):
            return array
        step = Step(self, node, [array])
        if node.op in SPREADING:
            array = step.unbatched(array)
            if not self._has_length(array):
                return array
        if name not in self.grown:
            blob = step.parameter(array, lambda long: grown(step, name, long))
            self.grown[name] = set_type(blob, constant_type(array))
        return self.grown[name]

    def _has_length(self, array: Array) -> bool:
        """Return whether an axis may be as long as an open length says."""
        lengths = self.net.lengths
        return bool(array.size) and any(size % one == 0 for size in array.shape for one in lengths)

    def _fold(self, node: OnnxNode, inputs: Sequence[Array | None]) -> list[Array]:
        results = fold(node, inputs)
        if self.lengths and inputs and inputs[0] is not None:
            rows = bound(node, inputs, results[0], self.net.lengths)
            if rows is not None and not self._grows(node, inputs):
                self.bounds.append(rows)
        self.room.take(results, inputs)
        self.folds.note(node)
        if node.op in WITH_SIZES and not self.symbolic.keys().isdisjoint(node.inputs):
            self._note_sizes(node, inputs)
        return results

    def _grows(self, node: OnnxNode, inputs: Sequence[Array | None]) -> bool:
        """Return whether a table is as long as the sequence, or read at other places than its."""
        table, *places = (self.folds.shorter.array(name) for name in node.inputs if name)
        whole, *its = (one for one in inputs if one is not None)
        if table.shape != whole.shape:
            return True
        return node.op != "Slice" and int(places[0].max()) + 1 != int(its[0].max())

    def _note_sizes(self, node: OnnxNode, inputs: Sequence[Array | None]) -> None:
        """Compute sizes once more, as what they are of the open ones."""
        parts: list[Array | None] = []
        for name, one in zip(node.inputs, inputs, strict=True):
            sizes = self.sizes(name)
            if sizes is None and self.folds.varies(name):
                return  # places along an open size, say
            parts.append(one if sizes is None else sizes)
        if any(one is not None and one.size > MOST_SIZES for one in parts):
            return
        with suppress(*MALFORMED):
            for name, sizes in zip(node.outputs, fold(node, parts), strict=False):
                if sizes.dtype == object:
                    self.symbolic[name] = sizes
                    for one in sizes.flat:
                        if isinstance(one, Size):
                            self.net.sizes.setdefault(one, one)

    def sizes(self, name: str) -> Array | None:
        """Return a constant as the sizes that it is for any open ones, or None."""
        value = self.values.get(name)
        if name not in self.symbolic and isinstance(value, np.ndarray) and self.folds.varies(name):
            sizes = np.array([self.net.size_of(int(one)) for one in value.flat], object)
            if value.size <= MOST_SIZES and self.folds.follows(name, sizes):
                self.symbolic[name] = sizes.reshape(value.shape)
        return self.symbolic.get(name)

    def _is_image(self, node: OnnxNode) -> bool:
        """Return whether a constant is as high or wide as an image that may be of any size."""
        sizes = [self.symbolic.get(name, np.zeros(0)) for name in node.inputs]
        names = {name for one in sizes for size in one.flat for name in symbols(size)}
        return node.op in FILLING and not names.isdisjoint(self.images)

    def _name_outputs(self) -> None:
        """Let each output be an unread blob of its name, with its axes in order."""
        if not self.source.outputs:
            raise FileError(self.source.path, "has no outputs")
        blobs: dict[str, str] = {}
        names = set[str]()
        for name in dict.fromkeys(self.source.outputs):
            value = self.values.get(name)
            if value is None:
                raise FileError(self.source.path, f"nothing makes the output '{clean(name)}'")
            node = OnnxNode("Output", name, [name], [name])
            step = Step(self, node, [value])
            try:
                blob = step.blob()
                fed = blob.name in self.source.inputs and blob.name != name
                if fed or blob.name in names or self.net.is_read(blob):
                    blob = step.layer("Power", [blob], part="copy")
                    self.net.move_up(blob)
            except MALFORMED as error:
                raise self.source.refuse(node, problem_of(error)) from error
            blobs[name] = blob.name
            names.add(blob.name)
        new = {old: name for name, old in blobs.items() if old != name}
        for name in list(new.values()):
            if name in self.net.blobs and name not in new:  # A blob that lies in another order.
                new[name] = self.net.unique(f"{name}_stored", "blob")
        self.net.rename(new)
