"""Outputs of published models beside OpenCV 4's, at several sizes, in float32 and in halves.

python -m benchmarks.opencv FOLDER files
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.opencv.models import MODELS, PackagedModel
from sparknet.opencv import dnn

LIMIT = 1e-5


def main() -> int:
    folder = Path(sys.argv[1])
    print("| package | model | size | output | float32 | halves |\n|---|---|---|---|---|---|")
    worst = 0.0
    for model in MODELS:
        prototxt, caffemodel = model.files(folder)
        halves = str(folder / f"{model.name}.half.caffemodel")
        try:
            _cv2().dnn.shrinkCaffeModel(caffemodel, halves)
        except _cv2().error:  # it takes no file with a blob of no values
            dnn.shrinkCaffeModel(caffemodel, halves)
        ours = {name: dnn.readNetFromCaffe(prototxt, name) for name in (caffemodel, halves)}
        for size in model.sizes:
            cells, shape = [], ()
            for name, net in ours.items():
                theirs = _cv2().dnn.readNetFromCaffe(prototxt, name)
                theirs.enableWinograd(False)  # whose rounding is larger than the limit
                difference, shape = compared(model, size, net, theirs)
                worst = max(worst, difference)
                cells.append(f"{difference:.1e}")
            words = (model.package, model.name, f"{size[0]} x {size[1]}", shape, *cells)
            print("|", " | ".join(map(str, words)), "|", flush=True)
    print(f"\nworst: {worst:.1e} of the largest value (limit {LIMIT:g})")
    return int(worst > LIMIT)


def compared(model: PackagedModel, size: tuple[int, int], ours: Any, theirs: Any) -> Any:
    """Return the largest difference, by the largest value, and the outputs' shape."""
    image = photograph(model.grey)
    blob = dnn.blobFromImage(image, model.scale, size, model.mean)
    want = _cv2().dnn.blobFromImage(image, model.scale, size, model.mean)
    np.testing.assert_allclose(blob, want, atol=1e-4 * model.scale)
    ours.setInput(want)
    theirs.setInput(want)
    names = theirs.getUnconnectedOutLayersNames()
    assert ours.getUnconnectedOutLayersNames() == names
    worst, shapes = 0.0, []
    for value, expected in zip(ours.forward(names), theirs.forward(names), strict=True):
        shapes.append(" x ".join(map(str, expected.shape)))
        assert value.shape == expected.shape
        if expected.shape[-1] == 7:
            value, expected = (
                array[0, 0][np.lexsort(places(array))] for array in (value, expected)
            )
        largest = max(float(np.abs(expected).max()), 1e-9)
        worst = max(worst, float(np.abs(value - expected).max()) / largest)
    return worst, ", ".join(shapes)


def places(boxes: Any) -> Any:
    """Keys of an order by box: scores that are equal but for rounding may change places."""
    return np.round(boxes[0, 0, :, [1, 3, 4, 5, 6]], 4)


def photograph(grey: bool = False) -> Any:
    """A photograph of scikit-learn's, in BGR; or a grey one with a QR code in it."""
    from sklearn.datasets import load_sample_image

    image = np.ascontiguousarray(load_sample_image("china.jpg")[:, :, ::-1])
    if grey:
        image = image.mean(axis=2).astype(np.uint8)
        code = _cv2().QRCodeEncoder.create().encode("readNetFromCaffe")
        side = 160
        image[120 : 120 + side, 300 : 300 + side] = _cv2().resize(
            code, (side, side), interpolation=_cv2().INTER_NEAREST
        )
    return image


def _cv2() -> Any:
    import cv2

    return cv2


if __name__ == "__main__":
    sys.exit(main())
