"""A net that gets all weights from a file needs no filler; one that does not begins as ever."""

import numpy as np
import pytest

import sparknet
from sparknet import caffe
from sparknet.caffe import parameters
from sparknet.errors import WeightsError

NET = """
name: "n" input: "x" input_shape { dim: 2 dim: 3 }
layer { name: "one" type: "InnerProduct" bottom: "x" top: "y"
        param { name: "w" } inner_product_param { num_output: 3 bias_term: false
        weight_filler { type: "gaussian" std: 1 } } }
layer { name: "again" type: "InnerProduct" bottom: "y" top: "z"
        param { name: "w" } inner_product_param { num_output: 3 bias_term: false } }
layer { name: "two" type: "InnerProduct" bottom: "z" top: "t"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "n.prototxt").write_text(NET)
    (tmp_path / "part.prototxt").write_text(NET.replace('"two"', '"other"'))
    for suffix in ("caffemodel", "h5"):
        caffe.set_random_seed(1)
        caffe.Net(str(tmp_path / "n.prototxt"), caffe.TEST).save(str(tmp_path / f"n.{suffix}"))
    return tmp_path


def values(net):
    return {name: [blob.data.copy() for blob in own] for name, own in net.params.items()}


def equal(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(mine, theirs)
        for name in one
        for mine, theirs in zip(one[name], other[name], strict=True)
    )


def refuse(*_):
    raise AssertionError("a filler ran")


@pytest.mark.parametrize("suffix", ["caffemodel", "h5"])
def test_no_filler_runs_for_a_file_that_holds_all(files, suffix, monkeypatch):
    net, weights = str(files / "n.prototxt"), str(files / f"n.{suffix}")
    caffe.set_random_seed(2)
    filled = caffe.Net(net, caffe.TEST)
    assert not equal(values(filled), values(caffe.Net(net, caffe.TEST, weights=weights)))
    filled.copy_from(weights)
    expected = values(filled)
    monkeypatch.setattr(parameters, "fill", refuse)
    assert equal(values(caffe.Net(net, caffe.TEST, weights=weights)), expected)
    assert equal(values(caffe.Net(net, weights, caffe.TEST)), expected)
    assert equal(values(sparknet.Net(net, weights).net), expected)
    with pytest.raises(AssertionError, match="a filler ran"):
        caffe.Net(net, caffe.TEST)


@pytest.mark.filterwarnings("error")
def test_a_layer_that_shares_its_parameters_is_not_missing(files):
    sparknet.Net(str(files / "n.prototxt"), str(files / "n.h5"))


def test_what_a_file_lacks_is_filled_as_without_it(files):
    net, weights = str(files / "part.prototxt"), str(files / "n.caffemodel")
    caffe.set_random_seed(3)
    begun = values(caffe.Net(net, caffe.TEST))
    caffe.set_random_seed(3)
    actual = values(caffe.Net(net, caffe.TEST, weights=weights))
    assert equal({"other": actual["other"]}, {"other": begun["other"]})
    assert not np.array_equal(actual["one"][0], begun["one"][0])


def test_a_file_that_does_not_fit_is_refused_as_ever(files):
    text = NET.replace("num_output: 4", "num_output: 5")
    (files / "wide.prototxt").write_text(text)
    with pytest.raises(WeightsError, match=r"'two'.*\(4, 3\).*\(5, 3\)"):
        caffe.Net(str(files / "wide.prototxt"), caffe.TEST, weights=str(files / "n.caffemodel"))
