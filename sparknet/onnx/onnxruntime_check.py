"""What onnxruntime computes with a model, beside what a net does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sparknet.errors import DataError, FileError, extra
from sparknet.onnx.source import Array, StrPath


def run(path: StrPath, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a model by onnxruntime."""
    with extra("onnxruntime", "onnx-check", "checking an ONNX model"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            os.fspath(path), options, providers=["CPUExecutionProvider"]
        )
        names = [one.name for one in session.get_outputs()]
        inputs = {one.name for one in session.get_inputs()}
        outputs = session.run(None, {name: feeds[name] for name in inputs})
    except Exception as error:  # onnxruntime has a class of its own for each status
        raise FileError(path, f"onnxruntime refuses it: {str(error).splitlines()[0]}") from error
    return dict(zip(names, (np.asarray(one) for one in outputs), strict=True))


def results(blobs: Mapping[str, Any], names: Iterable[str]) -> dict[str, Array]:
    """Return what a net computes for the outputs of its exported model, also of layers in place."""
    outputs = {}
    for name in names:
        own = [blob for blob in blobs if name == blob or name.startswith(f"{blob}/")]
        outputs[name] = np.array(blobs[max(own, key=len)].data)
    return outputs


def largest_difference(got: Mapping[str, Any], want: Mapping[str, Any]) -> float:
    """Return the largest difference of any output, as a share of that output's largest value."""
    worst = 0.0
    for name, value in want.items():
        if got[name].shape != value.shape:
            raise DataError(f"output '{name}' is {got[name].shape} here, {value.shape} there")
        scale = float(np.abs(value).max(initial=0)) or 1.0
        worst = max(worst, float(np.abs(got[name] - value).max(initial=0)) / scale)
    return worst
