"""numpy's files: mapped where they can be, refused where they lie."""

import pickle
import zipfile

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.loaders import NumpyFiles, Records

DATA = np.random.default_rng(0).normal(size=(6, 2, 3)).astype(np.float32)
LABEL = np.arange(6)


def is_mapped(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return type(memoryview(array).obj).__name__ == "mmap"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, save):
    save(tmp_path / "some.npz", data=DATA, label=LABEL, turned=np.asfortranarray(DATA))
    records = NumpyFiles(tmp_path / "some.npz")
    assert isinstance(records, Records)
    for one in (records, pickle.loads(pickle.dumps(records))):
        batch = one.take([4, 1])
        np.testing.assert_array_equal(batch["data"], DATA[[4, 1]])
        np.testing.assert_array_equal(batch["turned"], DATA[[4, 1]])
        assert batch["label"].tolist() == [4, 1]
    assert is_mapped(records.arrays["data"]) == (save is np.savez)


def test_npy(tmp_path):
    np.save(tmp_path / "x.npy", DATA)
    np.save(tmp_path / "y.npy", LABEL)
    records = NumpyFiles(data=tmp_path / "x.npy", label=tmp_path / "y.npy")
    assert is_mapped(records.arrays["data"])
    again = pickle.loads(pickle.dumps(records))
    np.testing.assert_array_equal(again.take([5])["data"], DATA[5:])
    assert again.take([5])["label"].tolist() == [5]


def test_damage(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, DATA)
    whole = path.read_bytes()
    for data, message in (
        (whole[:-1], "announces 144 bytes of values and is too short"),
        (whole[:20], "is no .npy file"),
        (b"", "is no .npy file"),
        (whole.replace(b"(6, 2, 3)", b"(-6, -2, 3)"[:9].ljust(9)), "x.npy"),
        (whole.replace(b"(6, 2, 3)", b"(9**99,) "), "is no .npy file"),
    ):
        path.write_bytes(data)
        with pytest.raises(FileError, match=message):
            NumpyFiles(data=path)
    np.save(path, np.array([{}]), allow_pickle=True)
    with pytest.raises(FileError, match="holds values of type object"):
        NumpyFiles(data=path)


def test_damaged_archives(tmp_path):
    path = tmp_path / "some.npz"
    np.savez(path, data=DATA)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(FileError, match=r"is no \.npz file"):
        NumpyFiles(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("note", b"x")
    with pytest.raises(FileError, match="holds no arrays"):
        NumpyFiles(path)
