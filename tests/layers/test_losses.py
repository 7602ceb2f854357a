"""Accuracy and the losses."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.layers import LAYERS
from sparknet.proto import write_blob
from tests.layers.nets import layer, plan

LOSSES = [name for name in LAYERS if name.endswith(("Loss", "LossOHEM"))]
AROUND = {"axis": 1, "outer": 2, "channels": 3, "inner": 4}


def test_losses_have_weight_and_a_top_of_their_own():
    assert len(LOSSES) == 17
    for name in LOSSES:
        assert LAYERS[name].is_loss
        assert LAYERS[name].has_gradient
    assert not LAYERS["Accuracy"].is_loss
    assert not LAYERS["Accuracy"].has_gradient


def test_softmax_with_loss():
    found = plan("SoftmaxWithLoss", "", (2, 3, 4), (2, 4))
    assert found.tops == ((),)
    assert found.values == {**AROUND, "normalization": "valid", "ignore_label": None}
    options = "softmax_param { axis: -1 } loss_param { ignore_label: 255 normalize: false }"
    found = plan("SoftmaxWithLoss", options, (2, 3, 4), (2, 1, 3), tops=2)
    assert found.tops == ((), (2, 3, 4))
    assert found.values["normalization"] == "batch_size"
    assert found.values["ignore_label"] == 255
    assert plan("SoftmaxWithLoss", "", (2, 3), (2,), tops=0).tops == ((),)


@pytest.mark.parametrize(
    ("options", "valid", "batch"),
    [
        ("", "valid", "batch_size"),
        ("loss_param { normalize: true }", "valid", "valid"),
        ("loss_param { normalize: false }", "batch_size", "batch_size"),
        ("loss_param { normalization: FULL normalize: false }", "full", "full"),
        ("loss_param { normalization: NONE }", "none", "none"),
    ],
)
def test_normalization(options, valid, batch):
    softmax = plan("SoftmaxWithLoss", options, (2, 3), (2,))
    sigmoid = plan("SigmoidCrossEntropyLoss", options, (2, 3), (2, 3))
    assert softmax.values["normalization"] == valid
    assert sigmoid.values["normalization"] == batch


@pytest.mark.parametrize(
    ("kind", "bottoms", "reached"),
    [
        ("SoftmaxWithLoss", 2, [True, False]),
        ("EuclideanLoss", 2, [True, True]),
        ("ContrastiveLoss", 3, [True, True, False]),
        ("Filter", 3, [True, True, True]),
        ("InfogainLoss", 3, [True, False, True]),
        ("SmoothL1Loss", 4, [True, True, False, False]),
        ("MultiBoxLoss", 4, [True, True, False, False]),
    ],
)
def test_force_backward(kind, bottoms, reached):
    made = layer(kind, bottoms=bottoms)
    assert [made.force_backward(i) for i in range(bottoms)] == reached


def test_infogain(tmp_path):
    path = tmp_path / "h.binaryproto"
    write_blob(path, np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), legacy=True)
    options = f"infogain_loss_param {{ source: '{path}' }}"
    found = plan("InfogainLoss", options, (2, 3, 4), (2, 4), tops=2)
    assert found.tops == ((), (2, 3, 4))
    assert found.values["matrix"].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert plan("InfogainLoss", "", (2, 3), (2,), (1, 1, 3, 3)).values["matrix"] is None
    with pytest.raises(LayerError, match="4 classes need a 4 x 4 matrix"):
        plan("InfogainLoss", options, (2, 4), (2,))
    with pytest.raises(LayerError, match="cannot be read: gone"):
        plan("InfogainLoss", "infogain_loss_param { source: 'gone' }", (2, 3), (2,))
    with pytest.raises(LayerError, match="use normalization"):
        plan("InfogainLoss", options + " loss_param { normalize: true }", (2, 3), (2,))
