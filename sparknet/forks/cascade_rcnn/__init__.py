"""MS-CNN (Cai et al., 2016) and Cascade R-CNN (Cai and Vasconcelos, 2018)."""

from __future__ import annotations

TYPES = {
    "BboxAccuracy": "bbox_accuracy",
    "BoxGroupOutput": "box_group_output",
    "BoxOutput": "box_output",
    "DecodeBBox": "decode_bbox",
    "DetectionAccuracy": "detection_accuracy",
    "DetectionData": "detection_data",
    "DetectionGroupAccuracy": "detection_group_accuracy",
    "DetectionGroupLoss": "detection_group_loss",
    "DetectionLoss": "detection_loss",
    "EvalData": "eval_data",
    "FrcnnOutput": "frcnn_output",
    "HardMining": "hard_mining",
    "ImageGtData": "image_gt_data",
    "ScaleRoute": "scale_route",
}
"""A layer type, and its module here."""

HOSTS = {
    "BboxAccuracy",
    "BoxGroupOutput",
    "BoxOutput",
    "DecodeBBox",
    "DetectionAccuracy",
    "DetectionData",
    "DetectionGroupAccuracy",
    "DetectionGroupLoss",
    "DetectionLoss",
    "EvalData",
    "FrcnnOutput",
    "HardMining",
    "ImageGtData",
    "ScaleRoute",
}
"""Those that Python computes, in `hosts`."""
