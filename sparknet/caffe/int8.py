"""Numbers of eight bits: which layers multiply them, and what the blobs are rounded to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sparknet.errors import SpecError
from sparknet.graph import Graph, Node
from sparknet.layers.layer import TEST
from sparknet.native.engine import NetEngine
from sparknet.proto import caffe_pb2

Array: TypeAlias = npt.NDArray[Any]

BINS = 2048
SIGNED, UNSIGNED = 127, 255
"""The largest multiples of a step."""
LARGEST = 1e30
"""Larger numbers stand for infinity, as in the masks of attentions: they set no step."""


def refuse_nan(blobs: Mapping[str, Array], first: int = 0) -> None:
    """Raise SpecError if a blob holds NaN; ``first`` is the number of its first record."""
    for name, values in blobs.items():
        if not values.size or not np.isnan(values.min()):
            continue
        record = np.argmax(np.isnan(values).reshape(len(values), -1).any(1)) if values.ndim else 0
        raise SpecError(
            f"blob '{name}' holds NaN in record {first + record}, and eight bits have no NaN: "
            "leave the record out, or predict in float32"
        )


class Histogram:
    """How often values of each size came by; the range doubles when a larger one comes."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS, np.int64)
        self.top = 0.0
        self.is_signed = False
        self.largest = 0.0

    def note(self, values: Array) -> None:
        """Count the values but 0, which eight bits hold as it is, and what stands for infinity."""
        flat = np.asarray(values, np.float32).ravel()
        sizes = np.abs(flat)
        counts = (sizes < LARGEST) & (sizes > 0)
        if not counts.all():
            flat, sizes = flat[counts], sizes[counts]
        if not flat.size:
            return
        self.is_signed = self.is_signed or bool(flat.min() < 0)
        largest = float(sizes.max())
        self.largest = max(self.largest, largest)
        if self.top == 0:
            self.top = 2.0 ** np.ceil(np.log2(largest))
        while self.top < largest:
            self.counts = np.append(self.counts.reshape(-1, 2).sum(1), np.zeros(BINS // 2, int))
            self.top *= 2
        at = np.minimum((sizes * (BINS / self.top)).astype(np.int64), BINS - 1)
        self.counts += np.bincount(at, minlength=BINS)

    def clip(self, method: str) -> float:
        """Return the largest value that keeps its size: of all, or of least error ("mse")."""
        if method == "max" or self.largest == 0:
            return self.largest
        levels = SIGNED if self.is_signed else UNSIGNED
        sizes = (np.arange(BINS) + 0.5) * (self.top / BINS)
        tried = self.largest * np.arange(20, 101) / 100
        within = sizes[None, :] <= tried[:, None]
        rounding = (tried[:, None] / levels) ** 2 / 12
        clipping = (sizes[None, :] - tried[:, None]) ** 2
        errors = np.where(within, rounding, clipping) @ self.counts
        return float(tried[int(np.argmin(errors))])


Method: TypeAlias = Literal["auto", "max", "mse"]
METHODS: tuple[Method, ...] = ("auto", "max", "mse")
RULES: tuple[str, ...] = METHODS[1:]
"""The methods that need no look at what a net's outputs lose."""


class Calibration:
    """Gathers what the blobs of a net hold, batch by batch."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._shapes = dict(zip(graph.blob_names, graph.blob_shapes, strict=True))
        self._found: dict[str, Histogram] = {name: Histogram() for name in self.blobs}
        self.batches = 0

    @property
    def blobs(self) -> list[str]:
        """The blobs to look at: what layers read that multiply, pass on or tolerate eight bits."""
        nodes, names = self._graph.nodes, self._graph.blob_names
        copies = {top for node in nodes if node.type == "Split" for top in node.tops}
        blobs = {
            names[blob]
            for node in nodes
            if node.layer.multiplies_int8(node.plan)
            or node.layer.passes_int8(node.plan)
            or node.layer.accepts_int8
            for blob in node.bottom_ids
        }
        return [
            name
            for name, shape in self._shapes.items()
            if len(shape) > 1 and name in blobs and name not in copies
        ]

    def note(self, values: Mapping[str, Array]) -> None:
        self.batches += 1
        for name, histogram in self._found.items():
            histogram.note(values[name])

    def done(
        self, method: str | Mapping[str, str] = "mse", float32: Iterable[str] = ()
    ) -> caffe_pb2.Int8Parameter:
        """Return the steps by one method or each blob's own; ``float32`` layers stay."""
        if not self.batches:
            raise SpecError("there are no records to calibrate on")
        unknown = set(float32).difference(self._graph.layers)
        if unknown:
            raise SpecError(f"the net has no layer '{min(unknown)}' to keep in float32")
        param = caffe_pb2.Int8Parameter(float32_layer=sorted(float32))
        for name, histogram in self._found.items():
            clip = histogram.clip(method if isinstance(method, str) else method.get(name, "mse"))
            if clip > 0:
                levels = SIGNED if histogram.is_signed else UNSIGNED
                param.values.add(blob=name, step=clip / levels, is_signed=histogram.is_signed)
        return param

    def mixed(self, losses: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
        """Choose for each blob the method by which its readers lose least."""
        group = _groups_of_blobs(self._graph)
        sums: dict[str, dict[str, float]] = {}
        for node in self._graph.nodes:
            for blob in node.bottom_ids:
                own = sums.setdefault(group[self._graph.blob_names[blob]], {})
                for method, loss in losses.items():
                    own[method] = own.get(method, 0.0) + loss.get(node.name, 0.0)
        return {
            name: min(sums[of], key=sums[of].__getitem__)
            for name, of in group.items()
            if of in sums
        }


def use(engine: NetEngine, graph: Graph, given: caffe_pb2.Int8Parameter) -> None:
    """Tell the engine; it prepares its layers again afterwards."""
    if graph.phase != TEST:
        raise SpecError("precision='int8' is for the test phase: train in float32 or bf16")
    check(given)
    steps = _groups(graph, {one.blob: (one.step, one.is_signed) for one in given.values})
    on = multiplying(graph, given)
    stored = _blobs_in_int8(graph, on)
    narrow, biases = {*on, *_narrow(graph, given)}, biases_of(graph, given)
    for number, node in enumerate(graph.nodes):
        engine.use_int8(number, number in narrow, biases.get(node.name, ()))
    for number, name in enumerate(graph.blob_names):
        step, is_signed = steps.get(name, (0.0, True))
        engine.set_step(number, step, is_signed, name in stored and step > 0)


def multiplying(graph: Graph, given: caffe_pb2.Int8Parameter) -> list[int]:
    """Return the numbers of the layers that multiply numbers of eight bits."""
    steps = _groups(graph, {one.blob: (one.step, one.is_signed) for one in given.values})
    float32 = set(given.float32_layer)
    return [
        number
        for number, node in enumerate(graph.nodes)
        if _multiplies(node, steps, graph, float32)
    ]


def _narrow(graph: Graph, given: caffe_pb2.Int8Parameter) -> list[int]:
    """Return the numbers of the layers that round what they multiply themselves: attentions."""
    return [
        number
        for number, node in enumerate(graph.nodes)
        if node.layer.rounds_inputs and node.name not in given.float32_layer
    ]


def refuse_without_steps(graph: Graph) -> None:
    """Raise SpecError if layers of a net without steps multiply numbers of eight bits."""
    if any(node.layer.multiplies_int8(node.plan) for node in graph.nodes):
        raise SpecError(
            "precision='int8' needs a quantised model: make one with `sparknet quantize` or "
            "Net.quantize"
        )


def biases_of(graph: Graph, given: caffe_pb2.Int8Parameter) -> dict[str, Sequence[float]]:
    """Return what each layer of a net adds to its bias in eight bits."""
    biases: dict[str, Sequence[float]] = {}
    outputs_of = {node.name: node.plan.values.get("num_output") for node in graph.nodes}
    for one in given.bias:
        outputs = outputs_of.get(one.layer, len(one.value))
        if len(one.value) != outputs or not np.isfinite(one.value).all():
            raise SpecError(
                f"int8_param: the bias of layer '{one.layer}' has {len(one.value)} values; "
                f"finite ones for {outputs} outputs are expected"
            )
        biases[one.layer] = list(one.value)
    return biases


def check(given: caffe_pb2.Int8Parameter) -> None:
    """Refuse steps that no calibration makes."""
    for one in given.values:
        if not 0 < one.step < LARGEST:
            raise SpecError(f"int8_param: the step of blob '{one.blob}' is {one.step:g}")


def _multiplies(node: Node, known: Collection[str], graph: Graph, float32: Collection[str]) -> bool:
    bottoms = [graph.blob_names[blob] for blob in node.bottom_ids]
    return (
        node.layer.multiplies_int8(node.plan)
        and node.name not in float32
        and all(name in known for name in bottoms)
    )


def _groups_of_blobs(graph: Graph) -> dict[str, str]:
    """Return one name for all blobs that hold numbers of each other."""
    parent = {name: name for name in graph.blob_names}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for node in graph.nodes:
        if node.layer.passes_int8(node.plan):
            names = [graph.blob_names[blob] for blob in (*node.bottom_ids, *node.top_ids)]
            for name in names[1:]:
                parent[root(name)] = root(names[0])
    return {name: root(name) for name in parent}


def _groups(graph: Graph, found: Mapping[str, tuple[float, bool]]) -> dict[str, tuple[float, bool]]:
    """Return one step for all blobs that hold numbers of each other: that of the largest values."""
    joined = _groups_of_blobs(graph)
    largest: dict[str, tuple[float, bool]] = {}
    for name, (step, is_signed) in found.items():
        if name not in joined:
            continue
        clip = step * (SIGNED if is_signed else UNSIGNED)
        before, was_signed = largest.get(joined[name], (0.0, False))
        largest[joined[name]] = max(before, clip), is_signed or was_signed
    return {
        name: (largest[group][0] / (SIGNED if largest[group][1] else UNSIGNED), largest[group][1])
        for name, group in joined.items()
        if group in largest
    }


def _blobs_in_int8(graph: Graph, on: Collection[int]) -> set[str]:
    """Return the blobs that all readers take in eight bits; outputs are for people."""
    joined = _groups_of_blobs(graph)
    refused = {joined[name] for name in graph.outputs}
    for number, node in enumerate(graph.nodes):
        if number in on or node.layer.passes_int8(node.plan) or node.layer.accepts_int8:
            continue
        # What a layer replaces in place is not stored yet: its last writer rounds.
        bottoms = set(node.bottom_ids).difference(node.top_ids)
        refused.update(joined[graph.blob_names[blob]] for blob in bottoms)
    return {name for name, group in joined.items() if group not in refused}


def mark_weights(
    graph: Graph, net: caffe_pb2.NetParameter, arrays: Sequence[Sequence[Array | None]]
) -> None:
    """Note the steps of the weights that a file holds in eight bits, one for each output."""
    float32 = set(net.int8_param.float32_layer)
    nodes = {node.name: node for node in graph.nodes}
    for layer, own in zip(net.layer, arrays, strict=True):
        node = nodes.get(layer.name)
        if node is None or node.name in float32 or not own:
            continue
        if not node.layer.multiplies_int8(node.plan):
            continue
        rows = own[0]
        if rows is None or not rows.size or not np.isfinite(rows).all():
            continue
        largest = np.abs(rows.reshape(len(rows), -1)).max(1)
        layer.blobs[0].int8_step.extend((np.where(largest > 0, largest, 1) / SIGNED).tolist())
