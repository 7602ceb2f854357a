"""Turns on a GPU, held by processes."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from sparknet import models
from sparknet.errors import SettingError, SparkError
from sparknet.net import Net
from sparknet.net.caffe_model import CaffeModel
from sparknet.spark import SparkModel
from sparknet.spark.cluster.gpus import Turns
from sparknet.spark.predict.task import WorkerModel

GPU = f"GPU-of-test-{os.getpid()}"
HOLDER = """
import sys
from sparknet.spark.cluster.gpus import Turns

with Turns(sys.argv[1], int(sys.argv[2])).take():
    print("taken", flush=True)
    sys.stdin.readline()
print("over", flush=True)
sys.stdin.readline()
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="abstract sockets are Linux's"
)


@pytest.fixture
def start():
    """Begins a process that takes a turn, says so, and holds it for a line of its input."""
    begun = []

    def process(most):
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", HOLDER, GPU, str(most)]
        begun.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        return begun[-1]

    yield process
    for one in begun:
        one.kill()
        one.communicate()


def is_free(most: int) -> bool:
    try:
        with Turns(GPU, most, patience=0).take():
            return True
    except SparkError:
        return False


def test_so_many_at_once_and_no_more(start):
    first, second = start(2), start(2)
    assert [one.stdout.readline() for one in (first, second)] == ["taken\n"] * 2
    assert [is_free(1), is_free(2), is_free(3)] == [False, False, True]
    with (
        pytest.raises(
            SparkError,
            match=rf"^other tasks kept all turns on {GPU} for 0.05 s: .*\(tasks_per_gpu=2\)",
        ),
        Turns(GPU, 2, patience=0.05).take(),
    ):
        pass
    first.stdin.write("\n")
    first.stdin.flush()
    assert first.stdout.readline() == "over\n"  # it lives on, and has given its turn back
    assert is_free(2)


def test_a_killed_process_holds_none(start):
    holder = start(1)
    assert holder.stdout.readline() == "taken\n"
    waiting = start(1)
    holder.send_signal(signal.SIGSTOP)
    assert not is_free(1)
    holder.kill()
    assert waiting.stdout.readline() == "taken\n"
    assert not is_free(1)


def test_an_error_gives_the_turn_back():
    with pytest.raises(ValueError, match="inside"), Turns(GPU, 1).take():
        raise ValueError("inside")
    assert is_free(1)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2"])
def test_a_number_that_is_none(wrong):
    with pytest.raises(SettingError, match=f"^tasks_per_gpu must be a whole number.*{wrong!r}"):
        SparkModel(models.net("lenet"), random=True, tasks_per_gpu=wrong)


def test_a_net_computes_in_its_turn():
    """And gives back what only the pass needed before another's begins."""
    net = Net(models.net("lenet"))
    values = {"data": np.ones((2, 1, 28, 28), np.float32)}
    usual = WorkerModel(CaffeModel(net)).forward(values, ["ip2"])["ip2"].copy()
    worker = WorkerModel(CaffeModel(net), turns=Turns(GPU, 1, patience=0))
    np.testing.assert_array_equal(worker.forward(values, ["ip2"])["ip2"], usual)
    with Turns(GPU, 1).take(), pytest.raises(SparkError, match="other tasks kept all turns"):
        worker.forward(values, ["ip2"])
    np.testing.assert_array_equal(worker.forward(values, ["ip2"])["ip2"], usual)
