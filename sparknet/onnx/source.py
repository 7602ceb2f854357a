"""An ONNX file as plain Python: nodes, constants, inputs and outputs; nothing in it is trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean, extra
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.onnx.payloads import RawBytes, room, walk
from sparknet.proto import Model
from sparknet.proto.byte_source import ByteSource, exists, open_source

Array = np.ndarray[Any, Any]
StrPath = str | os.PathLike[str]

OLDEST_OPSET = 7
MOST_AXES = 32
MOST_MESSAGE = 1 << 31
"""Bytes of a message that protobuf does not parse."""
SUFFIX = ".onnx"
PRODUCER = "sparknet"
PREPROCESSING = "sparknet.preprocessing"
"""The entry of a file's metadata that says what happens to pictures, as JSON."""
LABELS = "sparknet.labels"
"""The entry that names the classes, as JSON."""
_STANDARD = ("", "ai.onnx")
_WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*_FLOATS, *_WHOLE[:-1])


@dataclass(eq=False)
class OnnxNode:
    """One operation; a domain that is not ONNX's own is part of `op`."""

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)

    def read(self, names: Mapping[str, str]) -> None:
        """Read other values instead, in its branches, too."""
        self.inputs = [names.get(name, name) for name in self.inputs]
        for branch in self.attributes.values():
            if isinstance(branch, Branch):
                branch.outputs = [names.get(name, name) for name in branch.outputs]
                for node in branch.nodes:
                    node.read(names)

    def __str__(self) -> str:
        return f"node '{clean(self.name)}' ({clean(self.op)})"


@dataclass(eq=False)
class Branch:
    """The graph that an If runs in one case."""

    nodes: list[OnnxNode]
    constants: dict[str, Array]
    outputs: list[str]

    def needs(self) -> list[str]:
        """Return what it reads of the graph around it."""
        available = {*self.constants, *(name for node in self.nodes for name in node.outputs)}
        names = [*(name for node in self.nodes for name in node.inputs), *self.outputs]
        return list(dict.fromkeys(name for name in names if name and name not in available))


@dataclass(eq=False)
class Source:
    """What a file holds.  A size of an input that the file leaves open is its name, or None."""

    path: str
    name: str
    opset: int
    nodes: list[OnnxNode]
    constants: dict[str, Array]
    inputs: dict[str, tuple[int | str | None, ...]]
    outputs: list[str]
    integers: dict[str, np.dtype[Any]] = field(default_factory=dict)
    """The types of inputs of whole numbers."""
    size: int = 0
    """The bytes of the file, and of what it reads of others."""
    quantised: set[str] = field(default_factory=set)
    """Constants that stand for whole numbers of eight bits."""
    producer: str = ""
    """The program that wrote the file."""
    metadata: dict[str, str] = field(default_factory=dict)
    """The file's metadata."""
    is_trusted: bool = False
    """Whether the caller lets it ask for any amount of memory and work."""
    records: dict[str, int] = field(default_factory=dict)
    """The axes of records that the caller has named, by input."""
    fixed: int = 0
    """How many records the file is for, if it is read for any number all the same."""

    @property
    def is_ours(self) -> bool:
        return self.producer == PRODUCER

    def refuse(self, node: OnnxNode, reason: str) -> FileError:
        return FileError(self.path, f"{node}: {reason}")


def onnx_package(purpose: str) -> Any:
    """Return the package `onnx`."""
    with extra("onnx", "onnx", purpose):
        import onnx
    return onnx


def is_onnx(path: StrPath) -> bool:
    return os.fspath(path).endswith(SUFFIX)


def preprocessing_of(model: Model, path: StrPath) -> Preprocessing | None:
    """Return what the metadata of a .onnx say about images."""
    text = model.metadata.get(PREPROCESSING)
    return None if text is None else Preprocessing.from_json(text, f"{path}: {PREPROCESSING}")


def labels_of(model: Model, path: StrPath) -> tuple[str, ...]:
    """Return the names of the classes in the metadata of a .onnx; none where they say none."""
    text = model.metadata.get(LABELS)
    if text is None:
        return ()
    with suppress(ValueError, RecursionError):
        labels = json.loads(text)
        if isinstance(labels, list) and all(isinstance(name, str) for name in labels):
            return tuple(labels)
    raise FileError(f"{path}: {LABELS}", "is no list of classes' names")


def read_source(path: StrPath) -> Source:
    """Read a file, and the files beside it that hold its large constants."""
    onnx = onnx_package("reading an ONNX model")
    file = Path(path)
    if not (exists(file) and file.is_file()):
        raise FileError(path, "is no file" if exists(file) else "no such file")
    with open_source(path) as stream:
        skeleton, places = walk(stream)
        if len(skeleton) >= MOST_MESSAGE:
            raise FileError(
                path,
                f"has {len(skeleton)} bytes beside its constants' raw bytes; {MOST_MESSAGE} is the "
                "most: save it with its constants in a file of their own",
            )
        try:
            model = onnx.load_model_from_string(skeleton, format="protobuf")
        except Exception as error:  # protobuf's errors differ from one runtime to another
            raise FileError(path, f"is no ONNX model: {_line(error)}") from error
        del skeleton
        return _ModelReader(onnx, path, stream, places).source(model)


