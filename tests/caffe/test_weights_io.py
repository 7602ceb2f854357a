"""A net's weights: written, read, shared."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import FileError, WeightsError
from sparknet.proto import parse_net, read_model
from sparknet.weights import WeightsWarning
from tests.caffe.nets import TEXT, make

SHARED = """
input: "x" input_shape { dim: 2 dim: 4 }
layer { name: "one" type: "InnerProduct" bottom: "x" top: "a" param { name: "w" }
  inner_product_param { num_output: 4 bias_term: false weight_filler { type: "gaussian" std: 1 } } }
layer { name: "two" type: "InnerProduct" bottom: "a" top: "b" param { name: "w" }
  inner_product_param { num_output: 4 bias_term: false weight_filler { type: "gaussian" std: 1 } } }
"""


@pytest.mark.parametrize("suffix", [".caffemodel", ".caffemodel.h5"])
def test_save_and_load(suffix, tmp_path):
    net, path = make(), str(tmp_path / f"net{suffix}")
    net.save(path)
    other = caffe.Net.from_proto(parse_net(TEXT), caffe.TEST, seed=2)
    assert not np.array_equal(np.asarray(other.flat_params), np.asarray(net.flat_params))
    other.copy_from(path)
    np.testing.assert_array_equal(np.asarray(other.flat_params), np.asarray(net.flat_params))


@pytest.mark.parametrize("name", ["net.h5", "net.weights", "net"])
def test_hdf5_by_its_own_names(name, tmp_path):
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
def test_shared_parameters(suffix, tmp_path):
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


def test_copy_from_takes_what_has_the_same_name(tmp_path):
    net, path = make(), str(tmp_path / "net.caffemodel")
    net.save(path)
    text = TEXT.replace('name: "ip"', 'name: "ip_new"')
    other = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=2)
    kept = other.params["ip_new"][0].data.copy()
    other.copy_from(path)
    np.testing.assert_array_equal(other.params["conv"][0].data, net.params["conv"][0].data)
    np.testing.assert_array_equal(other.params["ip_new"][0].data, kept)


def test_copy_from_copies_all_or_nothing(tmp_path):
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


def test_share_with():
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


def stored(path):
    model = read_model(path)
    return {layer.name: own for layer, own in zip(model.net.layer, model.arrays, strict=True)}


def test_a_parameter_in_another_shape(tmp_path):
    """As many values are the same values; another number of them are for the file."""
    net, path = make(), str(tmp_path / "net.caffemodel")
    weights = net.params["ip"][0]
    before, loss = weights.data.copy(), float(net.forward()["loss"])
    weights.reshape(13, 11, 8, 9)
    assert weights.diff.shape == weights.data.shape == (13, 11, 8, 9)
    np.testing.assert_array_equal(weights.data.ravel(), before.ravel())
    assert float(net.forward()["loss"]) == loss
    weights.data[...] *= 2
    assert float(net.forward()["loss"]) != loss
    net.save(path)
    assert stored(path)["ip"][0].shape == (13, 11, 8, 9)

    weights.reshape(4, 3)
    assert weights.data.shape == weights.diff.shape == (4, 3)
    assert not weights.data.any()
    weights.data[...] = 7
    net.save(path)
    assert (stored(path)["ip"][0] == 7).all()
    other = make()
    other.params["ip"][0].reshape(4, 3)
    for use in (net.forward, net.backward, lambda: other.share_with(net)):
        with pytest.raises(WeightsError, match=r"layer 'ip': parameter 0 was reshaped to 4 x 3"):
            use()
    weights.reshape(*before.shape)
    np.testing.assert_array_equal(weights.data, 2 * before)
    assert np.shares_memory(weights.data, np.asarray(net.flat_params))
    net.forward()


@pytest.mark.parametrize("suffix", [".caffemodel", ".h5"])
def test_a_blob_added_by_hand(suffix, tmp_path):
    """How scripts that fold BatchNorm away give a convolution the bias that it did not have."""
    text = TEXT.replace("num_output: 11", "num_output: 11 bias_term: false")
    text = text.replace("param { decay_mult: 1 } param { decay_mult: 0 }", "")
    net, path = make(text), str(tmp_path / f"net{suffix}")
    net.params["conv"].add_blob(11)
    assert net.layer_dict["conv"].blobs is net.params["conv"]
    net.params["conv"][1].data[...] = np.arange(11)
    net.params["ip"].add_blob()
    net.params["ip"][2].reshape(2, 3)
    loss = float(net.forward()["loss"])
    net.save(path)
    saved = stored(path)
    assert [blob.shape for blob in saved["conv"]] == [(11, 2, 2, 2), (11,)]
    assert [blob.shape for blob in saved["ip"]] == [(13, 792), (13,), (2, 3)]
    del net.params["ip"][2]
    net.save(path)
    other = make()
    other.copy_from(path)
    np.testing.assert_array_equal(other.params["conv"][1].data, np.arange(11))
    net.params["conv"][1].data[...] = 0
    net.copy_from(path)
    np.testing.assert_array_equal(net.params["conv"][1].data, np.arange(11))
    assert float(net.forward()["loss"]) == loss


def test_a_file_of_other_layers_is_told(tmp_path, caplog):
    """Caffe logs a line for each such layer; of a file that is of no use nothing else tells."""
    good, other = tmp_path / "good.caffemodel", tmp_path / "other.prototxt"
    make().save(str(good))
    other.write_text(SHARED)
    with pytest.warns(
        WeightsWarning, match=r"good.caffemodel: nothing is copied.*'ip'.*'one', 'two'"
    ):
        caffe.Net(str(other), str(good), caffe.TEST)
    text = TEXT.replace('name: "ip"', 'name: "ip_of_mine"')
    with caplog.at_level("INFO", "sparknet.caffe"):
        caffe.Net.from_proto(parse_net(text), caffe.TEST).copy_from(str(good))
    assert "Ignoring source layer ip" in caplog.messages
