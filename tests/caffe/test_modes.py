"""The switches that concern the process."""

import logging
import warnings

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.proto import parse_net

NET = """
input: "x" input_shape { dim: 1 dim: 50 }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 20 weight_filler { type: "xavier" } } }
"""


def weights() -> np.ndarray:
    return np.array(caffe.Net.from_proto(parse_net(NET), caffe.TRAIN).flat_params)


def test_without_a_gpu_nets_run_on_the_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        caffe.set_mode_cpu()
    with pytest.warns(UserWarning, match="set_mode_gpu: .*; the net runs on the CPU"):
        caffe.set_mode_gpu()
    with pytest.warns(UserWarning, match=r"set_device\(3\): .*; the net runs on the CPU"):
        caffe.set_device(3)
    assert not caffe.has_nccl()


def test_a_seed_makes_nets_alike():
    caffe.set_random_seed(4)
    first, second = weights(), weights()
    caffe.set_random_seed(4)
    np.testing.assert_array_equal(weights(), first)
    np.testing.assert_array_equal(weights(), second)
    assert not np.array_equal(first, second)
    caffe.set_random_seed(5)
    assert not np.array_equal(weights(), first)


def test_ranks():
    try:
        caffe.set_solver_count(3)
        caffe.set_solver_rank(2)
        caffe.set_multiprocess(True)
        assert (caffe.solver_count(), caffe.solver_rank()) == (3, 2)
    finally:
        caffe.set_solver_count(1)
        caffe.set_solver_rank(0)
        caffe.set_multiprocess(False)


def test_log(caplog):
    with caplog.at_level(logging.INFO, "sparknet.caffe"):
        caffe.log("a line of the user's own")
    assert caplog.messages == ["a line of the user's own"]


def test_init_log(capfd):
    logger = logging.getLogger("sparknet.caffe")
    before = list(logger.handlers), logger.level
    logger.handlers.clear()
    try:
        caffe.init_log()
        caffe.init_log(0, True)  # glog's level; twice is once
        caffe.log("shown")
        assert len(logger.handlers) == 1
        logger.handlers[0].flush()
        assert capfd.readouterr().err.endswith(" shown\n")
    finally:
        logger.handlers[:], level = before
        logger.setLevel(level)


def test_timer():
    timer = caffe.Timer()
    assert timer.ms == 0
    timer.start()
    timer.stop()
    first = timer.ms
    assert 0 <= first < 1000
    assert timer.ms == first
