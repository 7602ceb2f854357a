"""Exported models in OpenCV 5, onnxruntime and OpenVINO: the same outputs, the same boxes.

python -m benchmarks.opencv FOLDER exports
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.opencv.files import photograph, places
from benchmarks.opencv.models import MODELS, PackagedModel, exported
from sparknet import caffe
from sparknet.opencv import dnn

LIMIT = 1e-4


def main() -> int:
    folder = Path(sys.argv[1])
    if len(sys.argv) == 2:
        python = os.environ["OPENCV_5_PYTHON"]
        pip = [python, "-m", "pip", "install", "-q", "onnxruntime", "openvino", "scikit-learn"]
        subprocess.run(pip, check=True)
        return subprocess.run(
            [python, "-m", "benchmarks.opencv.exports", str(folder), "run"]
        ).returncode
    print(f"| model | {' | '.join(RUNNERS)} |\n|{'---|' * (len(RUNNERS) + 1)}")
    failed = 0
    for model in MODELS:
        cells = []
        for run in RUNNERS.values():
            try:
                difference = compared(folder, model, run)
                cells.append(f"{difference:.1e}")
                failed += difference > LIMIT
            except Exception as error:
                cells.append(f"{type(error).__name__} {error}".splitlines()[0][:120])
                failed += 1
        print(f"| {model.name} | {' | '.join(cells)} |", flush=True)
    return int(failed > 0)


def compared(folder: Path, model: PackagedModel, run: Callable[[Path, Any], list[Any]]) -> float:
    """Return the largest difference of a runner's outputs from Caffe's, by the largest value."""
    image = photograph(model.grey)
    blob = dnn.blobFromImage(image, model.scale, model.sizes[0], model.mean)
    prototxt, caffemodel = model.files(folder)
    net = caffe.Net(prototxt, caffe.TEST, weights=caffemodel)
    data = net.blobs[net.inputs[0]]
    data.reshape(*blob.shape)
    data.data[...] = blob
    outputs = run(exported(folder, model), blob)
    worst = 0.0
    for expected in net.forward().values():
        if expected.shape[-1] == 7:
            expected = expected[:, :, expected[0, 0, :, 2] > 0]
            outputs = [output.reshape(1, 1, -1, 7) for output in outputs]
            outputs = [output[:, :, output[0, 0, :, 2] > 0] for output in outputs]
        value = next((one for one in outputs if one.size == expected.size), None)
        if value is None:
            raise ValueError(f"{[one.shape for one in outputs]} for {expected.shape}")
        value = value.reshape(expected.shape)
        if expected.shape[-1] == 7 and expected.size:
            value, expected = (
                array[0, 0][np.lexsort(places(array))] for array in (value, expected)
            )
        largest = max(float(np.abs(expected).max(initial=0)), 1e-9)
        worst = max(worst, float(np.abs(value - expected).max(initial=0)) / largest)
    return worst


def _opencv(path: Path, blob: Any) -> list[Any]:
    import cv2

    net = cv2.dnn.readNetFromONNX(str(path))
    net.setInput(blob)
    outputs = net.forward(net.getUnconnectedOutLayersNames())
    return [np.zeros((1, 1, 0, 7)) if array is None else array for array in outputs]


def _onnxruntime(path: Path, blob: Any) -> list[Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: blob}))


def _openvino(path: Path, blob: Any) -> list[Any]:
    import openvino

    model = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(model([blob]).values())


RUNNERS = {"OpenCV 5": _opencv, "onnxruntime": _onnxruntime, "OpenVINO": _openvino}


if __name__ == "__main__":
    sys.exit(main())
