"""ImageSegData: batches of pictures and their labels (DeepLab: image_seg_data_layer.cpp)."""

from __future__ import annotations

from sparknet.forks.segmentation.hosts.dense_image_data import DenseImageDataHost


class ImageSegDataHost(DenseImageDataHost):
    """The way of DenseImageData, with the settings of DeepLab's layer."""
