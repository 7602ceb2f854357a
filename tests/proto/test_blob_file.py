from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.errors import ArrayError, FileError
from sparknet.proto import caffe_pb2
from sparknet.proto.blob_file import array_bytes, checked_count, read_blob, write_blob
from tests.goldens import GOLDENS


@pytest.mark.parametrize("name", ["blob", "blob_legacy"])
def test_golden_arrays(name: str) -> None:
    arrays = np.load(GOLDENS / "formats/arrays/arrays.npz")
    stored = arrays[f"{name}/data"]
    array = read_blob(GOLDENS / f"formats/arrays/{name}.binaryproto")
    assert array.dtype == np.float32
    assert np.array_equal(array, stored)


def test_written_bytes_are_those_of_caffe(tmp_path: Path) -> None:
    arrays = np.load(GOLDENS / "formats/arrays/arrays.npz")
    path = tmp_path / "blob.binaryproto"
    write_blob(path, arrays["blob/data"], arrays["blob/diff"])
    assert path.read_bytes() == (GOLDENS / "formats/arrays/blob.binaryproto").read_bytes()
    mean = GOLDENS / "data/rgb_mean.binaryproto"
    write_blob(path, read_blob(mean)[0], legacy=True)
    assert path.read_bytes() == mean.read_bytes()


@given(st.lists(st.integers(0, 4), max_size=6), st.booleans())
def test_round_trip_and_protobuf_agree(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], legacy: bool
) -> None:
    path = tmp_path_factory.mktemp("blob") / "x"
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    if legacy and len(shape) > 4:
        with pytest.raises(ArrayError, match="at most 4 axes"):
            write_blob(path, array, legacy=True)
        return
    write_blob(path, array, legacy=legacy)
    wanted = (1,) * (4 - len(shape)) + tuple(shape) if legacy else tuple(shape)
    blob = caffe_pb2.BlobProto.FromString(path.read_bytes())
    assert list(blob.data) == array.reshape(-1).tolist()
    assert path.read_bytes() == blob.SerializeToString()
    if path.stat().st_size:
        read = read_blob(path)
        assert read.shape == wanted
        assert read.tobytes() == array.tobytes()
        assert read.size == 0 or read.ctypes.data % 64 == 0
        assert read.flags.writeable


@pytest.mark.parametrize(
    ("blob", "word"),
    [
        (caffe_pb2.BlobProto(shape={"dim": [2, 3]}, data=[1.0]), "holds 1 data values.*needs 6"),
        (caffe_pb2.BlobProto(shape={"dim": [-2, -3]}, data=[0.0] * 6), "negative size"),
        (caffe_pb2.BlobProto(shape={"dim": [1] * 33}, data=[0.0]), "33 axes"),
        (caffe_pb2.BlobProto(shape={"dim": [1 << 40, 1 << 40]}), "impossible shape"),
        (caffe_pb2.BlobProto(shape={"dim": [0, 1 << 62]}), "impossible shape"),
        (caffe_pb2.BlobProto(shape={"dim": [1 << 31]}), "holds 0 data values"),
        (caffe_pb2.BlobProto(data=[1.0, 2.0]), "holds 2 data values.*needs 1"),
        (caffe_pb2.BlobProto(num=2, shape={"dim": [3]}, data=[1.0] * 3), "needs 0"),
    ],
)
def test_numbers_that_do_not_fit_the_shape(
    tmp_path: Path, blob: caffe_pb2.BlobProto, word: str
) -> None:
    path = tmp_path / "mean.binaryproto"
    path.write_bytes(blob.SerializeToString())
    with pytest.raises(FileError, match=word) as caught:
        read_blob(path)
    assert str(path) in str(caught.value)


def test_files_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "mean.binaryproto"
    for content, word in [
        (b"", "is empty"),
        (b'name: "LeNet"\n', "is a text file"),
        (b"\x89HDF\r\n\x1a\n" + bytes(20), "is an HDF5 file"),
        (b"\xfa\x01\x00", "holds 0 data values"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=word):
            read_blob(path)


def test_array_bytes_copies_only_what_it_must() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(np.asarray(array_bytes(array)), array)
    assert bytes(array_bytes(array.T)) == array.T.copy().tobytes()
    assert checked_count("x", "blob", (2, 3, 0)) == 0
