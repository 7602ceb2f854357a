"""Weights by PyTorch's names: .safetensors files and state_dicts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, WeightsError, clean, warn
from sparknet.graph import Graph, Node, build
from sparknet.layers import TEST
from sparknet.layers.normalization import BatchNorm
from sparknet.layers.scale import Scale
from sparknet.proto import Model, caffe_pb2, upgrade_net
from sparknet.proto.byte_source import open_file
from sparknet.proto.model import WeightsWarning

Array = np.ndarray[Any, Any]
StrPath = str | os.PathLike[str]
SUFFIX = ".safetensors"

MOST_HEADER = 100_000_000
"""Bytes, as the format itself has it."""
MOST_AXES = 32
_TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_WRITTEN = {"float32": "F32", "float16": "F16", "bf16": "BF16"}


def is_safetensors(path: StrPath) -> bool:
    return os.fspath(path).endswith(SUFFIX)


def read_tensors(path: StrPath) -> dict[str, Array]:
    """Return the arrays of a file by name; floats of two bytes become float32."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            header, begin = _header(path, file, size)
            entries = _checked(path, header, size - begin)
            tensors: dict[str, Array] = {}
            for name, (kind, shape, start, end) in entries.items():
                raw = np.empty(end - start, np.uint8)
                file.seek(begin + start)
                if file.readinto(raw.data) != end - start:
                    raise FileError(path, f"ends within '{clean(name)}'")
                tensors[name] = _numbers(kind, raw).reshape(shape)
    except FileError:
        raise
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror or error}") from error
    except MemoryError:
        raise FileError(path, "takes more memory than there is") from None
    return tensors


def _header(path: StrPath, opened: Any, size: int) -> tuple[dict[str, Any], int]:
    first = opened.read(8)
    length = int.from_bytes(first, "little")
    if len(first) < 8 or length > size - 8:
        raise FileError(path, "is no file of safetensors: its header is longer than the file")
    if length > MOST_HEADER:
        raise FileError(path, f"has a header of {length} bytes; {MOST_HEADER} are the most")
    try:
        header = json.loads(opened.read(length).decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"has a header that is no JSON: {clean(str(error))}") from error
    if not isinstance(header, dict):
        raise FileError(path, "has a header that is no object")
    return header, 8 + length


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name stands twice")
    return entries


def _checked(
    path: StrPath, header: Mapping[str, Any], size: int
) -> dict[str, tuple[str, tuple[int, ...], int, int]]:
    """Type, shape, begin and end by name; the arrays fill the file without gaps or overlaps."""
    entries = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        what = f"'{clean(name)}'"
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise FileError(path, f"{what} is not described by dtype, shape and data_offsets")
        kind, shape, places = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(kind, str) or kind not in _TYPES:
            raise FileError(
                path, f"{what} is of type {clean(str(kind))}; {', '.join(_TYPES)} are read"
            )
        if not _wholes(shape) or len(shape) > MOST_AXES:
            raise FileError(path, f"{what} has the shape {clean(str(shape)[:80])}")
        if not _wholes(places) or len(places) != 2 or not places[0] <= places[1] <= size:
            raise FileError(
                path, f"{what} lies at {clean(str(places)[:80])} of {size} bytes of numbers"
            )
        begin, end = places
        if prod(shape) * _TYPES[kind].itemsize != end - begin:
            raise FileError(path, f"{what} has {end - begin} bytes; {kind} {shape} takes others")
        entries[name] = kind, tuple(shape), begin, end
    at, last = 0, ""
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda one: one[1][2:]):
        if begin != at:
            how = "overlaps" if begin < at else "leaves a gap behind"
            raise FileError(path, f"'{clean(name)}' {how} '{clean(last)}' at byte {begin}")
        at, last = end, name
    if at != size:
        raise FileError(path, f"has {size - at} bytes behind its last array")
    return entries


def _wholes(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _numbers(kind: str, raw: Array) -> Array:
    values: Array = raw.view(_TYPES[kind])
    if kind == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32) if kind == "F16" else values


def write_tensors(path: StrPath, arrays: Mapping[str, Array], kind: str = "float32") -> None:
    """Write arrays as float32, float16, bf16 (halves to even), or as their "own" types."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, array in arrays.items():
        dtype = _type_code(path, name, array) if kind == "own" else _WRITTEN[kind]
        size = array.size * _TYPES[dtype].itemsize
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with atomic_file(path) as draft, draft.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(_packed(array, kind).tobytes())


def _type_code(path: StrPath, name: str, array: Array) -> str:
    """Return what a file calls an array's own type."""
    for code, dtype in _TYPES.items():
        if dtype == array.dtype and code != "BF16":
            return code
    raise FileError(
        path, f"'{clean(name)}' is of type {array.dtype}, which safetensors do not have"
    )


