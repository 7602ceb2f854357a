"""Workers of two builds of the core train together: one of this tree, and one of the sparknet that
is installed in the environment.

`make test-portable` runs this in a tree whose core has no oneDNN, beside an installed one that
has it; elsewhere both are of the same build.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparknet
from sparknet import native
from sparknet.training import local_launcher

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" top: "label" input_param {
    shape { dim: 8 dim: 1 dim: 8 dim: 8 } shape { dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
    num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param {
    kernel_size: 2 stride: 2 } }
layer { name: "lrn" type: "LRN" bottom: "pool" top: "lrn" lrn_param { local_size: 3 } }
layer { name: "hidden" type: "InnerProduct" bottom: "lrn" top: "hidden" inner_product_param {
    num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "hidden" top: "hidden" }
layer { name: "ip" type: "InnerProduct" bottom: "hidden" top: "ip" inner_product_param {
    num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = f'base_lr: 0.05 momentum: 0.9 lr_policy: "fixed" random_seed: 5 net_param {{ {NET} }}'
INSTALLED = [
    one for one in sys.path if one not in os.environ.get("PYTHONPATH", "").split(os.pathsep)
]


def engine_of(paths: list[str]) -> str:
    """What another process computes with that imports sparknet from there."""
    program = "from sparknet import native; print(native.onednn())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    return "portable" if done.stdout.strip() == "none" else "native"


@pytest.fixture
def other_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second worker has the sparknet that is installed."""
    start = local_launcher._started

    def started(place: Any) -> Any:
        with monkeypatch.context() as patched:
            if place.rank == 1:
                patched.setattr(sys, "path", [one for one in INSTALLED if one])
                patched.chdir(tmp_path)
            return start(place)

    monkeypatch.setattr(local_launcher, "_started", started)


def trained(folder: Path, **how: Any) -> tuple[Any, list[str]]:
    """All weights in a row, and what each worker computed with."""
    (folder / "solver.prototxt").write_text(SOLVER)
    rng = np.random.default_rng(3)
    data = rng.normal(size=(120, 1, 8, 8)).astype(np.float32)
    heard: list[Any] = []
    end = sparknet.train(
        folder / "solver.prototxt",
        (data, (data.mean((1, 2, 3)) > 0.05).astype(np.float32)),
        device="native",
        workers=2,
        steps=20,
        on_event=heard.append,
        **how,
    )
    told = [
        one["engine"] for event in heard if event["event"] == "workers" for one in event["workers"]
    ]
    return end.weights.flat.numpy().copy(), told


@pytest.mark.parametrize("strategy", ["averaging", "allreduce"])
def test_workers_of_two_builds(
    tmp_path: Path, strategy: str, request: pytest.FixtureRequest
) -> None:
    alike, told = trained(tmp_path, strategy=strategy)
    mine = "portable" if native.onednn() == "none" else "native"
    assert told == [mine, mine]
    request.getfixturevalue("other_build")
    mixed, told = trained(tmp_path, strategy=strategy)
    assert told == [mine, engine_of([one for one in INSTALLED if one])]
    np.testing.assert_allclose(mixed, alike, rtol=2e-4, atol=2e-5)
    again, _ = trained(tmp_path, strategy=strategy)
    np.testing.assert_array_equal(mixed, again)
