"""From an ONNX model to a net: the walk over its nodes, and what is left to do after it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from sparknet.errors import FileError, shown
from sparknet.onnx.folding import fold, foldable
from sparknet.onnx.limits import LARGEST
from sparknet.onnx.netlist import Blob, Netlist, Value
from sparknet.onnx.patterns import simplified
from sparknet.onnx.source import Array, Node, Source, StrPath, read_source
from sparknet.onnx.step import OPERATORS, Step
from sparknet.proto import Model
from sparknet.proto.trust import mark

_WRONG = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""What a malformed node makes code fail with."""
_LARGE = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181)
_SMALL = (3, 5, 7, 11, 13, 17, 19, 23)


class OnnxWarning(UserWarning):
    """Something about a conversion that its user should know."""


def read_model(
    path: StrPath,
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    strict: bool = False,
) -> Model:
    """Read an ONNX model as a net with its weights.

    An open size of an input counts records: the net is made for `batch` of them (the default is
    1), and runs with any number.  `shapes` gives the whole shapes of inputs that leave more sizes
    open.  Layers that stock Caffe lacks are named by an `OnnxWarning`; `strict` refuses them.
    What no layer computes is refused by a sentence that names its node.
    """
    model = converted(path, 1 if batch is None else batch, shapes)
    _tell(model, str(path), strict)
    return model


def converted(
    path: StrPath, batch: int = 1, shapes: Mapping[str, Sequence[int]] | None = None
) -> Model:
    """The net and the weights, and no word about its layers."""
    from sparknet.onnx import operators

    operators.load()
    reading = Reading(read_source(path), dict(shapes or {}), _LARGE)
    try:
        model = reading.model(batch)
    except FileError as error:
        # A model of large images may be too large for so many records.
        reading = Reading(read_source(path), dict(shapes or {}), _SMALL)
        try:
            model = reading.model(batch)
        except FileError:
            raise error from None
    mark(model.net, trusted=False)
    _tell_rounding(reading, str(path))
    return model


def _tell_rounding(reading: Reading, path: str) -> None:
    said = {
        "round to whole numbers; the net computes in float32 there": reading.unrounded,
        "round to eight bits; the net does so with precision='int8'": reading.rounded,
        "round around a zero point; the steps of precision='int8', around 0, are coarser there": (
            reading.coarser
        ),
    }
    for what, nodes in said.items():
        if nodes:
            text = f"{path}: {len(nodes)} nodes (the first is '{shown(nodes[0])}') {what}"
            warnings.warn(text, OnnxWarning, stacklevel=4)


def foreign_types(model: Model) -> list[str]:
    """The layer types of a model that stock Caffe lacks."""
    from sparknet.layers import LAYERS

    types = dict.fromkeys(layer.type for layer in model.net.layer)
    return [one for one in types if not LAYERS[one].stock]


def _tell(model: Model, path: str, strict: bool) -> None:
    foreign = foreign_types(model)
    if not foreign:
        return
    names = [next(one.name for one in model.net.layer if one.type == kind) for kind in foreign]
    said = ", ".join(f"{kind} ('{shown(name)}')" for kind, name in zip(foreign, names, strict=True))
    if strict:
        raise FileError(path, f"needs layers that stock Caffe lacks: {said}")
    warnings.warn(
        f"{path}: stock Caffe does not read the net: it lacks {said}", OnnxWarning, stacklevel=3
    )


