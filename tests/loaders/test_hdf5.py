"""HDF5 files as records, and those of unknown origin, which read no other file."""

import pickle
import resource
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparknet.errors import FileError, LayerError
from sparknet.loaders import HDF5File, Records
from sparknet.loaders.hdf5 import HDF5Rows
from tests.layers.host.nets import net, source

DATA = np.random.default_rng(0).normal(size=(9, 2, 3)).astype(np.float32)
LABEL = np.arange(9)


def write(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("data", data=DATA, chunks=(2, 2, 3), compression="gzip")
        file["label"] = LABEL
        file["words"] = np.array([b"a"] * 9)
        file["group/inner"] = LABEL
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 8), max_size=12))
def test_rows_in_any_order(tmp_path, rows):
    records = HDF5File(write(tmp_path / "some.h5"))
    assert isinstance(records, Records)
    assert list(records.columns) == ["data", "label"]
    batch = records.take(rows)
    np.testing.assert_array_equal(batch["data"], DATA[rows])
    assert batch["label"].tolist() == rows
    records.close()


def test_chosen_columns_and_pickling(tmp_path):
    records = HDF5File(write(tmp_path / "some.h5"), ["group/inner"])
    records.take([0])
    assert pickle.loads(pickle.dumps(records)).take([8])["group/inner"].tolist() == [8]


def test_what_does_not_fit(tmp_path):
    path = write(tmp_path / "some.h5")
    with pytest.raises(FileError, match="data set 'nosuch' is missing"):
        HDF5File(path, ["nosuch"])
    with pytest.raises(FileError, match="'words' holds no numbers"):
        HDF5File(path, ["words"])
    with h5py.File(path, "a") as file:
        file["short"] = LABEL[:3]
    with pytest.raises(FileError, match="'data' 9, 'label' 9, 'short' 3"):
        HDF5File(path)
    with h5py.File(tmp_path / "none.h5", "w") as file:
        file["words"] = np.array([b"a"])
    with pytest.raises(FileError, match="no data sets of numbers"):
        HDF5File(tmp_path / "none.h5")
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(FileError, match=r"some\.h5: "):
        HDF5File(path).take([0])


SECRET = np.arange(8, dtype=np.float32).reshape(4, 2)


def itself(file):
    layout = h5py.VirtualLayout(shape=(4, 2), dtype="f4")
    layout[:] = h5py.VirtualSource(".", "data", shape=(4, 2))
    file.create_virtual_dataset("data", layout)


def each_other(file):
    for name, other in (("data", "b"), ("b", "data")):
        layout = h5py.VirtualLayout(shape=(4, 2), dtype="f4")
        layout[:] = h5py.VirtualSource(".", other, shape=(4, 2))
        file.create_virtual_dataset(name, layout)


def external_storage(file):
    name = str(Path(file.filename).with_name("secret"))
    file.create_dataset("data", (4, 2), "f4", external=[(name, 0, 32)])


def external_link(file):
    file["data"] = h5py.ExternalLink(str(Path(file.filename).with_name("secret.h5")), "data")


def link_in_a_group(file):
    file["there"] = h5py.ExternalLink(str(Path(file.filename).with_name("secret.h5")), "/")


def soft_link(file):
    file["data"] = h5py.SoftLink("/data")


def endless(file):
    file.create_dataset("data", (1 << 62, 1), "u1", chunks=(1 << 20, 1))


def unwritten(file):
    file.create_dataset("data", (64, 1 << 26), "f4", chunks=(1, 1 << 20))


def wide(file):
    file.create_dataset("data", (2, 1 << 27), "f4", chunks=(1, 1 << 20))


def large_chunks(file):
    file.create_dataset(
        "data", (2, 2), "f4", chunks=(1 << 14, 1 << 15), maxshape=(None, None), compression="gzip"
    )


HOSTILE = [
    (itself, "in another file"),
    (each_other, "in another file"),
    (external_storage, "in another file"),
    (external_link, "a link"),
    (soft_link, "a link"),
    (endless, "claims"),
    (unwritten, "claims"),
    (wide, "rows of 536870912 bytes"),
    (large_chunks, "chunks of"),
]


def write_file(folder, make):
    (folder / "secret").write_bytes(SECRET.tobytes())
    with h5py.File(folder / "secret.h5", "w") as file:
        file["data"] = SECRET
    with h5py.File(folder / "x.h5", "w") as file:
        make(file)
    return folder / "x.h5"


@pytest.mark.parametrize(("make", "word"), HOSTILE)
def test_records(tmp_path, make, word):
    path = write_file(tmp_path, make)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for names in (None, ["data"]):
        with pytest.raises(FileError, match=word):
            HDF5File(path, names)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.parametrize(("make", "word"), HOSTILE)
def test_layer(tmp_path, make, word):
    path = write_file(tmp_path, make)
    (tmp_path / "list.txt").write_text(str(path))
    options = f"source: '{tmp_path / 'list.txt'}' batch_size: 2"
    with pytest.raises(LayerError, match=word):
        net(source("HDF5Data", tops=1, hdf5_data_param=options))


@pytest.mark.parametrize(("make", "word"), HOSTILE)
def test_later_file(tmp_path, make, word):
    """The layer looks at its first file alone before it runs."""
    rows = HDF5Rows([str(write_file(tmp_path, make))], ["data"], [(2,)], False, 0)
    with pytest.raises(FileError, match=word):
        rows.fill([np.empty((2, 2), np.float32)])


def test_a_group_elsewhere(tmp_path):
    path = write_file(tmp_path, link_in_a_group)
    with pytest.raises(FileError, match="'there' is a link"):
        HDF5File(path, ["there/data"])


def test_a_file_changed_after_it_was_opened(tmp_path):
    path = write_file(tmp_path, lambda file: file.create_dataset("data", data=SECRET))
    records = HDF5File(path)
    path.unlink()
    write_file(tmp_path, external_storage)
    with pytest.raises(FileError, match="in another file"):
        records.take([0])


def test_a_batch_is_bounded(tmp_path):
    """Rows that were never written are zeros, as long as a batch of them is small."""
    path = write_file(tmp_path, lambda file: file.create_dataset("data", (20, 1 << 22), "f4"))
    records = HDF5File(path)
    assert not records.take([3])["data"].any()
    with pytest.raises(
        FileError, match="80 rows of data set 'data' are 1342177280 bytes, of which"
    ):
        records.take([0] * 80)
    (tmp_path / "list.txt").write_text(str(path))
    options = f"source: '{tmp_path / 'list.txt'}' batch_size: 80"
    with pytest.raises(LayerError, match="take fewer at once"):
        net(source("HDF5Data", tops=1, hdf5_data_param=options))
