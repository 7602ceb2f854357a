"""A net's weights: written, read, shared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import FileError, WeightsError
from sparknet.proto import parse_net, read_model
from tests.caffe.nets import TEXT, make

SHARED = """
input: "x" input_shape { dim: 2 dim: 4 }
layer { name: "one" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" }
  inner_product_param { num_output: 4 bias_term: false weight_filler { type: "gaussian" std: 1 } } }
layer { name: "two" type: "InnerProduct" bottom: "a" top: "b" param { name: "w" }
  inner_product_param { num_output: 4 bias_term: false weight_filler { type: "gaussian" std: 1 } } }
"""


@pytest.mark.parametrize("suffix", [".caffemodel", ".caffemodel.h5"])
def test_save_and_load(suffix: str, tmp_path: Path) -> None:
    net, path = make(), str(tmp_path / f"net{suffix}")
    net.save(path)
    other = caffe.Net.from_proto(parse_net(TEXT), caffe.TEST, seed=2)
    assert not np.array_equal(np.asarray(other.flat_params), np.asarray(net.flat_params))
    other.copy_from(path)
    np.testing.assert_array_equal(np.asarray(other.flat_params), np.asarray(net.flat_params))


@pytest.mark.parametrize("name", ["net.h5", "net.weights", "net"])
def test_hdf5_by_its_own_names(name: str, tmp_path: Path) -> None:
    net, path = make(), str(tmp_path / name)
    net.save_hdf5(path)
    other = caffe.Net.from_proto(parse_net(TEXT), caffe.TEST, seed=2)
    other.load_hdf5(path)
    np.testing.assert_array_equal(np.asarray(other.flat_params), np.asarray(net.flat_params))
    net.forward()
    net.backward()
    net.save_hdf5(path, True)
    h5py = pytest.importorskip("h5py")
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["diff/ip/0"][...], net.params["ip"][0].diff)


@pytest.mark.parametrize("suffix", [".caffemodel", ".h5"])
def test_shared_parameters(suffix: str, tmp_path: Path) -> None:
    net, path = make(SHARED), str(tmp_path / f"net{suffix}")
    one, two = net.params["one"][0], net.params["two"][0]
    assert np.shares_memory(one.data, two.data)
    assert np.asarray(net.flat_params).size == 16
    one.data[...] = 2 * np.eye(4)
    net.blobs["x"].data[...] = 1
    assert (net.forward()["b"] == 4).all()
    net.save(path)
    model = read_model(path)
    assert [len(arrays) for arrays in model.arrays if arrays][:1] == [1]
    other = caffe.Net.from_proto(parse_net(SHARED), caffe.TRAIN, seed=9)
    other.copy_from(path)
    np.testing.assert_array_equal(other.params["two"][0].data, 2 * np.eye(4))
    apart = caffe.Net.from_proto(parse_net(SHARED.replace('param { name: "w" }', "")), 0, seed=9)
    if suffix == ".caffemodel":  # under every layer; in HDF5 the owner alone has them
        apart.copy_from(path)
        np.testing.assert_array_equal(apart.params["two"][0].data, 2 * np.eye(4))


def test_copy_from_takes_what_has_the_same_name(tmp_path: Path) -> None:
    net, path = make(), str(tmp_path / "net.caffemodel")
    net.save(path)
    text = TEXT.replace('name: "ip"', 'name: "ip_new"')
    other = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=2)
    kept = other.params["ip_new"][0].data.copy()
    other.copy_from(path)
    np.testing.assert_array_equal(other.params["conv"][0].data, net.params["conv"][0].data)
    np.testing.assert_array_equal(other.params["ip_new"][0].data, kept)


def test_copy_from_copies_all_or_nothing(tmp_path: Path) -> None:
    net, path = make(), str(tmp_path / "net.caffemodel")
    net.save(path)
    text = TEXT.replace("num_output: 13", "num_output: 12")
    other = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=2)
    kept = np.asarray(other.flat_params).copy()
    with pytest.raises(WeightsError, match=r"layer 'ip': parameter 0 .*13.*12.*rename it"):
        other.copy_from(path)
    np.testing.assert_array_equal(np.asarray(other.flat_params), kept)
    with pytest.raises(FileError, match=r"nothing\.caffemodel"):
        other.copy_from(tmp_path / "nothing.caffemodel")
    (tmp_path / "text.caffemodel").write_text("no model at all")
    with pytest.raises(FileError, match=r"text\.caffemodel"):
        other.copy_from(tmp_path / "text.caffemodel")


def test_share_with() -> None:
    one, other = make(), make(TEXT.replace("num_output: 13", "num_output: 13 axis: 1"))
    other.params["ip"][1].data[...] = 0
    other.share_with(one)
    assert np.shares_memory(other.params["ip"][1].data, one.params["ip"][1].data)
    one.params["ip"][1].data[...] = 7
    np.testing.assert_array_equal(
        other.forward(blobs=["ip_blob"])["ip_blob"], one.forward(blobs=["ip_blob"])["ip_blob"]
    )
    other.backward()
    assert not one.params["ip"][1].diff.any()
    with pytest.raises(WeightsError, match="layer 'ip'"):
        make(TEXT.replace("num_output: 13", "num_output: 12")).share_with(one)
