"""docs/onnx.md: its example, from PyTorch and back."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.onnx_zoo import classifiers
from tests.guides import examples
from tests.onnx.graphs import onnx, run

EXAMPLE = next(one for one in examples("onnx.md") if "torchvision" in one)


@pytest.mark.slow
@pytest.mark.parametrize("exporter", ["dynamo=False", "dynamo=True"])
def test_from_pytorch_and_back(
    exporter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    classifiers()
    if exporter == "dynamo=True":
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    monkeypatch.chdir(tmp_path)
    exec(EXAMPLE.replace("dynamo=False", exporter), {})
    (output,) = onnx.load("tuned.onnx").graph.output
    name = onnx.load("tuned.onnx").graph.input[0].name
    found = run(Path("tuned.onnx"), {name: np.zeros((3, 3, 64, 64), np.float32)})
    assert found[output.name].shape == (3, 10)
