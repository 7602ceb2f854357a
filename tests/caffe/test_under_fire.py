"""Nets in threads, after a fork, by the thousand; views that outlive what they view."""

import gc
import os
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.layers.layer import Layer
from sparknet.native.core import lib
from sparknet.proto import parse_net
from tests.goldens import ROOT

TEXT = """
layer { name: "in" type: "Input" top: "data"
  input_param { shape { dim: 4 dim: 3 dim: 9 dim: 9 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
"""


def make(phase: int = caffe.TRAIN, seed: int = 7) -> caffe.Net:
    return caffe.Net.from_proto(parse_net("force_backward: true " + TEXT), phase, seed=seed)


def images(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(4, 3, 9, 9)).astype(np.float32)


def test_parameters_are_views_of_one_buffer():
    net = make()
    flat = np.asarray(net.flat_params)
    begin = 0
    for own in net.params.values():
        for blob in own:
            assert blob.data.ctypes.data == flat.ctypes.data + 4 * begin
            begin += blob.count
    assert begin == flat.size == net.graph.param_count
    net.params["ip"][1].data[...] = 3
    assert flat[-5:].tolist() == [3] * 5
    before = net.forward(data=images())["ip"].copy()
    flat[-5:] = 4
    np.testing.assert_allclose(net.forward(data=images())["ip"], before + 1, rtol=1e-6)


def test_a_view_of_a_blob_follows_every_pass_and_is_read_by_the_next():
    net = make()
    conv, data = net.blobs["conv"].data, net.blobs["data"].data
    data[...] = images()
    first = net.forward()["ip"].copy()
    assert conv.min() == 0 < conv.max()
    seen = conv.copy()
    data[...] = images(1)
    net.forward()
    assert not np.array_equal(conv, seen)
    conv[...] = seen
    assert net.blobs["conv"].data.ctypes.data == conv.ctypes.data
    np.testing.assert_allclose(net.forward(start="ip")["ip"], first, rtol=1e-6)


def test_a_view_outlives_its_net():
    net = make()
    net.forward(data=images())
    conv, weights = net.blobs["conv"].data, net.params["conv"][0].data
    want, kept = conv.copy(), weights.copy()
    del net
    gc.collect()
    others = [make(seed=n) for n in range(5)]
    for other in others:
        other.forward(data=images(3))
    np.testing.assert_array_equal(conv, want)
    np.testing.assert_array_equal(weights, kept)


def test_nets_run_in_many_threads():
    want = make().forward(data=images())["ip"].copy()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            net = make()
            for _ in range(3):
                got = net.forward(data=images())["ip"]
                net.backward(ip=np.ones((4, 5)))
            if not np.array_equal(got, want):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_that_give_one_net_other_shapes_take_turns():
    poolings = "".join(
        f'layer {{ name: "pool{n}" type: "Pooling" bottom: "conv" top: "pool{n}" '
        "pooling_param { kernel_size: 2 } }"
        for n in range(20)
    )
    net, wrong = caffe.Net.from_proto(parse_net(TEXT + poolings), caffe.TEST, seed=7), []

    def work(number: int) -> None:
        for turn in range(30):
            net.blobs["data"].reshape(1 + (turn * 7 + number * 3) % 9, 3, 9, 9)
            try:
                net.forward()
            except LayerError as error:
                wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert not wrong
    net.blobs["data"].reshape(4, 3, 9, 9)
    want = make(caffe.TEST).forward(data=images())["ip"]
    np.testing.assert_array_equal(net.forward(data=images())["ip"], want)


FORK = """
import os, sys
import numpy as np
sys.path.insert(0, {root!r})
from tests.caffe.test_under_fire import images, make
old = make() if {before} else None
want = old and old.forward(data=images())["ip"].copy()
child = os.fork()
if child == 0:
    for net in [make()] + ([old] if old else []):
        got = net.forward(data=images())["ip"]
        net.backward(ip=np.ones((4, 5)))
        if want is not None and not np.allclose(got, want, rtol=1e-5):
            os._exit(1)
    os._exit(0)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("before", [False, True], ids=["after import", "after a pass"])
def test_forking(before):
    code = FORK.format(root=str(ROOT), before=before)
    done = subprocess.run([sys.executable, "-c", code], timeout=120)
    assert done.returncode == 0


def test_a_fork_while_another_thread_describes_a_layer_leaves_no_lock():
    entered, leave = threading.Event(), threading.Event()

    class Waiting:
        plain_options = ("options",)

        def __getattr__(self, name):
            entered.set()
            leave.wait(60)
            raise AttributeError(name)

    def describe():
        with pytest.raises(AttributeError):
            vars(Layer)["_plain_options"].__get__(Waiting(), Layer)

    thread = threading.Thread(target=describe)
    thread.start()
    assert entered.wait(60)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        make()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    leave.set()
    thread.join()


def test_hundreds_of_nets_leak_nothing():
    def some(count: int) -> None:
        for number in range(count):
            net = make(seed=number)
            net.forward(data=images())
            net.backward(ip=np.ones((4, 5)))
        gc.collect()

    some(50)
    storages = lib.sn_live_storages()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    some(300)
    assert lib.sn_live_storages() == storages
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 10 * 1024
