"""BlobProto ↔ array, and the binaryproto files (image means) that hold one BlobProto."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, Message

from sparknet.atomic_files import atomic_file
from sparknet.errors import ArrayError, FileError
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import ByteSource, StrPath, open_source
from sparknet.proto.wire import INT8, Kind, Payload, encode_varint, header, load, load_bytes, walk

Array: TypeAlias = npt.NDArray[np.float32]
M = TypeVar("M", bound=Message)
Numbers: TypeAlias = npt.NDArray[np.int8]
Chunk: TypeAlias = "bytes | Array | Numbers"

MAX_AXES = 32
LEGACY = ("num", "channels", "height", "width")
RAW = {0: "<f8", 1: "<f4", 2: "<f2", 3: "<i4", 4: "<u4"}
"""The numbers of NVIDIA's raw_data by their Type."""
_HALF = 2
LARGEST_HALF = 65504.0


def read_blob(path: StrPath) -> Array:
    """Return the array in a binaryproto file, such as an image mean."""
    with open_source(path) as source:
        skeleton, payloads = walked(source, None, "blob")
        blob = parsed(source, caffe_pb2.BlobProto, skeleton)
        return load_blob(source, blob, payloads[0], "the blob")


def write_blob(
    path: StrPath, array: npt.ArrayLike, diff: npt.ArrayLike | None = None, legacy: bool = False
) -> None:
    """Write one BlobProto; `legacy` spells the shape as Caffe's image means do."""
    values = np.asarray(array, np.float32)
    description = caffe_pb2.BlobProto()
    if legacy:
        if values.ndim > 4:
            raise ArrayError(f"a legacy blob has at most 4 axes, this array has {values.ndim}")
        for name, size in zip(LEGACY, (1,) * (4 - values.ndim) + values.shape, strict=True):
            setattr(description, name, size)
        values = values.reshape([getattr(description, name) for name in LEGACY])
    diffs = None if diff is None else np.asarray(diff, np.float32).reshape(values.shape)
    write_chunks(path, blob_chunks(values, diffs, description))


def blob_shape(blob: Message) -> tuple[int, ...]:
    """Return the shape a BlobProto states, in old fields if any is set (FromProto)."""
    if is_legacy(blob):
        return tuple(getattr(blob, name) for name in LEGACY)
    return tuple(blob.shape.dim)  # type: ignore[attr-defined]


def is_legacy(blob: Message) -> bool:
    return any(blob.HasField(name) for name in LEGACY)


def load_blob(
    source: ByteSource, blob: Message, payload: Payload, what: str, diff: bool = False
) -> Array:
    """Return one blob's checked numbers in aligned memory; double values win."""
    if payload.count("int8_data"):
        return _load_int8(source, blob, payload, what, diff)
    if payload.count("raw_diff" if diff else "raw_data"):
        return _load_raw(source, blob, payload, what, "diff" if diff else "data")
    name, double = ("diff", "double_diff") if diff else ("data", "double_data")
    used = double if payload.count(double) else name
    shape, count = blob_shape(blob), payload.count(used)
    needed = checked_count(source.name, what, shape)
    if diff and count == 0:
        raw = payload.count("raw_data") // np.dtype(RAW.get(blob.raw_data_type, "b")).itemsize  # type: ignore[attr-defined]
        if needed == payload.count("data") + payload.count("double_data") + raw:
            return np.zeros(shape, np.float32)
    if needed != count:
        raise FileError(
            source.name, f"{what} holds {count} {name} values, its shape {shape} needs {needed}"
        )
    array = aligned(count)
    load(source, payload.pieces.get(used, []), array)
    return array.reshape(shape)


def _load_raw(source: ByteSource, blob: Message, payload: Payload, what: str, name: str) -> Array:
    """Return the numbers of a blob of NVIDIA's Caffe, which writes them as bytes."""
    number, shape = getattr(blob, f"raw_{name}_type"), blob_shape(blob)
    if number not in RAW:
        raise FileError(source.name, f"{what} holds raw {name} of type {number}: no numbers")
    needed = checked_count(source.name, what, shape)
    pieces, width = payload.pieces[f"raw_{name}"][-1:], np.dtype(RAW[number]).itemsize
    if pieces[0].size != needed * width:
        raise FileError(
            source.name,
            f"{what} holds {pieces[0].size} bytes of raw {name}, its shape {shape} needs "
            f"{needed * width}",
        )
    array = aligned(needed)
    load_bytes(source, pieces, array, RAW[number])
    return array.reshape(shape)


def _load_int8(source: ByteSource, blob: Message, payload: Payload, what: str, diff: bool) -> Array:
    """Numbers of eight bits times the step of their row."""
    shape, steps = blob_shape(blob), np.asarray(blob.int8_step, np.float32)  # type: ignore[attr-defined]
    needed, count = checked_count(source.name, what, shape), payload.count("int8_data")
    if needed != count or not shape:
        raise FileError(
            source.name,
            f"{what} holds {count} numbers of eight bits, its shape {shape} needs {needed}",
        )
    if len(steps) != shape[0]:
        raise FileError(source.name, f"{what} holds {len(steps)} steps for {shape[0]} rows")
    if diff:
        return np.zeros(shape, np.float32)
    array = aligned(count)
    load_bytes(source, payload.pieces["int8_data"], array, "i1")
    rows = array.reshape(shape[0], -1)
    rows *= steps[:, None]
    return array.reshape(shape)


