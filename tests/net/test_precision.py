"""Net, training and workers in bfloat16: close to float32, not the same; one sentence elsewhere."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sparknet import Net, train
from sparknet.errors import SettingError, SpecError
from sparknet.native import has_bf16
from tests.goldens import ROOT
from tests.net import public_caffe
from tests.spark.digits import NET, records, solver

needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")


def data(count=400, seed=0):
    images, labels = records(count, seed)
    return (images / 255).astype(np.float32), labels


@needs_bf16
def test_workers_train_in_it():
    found = {
        precision: train(
            solver(), data(), validation=data(101, 1), workers=2, threads=1, precision=precision
        )
        for precision in ("float32", "bf16")
    }
    assert found["bf16"].net.precision == "bf16"
    for trained in found.values():
        assert trained.outcome.metrics["accuracy"] > 0.97
    wide, narrow = (one.weights for one in found.values())
    assert not narrow.allclose(wide, 0, 1e-5)
    assert narrow.allclose(wide, 0, 0.05)
    again = train(Net(solver(), precision="bf16"), data(), workers=2, threads=1)
    assert again.weights.allclose(narrow, 0, 0), "a Net's workers do as it does"


def test_what_cannot_be_is_refused():
    with pytest.raises(
        SpecError, match="precision must be 'float32', 'tf32', 'bf16' or 'int8'; it is 'half'"
    ):
        Net(NET, precision="half")
    with pytest.raises(SpecError, match="precision='bf16' needs the embedded backend, not"):
        Net(NET, backend=public_caffe, precision="bf16")
    with pytest.raises(SettingError, match="this Net computes in float32: give precision to Net"):
        train(Net(solver()), data(), precision="bf16")


ELSEWHERE = """
import warnings
from sparknet import Net, train
from sparknet.caffe import solver_from_text
from tests.net.test_precision import data, solver
tests = "test_iter: 1 test_interval: 100 test_initialization: false"
makes = (
    lambda: Net(solver(more=tests), precision="bf16").precision,
    lambda: solver_from_text(solver(more=tests), precision="bf16").net.precision,
    lambda: train(solver(4), data(), workers=2, precision="bf16").net.precision,
)
for make in makes:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = make()
    print(made, *(str(one.message) for one in said), sep="|")
"""


def test_where_there_is_none_one_sentence_says_so():
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert "precision" not in done.stderr, "workers say nothing of it"
    sentence = (
        "float32|precision='bf16' needs a processor with AVX512_BF16 or AMX; "
        "this one computes in float32"
    )
    assert done.stdout.splitlines() == [sentence] * 3
