from __future__ import annotations

import pickle

from sparknet.errors import (
    FileError,
    LayerError,
    MissingExtra,
    OutOfMemory,
    PeerLost,
    TextError,
    WeightsError,
)


def test_a_message_is_one_line_whatever_a_file_calls_its_layers() -> None:
    assert str(LayerError("a\nb", "no")) == "layer 'a\\nb': no"
    assert str(WeightsError("\x1b[2J", "no")) == "layer '\\x1b[2J': no"
    assert len(str(LayerError("x" * 10**6, "no"))) < 300
    assert LayerError("a\nb", "no").layer == "a\nb"


def test_each_is_the_builtin_too() -> None:
    assert isinstance(LayerError("a", "b"), ValueError)
    assert isinstance(FileError("a", "b"), OSError)
    assert isinstance(MissingExtra("h5py", "hdf5", "reading HDF5"), ImportError)
    assert "pip install 'sparknet[hdf5]'" in str(MissingExtra("h5py", "hdf5", "reading HDF5"))


def test_a_text_error_says_where() -> None:
    error = TextError("no field", "net.prototxt", 3, 7)
    assert str(error) == "net.prototxt:3:7: no field"
    assert (error.path, error.line, error.column) == ("net.prototxt", 3, 7)


def test_errors_come_back_from_another_process() -> None:
    """Spark's workers send their exceptions home pickled."""
    for error in (
        LayerError("conv1", "bad pad"),
        TextError("no field", "net.prototxt", 3, 7),
        WeightsError("ip", "shape"),
        FileError("a.h5", "cut short"),
        MissingExtra("h5py", "hdf5", "reading HDF5"),
        OutOfMemory("there is no memory for 3 bytes"),
        PeerLost(1, "there", "it ended"),
    ):
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert vars(back) == vars(error)
