"""Detector: outputs for windows of images, as R-CNN does it (pycaffe: detector.py)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import sparknet.caffe as caffe
from sparknet.caffe.classifier import image_transformer
from sparknet.caffe.images import Array
from sparknet.caffe.io import load_image, resize_image
from sparknet.caffe.net import Net, StrPath
from sparknet.errors import MissingExtra
from sparknet.proto import caffe_pb2

__all__ = ["Detector", "caffe", "np", "os"]


class Detector(Net):
    """A net in the test phase that looks at windows, each warped to the size of its input."""

    def __init__(
        self,
        model_file: StrPath,
        pretrained_file: StrPath,
        mean: Array | None = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
        context_pad: int | None = None,
    ) -> None:
        super().__init__(model_file, caffe_pb2.TEST, weights=pretrained_file)
        self.transformer = image_transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def detect_windows(
        self, images_windows: Iterable[tuple[str, ArrayLike]]
    ) -> list[dict[str, Any]]:
        """Return outputs for windows (ymin, xmin, ymax, xmax) of image files."""
        name = self.inputs[0]
        color = self.blobs[name].channels != 1
        detections: list[dict[str, Any]] = []
        crops = []
        for filename, windows in images_windows:
            image = load_image(filename, color)
            for window in np.asarray(windows).reshape(-1, 4):
                crops.append(self.crop(image, window))
                detections.append({"window": window, "filename": filename})
        if not crops:
            return detections
        batch = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        outputs = self.forward_all(None, **{name: batch})[self.outputs[0]]
        for entry, output in zip(detections, outputs, strict=True):
            entry["prediction"] = output
        return detections

    def detect_selective_search(self, image_fnames: Sequence[str]) -> list[dict[str, Any]]:
        """Outputs for the windows that Selective Search proposes, by its own Python package."""
        try:
            search = import_module("selective_search_ijcv_with_python")
        except ImportError:
            raise MissingExtra(
                "selective_search_ijcv_with_python", "images", "detect_selective_search"
            ) from None
        windows = search.get_windows(
            [os.path.abspath(name) for name in image_fnames],  # noqa: PTH100
            cmd="selective_search_rcnn",
        )
        return self.detect_windows(zip(image_fnames, windows, strict=True))

    def crop(self, im: Array, window: Iterable[float]) -> Array:
        """Return the window at the net's size, with its surroundings if there is a context pad."""
        y0, x0, y1, x1 = (int(side) for side in window)
        if not self.context_pad:
            return im[y0:y1, x0:x1]
        return self._with_context(im, np.array([y0, x0, y1, x1], float), self.context_pad)

    def _with_context(self, im: Array, window: Array, pad_size: int) -> Array:
        """Return the window with ``pad_size`` pixels around it; the mean stands for the rest."""
        size = float(self.crop_size)
        half = (window[2:] - window[:2] + 1) / 2
        reach = half * size / (size - 2 * pad_size)
        centre = window[:2] + half
        low, high = np.round(centre - reach), np.round(centre + reach)
        scale = size / (high - low + 1)
        pad = np.round(np.maximum(0, -low) * scale)
        limits = np.array(im.shape[:2], float)
        low, high = np.clip(low, 0, limits), np.clip(high, 0, limits)
        extent = np.minimum(np.round((high - low + 1) * scale), size - pad)
        (y0, x0), (y1, x1) = low.astype(int), high.astype(int)
        (top, left), (height, width) = pad.astype(int), extent.astype(int)
        crop = np.array(self.crop_mean, np.float32)
        if y1 > y0 and x1 > x0 and height > 0 and width > 0:
            crop[top : top + height, left : left + width] = resize_image(
                im[y0:y1, x0:x1], (height, width)
            )
        return crop

    def configure_crop(self, context_pad: int | None) -> None:
        """Set the context around a window, and the mean that fills what lies outside the image."""
        channels, height, width = self.blobs[self.inputs[0]].shape[1:]
        self.crop_dims = np.array((height, width, channels))
        self.crop_size = width
        self.context_pad = context_pad
        self.crop_mean = self._unprocessed_mean((channels, height, width))

    def _unprocessed_mean(self, shape: tuple[int, ...]) -> Any:
        """Return the mean as an image that the transformer turns into zeros."""
        name, transformer = self.inputs[0], self.transformer
        mean = np.zeros(shape, np.float32) + transformer.mean.get(name, np.float32(0))
        if (order := transformer.channel_swap.get(name)) is not None:
            mean = mean[np.argsort(order)]
        return (mean / (transformer.raw_scale.get(name) or 1)).transpose(1, 2, 0)
