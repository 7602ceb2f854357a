"""A net's parameters and files: copying in, by layer name, and saving."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence

from sparknet.caffe import int8
from sparknet.caffe.blob import Blob
from sparknet.caffe.runtime import Runtime
from sparknet.errors import WeightsError, clean, warn
from sparknet.graph import Graph
from sparknet.layers.layer import count, shape_text
from sparknet.proto import Model, caffe_pb2, write_model
from sparknet.proto.hdf5 import write_hdf5_model
from sparknet.proto.model import LayerArrays, WeightsWarning, copy_arrays

StrPath = str | os.PathLike[str]

_logger = logging.getLogger("sparknet.caffe")
_MOST = 5
"""Names that a warning lists."""


def open_model(path: StrPath) -> Model:
    """Read a model of any kind; what reads ONNX is imported here, as few programs need it."""
    from sparknet.onnx import open_model

    return open_model(path)


def copy_from(runtime: Runtime, path: StrPath) -> None:
    """Copy all weights or none (Caffe: net.cpp, CopyTrainedLayersFrom), with Caffe's log."""
    model = open_model(path)
    check_shared_names(runtime.graph, model, path)
    model.passing = True
    copy_model(runtime, model)


def check_shared_names(graph: Graph, model: Model, path: StrPath) -> None:
    """Warn where a file has weights for none of a net's layers, so that nothing is copied."""
    in_file = list(model.by_name())
    learned = [node.name for node in graph.nodes if node.params]
    if not learned or not set(learned).isdisjoint(in_file):
        return
    theirs, mine = (
        ", ".join(f"'{clean(name)}'" for name in names[:_MOST]) or "no layer"
        for names in (in_file, learned)
    )
    warn(
        f"{clean(path)}: nothing is copied, and the net keeps its weights: the file has those of "
        f"{theirs}; the net's own are of {mine}",
        WeightsWarning,
    )


def held_params(graph: Graph, models: Iterable[Model]) -> set[int]:
    """Return the places in ``graph.params`` of those that models hold."""
    params: dict[str, LayerArrays] = {}
    for model in models:
        params |= model.by_name()
    return {
        ref.learnable
        for node in graph.nodes
        for arrays in (params.get(node.name, ()),)
        for ref in node.params
        if ref.owned
        and ref.index < len(arrays)
        and (array := arrays[ref.index]) is not None
        and array.size == count(ref.shape)
    }


def copy_model(runtime: Runtime, model: Model) -> None:
    """Copy the weights of layers with the same names."""
    graph = runtime.graph
    targets = {
        node.name: [blob.shape for blob in own]
        for node, own in zip(graph.nodes, runtime.params, strict=True)
    }
    shared = {
        (node.name, index)
        for node in graph.nodes
        for index, ref in enumerate(node.params)
        if not ref.owned
    }
    loose = {node.name for node in graph.nodes if not node.layer.parameter.strict_dim}
    for layer in model.net.layer:
        if layer.name not in targets:
            _logger.info("Ignoring source layer %s", clean(layer.name))
    copied = copy_arrays(model, targets, shared, loose)
    if model.passing:
        for layer_arrays in model.arrays:
            layer_arrays[:] = [None] * len(layer_arrays)
    is_known = bool(copied)
    owners: dict[str, list[Sequence[Blob]]] = {}
    for node, own in zip(graph.nodes, runtime.params, strict=True):
        owners.setdefault(node.name, []).append(own)
    while copied:
        _take(*copied.popitem(), owners)
    if is_known and model.net.HasField("int8_param"):
        runtime.use_int8(model.net.int8_param)


def _take(name: str, arrays: LayerArrays, owners: Mapping[str, list[Sequence[Blob]]]) -> None:
    """Copy a layer's arrays, and hold none of them any longer."""
    for index in range(len(arrays)):
        array, arrays[index] = arrays[index], None
        for own in owners[name] if array is not None else ():
            if index < len(own):
                own[index].data[...] = array


def save(runtime: Runtime, path: StrPath, write_diff: bool = False) -> None:
    """Binary, or HDF5 where the name ends in .h5 (Caffe: net.cpp, ToProto and ToHDF5)."""
    write_model(path, as_model(runtime, write_diff), write_diff)


def save_hdf5(runtime: Runtime, path: StrPath, write_diff: bool = False) -> None:
    write_hdf5_model(path, as_model(runtime, write_diff), write_diff)


def as_model(runtime: Runtime, with_diffs: bool = False) -> Model:
    """Return the net and views of its parameters; each layer that shares one has it."""
    net = caffe_pb2.NetParameter()
    net.CopyFrom(runtime.graph.parameter)
    arrays: list[LayerArrays] = [[blob.data for blob in own] for own in runtime.params]
    diffs: list[LayerArrays] = [[blob.diff for blob in own] for own in runtime.params]
    for layer, own in zip(net.layer, runtime.params, strict=True):
        del layer.blobs[:]
        for blob in own:
            layer.blobs.add().shape.dim.extend(blob.shape)
    if runtime.int8_param is not None:
        net.int8_param.CopyFrom(runtime.int8_param)
        int8.mark_weights(runtime.graph, net, arrays)
    return Model(net, arrays, diffs if with_diffs else None)


def share(mine: Runtime, theirs: Runtime) -> None:
    """Use another net's parameter memory for layers of the same name and shapes."""
    params = {node.name: own for node, own in zip(theirs.graph.nodes, theirs.params, strict=True)}
    for node, own in zip(mine.graph.nodes, mine.params, strict=True):
        if node.name in params:
            _check_alike(node.name, own, params[node.name])
    mine.share_params(theirs)


def _check_alike(name: str, mine: Sequence[Blob], theirs: Sequence[Blob]) -> None:
    if len(mine) != len(theirs):
        raise WeightsError(
            name, f"{len(mine)} parameter blobs cannot share with {len(theirs)} of the other net"
        )
    for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        if tuple(one.shape) != tuple(other.shape):
            raise WeightsError(
                name,
                f"parameter {number} is {shape_text(one.shape)}, "
                f"the other net's is {shape_text(other.shape)}",
            )
