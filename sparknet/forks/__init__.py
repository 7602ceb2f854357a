"""What forks of Caffe add to its layers: a folder for each family, one line here.

A folder has the layers' options and shapes, in ``hosts`` what Python computes of them, and in
``readers`` the files that they read.  Modules are imported when a net names a type of theirs.
"""

from __future__ import annotations

from sparknet.forks import (
    cascade_rcnn,
    crnn,
    detectnet,
    faces,
    faster_rcnn,
    segmentation,
    ssd,
    video,
    yolo,
)

FAMILIES = (cascade_rcnn, crnn, detectnet, faces, faster_rcnn, segmentation, ssd, video, yolo)

TYPES = {
    type_name: f"{family.__name__}.{module}"
    for family in FAMILIES
    for type_name, module in family.TYPES.items()
}
"""A layer type, and its module."""

HOSTS = {
    type_name: f"{family.__name__}.hosts.{family.TYPES[type_name]}"
    for family in FAMILIES
    for type_name in family.HOSTS
}
"""A layer type that Python computes, and the module that does."""

SUPPLIED = {**detectnet.MODULES, **faster_rcnn.MODULES}
"""Modules of Python layers that nets name, and what stands in where they cannot be imported."""
