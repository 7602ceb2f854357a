"""HDF5Data and HDF5Output."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.loaders import hdf5
from tests.layers.host.nets import net, passes, source


def _files(folder: Path, rows: list[int]) -> str:
    """Files of consecutive numbers; the list that names them."""
    names, start = [], 0
    for number, count in enumerate(rows):
        names.append(str(folder / f"{number}.h5"))
        with h5py.File(names[-1], "w") as file:
            values = np.arange(start, start + count)
            file["data"] = np.stack([values, -values], 1).astype(np.float64)
            file.create_dataset("label", data=values.astype(np.int8), chunks=(1,))
        start += count
    (folder / "list.txt").write_text("\n".join(names))
    return str(folder / "list.txt")


def _text(path: str, batch: int, more: str = "") -> str:
    return source("HDF5Data", hdf5_data_param=f"source: '{path}' batch_size: {batch} {more}")


@pytest.mark.parametrize("held", [1 << 30, 0], ids=["in memory", "from the file"])
@pytest.mark.parametrize("batch", [1, 4, 11])
def test_files_in_order(held, batch, tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "LARGEST_HELD", held)
    text = _text(_files(tmp_path, [3, 1, 5]), batch)
    want = np.arange(batch * 6) % 9
    np.testing.assert_array_equal(passes(net(text), 6, "label").ravel(), want)
    np.testing.assert_array_equal(passes(net(text), 6).reshape(-1, 2), np.stack([want, -want], 1))


@pytest.mark.parametrize("held", [1 << 30, 0], ids=["in memory", "from the file"])
def test_shuffled(held, tmp_path, monkeypatch):
    """Files and the rows of each are shuffled anew in every round, by the seed."""
    monkeypatch.setattr(hdf5, "LARGEST_HELD", held)
    text = _text(_files(tmp_path, [8, 2, 6]), 4, "shuffle: true")
    rounds = passes(net(text, seed=5), 16, "label").reshape(4, 16)
    for one in rounds:
        assert sorted(one) == list(range(16))
        # A file is used up before the next one begins.
        assert (np.diff(np.searchsorted([8, 10], one, "right")) != 0).sum() == 2
    assert len({tuple(one) for one in rounds}) == 4
    np.testing.assert_array_equal(passes(net(text, seed=5), 16, "label").reshape(4, 16), rounds)
    assert not np.array_equal(passes(net(text, seed=6), 16, "label").reshape(4, 16), rounds)


def test_a_later_file_must_fit(tmp_path):
    path = _files(tmp_path, [2, 2])
    with h5py.File(tmp_path / "1.h5", "w") as file:
        file["data"], file["label"] = np.zeros((2, 3)), np.zeros(2)
    made = net(_text(path, 2))
    made.forward()
    for _ in range(2):
        with pytest.raises(LayerError, match=r"layer 'src': HDF5Data: .*1\.h5: data set 'data'"):
            made.forward()
    (tmp_path / "1.h5").write_bytes(b"nothing")
    with pytest.raises(LayerError, match="is no HDF5 file"):
        made.forward()


def test_promises_take_no_memory(tmp_path):
    """A file of a few kilobytes that says it holds a gigabyte."""
    path = _files(tmp_path, [2])
    with h5py.File(tmp_path / "0.h5", "w") as file:
        file.create_dataset("data", (1 << 28,), "f4", chunks=(1024,))
        file.create_dataset("label", (1 << 28,), "f4", chunks=(1024,))
    made = net(_text(path, 4))
    made.forward()
    assert made.blobs["data"].data.tolist() == [0] * 4
    with pytest.raises(LayerError, match="cannot be shuffled"):
        net(_text(path, 4, "shuffle: true")).forward()


OUTPUT = """
layer { name: "in" type: "Input" top: "a" top: "b"
  input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
layer { name: "sink" type: "HDF5Output" bottom: "a" bottom: "b"
  hdf5_output_param { file_name: "%s" } }
"""


def test_every_pass_adds_rows(tmp_path):
    path = tmp_path / "out.h5"
    path.write_bytes(b"old")
    made = net(OUTPUT % path)
    for value in range(3):
        made.forward(a=np.full((2, 3), value), b=[value, -value])
        with h5py.File(path) as file:
            assert file["data"].shape == (2 * value + 2, 3, 1, 1)
            assert file["label"][:, 0, 0, 0].tolist()[-2:] == [value, -value]
    made.blobs["a"].reshape(2, 4)
    with pytest.raises(LayerError, match=r"layer 'sink': HDF5Output: .*cannot be added"):
        made.forward()
    again = net(OUTPUT % path)
    again.forward()
    with h5py.File(path) as file:
        assert file["data"].shape == (2, 3, 1, 1)


def test_an_output_that_cannot_be_written(tmp_path):
    with pytest.raises(LayerError, match=r"layer 'sink': HDF5Output: .*cannot be written"):
        net(OUTPUT % (tmp_path / "no" / "such.h5")).forward()
