"""Eight bits keep the accuracy of a net that is trained for a moment; latencies are measured."""

from dataclasses import replace

import pytest

from benchmarks.int8 import accuracies, lenet
from benchmarks.latency import turns, write
from benchmarks.peers.contests import CONTESTS
from tests.caffe.test_int8 import needs_int8


@needs_int8
def test_eight_bits_keep_the_accuracy():
    found = accuracies(lenet(), seed=1, iterations=40)
    assert found["float32"] > 0.5
    assert found["max"] == pytest.approx(found["float32"], abs=0.005)
    assert found["mse"] == pytest.approx(found["float32"], abs=0.005)


def test_a_process_tells_its_first_time_and_the_next(tmp_path):
    write(replace(CONTESTS["lenet"], batch=1), tmp_path, ["float32"])
    (line,) = turns(str(tmp_path), "float32", ["sparknet"], 1, 1)
    first, spent, again = map(float, line.removeprefix("sparknet: ").split(", "))
    assert first > again > 0
    assert spent > 0
