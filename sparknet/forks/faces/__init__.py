"""Nets that tell faces apart: caffe-face, SphereFace and happynear's fork."""

from __future__ import annotations

TYPES = {
    "CenterLoss": "center_loss",
    "ChannelScale": "channel_scale",
    "Flip": "flip",
    "InnerDistance": "inner_distance",
    "LabelSpecificAdd": "label_specific_add",
    "MarginInnerProduct": "margin_inner_product",
}
"""A layer type, and its module here."""

HOSTS = {
    "CenterLoss",
    "ChannelScale",
    "InnerDistance",
    "LabelSpecificAdd",
    "MarginInnerProduct",
}
"""Those that Python computes, in `hosts`."""
