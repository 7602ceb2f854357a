"""ImageLabelmapData: batches of pictures and maps of edges (HED: image_labelmap_data_layer.cpp)."""

from __future__ import annotations

from sparknet.forks.segmentation.hosts.dense_image_data import DenseImageDataHost


class ImageLabelmapDataHost(DenseImageDataHost):
    """The way of DenseImageData, with the settings of HED's layer."""
