import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet import caffe
from sparknet.errors import ArrayError, FileError
from sparknet.proto import caffe_pb2, parse_net
from sparknet.proto.blob_file import array_bytes, checked_count, read_blob, write_blob
from sparknet.proto.wire import encode_varint, header
from tests.goldens import GOLDENS


@pytest.mark.parametrize("name", ["blob", "blob_legacy"])
def test_golden_arrays(name):
    arrays = np.load(GOLDENS / "formats/arrays/arrays.npz")
    stored = arrays[f"{name}/data"]
    array = read_blob(GOLDENS / f"formats/arrays/{name}.binaryproto")
    assert array.dtype == np.float32
    assert np.array_equal(array, stored)


def test_written_bytes_are_those_of_caffe(tmp_path):
    arrays = np.load(GOLDENS / "formats/arrays/arrays.npz")
    path = tmp_path / "blob.binaryproto"
    write_blob(path, arrays["blob/data"], arrays["blob/diff"])
    assert path.read_bytes() == (GOLDENS / "formats/arrays/blob.binaryproto").read_bytes()
    mean = GOLDENS / "data/rgb_mean.binaryproto"
    write_blob(path, read_blob(mean)[0], legacy=True)
    assert path.read_bytes() == mean.read_bytes()


@given(st.lists(st.integers(0, 4), max_size=6), st.booleans())
def test_round_trip_and_protobuf_agree(tmp_path_factory, shape, legacy):
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
def test_numbers_that_do_not_fit_the_shape(tmp_path, blob, word):
    path = tmp_path / "mean.binaryproto"
    path.write_bytes(blob.SerializeToString())
    with pytest.raises(FileError, match=word) as caught:
        read_blob(path)
    assert str(path) in str(caught.value)


def test_files_of_another_kind(tmp_path):
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


def test_array_bytes_copies_only_what_it_must():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(np.asarray(array_bytes(array)), array)
    assert bytes(array_bytes(array.T)) == array.T.copy().tobytes()
    assert checked_count("x", "blob", (2, 3, 0)) == 0


def of_c3d(array: np.ndarray, diff: bool = False) -> bytes:
    """As C3D's first version writes it: num, channels, length, height, width, data, diff."""
    sizes = b"".join(
        encode_varint(number << 3) + encode_varint(size)
        for number, size in enumerate(array.shape, 1)
    )
    values = array.astype("<f4").tobytes()
    parts = [header(number, len(values)) + values for number in (6, 7)[: 1 + diff]]
    return sizes + b"".join(parts)


@pytest.mark.parametrize("diff", [False, True])
def test_blobs_of_c3d(tmp_path, diff):
    rng = np.random.default_rng(0)
    for shape, want in (
        ((1, 3, 4, 2, 5), (1, 3, 4, 2, 5)),
        ((7, 3, 1, 2, 5), (7, 3, 1, 2, 5)),
        ((1, 1, 1, 6, 300), (1, 1, 6, 300)),
    ):
        array = rng.standard_normal(shape).astype(np.float32)
        (tmp_path / "x").write_bytes(of_c3d(array, diff))
        read = read_blob(tmp_path / "x")
        assert read.shape == want
        assert read.tobytes() == array.tobytes()
    for damaged, says in (
        (of_c3d(array)[:-4], "is cut short"),
        (of_c3d(array).replace(b"\x20\x06", b"\x20\x07"), "its shape .* needs 2100"),
        (b"\x08\x01\x10\x01\x18\x01\x20\x01\x28" + b"\xff" * 9 + b"\x01", "negative size"),
    ):
        (tmp_path / "x").write_bytes(damaged)
        with pytest.raises(FileError, match=says):
            read_blob(tmp_path / "x")


def test_weights_of_c3d(tmp_path):
    """A convolution over time, and a matrix and a bias, which lie in five axes too."""
    text = """
    input: "x" input_shape { dim: 1 dim: 2 dim: 3 dim: 4 dim: 4 }
    layers { name: "c" type: CONVOLUTION3D bottom: "x" top: "c"
      convolution_param { num_output: 5 kernel_size: 3 kernel_depth: 2 } }
    layers { name: "f" type: INNER_PRODUCT bottom: "c" top: "f"
      inner_product_param { num_output: 4 } }
    """
    rng = np.random.default_rng(0)
    shapes = {"c": [(5, 2, 2, 3, 3), (1, 1, 1, 1, 5)], "f": [(1, 1, 1, 4, 40), (1, 1, 1, 1, 4)]}
    arrays = {
        name: [rng.standard_normal(shape).astype(np.float32) for shape in own]
        for name, own in shapes.items()
    }
    layers = []
    for name, own in arrays.items():
        body = header(4, 1) + name.encode()
        for array in own:
            blob = of_c3d(array)
            body += header(6, len(blob)) + blob
        layers.append(header(2, len(body)) + body)
    (tmp_path / "x.caffemodel").write_bytes(b"".join(layers))
    net = caffe.Net.from_proto(parse_net(text), caffe.TEST, seed=1)
    net.copy_from(str(tmp_path / "x.caffemodel"))
    for name, own in arrays.items():
        for blob, array in zip(net.params[name], own, strict=True):
            np.testing.assert_array_equal(blob.data.ravel(), array.ravel())
