"""Accuracy and ArgMax against plain numpy."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build


def run(text, inputs, *tops):
    net = build(text, inputs)
    net.forward()
    return [np.array(net.blobs[top].data) for top in tops]


def _pixels(matrix):
    """Accuracy, mean accuracy of the classes that occur, mean intersection over union."""
    classes = range(len(matrix))
    rows = [sum(matrix[c]) for c in classes]
    shares = [matrix[c][c] / rows[c] for c in classes if rows[c]]
    overlaps = []
    for c in classes:
        union = rows[c] + sum(matrix[other][c] for other in classes) - matrix[c][c]
        overlaps.append(matrix[c][c] / union if union else 1.0)
    right = sum(matrix[c][c] for c in classes) / sum(rows)
    return right, sum(shares) / len(shares), sum(overlaps) / len(overlaps)


@pytest.mark.parametrize("reset", [True, False])
def test_accuracy_of_pixels(reset):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (2, 4, 3, 5)).astype(np.float32)
    labels = rng.choice([0, 1, 2, 255], (2, 1, 3, 5)).astype(np.float32)
    options = f"seg_accuracy_param {{ ignore_label: 255 reset: {str(reset).lower()} }}"
    text = f'layer {{ name: "a" type: "SegAccuracy" bottom: "s" bottom: "l" top: "y" {options} }}'
    net = build(text, {"s": scores, "l": labels})
    net.forward()
    net.blobs["s"].data[...] = scores[:, ::-1]
    net.forward()
    matrix = [[0] * 4 for _ in range(4)]
    for x in (scores[:, ::-1],) if reset else (scores, scores[:, ::-1]):
        for n, h, w in np.ndindex(2, 3, 5):
            if labels[n, 0, h, w] != 255:
                told = max(range(4), key=lambda c, x=x, n=n, h=h, w=w: (x[n, c, h, w], c))
                matrix[int(labels[n, 0, h, w])][told] += 1
    np.testing.assert_allclose(net.blobs["y"].data.ravel(), _pixels(matrix), rtol=1e-6)
    net.blobs["l"].data[0, 0, 0, 0] = 4
    with pytest.raises(LayerError, match="4"):
        net.forward()


def test_a_net_that_says_nan_is_wrong():
    text = 'layer { name: "l" type: "Accuracy" bottom: "x" bottom: "label" top: "y" }'
    x = np.full((2, 3), np.nan)
    assert run(text, {"x": x, "label": np.zeros(2)}, "y")[0] == 0


def test_argmax_puts_nan_last():
    text = 'layer { name: "l" type: "ArgMax" bottom: "x" top: "y" argmax_param { top_k: 3 } }'
    actual = run(text, {"x": np.array([[np.nan, 1, np.nan, 2, 1]])}, "y")[0]
    assert actual.ravel().tolist() == [3, 4, 1]
