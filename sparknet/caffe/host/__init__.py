"""Layers that live in Python: the user's own, and those that read files.

Each type has a file and a line in HOSTS.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from sparknet.caffe.blob import ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.graph import Node

__all__ = ["HOSTS", "Host", "make_host"]

HOSTS = {
    # a type, and its module here; the class is called <Type>Host
    "AnnotatedData": "annotated_data",
    "BboxAccuracy": "bbox_accuracy",
    "BoxData": "box_data",
    "BoxGroupOutput": "box_group_output",
    "BoxOutput": "box_output",
    "CenterLoss": "center_loss",
    "ChannelScale": "channel_scale",
    "ContinuationIndicator": "continuation_indicator",
    "CtcLoss": "ctc_loss",
    "Data": "data",
    "DecodeBBox": "decode_bbox",
    "DenseCRF": "dense_crf",
    "DenseImageData": "dense_image_data",
    "DetectNetTransformation": "detectnet_transformation",
    "DetectionAccuracy": "detection_accuracy",
    "DetectionData": "detection_data",
    "DetectionEvaluate": "detection_evaluate",
    "DetectionGroupAccuracy": "detection_group_accuracy",
    "DetectionGroupLoss": "detection_group_loss",
    "DetectionLoss": "detection_loss",
    "DummyData": "dummy_data",
    "EvalData": "eval_data",
    "EvalDetection": "eval_detection",
    "FocalLoss": "focal_loss",
    "FrcnnOutput": "frcnn_output",
    "HardMining": "hard_mining",
    "HDF5Data": "hdf5_data",
    "HDF5Output": "hdf5_output",
    "ImageData": "image_data",
    "ImageGtData": "image_gt_data",
    "ImageLabelmapData": "image_labelmap_data",
    "ImageSegData": "image_seg_data",
    "InnerDistance": "inner_distance",
    "LabelsequenceAccuracy": "labelsequence_accuracy",
    "LabelSpecificAdd": "label_specific_add",
    "MarginInnerProduct": "margin_inner_product",
    "MemoryData": "memory_data",
    "MMDLoss": "mmd_loss",
    "MultiStageMeanfield": "multi_stage_meanfield",
    "Proposal": "proposal",
    "ProposalTarget": "proposal_target",
    "Python": "python",
    "RegionLoss": "region_loss",
    "ScaleRoute": "scale_route",
    "SegAccuracy": "seg_accuracy",
    "SegData": "seg_data",
    "TripletLoss": "triplet_loss",
    "VideoData": "video_data",
    "WindowData": "window_data",
    "YoloDetectionOutput": "yolo_detection_output",
    "Yolov3": "yolov3",
}


def make_host(node: Node, params: Sequence[ParamBlob], seed: int) -> Host:
    module = import_module(f"sparknet.caffe.host.{HOSTS[node.type]}")
    kind: type[Host] = getattr(module, f"{node.type}Host")
    return kind(node, params, seed)
