"""SSD's PriorBox, DetectionOutput and MultiBoxLoss."""

import pytest

from sparknet.errors import LayerError
from tests.layers.nets import plan

MAP, IMAGE = (2, 8, 3, 4), (2, 3, 30, 60)
PREDICTIONS = ((2, 5 * 4), (2, 5 * 3), (1, 2, 20))


def _prior(text: str) -> str:
    return f"prior_box_param {{ {text} }}"


def test_prior_box():
    text = "min_size: 30 max_size: 60 aspect_ratio: 2 aspect_ratio: 3 variance: 0.1"
    found = plan("PriorBox", _prior(text), MAP, IMAGE)
    sizes = [30, 1800**0.5, *(30 * ratio**0.5 for ratio in (2, 1 / 2, 3, 1 / 3))]
    assert found.values["widths"] == pytest.approx(sizes)
    assert found.tops == ((1, 2, 3 * 4 * 6 * 4),)
    assert (found.values["img_h"], found.values["img_w"]) == (30, 60)
    assert (found.values["step_h"], found.values["step_w"]) == (10, 15)
    text = "min_size: 1 min_size: 2 aspect_ratio: 2 aspect_ratio: 0.5 flip: false "
    text += "step: 8 img_h: 5 img_w: 6"
    found = plan("PriorBox", _prior(text), MAP, IMAGE)
    assert len(found.values["widths"]) == 6
    assert found.values["variances"] == (0.1,)
    assert (found.values["img_h"], found.values["step_w"]) == (5, 8)
    again = plan("PriorBox", _prior("min_size: 1 aspect_ratio: 2 aspect_ratio: 0.5"), MAP, IMAGE)
    assert again.values["heights"] == pytest.approx((1, 0.5**0.5, 2**0.5))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "needs min_size, all positive"),
        ("min_size: 0", "needs min_size, all positive"),
        ("min_size: 2 max_size: 2", "max_size 2 must be greater than min_size 2"),
        ("min_size: 2 max_size: 3 max_size: 4", "there are 2 and 1"),
        ("min_size: 2 aspect_ratio: 0", "aspect_ratio 0 must be positive"),
        ("min_size: 2" + " aspect_ratio: 2" * 1001, "at most 1000 aspect_ratio"),
        ("min_size: 2 variance: 1 variance: 1", "one variance or four"),
        ("min_size: 2 img_size: 2 img_h: 3", "either img_size or img_h and img_w"),
        ("min_size: 2 img_h: 3", "img_h and img_w must be positive; they are 3 and 0"),
        ("min_size: 2 step: 0", "step_h and step_w must be positive"),
    ],
)
def test_prior_box_refused(text, says):
    with pytest.raises(LayerError, match=says):
        plan("PriorBox", _prior(text), MAP, IMAGE)


def test_detection_output():
    text = "detection_output_param { num_classes: 3 nms_param { nms_threshold: 0.45 top_k: 400 } }"
    found = plan("DetectionOutput", text, *PREDICTIONS)
    assert found.tops == ((1, 1, 1, 7),)
    assert found.values["priors"] == 5
    assert found.values["top_k"] == 400
    assert found.values["code_type"] == "corner"
    assert found.values["confidence_threshold"] is None
    with pytest.raises(LayerError, match="num_classes 0 must be positive"):
        plan("DetectionOutput", "", *PREDICTIONS)
    with pytest.raises(LayerError, match="5 priors need 60 locations for each image; there are 20"):
        plan("DetectionOutput", text.replace("3 nms", "3 share_location: false nms"), *PREDICTIONS)
    with pytest.raises(LayerError, match="eta 2 must be"):
        plan("DetectionOutput", text.replace("top_k: 400", "eta: 2"), *PREDICTIONS)


def test_multibox_loss():
    text = "multibox_loss_param { num_classes: 3 code_type: CENTER_SIZE }"
    boxes = (1, 1, 6, 8)
    found = plan("MultiBoxLoss", text, *PREDICTIONS, boxes)
    assert found.tops == ((),)
    assert found.values["priors"] == 5
    assert found.values["code_type"] == "center_size"
    assert found.values["mining_type"] == "max_negative"
    assert found.values["normalization"] == "valid"
    old = text.replace("num_classes", "do_neg_mining: false num_classes")
    assert plan("MultiBoxLoss", old, *PREDICTIONS, boxes).values["mining_type"] == "none"
    with pytest.raises(LayerError, match="a row of 8 values"):
        plan("MultiBoxLoss", text, *PREDICTIONS, (1, 1, 6, 7))
    with pytest.raises(LayerError, match="5 priors need 20 confidences for each image"):
        plan("MultiBoxLoss", text.replace("3", "4"), *PREDICTIONS, boxes)
    with pytest.raises(LayerError, match="needs share_location"):
        plan("MultiBoxLoss", text.replace("3", "3 share_location: false"), *PREDICTIONS, boxes)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("background_label_id: 3", "background_label_id 3 is out of range: there are 3 classes"),
        ("mining_type: HARD_EXAMPLE sample_size: 0", "sample_size 0 must be positive"),
        ("map_object_to_agnostic: true", "needs 2 classes; there are 3"),
    ],
)
def test_multibox_loss_refused(options, says):
    text = f"multibox_loss_param {{ num_classes: 3 {options} }}"
    with pytest.raises(LayerError, match=says):
        plan("MultiBoxLoss", text, *PREDICTIONS, (1, 1, 6, 8))


@pytest.mark.parametrize("priors", [(1, 1, 20), (1, 2, 22), (1, 2, 0), (0, 2, 20)])
def test_priors_refused(priors):
    text = "detection_output_param { num_classes: 3 }"
    with pytest.raises(LayerError, match="priors are rows of corners and of variances"):
        plan("DetectionOutput", text, *PREDICTIONS[:2], priors)