def _in_int8(array: Array, steps: npt.ArrayLike) -> Numbers:
    by = np.asarray(steps, np.float32)
    rows = array.reshape(len(by), -1) / by[:, None]
    numbers: Numbers = np.clip(np.rint(rows), -127, 127).astype(np.int8)
    return numbers


def checked_count(name: str, what: str, shape: Sequence[int]) -> int:
    """Return how many values a shape from a file holds; refuse an impossible one."""
    if len(shape) > MAX_AXES:
        raise FileError(name, f"{what} has {len(shape)} axes, at most {MAX_AXES} are possible")
    if any(size < 0 for size in shape):
        raise FileError(name, f"{what} has a negative size in its shape {tuple(shape)}")
    if math.prod(size or 1 for size in shape) >= 1 << 60:
        raise FileError(name, f"{what} has an impossible shape {tuple(shape)}")
    return math.prod(shape)


def aligned(count: int) -> Array:
    """Uninitialised floats that begin at a multiple of 64 bytes."""
    raw = np.empty(count * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * 4].view(np.float32)


def walked(source: ByteSource, kind: Kind | None, what: str) -> tuple[bytes, list[Payload]]:
    """`walk`, with a clear message for a file that is empty or in a quite different format."""
    if source.size == 0:
        raise FileError(source.name, "is empty")
    head = source.peek(0, 256)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        raise FileError(source.name, f"is an HDF5 file, a binary Caffe {what} is expected")
    try:
        return walk(source, kind)
    except FileError:
        if _is_text(head):
            raise FileError(
                source.name, f"is a text file, a binary Caffe {what} is expected"
            ) from None
        raise


def parsed(source: ByteSource, message_class: type[M], skeleton: bytes) -> M:
    """Return a message out of its skeleton; refused if it holds nothing that Caffe knows."""
    message = message_class()
    try:
        message.ParseFromString(skeleton)
    except (DecodeError, RecursionError, ValueError) as error:
        raise FileError(source.name, f"is damaged: not a Caffe {_noun(message_class)}") from error
    if not message.ListFields():
        raise FileError(source.name, f"holds no Caffe {_noun(message_class)}")
    _check_strings(source.name, message)
    return message


def blob_chunks(
    array: Array, diff: Array | None, description: Message, half: bool = False
) -> list[Chunk]:
    """Return one BlobProto as protobuf writes it, numbers in their arrays, or ``half``."""
    legacy = is_legacy(description) and blob_shape(description) == array.shape
    out: list[Chunk] = []
    if legacy:
        for index, name in enumerate(LEGACY):
            if description.HasField(name):
                out.append(
                    encode_varint(index + 1 << 3) + encode_varint(getattr(description, name))
                )
    steps = description.int8_step  # type: ignore[attr-defined]
    for number, values in ((5, None if steps or half else array), (6, diff)):
        if values is not None and values.size:
            out += [header(number, values.size * 4), values]
    if not legacy and array.ndim:
        dims = b"".join(encode_varint(size) for size in array.shape)
        inner = header(1, len(dims)) + dims
        out.append(header(7, len(inner)) + inner)
    if half and not steps and array.size:
        halves: Numbers = np.ascontiguousarray(array, "<f2").reshape(-1).view(np.int8)
        out += [encode_varint(10 << 3) + encode_varint(_HALF), header(12, halves.size), halves]
    if steps:
        numbers, raw = _in_int8(array, steps), np.asarray(steps, "<f4").tobytes()
        out += [header(INT8, numbers.size), numbers, header(INT8 + 1, len(raw)) + raw]
    return out


def wrapped(number: int, chunks: Iterable[Chunk]) -> list[Chunk]:
    """Chunks as the content of a length-delimited field."""
    content = list(chunks)
    return [header(number, sum(map(chunk_size, content))), *content]


def chunk_size(chunk: Chunk) -> int:
    if isinstance(chunk, bytes):
        return len(chunk)
    return chunk.size * (1 if chunk.dtype == np.int8 else 4)


def write_chunks(path: StrPath, chunks: Iterable[Chunk]) -> None:
    """Writes chunks to a file, arrays straight from their memory."""
    with atomic_file(path) as draft, draft.open("wb") as file:
        for chunk in chunks:
            file.write(chunk if isinstance(chunk, bytes) else array_bytes(chunk))


def array_bytes(array: Array | Numbers) -> memoryview:
    """Return the little-endian numbers of an array in C order, copied only if needed."""
    if array.dtype == np.int8:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return np.ascontiguousarray(array, "<f4").reshape(-1).view(np.uint8).data


def _check_strings(name: str, message: Message) -> None:
    """Protobuf hands out strings that are not UTF-8 as bytes; refuse them here."""
    for descriptor, value in message.ListFields():
        repeated = not isinstance(value, (str, bytes, Message)) and hasattr(value, "__len__")
        if descriptor.type == descriptor.TYPE_STRING:
            for text in value if repeated else [value]:
                if isinstance(text, bytes):
                    raise FileError(name, f"{descriptor.name} {text[:40]!r} is not UTF-8")
        elif descriptor.type == descriptor.TYPE_MESSAGE:
            for inner in value if repeated else [value]:
                _check_strings(name, inner)


def _noun(message_class: type[Message]) -> str:
    names = {"NetParameter": "net", "SolverState": "solver state", "BlobProto": "blob"}
    name = message_class.DESCRIPTOR.name
    return names.get(name, name)


def _is_text(head: bytes) -> bool:
    return bool(head) and all(byte >= 32 or byte in b"\t\n\r\f" for byte in head)
