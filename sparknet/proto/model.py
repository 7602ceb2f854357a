"""A net with its weights, and the rules by which they are copied into another net."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sparknet.errors import WeightsError
from sparknet.proto import caffe_pb2
from sparknet.proto.blob_file import (
    LEGACY,
    Array,
    array_bytes,
    blob_shape,
    is_legacy,
)
from sparknet.proto.wire import header

LayerArrays: TypeAlias = "list[Array | None]"


class WeightsWarning(UserWarning):
    """Some layers of a net were not found in the file of its weights."""


@dataclass(eq=False)
class Model:
    """What a caffemodel holds.

    `net` has the blobs' shapes but none of their numbers; `arrays[i][j]` is blob j of
    `net.layer[i]`. In a `partial` model (an HDF5 file) the second user of a shared parameter has
    None there, or no entry, and `net` knows nothing but names and shapes. `diffs` are the stored
    gradients, where they were asked for.

    >>> from sparknet import LinearLayer, Net, NetParams, RDDLayer, read_model
    >>> net = NetParams("n", RDDLayer("data", [8, 2]), LinearLayer("ip", "data", num_outputs=3))
    >>> Net(net).save("n.caffemodel")
    >>> [array.shape for array in read_model("n.caffemodel").layer_arrays("ip")]
    [(3, 2), (3,)]
    """

    net: caffe_pb2.NetParameter
    arrays: list[LayerArrays]
    diffs: list[LayerArrays] | None = None
    partial: bool = field(default=False, kw_only=True)
    metadata: dict[str, str] = field(default_factory=dict, kw_only=True)
    """What an ONNX file says beside its graph, by name."""
    passing: bool = field(default=False, kw_only=True)
    """Whether nobody needs the arrays once a net has copied them: it lets each go then."""

    def __post_init__(self) -> None:
        for lists in (self.arrays, *([] if self.diffs is None else [self.diffs])):
            if len(lists) != len(self.net.layer):
                raise WeightsError(
                    self.net.name,
                    f"the net has {len(self.net.layer)} layers, there are weights for {len(lists)}",
                )

    def layer_arrays(self, name: str) -> LayerArrays:
        """Return the arrays of a layer; of several with the name the last one's."""
        for layer, arrays in zip(reversed(self.net.layer), reversed(self.arrays), strict=True):
            if layer.name == name:
                return arrays
        raise WeightsError(name, "the model has no layer of this name")

    def by_name(self) -> dict[str, LayerArrays]:
        """Return the layers that have weights."""
        pairs = zip(self.net.layer, self.arrays, strict=True)
        return {layer.name: arrays for layer, arrays in pairs if arrays}

    def message(self) -> caffe_pb2.NetParameter:
        """Return an ordinary NetParameter with the numbers in it, for code that wants one."""
        net = caffe_pb2.NetParameter()
        net.CopyFrom(self.net)
        for index, layer in enumerate(net.layer):
            diffs = self.diffs[index] if self.diffs is not None else []
            _refill(layer, self.arrays[index], diffs)
        return net


def copy_arrays(
    model: Model,
    targets: Mapping[str, Sequence[Sequence[int]]],
    shared: Collection[tuple[str, int]] = (),
    loose: Collection[str] = (),
) -> dict[str, LayerArrays]:
    """Return the weights for the layers of another net, by layer name (Caffe:
    CopyTrainedLayersFrom).

    `targets` gives the shapes of each layer's parameters, `shared` those parameters (layer name,
    index) that belong to another layer: a partial model need not hold them, and has None there.
    Layers that only one side has are skipped.  Those in `loose` take an array of any shape with as
    many values (DeepLab's ``strict_dim: false``)."""
    out: dict[str, LayerArrays] = {}
    for layer, arrays in zip(model.net.layer, model.arrays, strict=True):
        if layer.name not in targets:
            continue
        shapes = targets[layer.name]
        if len(arrays) > len(shapes) or (len(arrays) < len(shapes) and not model.partial):
            raise _count_error(layer.name, len(arrays), len(shapes))
        filled = [*arrays, *[None] * (len(shapes) - len(arrays))]
        for index, (array, shape) in enumerate(zip(filled, shapes, strict=True)):
            if array is None:
                if (layer.name, index) not in shared:
                    present = sum(one is not None for one in arrays)
                    raise _count_error(layer.name, present, len(shapes))
            elif not _fits(layer, index, array, shape) and not (
                layer.name in loose and array.size == math.prod(shape)
            ):
                raise WeightsError(
                    layer.name,
                    f"parameter {index} of the model has shape {array.shape}, "
                    f"the net's has shape {tuple(shape)}; "
                    "to learn this layer from scratch, rename it",
                )
            else:
                filled[index] = array.reshape(tuple(shape))
        out[layer.name] = filled
    return out


def _fits(layer: caffe_pb2.LayerParameter, index: int, array: Array, shape: Sequence[int]) -> bool:
    """Equality of shapes; an old four-axis shape counts from the end (blob.cpp, ShapeEquals)."""
    described = layer.blobs[index] if index < len(layer.blobs) else None
    if described is not None and is_legacy(described) and array.ndim == len(LEGACY):
        return len(shape) <= 4 and array.shape == (1,) * (4 - len(shape)) + tuple(shape)
    return array.shape == tuple(shape)


def _count_error(layer: str, blobs: int, needed: int) -> WeightsError:
    return WeightsError(
        layer, f"the model has {blobs} parameter blobs for this layer, the net needs {needed}"
    )


def _refill(layer: caffe_pb2.LayerParameter, arrays: LayerArrays, diffs: LayerArrays) -> None:
    described = list(layer.blobs)
    del layer.blobs[:]
    for index, array in enumerate(arrays):
        if array is None:
            raise WeightsError(layer.name, f"parameter {index} is stored with another layer")
        blob = layer.blobs.add()
        old = index < len(described) and is_legacy(described[index])
        if old and blob_shape(described[index]) == array.shape:
            blob.CopyFrom(described[index])
        if array.ndim and not is_legacy(blob):
            blob.shape.dim.extend(array.shape)
        diff = diffs[index] if index < len(diffs) else None
        for number, values in ((5, array), (6, diff)):
            if values is not None and values.size:
                raw = array_bytes(values)
                blob.MergeFromString(header(number, len(raw)) + raw)
