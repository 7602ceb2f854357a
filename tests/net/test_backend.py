"""Net over any module with pycaffe's interface: only public names are touched."""

import sys
from types import ModuleType

import numpy as np
import pytest

from sparknet import Net, WeightCollection, caffe
from sparknet.errors import ArrayError, SpecError
from tests.layers.host.nets import images, lmdb, of_images
from tests.net import public_caffe
from tests.net.nets import NET, blobs_of_three, solver_text
from tests.net.test_data_layers import TAIL


@pytest.mark.parametrize("iter_size", [1, 2])
def test_another_pycaffe_does_the_same(iter_size, tmp_path):
    text = solver_text(momentum=0.9, iter_size=iter_size, test_iter=1, test_interval=10)
    own, other = Net(text), Net(text, backend=public_caffe)
    for net in (own, other):
        net.set_training_data(blobs_of_three())
        net.set_validation_data(blobs_of_three(51, 1))
    assert own.train(7) == other.train(7)
    assert own.iter == other.iter == 7
    assert own.test() == other.test()
    assert own.get_weights().allclose(other.get_weights(), 0, 0)
    one, two = own.forward(blobs_of_three(9)), other.forward(blobs_of_three(9))
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


def test_weights_files_and_weights(tmp_path):
    other = Net(NET, backend=public_caffe, seed=1)
    weights = other.get_weights()
    assert weights.layout == Net(NET).get_weights().layout
    for name in ("w.caffemodel", "w.h5"):
        other.save(tmp_path / name)
        assert WeightCollection.load(tmp_path / name).allclose(weights, 0, 0)
        loaded = Net(NET, tmp_path / name, backend=public_caffe)
        assert loaded.get_weights().allclose(weights, 0, 0)
        loaded.set_weights(2 * weights)
        loaded.load(tmp_path / name)
        assert loaded.get_weights().allclose(weights, 0, 0)
    assert other.flat_weights is None
    with pytest.raises(ArrayError, match="only copies are to be had"):
        WeightCollection.of(other.net, copy=False)


def test_data_layers_read_their_own_files(tmp_path):
    text = solver_text(lmdb(of_images(tmp_path, images(30, 3, 6, 7)), 10, "scale: 0.01") + TAIL)
    own, other = Net(text), Net(text, backend=public_caffe)
    assert own.train(4) == other.train(4)
    assert own.get_weights().allclose(other.get_weights(), 0, 0)


def test_backends_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "caffe", public_caffe)
    assert Net(NET, backend="caffe").flat_weights is None
    assert Net(NET, backend=caffe).flat_weights is not None
    assert Net(NET, backend="sparknet.caffe").flat_weights is not None
    with pytest.raises(SpecError, match="is not a pycaffe module: it has no Net"):
        Net(NET, backend=ModuleType("nothing"))
    with pytest.raises(SpecError, match="backend 'no_such_caffe' cannot be imported"):
        Net(NET, backend="no_such_caffe")
