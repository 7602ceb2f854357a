"""safetensors and state dicts by the names of PyTorch's modules; files are untrusted."""

import json
import struct
import warnings

import numpy as np
import pytest

from sparknet import Net
from sparknet.cli import main
from sparknet.errors import FileError, WeightsError
from sparknet.proto import read_model
from sparknet.weights import from_state_dict, read_tensors, state_dict, write_tensors
from sparknet.weights.safetensors import MOST_HEADER

NET = """
name: "modules"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: [2, 3, 6, 6] } } }
layer {
  name: "layer1.0.conv1" type: "Convolution" bottom: "data" top: "a"
  convolution_param { num_output: 4 kernel_size: 3 bias_term: false }
}
layer { name: "layer1.0.bn1" type: "BatchNorm" bottom: "a" top: "b" }
layer {
  name: "layer1.0.bn1_scale" type: "Scale" bottom: "b" top: "c" scale_param { bias_term: true }
}
layer { name: "fc" type: "InnerProduct" bottom: "c" top: "d" inner_product_param { num_output: 5 } }
"""
SHAPES = {
    "layer1.0.conv1.weight": (4, 3, 3, 3),
    "layer1.0.bn1.weight": (4,),
    "layer1.0.bn1.bias": (4,),
    "layer1.0.bn1.running_mean": (4,),
    "layer1.0.bn1.running_var": (4,),
    "fc.weight": (5, 64),
    "fc.bias": (5,),
}


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    return {name: rng.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in SHAPES.items()}


