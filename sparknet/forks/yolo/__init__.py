"""caffe-yolov2 and MobileNet-YOLO: YOLO's nets of Redmon and Farhadi (2016, 2018) in Caffe."""

from __future__ import annotations

TYPES = {
    "Reorg": "reorg",
    "YoloDetectionOutput": "yolo_detection_output",
    "Yolov3DetectionOutput": "yolov3_detection_output",
}
"""A layer type, and its module here."""

HOSTS = {
    "YoloDetectionOutput",
}
"""Those that Python computes, in `hosts`."""
