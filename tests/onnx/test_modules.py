"""Modules of PyTorch that nobody named, by both exporters (benchmarks/onnx_modules.py)."""

import pytest


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamo", [False, True])
def test_modules(dynamo):
    pytest.importorskip("torch", reason="torch is not installed")
    from benchmarks.onnx_modules import difference, modules

    if dynamo:
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    found = {name: difference(name, dynamo) for name in modules()}
    assert len(found) == 39
    assert {name: value for name, value in found.items() if value > 1e-4} == {}
