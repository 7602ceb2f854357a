"""MS-CNN (Cai et al., 2016) and Cascade R-CNN (Cai and Vasconcelos, 2018)."""

from __future__ import annotations

TYPES = {
    "BoxGroupOutput": "box_group_output",
    "BoxOutput": "box_output",
    "DecodeBBox": "decode_bbox",
    "FrcnnOutput": "frcnn_output",
    "ScaleRoute": "scale_route",
}
"""A layer type, and its module here."""

HOSTS = {
    "BoxGroupOutput",
    "BoxOutput",
    "DecodeBBox",
    "FrcnnOutput",
    "ScaleRoute",
}
"""Those that Python computes, in `hosts`."""
