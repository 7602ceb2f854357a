"""What errors say and hold."""

import pickle

import pytest

import sparknet
from sparknet.errors import (
    LONGEST_NAME,
    FileError,
    LayerError,
    MissingExtra,
    OutOfMemory,
    PeerLost,
    SparkNetError,
    TextError,
    WeightsError,
    bare,
    clean,
)

SAID = {
    "net.prototxt: empty": TextError("empty", "net.prototxt"),
    "<text>: empty": TextError("empty"),
    "n:3:0: empty": TextError("empty", "n", 3),
    "layer 'ip': bad": LayerError("ip", "bad"),
    "layer 'ip': worse": WeightsError("ip", "worse"),
    "a.h5: cut short": FileError("a.h5", "cut short"),
    "worker 2 on here:1 is lost: silent": PeerLost(2, "here:1", "silent"),
    "worker 2 on here:1 is lost: silent (this worker was averaging)": PeerLost(
        2, "here:1", "silent", "averaging"
    ),
    "drawing needs the package 'pydot': run pip install 'sparknet[draw]'": MissingExtra(
        "pydot", "draw", "drawing"
    ),
    "x needs the package 'pyarrow', which cannot be imported (pyarrow requires NumPy 2.0 or newer, "
    "found 1.26.4): install versions that fit each other": MissingExtra(
        "pyarrow", "spark", "x", "pyarrow requires NumPy 2.0 or newer, found 1.26.4"
    ),
}


def test_a_message_is_one_line_whatever_a_file_calls_its_layers():
    assert str(LayerError("a\nb", "no")) == "layer 'a\\nb': no"
    assert str(WeightsError("\x1b[2J", "no")) == "layer '\\x1b[2J': no"
    assert len(str(LayerError("x" * 10**6, "no"))) < 300
    assert LayerError("a\nb", "no").layer == "a\nb"


def test_each_is_the_builtin_too():
    assert isinstance(LayerError("a", "b"), ValueError)
    assert isinstance(FileError("a", "b"), OSError)
    assert isinstance(MissingExtra("h5py", "hdf5", "reading HDF5"), ImportError)
    assert "pip install 'sparknet[hdf5]'" in str(MissingExtra("h5py", "hdf5", "reading HDF5"))


def test_a_text_error_says_where():
    error = TextError("no field", "net.prototxt", 3, 7)
    assert str(error) == "net.prototxt:3:7: no field"
    assert (error.path, error.line, error.column) == ("net.prototxt", 3, 7)


def test_errors_come_back_from_another_process():
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


@pytest.mark.parametrize("said", SAID)
def test_what_an_error_says(said):
    assert str(SAID[said]) == said
    assert str(pickle.loads(pickle.dumps(SAID[said]))) == said


def test_what_an_error_holds():
    lost = PeerLost(2, "here:1", "silent", "averaging")
    assert vars(lost) == {"rank": 2, "where": "here:1", "what": "silent", "phase": "averaging"}
    assert PeerLost(2, "here:1", "silent").phase == ""
    text = TextError("empty")
    assert (text.path, text.line, text.column) == ("<text>", 0, 0)
    assert FileError("a.h5", "cut short").path == "a.h5"
    assert WeightsError("ip", "worse").layer == "ip"
    missing = MissingExtra("pydot", "draw", "drawing")
    assert (missing.package, missing.extra) == ("pydot", "draw")


def test_an_error_made_without_its_constructor():
    error = bare(LayerError, "as it was")
    assert type(error) is LayerError
    assert (str(error), error.args, vars(error)) == ("as it was", ("as it was",), {})
    assert bare(OutOfMemory, "none").args == ("none",)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_names_are_shown_up_to_a_length(more):
    assert LONGEST_NAME == 200
    name = "x" * (200 + more)
    assert clean(name) == (name if more <= 0 else "x" * 200 + "…")
    assert clean("tab\tend") == "tab\\tend"


def test_a_notebook_shows_the_users_lines_alone():
    with pytest.raises(SparkNetError) as caught:
        sparknet.read_net("nowhere.prototxt")
    shown = "".join(caught.value._render_traceback_())
    assert 'sparknet.read_net("nowhere.prototxt")' in shown
    assert "raise " not in shown
    assert shown.endswith("FileError: nowhere.prototxt: no such file or folder")
