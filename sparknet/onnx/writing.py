"""From a net to an ONNX model: the walk over its layers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, LayerError, SettingError
from sparknet.graph import Graph, Node, build
from sparknet.graph.records import Outline
from sparknet.layers import TEST, Shape
from sparknet.layers.python import Python
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.onnx.layer_export import WRITERS, Draft, LayerExport, Rounding
from sparknet.onnx.source import LABELS, PREPROCESSING, PRODUCER, Array, StrPath, onnx_package
from sparknet.proto import Model, caffe_pb2

OPSETS = (13, 22)
"""The oldest and the newest operators that are written."""
BATCH = "batch"
RAW = "/raw"
"""Behind the name of an input whose preprocessing is inside."""


def write_model(
    path: StrPath,
    net: Any,
    *,
    opset: int = 17,
    dynamic_batch: bool = True,
    preprocessing: caffe_pb2.TransformationParameter | None = None,
    images: Preprocessing | None = None,
    labels: Sequence[str] = (),
) -> None:
    """Write a net for testing, with its weights, as an ONNX model.

    `net` is a `Model`, as `sparknet.read_model` gives it, or a `sparknet.Net`.  Layers that only
    train or judge are left out.  ``dynamic_batch=False`` fixes the number of records.
    `preprocessing` puts the mean and the scale of a transform_param before the first input.
    `images`, else what a Net does to its images, stands in the metadata, where `Net` finds it, as
    do `labels`, else a Net's names of classes."""
    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise SettingError(f"opset {opset} is none of {OPSETS[0]} to {OPSETS[1]}")
    onnx = onnx_package("writing an ONNX model")
    from sparknet.onnx import writers

    writers.load()
    model = net if isinstance(net, Model) else _model_of(net)
    proto = Writing(onnx, model, opset, dynamic_batch).proto(preprocessing)
    labels = labels or getattr(net, "labels", ())
    properties = {LABELS: json.dumps(list(labels))} if labels else {}
    images = images or _images(net)
    if images is not None:
        if preprocessing is not None:  # These are inside.
            images = replace(images, mean=None, scale=1.0)
        properties[PREPROCESSING] = images.to_json()
    onnx.helper.set_model_props(proto, properties)
    try:
        onnx.checker.check_model(proto)
    except ValueError as error:  # protobuf's own limit
        raise FileError(path, f"cannot hold the model: {error}") from error
    with atomic_file(path) as draft:
        draft.write_bytes(proto.SerializeToString())


def _images(net: Any) -> Preprocessing | None:
    """Return what a `sparknet.Net` does to its images."""
    entries = () if isinstance(net, Model) else net.tested.entries
    return next((one.preprocessing for one in entries if one.pictures and one.preprocessing), None)


def _model_of(net: Any) -> Model:
    """Return the net that a `sparknet.Net` tests, with its weights."""
    tested = net.tested
    params = tested.net.params
    arrays: list[list[Any]] = [
        [np.asarray(blob.data) for blob in params.get(layer.name, ())]
        for layer in tested.described.layer
    ]
    return Model(tested.described, arrays)


