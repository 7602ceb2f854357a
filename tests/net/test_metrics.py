"""Which outputs of a test net are metrics, and what they come to over batches of all sizes."""

import numpy as np
import pytest

from sparknet.net import Net
from sparknet.net.scores import LARGEST, Means, flattened
from tests.net.nets import NET, blobs_of_three

PER_CLASS = NET.replace('top: "accuracy"', 'top: "accuracy" top: "per_class"')


def test_every_top_of_accuracy_is_reported():
    assert PER_CLASS != NET
    data, labels = blobs_of_three(16)
    net = Net(PER_CLASS, seed=1)
    net.set_validation_data((data, labels))
    found = net.test()
    guesses = net.forward({"data": data}, outputs=["ip"])["ip"].argmax(1)
    assert list(found)[-3:] == ["per_class[0]", "per_class[1]", "per_class[2]"]
    halves = [slice(0, 8), slice(8, 16)]  # batches of 8, as Caffe's solver takes their mean
    for one in range(3):
        shares = [_share(guesses[half], labels[half], one) for half in halves]
        assert found[f"per_class[{one}]"] == pytest.approx(np.mean(shares), rel=1e-6)


def _share(guesses, labels, one):
    chosen = labels == one
    return float((guesses[chosen] == one).mean()) if chosen.any() else 0.0


def test_as_many_classes_as_records():
    """Batches of 3 records and 3 classes: the classes are still told one by one."""
    means = Means({"per_class"})
    means.add({"per_class": np.array([1.0, 0.5, 0.0]), "error": np.array([1.0, 2.0, 6.0])}, 3)
    means.add({"per_class": np.array([0.0, 0.5, 1.0]), "error": np.array([1.0, 1.0, 1.0])}, 3)
    assert means.result() == {
        "per_class[0]": 0.5,
        "per_class[1]": 0.5,
        "per_class[2]": 0.5,
        "error": 2.0,
    }


def test_numbers_come_first_and_predictions_are_no_metrics():
    means = Means()
    for rows in (4, 2):
        outputs = {
            "scores": np.ones((rows, 3)),
            "error": np.arange(rows, dtype=np.float32).reshape(rows, 1),
            "matrix": np.full((2, 2), rows, np.float32),
            "loss": np.array(float(rows)),
            "huge": np.ones(LARGEST + 1),
        }
        means.add(outputs, rows)
    loss = (4 * 4 + 2 * 2) / 6
    assert next(iter(means.result())) == "loss"
    assert means.result() == pytest.approx(
        {"loss": loss, "error": (0 + 1 + 2 + 3 + 0 + 1) / 6}
        | {f"matrix[{index}]": loss for index in range(4)}
    )
    assert flattened({"a": np.ones((1, 1))}) == {"a": 1.0}