class _ModelReader:
    """Takes one model apart."""

    def __init__(
        self, onnx: Any, path: StrPath, file: ByteSource, places: list[RawBytes | None]
    ) -> None:
        self.onnx, self.path, self.file, self.places = onnx, os.fspath(path), file, places
        self.outside = 0

    def fail(self, message: str) -> FileError:
        return FileError(self.path, message)

    def source(self, model: Any) -> Source:
        graph = model.graph
        if not graph.output:
            raise self.fail("has no outputs: it is no ONNX model")
        if graph.sparse_initializer:
            raise self.fail("has sparse constants, which are not supported")
        constants = {
            _text(one.name): self.array(one, "constant", place)
            for one, place in zip(graph.initializer, self.places, strict=True)
        }
        inputs = [one for one in graph.input if _text(one.name) not in constants]
        return Source(
            path=self.path,
            name=_text(graph.name),
            opset=self._opset(model),
            nodes=[self._node(number, node) for number, node in enumerate(graph.node)],
            constants=constants,
            inputs={_text(one.name): self._sizes(one) for one in inputs},
            outputs=[_text(one.name) for one in graph.output],
            integers={
                _text(one.name): kind for one in inputs if (kind := self._whole(one)) is not None
            },
            size=Path(self.path).stat().st_size + self.outside,
            producer=_text(model.producer_name),
            metadata={_text(one.key): _text(one.value) for one in model.metadata_props},
        )

    def _opset(self, model: Any) -> int:
        versions = [one.version for one in model.opset_import if one.domain in _STANDARD]
        if not versions and any(one.domain == "ai.onnx.ml" for one in model.opset_import):
            return OLDEST_OPSET  # no node is of it
        if not versions:
            raise self.fail("names no version of ONNX's operators: it is no ONNX model")
        if max(versions) < OLDEST_OPSET:
            raise self.fail(f"is of opset {max(versions)}; {OLDEST_OPSET} is the oldest supported")
        return int(max(versions))

    def _node(self, number: int, node: Any) -> OnnxNode:
        op, domain = _text(node.op_type), _text(node.domain)
        op = op if domain in _STANDARD else f"{domain}.{op}"
        inputs, outputs = map(_text, node.input), map(_text, node.output)
        result = OnnxNode(op, _text(node.name) or f"{op}_{number}", list(inputs), list(outputs))
        for one in node.attribute:
            result.attributes[_text(one.name)] = self._attribute(one, result)
        for value in result.attributes.values():
            if isinstance(value, Branch):
                result.inputs.extend(value.needs())
        return result

    def _branch(self, graph: Any) -> Branch:
        if graph.sparse_initializer or graph.input:
            raise self.fail("has a graph in a node with inputs, or with sparse constants")
        return Branch(
            [self._node(number, node) for number, node in enumerate(graph.node)],
            {_text(one.name): self.array(one, "constant") for one in graph.initializer},
            [_text(one.name) for one in graph.output],
        )

    def _attribute(self, attribute: Any, node: OnnxNode) -> Any:
        kinds = self.onnx.AttributeProto
        if attribute.type == kinds.TENSOR:
            return self.array(attribute.t, f"{node}: attribute")
        if attribute.type == kinds.GRAPH and node.op == "If":
            return self._branch(attribute.g)
        if attribute.type in (kinds.GRAPH, kinds.GRAPHS):
            raise self.fail(f"{node}: it runs a graph of its own, which no layer does")
        simple = (kinds.FLOAT, kinds.INT, kinds.STRING, kinds.FLOATS, kinds.INTS, kinds.STRINGS)
        if attribute.type not in simple:
            raise self.fail(f"{node}: attribute '{clean(attribute.name)}' is of no supported type")
        value = self.onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, (int, float)):
            return value
        return [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in value]

    def _sizes(self, value: Any) -> tuple[int | str | None, ...]:
        what = f"input '{clean(value.name)}'"
        if not value.type.HasField("tensor_type"):
            raise self.fail(f"{what} is no tensor")
        if not value.type.tensor_type.HasField("shape"):
            raise self.fail(f"{what} has no shape")
        dims = value.type.tensor_type.shape.dim
        if len(dims) > MOST_AXES:
            raise self.fail(f"{what} has {len(dims)} axes; {MOST_AXES} is the most")
        sizes: list[int | str | None] = []
        for dim in dims:
            if dim.HasField("dim_value"):
                if dim.dim_value == -1:
                    sizes.append(None)
                    continue
                if dim.dim_value < 0:
                    raise self.fail(f"{what} has a size of {dim.dim_value}")
                sizes.append(int(dim.dim_value))
            else:
                sizes.append(_text(dim.dim_param) or None)
        return tuple(sizes)

    def _whole(self, value: Any) -> np.dtype[Any] | None:
        """Return the type of an input of whole numbers; None: it has others."""
        types = self.onnx.TensorProto
        kinds = {getattr(types, kind.upper()): np.dtype(kind) for kind in _WHOLE}
        return kinds.get(value.type.tensor_type.elem_type)

    # -- constants -----------------------------------------------------------------------

    def array(self, tensor: Any, what: str, place: RawBytes | None = None) -> Array:
        """Return the numbers of a tensor, also from the file; half floats as float32."""
        name = f"{what} '{clean(tensor.name)}'"
        dims = tuple(int(size) for size in tensor.dims)
        if len(dims) > MOST_AXES or min(dims, default=0) < 0:
            raise self.fail(f"{name} has the shape {list(dims[:MOST_AXES])}")
        dtype = self._dtype(tensor, name)
        if tensor.data_location == self.onnx.TensorProto.EXTERNAL:
            values: Array = self._outside(tensor, name, prod(dims), dtype)
        elif place is not None:
            if place.size != prod(dims) * dtype.itemsize:
                raise self.fail(
                    f"{name} has {place.size} bytes; its shape asks for "
                    f"{prod(dims) * dtype.itemsize}"
                )
            values = self._filled(self.file, place, name, dtype)
        else:
            try:
                values = np.asarray(self.onnx.numpy_helper.to_array(tensor)).reshape(-1)
            except Exception as error:
                raise self.fail(f"{name} cannot be read: {_line(error)}") from error
        if values.size != prod(dims):
            raise self.fail(f"{name} has {values.size} numbers; its shape asks for {prod(dims)}")
        narrow = str(dtype) in _FLOATS and dtype.itemsize < 4
        return (values.astype(np.float32) if narrow else values).reshape(dims)

    def _dtype(self, tensor: Any, name: str) -> np.dtype[Any]:
        try:
            dtype: np.dtype[Any] = self.onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        except (KeyError, TypeError, ValueError):
            dtype = np.dtype(object)
        bfloat16 = tensor.data_type == self.onnx.TensorProto.BFLOAT16
        if str(dtype) not in _NUMBERS and not bfloat16:
            raise self.fail(f"{name} is of type {tensor.data_type}, which is not supported")
        return dtype

    def _outside(self, tensor: Any, name: str, size: int, dtype: np.dtype[Any]) -> Array:
        """Return the numbers of a constant in a file of the model's own folder."""
        length = size * dtype.itemsize
        entries = {_text(one.key): _text(one.value) for one in tensor.external_data}
        location = entries.get("location", "")
        file = self._beside(location, name)
        try:
            offset = int(entries.get("offset", 0))
            count = int(entries.get("length", length))
        except ValueError:
            raise self.fail(f"{name} has no readable place in '{clean(location)}'") from None
        if count != length:
            raise self.fail(f"{name} takes {length} bytes; {count} are given")
        if offset < 0 or offset + length > file.stat().st_size:
            raise self.fail(f"{name} reaches past the end of '{clean(location)}'")
        with open_source(file) as stream:
            values = self._filled(stream, RawBytes(offset, length), name, dtype)
        self.outside += length
        return values

    def _filled(self, file: ByteSource, place: RawBytes, name: str, dtype: np.dtype[Any]) -> Array:
        try:
            raw = room(place.size)
        except MemoryError:
            message = f"{name} takes {place.size} bytes, which do not fit into memory"
            raise self.fail(message) from None
        file.fill(place.start, raw.data)
        return np.asarray(raw.view(dtype.newbyteorder("<")).astype(dtype, copy=False))

    def _beside(self, location: str, name: str) -> Path:
        folder = Path(self.path).resolve().parent
        parts = Path(location).parts
        if not parts or "\0" in location or Path(location).is_absolute() or ".." in parts:
            raise self.fail(f"{name} names '{clean(location)}', which is not in the model's folder")
        try:
            file = (folder / location).resolve(strict=True)
        except (OSError, RuntimeError):
            raise self.fail(f"{name} names '{clean(location)}', which is not there") from None
        if not file.is_relative_to(folder):
            raise self.fail(f"{name} names '{clean(location)}', a link out of the model's folder")
        if not file.is_file():
            raise self.fail(f"{name} names '{clean(location)}', which is no file")
        return file


def _text(name: Any) -> str:
    """Return a name, which a damaged file may hold as bytes that are no text."""
    raw = name if isinstance(name, bytes) else str(name).encode("utf-8", "replace")
    return raw.decode("utf-8", "replace")


def _line(error: Exception) -> str:
    text = str(error).strip()
    return clean(text.splitlines()[0]) if text else type(error).__name__