class Writing:
    """One net on its way into a model."""

    def __init__(self, onnx: Any, model: Model, opset: int, dynamic: bool) -> None:
        self.graph: Graph = build(model.net, TEST)
        self.arrays = _arrays(model, self.graph)
        self.names: dict[int, str] = {}
        """The newest value of each blob, by the blob's number."""
        sources = filter(is_source, self.graph.nodes)
        shapes = [self.graph.blobs[top] for node in sources for top in node.tops]
        batch = shapes[0][0] if shapes and shapes[0] else 1
        record_axes = blobs_of_records(needed(self.graph)) if dynamic else None
        self.rows = record_axes or set()
        """The blobs that have rows for each record, if their number is left open."""
        rounding = Rounding(self.graph, model.net.int8_param)
        self.draft = Draft(onnx, opset, record_axes is not None, batch, rounding)
        self._written: Counter[int] = Counter()
        self.read: set[str] = set()
        """Values that layers read, also those of which only the size counts (Crop)."""

    # -- the walk ------------------------------------------------------------------------

    def proto(self, preprocessing: caffe_pb2.TransformationParameter | None) -> Any:
        nodes = needed(self.graph)
        writers = Counter(top for node in nodes for top in node.top_ids)
        inputs: list[tuple[str, Shape]] = []
        bottoms = {blob for node in nodes for blob in node.bottom_ids}
        tops: set[int] = set()
        for node in nodes:
            if is_source(node):
                for blob, top, shape in zip(node.top_ids, node.tops, node.plan.tops, strict=True):
                    if blob in bottoms:
                        self.names[blob] = top
                        inputs.append((top, shape))
            else:
                self._layer(node, writers)
                tops.update(node.top_ids)
        silent = {
            blob
            for node in self.graph.nodes
            if node.layer.is_view and not node.tops
            for blob in node.bottom_ids
        }
        ends = {
            blob
            for blob in sorted(tops)
            if self.names[blob] not in self.read and self.names[blob] not in dict(inputs)
        }
        # A net of which all ends are silent has no others (colorization).
        outputs = {
            self.names[blob]: self.graph.blob_shapes[blob] for blob in sorted(ends - silent or ends)
        }
        used = self.draft.prune(outputs)
        inputs = [one for one in inputs if one[0] in used]
        if not outputs:
            raise LayerError(self.graph.name, "nothing is left of the net without its losses")
        if preprocessing is not None:
            self._preprocess(inputs, preprocessing)
        return self._whole(inputs, outputs)

    def _layer(self, node: Node, writers: Counter[int]) -> None:
        inputs = [self._input_name(blob, node) for blob in node.bottom_ids]
        if node.layer.is_split or isinstance(node.layer, Python):
            if isinstance(node.layer, Python):
                raise LayerError(node.name, f"{node.type}: ONNX cannot run Python code")
            self.names.update(dict.fromkeys(node.top_ids, inputs[0]))
            return
        self.read.update(self.names[blob] for blob in node.bottom_ids)
        write = WRITERS.get(node.type)
        if write is None:
            raise LayerError(node.name, f"{node.type}: ONNX has no operator for it")
        outputs = []
        for blob, top in zip(node.top_ids, node.tops, strict=True):
            self._written[blob] += 1
            whole = self._written[blob] == writers[blob]
            outputs.append(top if whole else f"{top}/{node.name}")
        shapes = [self.graph.blob_shapes[blob] for blob in node.bottom_ids]
        write(
            LayerExport(self.draft, node, inputs, outputs, shapes, self.arrays.get(node.name, []))
        )
        self.names.update(zip(node.top_ids, outputs, strict=True))

    def _input_name(self, blob: int, node: Node) -> str:
        """Return the value that a layer reads; with eight bits, the one that is left of it."""
        name, step = self.names[blob], self.draft.rounding.step_for(blob, node)
        if step is None:
            return name
        rounded = f"{name}/rounded"
        if rounded not in self.draft.names:
            self.draft.names.add(rounded)
            size, kind = step[0], np.int8 if step[1] else np.uint8
            with_zero = [
                self.draft.constant(f"{name}/step", size, np.float32),
                self.draft.constant(f"{name}/zero", 0, kind),
            ]
            whole = f"{name}/whole"
            self.draft.node("QuantizeLinear", name, [name, *with_zero], [whole], {})
            self.draft.node("DequantizeLinear", name, [whole, *with_zero], [rounded], {})
        return rounded

    def _preprocess(
        self, inputs: list[tuple[str, Shape]], transform: caffe_pb2.TransformationParameter
    ) -> None:
        """(x - mean) · scale, before everything else."""
        name, shape = inputs[0]
        if transform.HasField("mean_file") or len(shape) != 4:
            raise LayerError(name, "preprocessing is for images with mean_value, not a mean_file")
        if len(transform.mean_value) not in (0, 1, shape[1]):
            raise LayerError(name, f"{len(transform.mean_value)} mean values, {shape[1]} channels")
        raw = f"{name}{RAW}"
        mean = np.asarray(list(transform.mean_value) or [0.0], np.float32).reshape(1, -1, 1, 1)
        late, self.draft.nodes = self.draft.nodes, []
        less = f"{name}/centred"
        self.draft.node(
            "Sub",
            "preprocessing",
            [raw, self.draft.constant(f"{name}/mean", mean, np.float32)],
            [less],
            {},
        )
        scale = self.draft.constant(f"{name}/scale", np.float32(transform.scale), np.float32)
        self.draft.node("Mul", "preprocessing", [less, scale], [name], {})
        self.draft.nodes += late
        inputs[0] = (raw, shape)

    def _whole(self, inputs: list[tuple[str, Shape]], outputs: Mapping[str, Shape]) -> Any:
        helper, kind = self.draft.onnx.helper, self.draft.onnx.TensorProto.FLOAT
        used = {name for node in self.draft.nodes for name in node.input}
        graph = helper.make_graph(
            self.draft.nodes,
            self.graph.name or "net",
            [helper.make_tensor_value_info(n, kind, self._sizes(n, s)) for n, s in inputs],
            [helper.make_tensor_value_info(n, kind, self._sizes(n, s)) for n, s in outputs.items()],
            [
                self.draft.onnx.numpy_helper.from_array(value, name)
                for name, value in self.draft.constants.items()
                if name in used
            ],
        )
        return helper.make_model(
            graph,
            producer_name=PRODUCER,
            producer_version=version(PRODUCER),
            opset_imports=[helper.make_opsetid("", self.draft.opset)],
            ir_version=8 if self.draft.opset < 19 else 9 if self.draft.opset < 21 else 10,
        )

    def _sizes(self, name: str, shape: Shape) -> list[int | str]:
        """Name the axis of the records, in inputs and outputs."""
        if name.removesuffix(RAW) not in self.rows or not shape:
            return list(shape)
        first = BATCH if shape[0] == self.draft.batch else f"{name}_rows"
        return [first, *shape[1:]]


