"""Arguments of wrong types are refused at the call, by an error of ours that is a TypeError."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import ArgumentError, IndexOutOfRange, SparkNetError, SpecError
from tests.caffe.nets import TEXT, make
from tests.caffe.solvers import small

NOT_WHOLE = ("w.caffemodel", 1.0, None, [0], b"1", np.float32(1), object())
NO_NAME = (7, 1.5, [], b"name", {}, np.int64(3))
NO_NAMES = ("conv", 3, [1], ["conv", None])
NO_FUNCTION = (3, "name", [])
NO_NET = (3, "net.prototxt", [])
NO_FLAG = ("yes", [], 1.5)
NO_BLOBS = (3, "bottom", [1], np.zeros(3))


class Things:
    """What the calls are made on."""

    def __init__(self):
        self.net, self.solver = make(), small.make_solver()
        self.blob, self.param = self.net.blobs["data"], self.net.params["conv"][0]
        self.vector = caffe._caffe.BlobVec()
        self.layer = self.net.layers[list(self.net._layer_names).index("conv")]


CALLS = {
    # what is called with each of these
    "Net, file": (NO_NAME, lambda t, x: caffe.Net(x, caffe.TEST)),
    "Net, phase": (
        tuple(x for x in NOT_WHOLE if not (x is None or isinstance(x, str))),
        lambda t, x: caffe.Net("net.prototxt", x),
    ),
    "Net, phase third": (NOT_WHOLE[:2], lambda t, x: caffe.Net("net.prototxt", "w", x)),
    "Net, level": (NOT_WHOLE, lambda t, x: caffe.Net("net.prototxt", caffe.TEST, x)),
    "Net, stages": (
        NO_NAMES[1:],
        lambda t, x: caffe.Net("net.prototxt", caffe.TEST, stages=x),
    ),
    "Net, weights": (NO_NAME, lambda t, x: caffe.Net("net.prototxt", caffe.TEST, weights=x)),
    "Net._forward": (NOT_WHOLE, lambda t, x: t.net._forward(x, 1)),
    "Net._forward, end": (NOT_WHOLE, lambda t, x: t.net._forward(0, x)),
    "Net._backward": (NOT_WHOLE, lambda t, x: t.net._backward(x, 0)),
    "Net._backward, end": (NOT_WHOLE, lambda t, x: t.net._backward(1, x)),
    "Net._bottom_ids": (NOT_WHOLE, lambda t, x: t.net._bottom_ids(x)),
    "Net._top_ids": (NOT_WHOLE, lambda t, x: t.net._top_ids(x)),
    "Net.forward, start": (NO_NAME, lambda t, x: t.net.forward(start=x)),
    "Net.forward, end": (NO_NAME, lambda t, x: t.net.forward(end=x)),
    "Net.forward, blobs": (NO_NAMES, lambda t, x: t.net.forward(blobs=x)),
    "Net.backward, start": (NO_NAME, lambda t, x: t.net.backward(start=x)),
    "Net.backward, end": (NO_NAME, lambda t, x: t.net.backward(end=x)),
    "Net.backward, diffs": (NO_NAMES, lambda t, x: t.net.backward(diffs=x)),
    "Net.before_forward": (NO_FUNCTION, lambda t, x: t.net.before_forward(x)),
    "Net.after_forward": (NO_FUNCTION, lambda t, x: t.net.after_forward(x)),
    "Net.before_backward": (NO_FUNCTION, lambda t, x: t.net.before_backward(x)),
    "Net.after_backward": (NO_FUNCTION, lambda t, x: t.net.after_backward(x)),
    "Net.copy_from": (NO_NAME, lambda t, x: t.net.copy_from(x)),
    "Net.load_hdf5": (NO_NAME, lambda t, x: t.net.load_hdf5(x)),
    "Net.save": (NO_NAME, lambda t, x: t.net.save(x)),
    "Net.save_hdf5": (NO_NAME, lambda t, x: t.net.save_hdf5(x)),
    "Net.save_hdf5, diffs": (NO_FLAG, lambda t, x: t.net.save_hdf5("w.h5", x)),
    "Net.share_with": (NO_NET, lambda t, x: t.net.share_with(x)),
    "Net.name": (NO_NAME, lambda t, x: setattr(t.net, "name", x)),
    "Blob.reshape": (NOT_WHOLE, lambda t, x: t.blob.reshape(2, x)),
    "Blob.reshape of a parameter": (NOT_WHOLE, lambda t, x: t.param.reshape(x)),
    "BlobVec.add_blob": (NOT_WHOLE, lambda t, x: t.vector.add_blob(2, x)),
    "Layer.reshape": (NO_BLOBS, lambda t, x: t.layer.reshape(x, t.vector)),
    "Layer.reshape, top": (NO_BLOBS, lambda t, x: t.layer.reshape(t.vector, x)),
    "get_solver": ((3, None, [], 1.5), lambda t, x: caffe.get_solver(x)),
    "SGDSolver": ((3, None, [], 1.5), lambda t, x: caffe.SGDSolver(x)),
    "Solver.step": (NOT_WHOLE, lambda t, x: t.solver.step(x)),
    "Solver.solve": (NO_NAME, lambda t, x: t.solver.solve(x)),
    "Solver.restore": ((*NO_NAME, None), lambda t, x: t.solver.restore(x)),
    "Solver.share_weights": (NO_NET, lambda t, x: t.solver.share_weights(x)),
    "Solver.add_callback": (NO_FUNCTION, lambda t, x: t.solver.add_callback(x, None)),
    "Solver.add_callback, ready": (NO_FUNCTION, lambda t, x: t.solver.add_callback(None, x)),
    "set_device": (NOT_WHOLE, lambda t, x: caffe.set_device(x)),
    "set_random_seed": (NOT_WHOLE, lambda t, x: caffe.set_random_seed(x)),
    "set_solver_count": (NOT_WHOLE, lambda t, x: caffe.set_solver_count(x)),
    "set_solver_rank": (NOT_WHOLE, lambda t, x: caffe.set_solver_rank(x)),
    "set_multiprocess": (NO_FLAG, lambda t, x: caffe.set_multiprocess(x)),
    "init_log": (NOT_WHOLE, lambda t, x: caffe.init_log(x)),
    "log": (NO_NAME, lambda t, x: caffe.log(x)),
}


@pytest.fixture(scope="module")
def things():
    return Things()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("net.prototxt").write_text(TEXT, encoding="utf-8")


@pytest.mark.parametrize("call", CALLS)
def test_wrong_types_are_refused(call, things):
    values, run = CALLS[call]
    for value in values:
        with pytest.raises(SparkNetError) as caught:
            run(things, value)
        assert isinstance(caught.value, ArgumentError) or "solver" in str(caught.value), value
        assert "\n" not in str(caught.value)


def test_the_sentence():
    with pytest.raises(TypeError, match=r"^level must be a whole number; it is 'w\.caff") as e:
        caffe.Net("net.prototxt", caffe.TEST, "w.caffemodel")
    assert str(e.value).endswith("(str); weights come second, or as weights=")
    with pytest.raises(SpecError, match=r"level 'x' is no whole number"):
        caffe.Net.from_proto(make().graph.parameter, caffe.TEST, level="x")


def test_whole_numbers_of_numpy_count(things):
    zero, one = np.int64(0), np.uint8(1)
    net = caffe.Net("net.prototxt", one, level=zero)
    net._forward(zero, np.int32(len(net.layers) - 1))
    net._backward(np.int32(len(net.layers) - 1), zero)
    assert net._top_ids(zero) == net._top_ids(0)
    net.blobs["data"].reshape(np.int64(2), *net.blobs["data"].shape[1:])
    assert net.blobs["data"].num == 2
    caffe.set_random_seed(np.int64(5))
    caffe.set_multiprocess(np.bool_(False))
    things.solver.step(zero)
    assert things.solver.iter == 0


def test_numbers_of_layers_that_are_not_there(things):
    many = len(things.net.layers)
    for number in (-1, many, 2**70):
        with pytest.raises(IndexOutOfRange, match=f"the net has {many} layers"):
            things.net._forward(0, number)
        with pytest.raises(IndexOutOfRange, match=f"the net has {many} layers"):
            things.net._bottom_ids(number)
    with pytest.raises(SpecError, match="must not be negative"):
        caffe.set_random_seed(-1)
