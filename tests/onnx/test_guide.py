"""docs/onnx.md and docs/keras.md: from PyTorch and from Keras to Spark and back."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.goldens import ROOT
from tests.guides import blocks
from tests.onnx.graphs import onnx, run

CLASSIFIERS = "from benchmarks.onnx_zoo import classifiers\nclassifiers()\n"


def needs(*packages: str) -> None:
    for name in packages:
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


def followed(library: str, folder: Path, before: str = "", old: str = "", new: str = "") -> None:
    """Run the example of a library as a program; its model gives 10 numbers for each record."""
    pages = [block.text for page in ("onnx", "keras") for block in blocks(f"docs/{page}.md")]
    example = next(text for text in pages if f"import {library}\n" in text)
    assert old in example
    program = folder / "program.py"
    program.write_text(before + example.replace(old, new) if old else before + example)
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    model = onnx.load(str(folder / "tuned.onnx")).graph
    shape = [one.dim_value for one in model.input[0].type.tensor_type.shape.dim][1:]
    x = np.random.default_rng(0).random((3, *shape), np.float32)
    found = run(folder / "tuned.onnx", {model.input[0].name: x})[model.output[0].name]
    assert found.shape == (3, 10)
    assert np.ptp(found) > 0


@pytest.mark.slow
@pytest.mark.parametrize("exporter", ["dynamo=False", "dynamo=True"])
def test_from_pytorch_and_back(exporter, tmp_path):
    needs("torchvision", "pyspark", *(["onnxscript"] if exporter == "dynamo=True" else []))
    followed("torchvision", tmp_path, CLASSIFIERS, "dynamo=False", exporter)


@pytest.mark.slow
def test_from_keras_and_back(tmp_path):
    needs("keras", "torch", "onnxscript", "pyspark")
    followed("keras", tmp_path)