def _arrays(model: Model, graph: Graph) -> dict[str, list[Array]]:
    """Return each layer's numbers in the shapes that the net gives them."""
    from sparknet.proto.model import copy_arrays

    targets = {node.name: [ref.shape for ref in node.params] for node in graph.nodes}
    targets = {name: shapes for name, shapes in targets.items() if shapes}
    shared = {
        (node.name, i) for node in graph.nodes for i, ref in enumerate(node.params) if not ref.owned
    }
    copies = copy_arrays(model, targets, shared)
    owners: dict[int, Array] = {}
    arrays: dict[str, list[Array]] = {}
    for node in graph.nodes:
        if not node.params:
            continue
        arrays_copied = copies.get(node.name)
        if arrays_copied is None:
            raise LayerError(node.name, f"{node.type}: the model has no weights for it")
        own = []
        for ref, array in zip(node.params, arrays_copied, strict=True):
            value = owners.get(ref.learnable) if array is None else array
            if value is None:
                raise LayerError(node.name, f"{node.type}: the model lacks a shared parameter")
            owners.setdefault(ref.learnable, value)
            own.append(value.reshape(ref.shape))
        arrays[node.name] = own
    return arrays


def is_source(node: Node) -> bool:
    return bool(node.layer.holds_records)


def needed(graph: Graph) -> list[Node]:
    """Return the layers that compute results: none that judge, and none that prepare labels."""
    nodes: list[Node] = []
    labels = _label_layers(graph)
    without: set[int] = set()
    for number, node in enumerate(graph.nodes):
        if number in labels or _judges(node) or without.intersection(node.bottom_ids):
            without.update(top for top in node.top_ids if top not in node.bottom_ids)
        elif node.tops or is_source(node):
            nodes.append(node)
    return nodes


def _judges(node: Node) -> bool:
    return bool(node.layer.is_loss or node.layer.compares_labels)


def _label_layers(graph: Graph) -> set[int]:
    """Return the layers without parameters between inputs and compared labels."""
    plain: set[int] = set()
    readers: dict[int, list[tuple[int, int]]] = {}
    for number, node in enumerate(graph.nodes):
        if is_source(node) or (not node.plan.params and plain.issuperset(node.bottom_ids)):
            plain.update(node.top_ids)
        for place, blob in enumerate(node.bottom_ids):
            readers.setdefault(blob, []).append((number, place))
    ids: set[int] = set()
    for number, node in reversed([*enumerate(graph.nodes)]):
        users = [reader for top in node.top_ids for reader in readers.get(top, [])]
        if not users or is_source(node) or not plain.issuperset(node.top_ids):
            continue
        if all(one in ids or (place and _judges(graph.nodes[one])) for one, place in users):
            ids.add(number)
    return ids


def blobs_of_records(nodes: Sequence[Node]) -> set[str] | None:
    """Return the blobs with rows of records; None if others depend on records."""
    if any(node.layer.is_time_major for node in nodes):
        return None  # Steps, on the first axis, are written one by one.
    if any(any(node.layer.parameter.input_param.record_axis) for node in nodes):
        return None  # The first axis is written as that of records.
    inputs = {
        top: shape
        for node in nodes
        if is_source(node)
        for top, shape in zip(node.tops, node.plan.tops, strict=True)
    }
    layers = [node.layer for node in nodes if not is_source(node)]
    outline = Outline([layer.parameter for layer in layers], TEST)
    shapes, axes = outline.axes(inputs, dict.fromkeys(inputs, 0))
    for layer in layers:
        names = [name for name in layer.parameter.bottom if name in axes or name not in shapes]
        if names and any(axes.get(top) != 0 for top in layer.parameter.top):
            return None
        if any(layer.mixes(shapes[name], axes[name]) for name in names):
            return None
    return set(axes)
