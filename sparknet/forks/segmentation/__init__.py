"""A label for each pixel: DeepLab, SegNet, HED, PSPNet and crfasrnn."""

from __future__ import annotations

TYPES = {
    "DenseCRF": "dense_crf",
    "DenseImageData": "dense_image_data",
    "ImageLabelmapData": "image_labelmap_data",
    "ImageSegData": "image_seg_data",
    "MultiStageMeanfield": "multi_stage_meanfield",
    "SegAccuracy": "seg_accuracy",
    "SegData": "seg_data",
}
"""A layer type, and its module here."""

HOSTS = {
    "DenseCRF",
    "DenseImageData",
    "ImageLabelmapData",
    "ImageSegData",
    "MultiStageMeanfield",
    "SegAccuracy",
    "SegData",
}
"""Those that Python computes, in `hosts`."""