@dataclass(eq=False)
class Reading:
    """One model on its way into a net."""

    source: Source
    shapes: dict[str, Sequence[int]]
    primes: Sequence[int]

    def __post_init__(self) -> None:
        source = self.source
        self.nodes, source.constants = simplified(source)
        self.net = Netlist(source.name, _unlikely(source, self.primes))
        self.values: dict[str, Value] = dict(source.constants)
        self.uses = Counter(name for node in self.nodes for name in node.inputs)
        self.uses.update(source.outputs)
        self.held: Counter[str] = Counter()
        """How often the values of each blob are read, by all its names."""
        self.unrounded: list[str] = []
        """Nodes that round to whole numbers of a scale, which the net does not."""
        self.rounded: list[str] = []
        """Nodes that round to eight bits."""
        self.coarser: list[str] = []
        """Nodes that round to eight bits around another number than 0."""
        self.scales: dict[str, tuple[float, float]] = {}
        """Scale and zero point of whole numbers, by the name of the value."""
        self.left = LARGEST + 8 * sum(one.size for one in source.constants.values())

    def model(self, batch: int) -> Model:
        for name, sizes in self.source.inputs.items():
            if self.uses[name]:
                self._input(name, sizes)
        for node in self.nodes:
            for name, value in zip(node.outputs, self._outputs(node), strict=False):
                if name:
                    self.bind(name, value)
        keep = {self._output(name) for name in self.source.outputs}
        if not keep:
            raise FileError(self.source.path, "has no outputs")
        self.net.silence(keep)
        self.net.work_in_place(keep)
        return self.net.model(batch)

    # -- what converters ask -------------------------------------------------------------

    def readers(self, blob: Blob) -> int:
        return self.held[blob.name]

    def layer_name(self, node: Node) -> str:
        """The name of its weights without their ending, or the node's own."""
        weights = node.inputs[1] if len(node.inputs) > 1 else ""
        if weights.endswith(".weight") and weights in self.source.constants:
            return weights.removesuffix(".weight")
        return node.name.strip("/").replace("/", ".") or node.op

    def bind(self, name: str, value: Value) -> None:
        self.values[name] = value
        if isinstance(value, Blob):
            self.held[value.name] += self.uses[name]

    # -- the walk ------------------------------------------------------------------------

    def _input(self, name: str, sizes: tuple[int | str | None, ...]) -> None:
        what = f"input '{shown(name)}'"
        given = self.shapes.get(name)
        if given is not None:
            if len(given) != len(sizes):
                raise FileError(self.source.path, f"{what} has {len(sizes)} axes: {list(given)}")
            sizes = tuple(given)
        unknown = [place for place, size in enumerate(sizes) if not isinstance(size, int)]
        if len(unknown) > 1:
            raise FileError(
                self.source.path, f"{what} leaves {len(unknown)} sizes open: give its shape"
            )
        shape = [size if isinstance(size, int) else self.net.batch for size in sizes]
        if prod(shape) > LARGEST * self.net.batch:
            raise FileError(self.source.path, f"{what} is too large: {list(sizes)}")
        node = Node("Input", name, [], [name])
        try:
            blob = Step(self, node, []).layer("Input", [], shape={"dim": shape})
        except _WRONG as error:
            raise self.source.refuse(node, _said(error)) from error
        blob.integral = name in self.source.integers
        self.bind(name, blob)

    def _outputs(self, node: Node) -> list[Value]:
        inputs = [self.values[name] if name else None for name in node.inputs]
        try:
            found = self._converted(node, inputs)
        except _WRONG as error:
            raise self.source.refuse(node, _said(error)) from error
        return found if isinstance(found, list) else [found]

    def _converted(self, node: Node, inputs: list[Value | None]) -> Value | list[Value]:
        known = [one for one in inputs if not isinstance(one, Blob)]
        if len(known) == len(inputs) and foldable(node.op):
            return list(self._fold(node, known))
        if node.op in ("Shape", "Size") and isinstance(inputs[0], Blob):
            hollow = np.broadcast_to(np.float32(0), inputs[0].shape)
            return list(fold(node, [hollow]))
        convert = OPERATORS.get(node.op)
        if convert is None:
            raise ValueError("no layer does this" + _WHY.get(node.op, ""))
        return convert(Step(self, node, inputs))

    def _fold(self, node: Node, inputs: Sequence[Array | None]) -> list[Array]:
        found = fold(node, inputs)
        self.left -= sum(one.size for one in found)
        if self.left < 0:
            raise ValueError("the constants that the model computes are too large")
        return found

    def _output(self, name: str) -> str:
        value = self.values.get(name)
        if value is None:
            raise FileError(self.source.path, f"nothing makes the output '{shown(name)}'")
        node = Node("Output", name, [], [name])
        step = Step(self, node, [value])
        try:
            blob = step.blob()
            taken = blob.name in self.source.inputs or blob.name in self.source.outputs
            if blob.name == name:
                return name
            if not taken and name not in self.net.blobs:
                self.net.rename(blob.name, name)
                return name
            return step.layer("Power", [blob]).name
        except _WRONG as error:
            raise self.source.refuse(node, _said(error)) from error


_OPEN = ": how much comes out depends on the values"
_WHOLE = ": it computes with whole numbers; QuantizeLinear and DequantizeLinear in pairs are read"
_WHY = {
    **dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), _OPEN),
    **dict.fromkeys(("ConvInteger", "DynamicQuantizeLinear", "MatMulInteger"), _WHOLE),
    **dict.fromkeys(("QLinearConv", "QLinearMatMul"), _WHOLE),
}


def _said(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return shown(text[0]) if text and not isinstance(error, KeyError) else f"is malformed ({error})"


def _unlikely(source: Source, primes: Sequence[int]) -> int:
    """A number of records that is no size of the model, to see which sizes depend on it."""
    sizes = {size for one in source.constants.values() for size in one.shape}
    sizes |= {size for shape in source.inputs.values() for size in shape if isinstance(size, int)}
    for prime in primes:
        if not any(size and size % prime == 0 for size in sizes):
            return prime
    return primes[-1]
