"""ONNX models in and out."""

from __future__ import annotations

from sparknet.onnx.model import OnnxWarning, foreign_types, open_model, read_model
from sparknet.onnx.source import SUFFIX, is_onnx
from sparknet.onnx.writing import write_model

__all__ = [
    "SUFFIX",
    "OnnxWarning",
    "foreign_types",
    "is_onnx",
    "open_model",
    "read_model",
    "write_model",
]
