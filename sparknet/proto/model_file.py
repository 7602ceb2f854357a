"""The caffemodel: read at the speed of the disk, written straight from the arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparknet.errors import FileError, SpecError, WeightsError
from sparknet.proto import caffe_pb2, hdf5
from sparknet.proto.blob_file import (
    LARGEST_HALF,
    Array,
    Chunk,
    blob_chunks,
    load_blob,
    parsed,
    walked,
    wrapped,
    write_chunks,
)
from sparknet.proto.byte_source import ByteSource, StrPath, open_source
from sparknet.proto.forks import without_foreign
from sparknet.proto.model import LayerArrays, Model
from sparknet.proto.untrusted import mark
from sparknet.proto.upgrade import upgrade_net
from sparknet.proto.wire import NET, Payload, read_field

_LAYER, _BLOBS = 100, 7


def read_model(path: StrPath, diffs: bool = False) -> Model:
    """Reads a caffemodel of any age, binary or HDF5; `diffs` asks for the stored gradients too."""
    with open_source(path) as source:
        if hdf5.is_hdf5(source):
            return hdf5.read_hdf5_model(path, diffs)
        return _parse(source, diffs)


def parse_model(
    data: bytes | bytearray | memoryview, name: str = "<memory>", diffs: bool = False
) -> Model:
    """Return a binary caffemodel that is in memory; the arrays are copies."""
    return _parse(ByteSource(data, name), diffs)


def write_model(
    path: StrPath, model: Model, write_diff: bool = False, *, half: bool | Sequence[str] = False
) -> None:
    """Writes a caffemodel that Caffe reads: HDF5 if the name ends in .h5, otherwise binary.

    With ``half`` the weights are halves, of all layers or of these types, as NVIDIA's Caffe writes
    and OpenCV reads them.  A blob with a value that no half holds stays as it is."""
    if not hdf5.has_suffix(path):
        write_chunks(path, list(_net_chunks(model, write_diff, half)))
    elif half:
        raise FileError(path, "would hold no halves: HDF5 has float32; write a .caffemodel")
    else:
        hdf5.write_hdf5_model(path, model, write_diff)


def _parse(source: ByteSource, diffs: bool) -> Model:
    skeleton, payloads = walked(source, NET, "model")
    message = _message(source, skeleton)
    try:
        net = upgrade_net(message)
    except SpecError as error:
        raise FileError(source.name, str(error)) from error
    # Checked as a whole before the first array is made: see load_blob.
    arrays = [_layer_arrays(source, layer, payloads, False) for layer in net.layer]
    gradients = (
        [_layer_arrays(source, layer, payloads, True) for layer in net.layer] if diffs else None
    )
    for layer in net.layer:
        for blob in layer.blobs:
            del blob.data[:]
            blob.ClearField("raw_data_type")
            blob.ClearField("raw_diff_type")
    mark(net, trusted=False)
    return Model(net, arrays, gradients)


def _message(source: ByteSource, skeleton: bytes) -> caffe_pb2.NetParameter:
    """Return the net; settings that another fork keeps under a number of ours are left out."""
    try:
        return parsed(source, caffe_pb2.NetParameter, skeleton)
    except FileError:
        message = without_foreign(skeleton)
        if message == skeleton:
            raise
        return parsed(source, caffe_pb2.NetParameter, message)


def _layer_arrays(
    source: ByteSource, layer: caffe_pb2.LayerParameter, payloads: list[Payload], diff: bool
) -> LayerArrays:
    return [
        load_blob(
            source, blob, payloads[int(blob.data[0])], f"layer {layer.name!r} blob {index}", diff
        )
        for index, blob in enumerate(layer.blobs)
    ]


def _net_chunks(model: Model, write_diff: bool, half: bool | Sequence[str]) -> Iterator[Chunk]:
    """Yield the bytes that protobuf would write, layers last, blobs among their fields."""
    rest = caffe_pb2.NetParameter()
    rest.CopyFrom(model.net)
    del rest.layer[:]
    before, after = _split(rest.SerializeToString(), _LAYER)
    yield before
    for index, layer in enumerate(model.net.layer):
        diffs = model.diffs[index] if write_diff and model.diffs is not None else []
        is_half = half if isinstance(half, bool) else layer.type in half
        yield from wrapped(_LAYER, _layer_chunks(layer, model.arrays[index], diffs, is_half))
    yield after


def _layer_chunks(
    layer: caffe_pb2.LayerParameter, arrays: LayerArrays, diffs: LayerArrays, half: bool
) -> Iterator[Chunk]:
    rest = caffe_pb2.LayerParameter()
    rest.CopyFrom(layer)
    rest.ClearField("untrusted")
    del rest.blobs[:]
    before, after = _split(rest.SerializeToString(), _BLOBS)
    yield before
    for index, array in enumerate(arrays):
        if array is None:
            raise WeightsError(
                layer.name, f"parameter {index} is stored with another layer: write HDF5 (.h5)"
            )
        is_described = index < len(layer.blobs)
        description = layer.blobs[index] if is_described else caffe_pb2.BlobProto()
        diff: Array | None = diffs[index] if index < len(diffs) else None
        if diff is not None and diff.shape != array.shape:
            raise WeightsError(
                layer.name,
                f"parameter {index} has shape {array.shape}, its diff has {diff.shape}",
            )
        fits = half and not np.abs(array).max(initial=0) > LARGEST_HALF
        yield from wrapped(_BLOBS, blob_chunks(array, diff, description, fits))
    yield after


def _split(data: bytes, number: int) -> tuple[bytes, bytes]:
    """Serialized fields before and after the place of field `number`."""
    source, position = ByteSource(data), 0
    while position < len(data):
        entry = read_field(source, position, len(data))
        if entry.number > number:
            break
        position = entry.stop
    return data[:position], data[position:]
