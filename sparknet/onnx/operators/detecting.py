"""Boxes that overlap less than others of their label: SSD's DetectionOutput."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.detections import OP
from sparknet.onnx.limits import bounded
from sparknet.onnx.operators.moving import turned
from sparknet.onnx.step import Outputs, Step, reads


@reads(OP)
def detections(step: Step) -> Outputs:
    """The boxes are whole already: they are offsets to prior boxes of 0."""
    boxes, scores = step.blob(0), step.plain(turned(step.value(1), (0, 2, 1)))
    if len(boxes.shape) != 3 or boxes.shape[0] != 1 or boxes.shape[2] != 4:
        step.refuse(f"boxes of the shape {list(boxes.shape)}: they are read for one image")
    count, classes = boxes.shape[1], scores.shape[2]
    zeros = np.zeros(bounded((1, 2, 4 * count)), np.float32)
    priors = step.layer("Parameter", [], [zeros], part="priors", shape={"dim": [1, 2, 4 * count]})
    return step.layer(
        "DetectionOutput",
        [
            step.reshape(boxes, (1, 4 * count), part="boxes"),
            step.reshape(scores, (1, count * classes), part="scores"),
            priors,
        ],
        num_classes=classes,
        background_label_id=-1,
        nms_param={"nms_threshold": step.attribute("overlap"), "top_k": -1},
        keep_top_k=step.attribute("keep"),
        code_type="CORNER",
        variance_encoded_in_target=True,
        confidence_threshold=step.attribute("least"),
    )
