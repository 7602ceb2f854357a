import errno
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError
from sparknet.proto import caffe_pb2, wire
from sparknet.proto.byte_source import ByteSource, FileSource, open_source

FLOATS = st.lists(st.floats(width=32, allow_nan=False), max_size=40)


def loaded(data: bytes, name: str = "data") -> tuple[np.ndarray, bytes]:
    source = ByteSource(data)
    skeleton, payloads = wire.walk(source, None)
    out = np.empty(payloads[0].count(name), np.float32)
    wire.load(source, payloads[0].pieces.get(name, []), out)
    return out, skeleton


def packed(number: int, values: list[float], kind: str = "f") -> bytes:
    raw = struct.pack(f"<{len(values)}{kind}", *values)
    return wire.header(number, len(raw)) + raw


def unpacked(number: int, values: list[float], kind: str = "f") -> bytes:
    tag = bytes([number << 3 | (5 if kind == "f" else 1)])
    return b"".join(tag + struct.pack(f"<{kind}", value) for value in values)


@given(st.lists(st.tuples(st.sampled_from([packed, unpacked]), FLOATS), max_size=6))
def test_any_mixture_of_packed_and_unpacked_runs_equals_protobuf(runs):
    data = b"\x08\x01" + b"".join(make(5, values) for make, values in runs)
    data += wire.header(7, 2) + b"\x08\x03"
    values, skeleton = loaded(data)
    blob = caffe_pb2.BlobProto.FromString(data)
    assert values.tobytes() == np.array(blob.data, np.float32).tobytes()
    rest = caffe_pb2.BlobProto.FromString(skeleton)
    assert list(rest.data) == [0.0]
    assert (rest.num, list(rest.shape.dim)) == (1, [3])


@pytest.mark.parametrize("make", [packed, unpacked])
def test_doubles_are_rounded_to_floats(make):
    wanted = [0.1, 1e300, -1e-300, 3.0]
    values, _ = loaded(make(8, wanted, "d"), "double_data")
    assert values.tolist() == [np.float32(0.1), np.inf, -0.0, 3.0]


def test_a_long_unpacked_run_is_found_whole():
    wanted = np.arange(300_000, dtype=np.float32)
    records = np.zeros((len(wanted), 5), np.uint8)
    records[:, 0] = 5 << 3 | 5
    records[:, 1:] = wanted.view(np.uint8).reshape(-1, 4)
    values, _ = loaded(records.tobytes() + b"\x08\x01")
    assert np.array_equal(values, wanted)


def test_a_tag_spelled_with_too_many_bytes_is_still_that_tag():
    values, _ = loaded(b"\xad\x00" + struct.pack("<f", 2.5) + unpacked(5, [3.5]))
    assert values.tolist() == [2.5, 3.5]


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 1 << 31, (1 << 63) - 1])
def test_varints(value):
    blob = caffe_pb2.BlobShape(dim=[value])
    assert blob.SerializeToString() == wire.header(1, len(wire.encode_varint(value))) + (
        wire.encode_varint(value)
    )


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\x2a\x08\0\0\0\0", "cut short"),  # eight bytes announced, four there
        (b"\x2a\x03\0\0\0", "3 bytes too many"),
        (b"\x2a" + b"\xff" * 9 + b"\x01", "cut short"),  # a length of 2**64 - 1
        (b"\xff" * 11, "does not end"),
        (b"\x80", "does not end"),
        (b"\x2b\x2c", "wire type 3"),  # a group
        (b"\x2f", "wire type 7"),
        (b"\x00\x00", "field number 0"),
        (b"\x2d\0\0", "cut short"),
        (b"\x08", "does not end"),
    ],
)
def test_damage_is_refused(data, word):
    with pytest.raises(FileError, match=word):
        wire.walk(ByteSource(data, "x.bin"), None)
    with pytest.raises(FileError):
        wire.walk(ByteSource(wire.header(3, len(data)) + data), wire.STATE)


def test_too_many_fields_and_too_long_descriptions_are_refused(monkeypatch):
    monkeypatch.setattr(wire, "MAX_FIELDS", 10)
    with pytest.raises(FileError, match="more than 10 fields"):
        wire.walk(ByteSource(b"\x08\x01" * 11), None)
    monkeypatch.setattr(wire, "MAX_FIELDS", 100)
    monkeypatch.setattr(wire, "MAX_MESSAGES", 10)
    with pytest.raises(FileError, match="more than 10 layers and blobs"):
        wire.walk(ByteSource(wire.header(100, 0) * 11), wire.NET)
    monkeypatch.setattr(wire, "MAX_DESCRIPTION", 1 << 20)
    with pytest.raises(FileError, match="more than 1 MiB beside"):
        wire.walk(ByteSource(wire.header(1, 2 << 20) + bytes(2 << 20)), wire.NET)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_are_walked_or_refused(data):
    for kind in (None, wire.NET, wire.STATE):
        try:
            skeleton, payloads = wire.walk(ByteSource(data), kind)
        except FileError:
            continue
        placeholders = 6 * len(payloads)
        headers = 10 * len(payloads) * 4
        assert len(skeleton) <= len(data) + placeholders + headers


def test_a_file_is_read_in_windows_and_in_blocks(tmp_path):
    data = bytes(range(256)) * 64
    path = tmp_path / "bytes"
    path.write_bytes(data)
    with open_source(path) as source:
        assert isinstance(source, FileSource)
        for position, count in [(0, 3), (4090, 20), (10, 10_000), (16_380, 4), (5, 0)]:
            assert source.read(position, count) == data[position : position + count]
        target = bytearray(100)
        source.fill(1000, memoryview(target))
        assert target == data[1000:1100]
        for wrong in (
            lambda: source.read(16_380, 5),
            lambda: source.fill(16_380, memoryview(target)),
        ):
            with pytest.raises(FileError, match="cut short"):
                wrong()


def test_what_is_not_an_ordinary_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    cases: list[tuple[Path | str, str]] = [
        (tmp_path / "absent", "no such file"),
        (tmp_path, "is a folder, not a file"),
        (tmp_path / "pipe", "not an ordinary file"),
        ("/dev/zero", "not an ordinary file"),
        ("nul\0byte", "null"),
    ]
    for path, word in cases:
        with pytest.raises(FileError, match=word), open_source(path):
            pass


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"old")

    def fail():
        with atomic_file(path) as draft:
            draft.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == b"old"
    with atomic_file(path) as draft:
        draft.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    with (
        pytest.raises(FileError, match="cannot be written"),
        atomic_file(tmp_path / "no" / "model"),
    ):
        pass
    with monkeypatch.context() as patch:  # a file system that is read alone

        def refuse(*_, **__):
            raise OSError(errno.EROFS, "Read-only file system", ".draft")

        patch.setattr(os, "open", refuse)
        patch.setattr(Path, "unlink", refuse)
        said = r"model: cannot be written: read-only file system$"
        with pytest.raises(FileError, match=said), atomic_file(path):
            pass
    with pytest.raises(FileError, match="not an ordinary file"), atomic_file("/dev/null"):
        pass
