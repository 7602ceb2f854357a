"""SSD (Liu et al., 2016) and the nets that took its boxes."""

from __future__ import annotations

TYPES = {
    "AnnotatedData": "annotated_data",
    "DetectionEvaluate": "detection_evaluate",
    "DetectionOutput": "detection_output",
    "MultiBoxLoss": "multibox_loss",
    "PriorBox": "prior_box",
    "PriorBoxClustered": "prior_box_clustered",
    "TrueBoxes": "true_boxes",
}
"""A layer type, and its module here."""

HOSTS = {
    "AnnotatedData",
    "DetectionEvaluate",
}
"""Those that Python computes, in `hosts`."""
