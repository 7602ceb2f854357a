"""Sound data sets of every kind, small, to begin with."""

import gzip
import io
import struct
import tarfile
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from sparknet.cli.record_files import write_database
from sparknet.loaders import ArrayRecords, write_blocks
from sparknet.loaders.datums import datum_bytes, encoded_bytes

PIXELS = np.arange(60, dtype=np.uint8).reshape(5, 1, 3, 4)
LABELS = np.arange(5)
SNAPPY = b"\x0c\x0cabcd\x11\x04"
"""12 bytes: four of them as they are, eight copied from four before."""


def data_sets() -> dict[str, list[bytes]]:
    """Files by kind."""
    idx = struct.pack(">4I", 0x803, 5, 3, 4) + PIXELS.tobytes()
    return {
        "blocks": [_bytes_of(_blocks)],
        "cifar10": [bytes(range(256)) * 12 + b"\7"],
        "data_h5": [_bytes_of(_hdf5)],
        "idx": [idx, gzip.compress(idx)],
        "image": [_image("png"), _image("jpeg"), _image("gif"), _image("bmp")],
        "lmdb": [_bytes_of(_lmdb)],
        "npy": [_npy(PIXELS), _npy(np.asfortranarray(PIXELS.astype(float)))],
        "npz": [_bytes_of(_npz), _bytes_of(_packed_npz)],
        "parquet": [_bytes_of(_parquet)],
        "tar": [_tar()],
        "datum": [datum_bytes(PIXELS[0], 1), encoded_bytes(_image("jpeg"), 2)],
        "snappy": [SNAPPY],
        "transform": [bytes(range(64)), bytes(64)],
    }


def _bytes_of(write):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.npz")
        write(path)
        return (path / "data.mdb" if path.is_dir() else path).read_bytes()


def _blocks(path: Path) -> None:
    write_blocks(path, ArrayRecords(data=PIXELS, label=LABELS))


def _hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("data", data=PIXELS, chunks=(2, 1, 3, 4), compression="gzip")
        file["label"] = LABELS


def _lmdb(path: Path) -> None:
    values = [datum_bytes(PIXELS[0], 1), encoded_bytes(_image("png"), 2), datum_bytes(PIXELS[1], 3)]
    write_database(str(path), ((b"%d" % n, value) for n, value in enumerate(values)))


def _npz(path: Path) -> None:
    np.savez(path, data=PIXELS, label=LABELS)


def _packed_npz(path: Path) -> None:
    np.savez_compressed(path, data=PIXELS, label=LABELS)


def _parquet(path: Path) -> None:
    lists = pa.array(PIXELS.reshape(5, 12).tolist(), pa.list_(pa.uint8()))
    pq.write_table(pa.table({"data": lists, "label": LABELS}), path, row_group_size=2)


def _npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def _image(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(PIXELS[0, 0]).save(file, kind)
    return file.getvalue()


def _tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in (("a/1.png", _image("png")), ("b/2.jpg", _image("jpeg"))):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()
