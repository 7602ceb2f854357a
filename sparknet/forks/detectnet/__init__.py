"""The layers in Python of DetectNet: what NVIDIA's prototxts name as modules
`caffe.layers.detectnet`, and what lists of boxes look like there.

NVIDIA/caffe: python/caffe/layers/detectnet.
"""

from __future__ import annotations

MODULES = {
    "caffe.layers.detectnet.clustering": "sparknet.forks.detectnet.clustering",
}
"""What stands in for a module that a net names and that cannot be imported."""

MOST_BOXES = 50
"""Boxes that an image may have; rows of zeros fill up, and what is more is left out."""

TYPES = {
    "L1Loss": "l1_loss",
}
"""A layer type, and its module here."""

HOSTS: set[str] = set()
"""Those that Python computes, in `hosts`."""
