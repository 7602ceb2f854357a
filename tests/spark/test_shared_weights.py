"""Weights in a file that all workers of an executor map."""

import os
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import ArrayError, FileError, SpecError
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.spark.filesystem.broadcast import SharedWeights, _digest, _write

NET = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: [4, 3, 6, 6] } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "norm" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "second" type: "Convolution" bottom: "conv" top: "second"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "second" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
"""


def save_weights(folder: Path, flat: NDArray) -> Path:
    path = folder / f"sparknet-{_digest(flat)}.weights"
    _write(path, flat)
    return path


@pytest.fixture
def net():
    return Net(NET, seed=1)


def test_a_net_computes_with_mapped_weights(tmp_path, net):
    assert net.flat_weights is not None
    shared = SharedWeights(save_weights(tmp_path, net.flat_weights))
    other = Net(NET, shared.flat)
    assert other.flat_weights is shared.flat
    records = np.random.default_rng(0).normal(size=(9, 3, 6, 6))
    for count in (4, 9, 4):
        one, two = (n.forward({"x": records[:count]})["ip"] for n in (net, other))
        np.testing.assert_array_equal(one, two)
    other.net.trim()
    np.testing.assert_array_equal(
        other.forward({"x": records})["ip"], net.forward({"x": records})["ip"]
    )
    with pytest.raises(ArrayError, match="7 numbers are given for the net's"):
        _ = Net(NET, NDArray.zeros((7,))).net
    with pytest.raises(SpecError, match="a buffer of weights is for a net without a solver"):
        Net(f"net_param {{ {NET} }} base_lr: 0.1", NDArray.zeros((7,)))


def test_no_copies_of_mapped_weights_in_other_layouts_are_kept(tmp_path, net):
    """Each pass makes them anew."""
    assert net.flat_weights is not None
    other = Net(NET, SharedWeights(save_weights(tmp_path, net.flat_weights)).flat)
    for one in (net, other):
        one.forward({"x": np.ones((4, 3, 6, 6))})
    assert net.net._runtime.engine.memory()["layouts"] > 0
    assert other.net._runtime.engine.memory()["layouts"] == 0


def test_what_a_worker_writes_is_its_own(tmp_path, net):
    assert net.flat_weights is not None
    path = save_weights(tmp_path, net.flat_weights)
    SharedWeights(path).flat.fill(3)
    assert SharedWeights(path).flat.equals(net.flat_weights)


def test_other_weights_are_refused(tmp_path, net):
    assert net.flat_weights is not None
    path = save_weights(tmp_path, net.flat_weights)
    whole = path.read_bytes()
    for wrong in (whole[:-4], whole[:-1], b"", whole[:-4] + b"\1\2\3\4", b"\0" * len(whole)):
        path.write_bytes(wrong)
        with pytest.raises(
            FileError,
            match=r"which is not a whole number of float32 weights|holds other weights than those",
        ):
            SharedWeights(path)
    with pytest.raises(FileError, match="No such file"):
        SharedWeights(tmp_path / "none.weights")


def test_a_file_that_is_cut_short_ends_no_process(tmp_path, net):
    assert net.flat_weights is not None
    path = save_weights(tmp_path, net.flat_weights)
    shared = SharedWeights(path)
    shared.check()
    os.truncate(path, 0)
    assert np.asarray(shared.flat).sum() is not None  # no SIGBUS
    with pytest.raises(FileError, match="was cut short"):
        shared.check()


def test_others_cannot_write_to_it(tmp_path, net):
    assert net.flat_weights is not None
    path = save_weights(tmp_path, net.flat_weights)
    path.chmod(0o666)
    SharedWeights(path)
    assert path.stat().st_mode & 0o777 == 0o644


def test_no_weights(tmp_path):
    assert SharedWeights(save_weights(tmp_path, NDArray.zeros((0,)))).flat.size == 0
