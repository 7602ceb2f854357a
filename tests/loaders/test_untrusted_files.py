"""Files of strangers: what is no file is refused at once, and no file takes more than its share."""

import gzip
import io
import os
import struct
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import FileError
from sparknet.loaders import MNIST, Datums, NumpyFiles, Tars, open_records
from sparknet.loaders.image_decoding import decode, read_list
from sparknet.loaders.image_files import read_labels
from sparknet.loaders.image_settings import read_mean
from sparknet.loaders.mnist_cifar10 import IMAGES, _unpacked, read_idx
from sparknet.net.model_folder import check_sum
from sparknet.onnx import read_model as read_onnx
from sparknet.predict.texts import TokenizerFile
from sparknet.proto import (
    Model,
    caffe_pb2,
    parse_net,
    read_model,
    read_net,
    read_state,
    write_model,
)
from sparknet.proto.state_file import SolverState, write_state
from sparknet.weights.safetensors import read_tensors, write_tensors
from tests.caffe.gradient import input_layer
from tests.loaders.test_datums import leveldb, lmdb

Make = Callable[[int, Path], Callable[[], Any]]
READERS = {
    "caffemodel": read_model,
    "image": lambda path: decode(path, path, None),
    "labels": read_labels,
    "list": lambda path: list(read_list(path)),
    "mean": lambda path: read_mean(path),
    "mnist": lambda path: MNIST(path, path),
    "net": read_net,
    "npz": NumpyFiles,
    "records": open_records,
    "safetensors": read_tensors,
    "stage": lambda path: check_sum(Path(path)),
    "state": read_state,
    "tar": Tars,
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_at_once(reader, tmp_path):
    pipe, folder = tmp_path / "pipe.npy", tmp_path / "folder.npy"
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (pipe, Path("/dev/zero"), Path("no\0name.npy"), folder):
        if reader == "records" and path == folder:
            continue
        with pytest.raises(FileError):
            READERS[reader](str(path))


def test_a_tokenizer_is_an_ordinary_file():
    with pytest.raises(FileError, match="is not an ordinary file"):
        TokenizerFile.read("/dev/zero")


def test_small_files_unpack_to_no_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr("sparknet.loaders.blocks._FREE", 1 << 16)
    packed = tmp_path / "images.gz"
    with gzip.open(packed, "wb") as file:
        file.write(struct.pack(">4I", 0x803, 8, 1 << 10, 1 << 8) + bytes(1 << 21))
    with pytest.raises(FileError, match="announces 8 x 1024 x 256 bytes and is too short"):
        MNIST(packed, packed)
    archive = tmp_path / "bomb.npz"
    np.savez_compressed(archive, **{name: np.zeros(1 << 14) for name in "abc"})
    with pytest.raises(FileError, match=f"unpacks to {3 * (128 + (1 << 17))} bytes, too many for"):
        NumpyFiles(archive)
    tar = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(tar, "w:gz", compresslevel=1) as file:
        for number in range(100):
            file.addfile(tarfile.TarInfo(f"{number}.txt"))
    with pytest.raises(FileError, match="unpacks to more than 64 files"):
        _unpacked(tar)


def test_a_jpeg_of_many_scans_is_refused():
    image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    file = io.BytesIO()
    image.new("L", (4096, 4096)).save(file, "JPEG", progressive=True)
    data = file.getvalue()
    assert decode(data, "fine", False).shape == (1, 4096, 4096)
    at = data.rindex(b"\xff\xda")
    scan = data[at:-2]
    with pytest.raises(
        FileError, match=r"many: has 9\d scans of 4096 x 4096 pixels, which take too"
    ):
        decode(data[:at] + scan * 90 + data[-2:], "many", False)


def layers(count: int) -> str:
    return "".join(
        f"layer {{ name: 'c{n}' type: 'Convolution' bottom: '{f'b{n - 1}' if n else 'data'}' "
        f"top: 'c{n}' convolution_param {{ num_output: 1 kernel_size: 1 }} }}"
        f"layer {{ name: 'b{n}' type: 'BatchNorm' bottom: 'c{n}' top: 'b{n}' }}"
        for n in range(count)
    )


def net(count, _):
    message = parse_net(input_layer("data", (1, 1, 2, 2)) + layers(count))
    return lambda: caffe.Net.from_proto(message, caffe.TEST, keep_blobs=False)


def unknown(count, _):
    text = "odd { more { b: 1 } }\n" * count + "odd: 1 " * count
    return lambda: parse_net(text, unknown="skip")


def tensors(count, folder):
    path = folder / f"{count}.safetensors"
    write_tensors(path, {str(n): np.zeros(1, np.float32) for n in range(count)})
    return lambda: read_tensors(path)


def model(count, folder):
    message = caffe_pb2.NetParameter()
    for n in range(count):
        message.layer.add(name=str(n), type="Bias").blobs.add(data=[1.0]).shape.dim.append(1)
    path = folder / f"{count}.caffemodel"
    path.write_bytes(message.SerializeToString())
    return lambda: read_model(path)


def arrays(count, folder):
    path = folder / f"{count}.npz"
    np.savez(path, **{f"x{n}": np.zeros(1) for n in range(count)})
    return lambda: NumpyFiles(path)


def images(count, folder):
    path = folder / f"{count}.tar"
    with tarfile.open(path, "w") as tar:
        for n in range(count):
            tar.addfile(tarfile.TarInfo(f"{n % 5}/{n}.jpg"))
    return lambda: Tars(path)


def names(count, folder):
    path = folder / f"{count}.prototxt"
    path.write_text("".join(f"item {{ name: 'n' label: {n} }}\n" for n in range(count)))
    return lambda: read_labels(path)


def listed(count, folder):
    path = folder / f"{count}.txt"
    path.write_text("a.jpg 1\n" * count)
    return lambda: list(read_list(str(path)))


def hdf5_model(count, folder):
    message, path = caffe_pb2.NetParameter(), folder / f"{count}.h5"
    for n in range(count):
        message.layer.add(name=str(n), type="Bias")
    write_model(path, Model(message, [[np.zeros(1, np.float32)]] * count))
    return lambda: read_model(path)


def states(suffix: str) -> Make:
    def make(count, folder):
        path = folder / f"{count}{suffix}"
        write_state(path, SolverState(1, history=[np.zeros(1, np.float32)] * count))
        return lambda: read_state(path)

    return make


def hdf5_rows(count, folder):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    path = folder / f"{count}.h5"
    with h5py.File(path, "w") as file:
        for n in range(count):
            file[f"column{n}"] = np.zeros(3)
    return lambda: open_records(path).take(slice(0, 3))


def datums(write):
    def make(count, folder):
        record = caffe_pb2.Datum(channels=1, height=1, width=1, data=b"a").SerializeToString()
        write(folder / str(count), [record] * count)
        return lambda: Datums(folder / str(count)).take(slice(0, count))

    return make


def parquet(count, folder):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow.parquet import ParquetWriter

    path, table = folder / f"{count}.parquet", arrow.table({"x": [1.0]})
    with ParquetWriter(path, table.schema) as file:
        for _ in range(count):
            file.write_table(table)
    return lambda: open_records(path).take(slice(0, count))


def nodes(count, folder):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    helper, path = onnx.helper, folder / f"{count}.onnx"
    ends = [helper.make_tensor_value_info(f"b{n}", 1, [1, 3]) for n in (0, count)]
    values = [helper.make_tensor("s", 1, [], [0.1]), helper.make_tensor("z", 2, [], [128])]
    made = []
    for n in range(count):  # an output in the middle, which Caffe's nets copy
        made.append(helper.make_node("Relu", [f"b{n}"], [f"r{n}"]))
        made.append(helper.make_node("QuantizeLinear", [f"r{n}", "s", "z"], [f"q{n}"]))
        made.append(helper.make_node("DequantizeLinear", [f"q{n}", "s", "z"], [f"b{n + 1}"]))
        ends.append(helper.make_tensor_value_info(f"r{n}", 1, [1, 3]))
    opset = helper.make_opsetid("", 17)
    graph = helper.make_graph(made, "chain", ends[:1], ends[1:], values)
    path.write_bytes(helper.make_model(graph, opset_imports=[opset]).SerializeToString())
    return lambda: read_onnx(path)


def pixels(kind: str) -> Make:
    def make(count, _):
        image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
        file = io.BytesIO()
        image.effect_noise((count, 1000), 60).save(file, kind)
        return lambda: decode(file.getvalue(), kind, False)

    return make


def packed(count, folder):
    path = folder / f"{count}.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(struct.pack(">4I", 0x803, count, 28, 28) + bytes(count * 784))
    return lambda: read_idx(str(path), IMAGES, [])


LINEAR: dict[str, tuple[Make, int]] = {
    "net": (net, 60),
    "unknown fields": (unknown, 1500),
    "safetensors": (tensors, 1000),
    "caffemodel": (model, 500),
    "caffemodel in HDF5": (hdf5_model, 60),
    "npz": (arrays, 200),
    "tar": (images, 700),
    "label map": (names, 2000),
    "list": (listed, 20_000),
    "solverstate": (states(".solverstate"), 2000),
    "solverstate in HDF5": (states(".h5"), 200),
    "HDF5": (hdf5_rows, 60),
    "LMDB": (datums(lmdb), 2000),
    "LevelDB": (datums(leveldb), 2000),
    "Parquet": (parquet, 100),
    "ONNX": (nodes, 60),
    "JPEG": (pixels("JPEG"), 300),
    "PNG": (pixels("PNG"), 300),
    "gzip": (packed, 3000),
}


@pytest.mark.filterwarnings("ignore::sparknet.proto.UnknownWarning")
@pytest.mark.filterwarnings("ignore::sparknet.onnx.OnnxWarning")
@pytest.mark.parametrize("reader", LINEAR)
def test_four_times_as_much_takes_four_times_as_long(reader, tmp_path):
    make, count = LINEAR[reader]
    few, many = (make(times * count, tmp_path) for times in (1, 4))
    few()
    assert min(map(seconds, [many] * 2)) < 9 * min(map(seconds, [few] * 3)) + 0.02


def seconds(read):
    """Of processor time: the machine may be busy."""
    start = time.process_time()
    read()
    return time.process_time() - start