def _packed(values: Array, kind: str) -> Array:
    if kind == "own":
        return values
    values = np.asarray(values, np.float32)
    if kind == "float16":
        with np.errstate(over="ignore"):
            return values.astype("<f2")
    if kind == "float32":
        return values.astype("<f4")
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    whole = np.where(np.isnan(values), (bits >> 16) | 0x40, rounded)
    return whole.astype("<u2")


_COUNTS = "num_batches_tracked"
_MOST = 5


def from_state_dict(state: Mapping[str, Any], net: caffe_pb2.NetParameter) -> Model:
    """Return the weights of a net, found in a state dict (or arrays) by the names of its layers."""
    graph = build(upgrade_net(net), TEST)
    unused = {name: None for name in state if not name.endswith(_COUNTS)}
    described, arrays = caffe_pb2.NetParameter(name=net.name), list[list[Any]]()
    for node, parts in _parts(graph):
        names = [name for name in parts if name in state]
        if not names:
            continue
        missing = next((name for name in parts if name not in state), None)
        if missing is not None:
            raise WeightsError(node.name, f"there is '{clean(names[0])}' and no '{clean(missing)}'")
        values = [np.asarray(state[name], np.float32) for name in parts]
        for name in parts:
            unused.pop(name, None)
        arrays_of_layer = _of_statistics(node, values) if _is_norm(node) else values
        for name, value, ref in zip([*parts, _COUNTS], arrays_of_layer, node.params, strict=False):
            if value.shape != tuple(ref.shape) and value.squeeze().shape != tuple(ref.shape):
                raise WeightsError(
                    node.name,
                    f"'{clean(name)}' is {list(value.shape)}; the layer's is {list(ref.shape)}",
                )
        described.layer.add(name=node.name, type=node.type)
        shaped = zip(arrays_of_layer, node.params, strict=True)
        arrays.append([value.reshape(ref.shape) for value, ref in shaped])
    if not arrays:
        sample = ", ".join(f"'{clean(name)}'" for name in list(state)[:_MOST])
        raise WeightsError(
            graph.name, f"no weights have the names of the net's layers; there are {sample}"
        )
    if unused:
        rest = ", ".join(f"'{clean(name)}'" for name in list(unused)[:_MOST])
        more = f" and {len(unused) - _MOST} more" if len(unused) > _MOST else ""
        warn(f"nothing takes {rest}{more}", WeightsWarning)
    for layer, own in zip(described.layer, arrays, strict=True):
        for array in own:
            layer.blobs.add().shape.dim.extend(array.shape)
    return Model(described, arrays)


def state_dict(model: Model, net: caffe_pb2.NetParameter | None = None) -> dict[str, Array]:
    """Return the weights of a model, which `net` describes, by PyTorch's names."""
    graph = build(upgrade_net(model.net if net is None else net), TEST)
    layers, tensors = model.by_name(), dict[str, Array]()
    for node, parts in _parts(graph):
        if node.name not in layers:
            raise WeightsError(node.name, "the model has no weights for it")
        arrays = [
            np.asarray(array).reshape(ref.shape)
            for array, ref in zip(layers[node.name], node.params, strict=True)
        ]
        if _is_norm(node):
            mean, variance, count = arrays
            share = 1 / count.flat[0] if count.flat[0] else 0.0
            arrays = [mean * np.float32(share), variance * np.float32(share)]
        tensors |= zip(parts, arrays, strict=True)
    return tensors


def _is_norm(node: Node) -> bool:
    return isinstance(node.layer, BatchNorm)


def _of_statistics(node: Node, values: list[Array]) -> list[Array]:
    """Mean and variance as Caffe keeps them: times what they have counted."""
    fraction = float(node.plan.values["moving_average_fraction"])
    count = np.float32(1 / max(1 - fraction, 2.0**-24))
    return [values[0] * count, values[1] * count, count.reshape(1)]


def _parts(graph: Graph) -> Iterator[tuple[Node, list[str]]]:
    """Yield each layer with weights of its own, and the names of these."""
    norms = {top: node.name for node in graph.nodes if _is_norm(node) for top in node.top_ids}
    for node in graph.nodes:
        if not any(ref.owned for ref in node.params):
            continue
        module = node.name
        if _is_norm(node):
            if len(node.params) != 3:
                raise WeightsError(module, f"{node.type} of {len(node.params)} blobs is no module")
            yield node, [f"{module}.running_mean", f"{module}.running_var"]
            continue
        if isinstance(node.layer, Scale) and node.bottom_ids[0] in norms:
            module = norms[node.bottom_ids[0]]
        if len(node.params) > 2:
            raise WeightsError(
                module, f"{node.type}: its {len(node.params)} blobs are no weight and bias"
            )
        yield node, [f"{module}.{part}" for part in ("weight", "bias")[: len(node.params)]]
