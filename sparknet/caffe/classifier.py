"""Classifier: images in, class probabilities out (pycaffe: classifier.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import sparknet.caffe as caffe
from sparknet.caffe.images import Array
from sparknet.caffe.io import Transformer, oversample, resize_image
from sparknet.caffe.net import Net, StrPath
from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2

__all__ = ["Classifier", "caffe", "np"]

CROPS = 10
"""Crops that `oversample` makes of an image."""


class Classifier(Net):
    """A net in the test phase, with the preprocessing of its first input."""

    def __init__(
        self,
        model_file: StrPath,
        pretrained_file: StrPath,
        image_dims: Sequence[int] | None = None,
        mean: Array | None = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
    ) -> None:
        super().__init__(model_file, caffe_pb2.TEST, weights=pretrained_file)
        self.transformer = image_transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].shape[2:])
        self.image_dims = self.crop_dims if image_dims is None else np.array(image_dims)

    def predict(self, inputs: Sequence[Array], oversample: bool = True) -> Array:
        """Return a row of outputs for each image: the mean over ten crops, or the centre's."""
        if not len(inputs):
            raise SpecError("predict needs at least one image; it was given none")
        height, width = (int(size) for size in self.image_dims)
        images = np.stack([resize_image(image, (height, width)) for image in inputs])
        if oversample:
            crops = _ten_crops(list(images), [int(size) for size in self.crop_dims])
        else:
            crops = self._centre(images)
        name = self.inputs[0]
        batch = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        outputs: Array = self.forward_all(None, **{name: batch})[self.outputs[0]]
        if oversample:
            outputs = outputs.reshape(len(inputs), CROPS, -1).mean(axis=1)
        return outputs

    def _centre(self, images: Any) -> Any:
        begin = ((self.image_dims - self.crop_dims) / 2.0).astype(int)
        end = begin + self.crop_dims
        return images[:, begin[0] : end[0], begin[1] : end[1], :]


_ten_crops = oversample


def image_transformer(
    net: Net,
    mean: Array | None,
    input_scale: float | None,
    raw_scale: float | None,
    channel_swap: Sequence[int] | None,
) -> Transformer:
    """From height × width × channels to the layout and the range of the net's first input."""
    name = net.inputs[0]
    transformer = Transformer({name: net.blobs[name].data.shape})
    transformer.set_transpose(name, (2, 0, 1))
    if mean is not None:
        transformer.set_mean(name, mean)
    if input_scale is not None:
        transformer.set_input_scale(name, input_scale)
    if raw_scale is not None:
        transformer.set_raw_scale(name, raw_scale)
    if channel_swap is not None:
        transformer.set_channel_swap(name, channel_swap)
    return transformer
