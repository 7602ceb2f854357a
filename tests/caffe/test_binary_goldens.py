"""Models of every age, copied into a net by layer name: parameters bit for bit, then a pass."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from tests.caffe.replay import close, keys, param, set_inputs
from tests.goldens import GOLDENS, cases, index

BINARY = GOLDENS / "formats" / "binary"
TOLERANCES = {"rtol": 1e-4, "atol": 1e-5, "floor": 1e-9}


def check(case, file):
    """Copy a file into a fresh net, compare its parameters and a forward pass."""
    net = caffe.Net(str(BINARY / f"{case['name']}.prototxt"), caffe.TEST)
    before = {
        f"{layer}/{number}": np.array(blob.data)
        for layer, blobs in net.params.items()
        for number, blob in enumerate(blobs)
    }
    net.copy_from(str(file))
    with np.load(BINARY / f"{case['name']}.npz") as arrays:
        recorded = dict(arrays)
    for key, want in keys(recorded, "param/"):
        got = param(net, key).data
        if key in case["unchanged_by_copy"]:
            assert np.array_equal(got, before[key]), key
            got[...] = want
        assert got.shape == want.shape
        assert got.tobytes() == want.tobytes(), key
    set_inputs(net, recorded, "in/")
    net.forward()
    for blob, want in keys(recorded, "out/"):
        close(TOLERANCES, net.blobs[blob].data, want, f"out/{blob}")
    return net


@cases("formats/binary")
def test_model(case):
    check(case, BINARY / f"{case['name']}.caffemodel")


@cases("formats/binary", [case for case in index("formats/binary") if "upgraded" in case])
def test_upgraded_model(case):
    check(case, BINARY / case["upgraded"])


@cases("formats/binary", [case for case in index("formats/binary") if "hdf5" in case])
def test_hdf5_model(case):
    pytest.importorskip("h5py")
    net = check(case, BINARY / case["hdf5"])
    again = caffe.Net(str(BINARY / f"{case['name']}.prototxt"), caffe.TEST)
    again.load_hdf5(str(BINARY / case["hdf5"]))
    for layer, blobs in net.params.items():
        for one, other in zip(blobs, again.params[layer], strict=True):
            assert one.data.tobytes() == other.data.tobytes()


@cases("formats/binary")
def test_saved_and_read_again(case, tmp_path):
    net = check(case, BINARY / f"{case['name']}.caffemodel")
    for name in ("a.caffemodel", "a.caffemodel.h5"):
        net.save(str(tmp_path / name))
        check({**case, "unchanged_by_copy": []}, tmp_path / name)
