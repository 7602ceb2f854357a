"""A small task that the verbs are tried on: which of three columns of an image is bright."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparknet.cli.record_files import write_database
from sparknet.loaders.datums import datum_bytes
from sparknet.native import core, threads
from tests.spark.java import start_quickly

ROOT = Path(__file__).resolve().parents[2]
start_quickly()
CLASSES, SIZE, COUNT = 3, 6, 60

NET = """
name: "columns"
layer {{ name: "data" type: "Data" top: "data" top: "label"
        data_param {{ source: "{folder}/lmdb" backend: LMDB batch_size: 20 }}
        transform_param {{ scale: 0.00390625 }} }}
{layers}
layer {{ name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
        include {{ phase: TEST }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""
DEPLOY = """
name: "columns"
layer {{ name: "data" type: "Input" top: "data"
        input_param {{ shape {{ dim: 8 dim: 1 dim: 6 dim: 6 }} }} }}
{layers}
layer {{ name: "prob" type: "Softmax" bottom: "ip" top: "prob" }}
"""
LAYERS = """
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
"""
SOLVER = """
net: "{folder}/net.prototxt"
test_iter: 3 test_interval: 10 test_initialization: false
base_lr: 0.1 lr_policy: "step" gamma: 0.5 stepsize: 10 momentum: 0.9
display: 5 max_iter: 20 snapshot_prefix: "{folder}/columns" random_seed: 7
"""


@dataclass(frozen=True)
class Task:
    """Files in `folder`: net, deploy, solver (.prototxt), model (.caffemodel), lmdb."""

    folder: Path
    images: Any
    labels: Any

    def path(self, name: str) -> str:
        return str(self.folder / name)


def make_task(folder: Path, layers: str = LAYERS) -> Task:
    generator = np.random.default_rng(5)
    labels = generator.integers(0, CLASSES, COUNT)
    images = generator.integers(0, 200, (COUNT, 1, SIZE, SIZE)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[0, :, 2 * label : 2 * label + 2] += 55
    records = (
        (b"%08d" % number, datum_bytes(image, int(label)))
        for number, (image, label) in enumerate(zip(images, labels, strict=True))
    )
    write_database(str(folder / "lmdb"), records)
    for name, text in (("net", NET), ("deploy", DEPLOY), ("solver", SOLVER)):
        described = text.format(folder=folder, layers=layers)
        (folder / f"{name}.prototxt").write_text(described)
    return Task(folder, images, labels)


@pytest.fixture(scope="session")
def task(tmp_path_factory):
    """With a model that was trained for a few steps, and so is right about most images."""
    from sparknet.caffe import get_solver

    made = make_task(tmp_path_factory.mktemp("task"))
    solver = get_solver(made.path("solver.prototxt"))
    solver.step(20)
    solver.net.save(made.path("model.caffemodel"))
    return made


@cache
def limits(count: int) -> core.Machine:
    return MEASURE()


MEASURE = core.measure_machine


@pytest.fixture(autouse=True)
def one_measurement(monkeypatch):
    """This machine's limits take seconds to measure: once for each number of threads."""
    monkeypatch.setattr(core, "measure_machine", lambda: limits(threads()))


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run():
    """The command in a process of its own."""

    def call(*words, **options):
        return subprocess.run(
            [sys.executable, "-m", "sparknet", *words],
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            **options,
        )

    return call