def expected(state, x):
    """By numpy alone."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, state["layer1.0.conv1.weight"])
    lined = {name: array[:, None, None] for name, array in state.items() if array.ndim == 1}
    spread = np.sqrt(lined["layer1.0.bn1.running_var"] + 1e-5)
    y = (y - lined["layer1.0.bn1.running_mean"]) / spread
    y = y * lined["layer1.0.bn1.weight"] + lined["layer1.0.bn1.bias"]
    return y.reshape(len(x), -1) @ state["fc.weight"].T + state["fc.bias"]


def test_a_state_dict_goes_in_and_comes_out(state, tmp_path):
    net = Net(NET).described
    given = {**state, "layer1.0.bn1.num_batches_tracked": np.array(7)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = from_state_dict(given, net)
    again = state_dict(model, net)
    assert again.keys() == state.keys()
    for name, array in state.items():
        np.testing.assert_allclose(again[name], array, rtol=1e-6)
    (tmp_path / "net.prototxt").write_text(NET)
    write_tensors(tmp_path / "in.safetensors", state)
    words = ["convert", "safetensors", str(tmp_path / "in.safetensors"), str(tmp_path / "w.h5")]
    words[3] = str(tmp_path / "w.caffemodel")
    assert main([*words, "--like", str(tmp_path / "net.prototxt")]) == 0
    x = np.random.default_rng(1).normal(size=(3, 3, 6, 6))
    got = Net(NET, tmp_path / "w.caffemodel").forward({"data": x})["d"]
    np.testing.assert_allclose(got, expected(state, x), rtol=1e-4)
    back = ["convert", "safetensors", words[3], str(tmp_path / "out.safetensors")]
    assert main([*back, "--like", str(tmp_path / "net.prototxt")]) == 0
    assert read_tensors(tmp_path / "out.safetensors").keys() == state.keys()
    assert set(read_model(words[3]).by_name()) == set(Net(NET).net.params)
    short = ["convert", words[2], "--like", str(tmp_path / "net.prototxt")]
    assert main(short) == 0
    assert set(read_model(tmp_path / "in.caffemodel").by_name()) == set(Net(NET).net.params)


def test_what_does_not_fit_is_refused(state):
    net = Net(NET).described
    with pytest.raises(WeightsError, match=r"'fc.weight' is \[5, 63\]; the layer's is \[5, 64\]"):
        from_state_dict({**state, "fc.weight": np.zeros((5, 63))}, net)
    left = {name: array for name, array in state.items() if name != "fc.bias"}
    with pytest.raises(WeightsError, match=r"there is 'fc.weight' and no 'fc.bias'"):
        from_state_dict(left, net)
    with pytest.raises(WeightsError, match="no weights have the names of the net's layers"):
        from_state_dict({"other.weight": np.zeros(1)}, net)
    with pytest.warns(UserWarning, match=r"nothing takes 'other\.weight'"):
        from_state_dict({**state, "other.weight": np.zeros(1)}, net)


@pytest.mark.parametrize("kind", ["float32", "float16", "bf16"])
def test_the_package_reads_what_is_written(kind, tmp_path):
    theirs = pytest.importorskip("safetensors")
    values = np.float32(
        [0, -0.0, 1, 1 / 3, -2.5e-5, 65504, 3e38, np.inf, -np.inf, np.nan, 1.00390625]
    )
    write_tensors(tmp_path / "a.safetensors", {"x": values, "y": np.ones((2, 0, 3))}, kind)
    ours = read_tensors(tmp_path / "a.safetensors")
    assert ours["y"].shape == (2, 0, 3)
    with theirs.safe_open(str(tmp_path / "a.safetensors"), "np") as opened:
        assert set(opened.keys()) == {"x", "y"}
        if kind != "bf16":  # numpy has none
            np.testing.assert_array_equal(opened.get_tensor("x").astype(np.float32), ours["x"])


def test_arrays_keep_their_own_types(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(0)
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?")
    held = {kind: (rng.normal(size=(3, 2)) * 100).astype(kind) for kind in kinds}
    held |= {"one": np.array((1 << 60) + 1), "none": np.zeros((2, 0), np.int32)}
    write_tensors(tmp_path / "a.safetensors", held, "own")
    for found in (
        read_tensors(tmp_path / "a.safetensors"),
        theirs.load_file(tmp_path / "a.safetensors"),
    ):
        assert found.keys() == held.keys()
        for name, values in held.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)
            assert found[name].shape == values.shape
    with pytest.raises(FileError, match="'x' is of type complex64, which safetensors do not have"):
        write_tensors(tmp_path / "a.safetensors", {"x": np.zeros(2, np.complex64)}, "own")


def test_bf16_is_rounded_to_the_nearest(tmp_path):
    """Halves to even, as torch does: 1 + 1/256 lies between 1 and 1 + 1/128."""
    write_tensors(
        tmp_path / "a.safetensors", {"x": np.float32([1.00390625, 1.01171875, 1.005])}, "bf16"
    )
    np.testing.assert_array_equal(
        read_tensors(tmp_path / "a.safetensors")["x"], np.float32([1, 1.015625, 1.0078125])
    )


def file_of(folder, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = folder / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def one(**changed):
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changed}}


@pytest.mark.parametrize(
    ("header", "data", "says"),
    [
        (b"{", b"", "header that is no JSON"),
        (b"[]", b"", "header that is no object"),
        (b'{"x": 1, "x": 2}', b"", "a name stands twice"),
        (b'{"x":' + b"[" * 100_000, b"", "header that is no JSON"),
        ({"x": 1}, b"", "'x' is not described by dtype, shape and data_offsets"),
        (one(dtype="Q8"), bytes(8), "'x' is of type Q8"),
        (one(shape=[-2]), bytes(8), r"'x' has the shape \[-2\]"),
        (one(shape=[True]), bytes(8), r"'x' has the shape \[True\]"),
        (one(shape=[2] * 33), bytes(8), "'x' has the shape"),
        (one(shape=[3]), bytes(8), r"'x' has 8 bytes; F32 \[3\] takes others"),
        (one(shape=[1 << 62, 4]), bytes(8), "takes others"),
        (one(data_offsets=[0, 9]), bytes(8), r"'x' lies at \[0, 9\] of 8 bytes"),
        (one(data_offsets=[8, 0]), bytes(8), r"'x' lies at \[8, 0\]"),
        (one(), bytes(12), "has 4 bytes behind its last array"),
        ({**one(), "y": one(data_offsets=[4, 12])["x"]}, bytes(12), "'y' overlaps 'x' at byte 4"),
        ({**one(), "y": one(data_offsets=[9, 17])["x"]}, bytes(17), "'y' leaves a gap behind 'x'"),
    ],
)
def test_a_damaged_file_is_refused(header, data, says, tmp_path):
    with pytest.raises(FileError, match=says):
        read_tensors(file_of(tmp_path, header, data))


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    with pytest.raises(
        FileError, match=r"^[^:]*: is no file of safetensors: its header is longer than the file"
    ):
        read_tensors(file_of(tmp_path, b"{}", length=1 << 63))
    path = tmp_path / "large.safetensors"
    with path.open("wb") as opened:
        opened.write(struct.pack("<Q", MOST_HEADER + 1))
        opened.truncate(MOST_HEADER + 100)
    with pytest.raises(FileError, match="has a header of 100000001 bytes"):
        read_tensors(path)
