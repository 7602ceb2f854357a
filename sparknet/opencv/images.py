"""Blobs from images and back, as cv2.dnn makes them (OpenCV: modules/dnn/src/dnn_utils.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.errors import ArgumentError
from sparknet.loaders.resize import resize
from sparknet.opencv.constants import (
    DNN_LAYOUT_NCHW,
    DNN_LAYOUT_NHWC,
    DNN_PMODE_CROP_CENTER,
    DNN_PMODE_LETTERBOX,
    DNN_PMODE_NULL,
)

CV_8U, CV_32F = 0, 5
Array = np.ndarray[Any, Any]
Scalar = float | Sequence[float]


@dataclass
class Image2BlobParams:
    """How images become a blob."""

    scalefactor: Scalar = (1.0, 1.0, 1.0, 1.0)
    size: Sequence[int] = (0, 0)
    mean: Scalar = (0.0, 0.0, 0.0, 0.0)
    swapRB: bool = False
    ddepth: int = CV_32F
    datalayout: int = DNN_LAYOUT_NCHW
    paddingmode: int = DNN_PMODE_NULL
    borderValue: Scalar = (0.0, 0.0, 0.0, 0.0)


def blobFromImage(
    image: Array,
    scalefactor: float = 1.0,
    size: Sequence[int] = (0, 0),
    mean: Scalar = (),
    swapRB: bool = False,
    crop: bool = False,
    ddepth: int = CV_32F,
) -> Array:
    """Return (image - mean) * scalefactor as 1 x channels x height x width; `size` is (w, h)."""
    return blobFromImages([image], scalefactor, size, mean, swapRB, crop, ddepth)


def blobFromImages(
    images: Sequence[Array],
    scalefactor: float = 1.0,
    size: Sequence[int] = (0, 0),
    mean: Scalar = (),
    swapRB: bool = False,
    crop: bool = False,
    ddepth: int = CV_32F,
) -> Array:
    """`blobFromImage` of several images."""
    padding = DNN_PMODE_CROP_CENTER if crop else DNN_PMODE_NULL
    how = Image2BlobParams(scalefactor, size, mean, swapRB, ddepth, paddingmode=padding)
    return blobFromImagesWithParams(images, how)


def blobFromImageWithParams(image: Array, param: Image2BlobParams | None = None) -> Array:
    return blobFromImagesWithParams([image], param)


def blobFromImagesWithParams(
    images: Sequence[Array], param: Image2BlobParams | None = None
) -> Array:
    """Return a blob of images as `param` says; sparknet's Image2BlobParams or cv2's."""
    how = param or Image2BlobParams()
    arrays = [_image(image) for image in images]
    if not arrays:
        raise ArgumentError("blobFromImages takes at least one image")
    width, height = (int(side) for side in how.size)
    if not width or not height:
        height, width = arrays[0].shape[:2]
    channels = arrays[0].shape[2]
    mean, scale = _scalar(how.mean), _scalar(how.scalefactor, same=True)
    if how.swapRB:
        mean, scale = (values[[2, 1, 0, 3]] for values in (mean, scale))
    if how.ddepth == CV_8U and (mean.any() or (scale != 1).any()):
        raise ArgumentError("a blob of bytes (CV_8U) takes no mean and no scalefactor")
    kind = np.uint8 if how.ddepth == CV_8U else np.float32
    blob = np.empty((len(arrays), channels, height, width), kind)
    order = [2, 1, 0, *range(3, channels)] if how.swapRB and channels > 2 else range(channels)
    for image, planes in zip(arrays, blob, strict=True):
        if image.shape[2] != channels:
            raise ArgumentError(f"images have {channels} and {image.shape[2]} channels")
        sized = _resized_image(image, height, width, how)
        for plane, channel in zip(planes, order, strict=True):
            np.subtract(sized[:, :, channel], mean[channel], out=plane, casting="unsafe")
            if scale[channel] != 1:
                plane *= scale[channel]
    return blob.transpose(0, 2, 3, 1).copy() if how.datalayout == DNN_LAYOUT_NHWC else blob


def _image(image: Any) -> Array:
    array = np.asarray(image)
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.size == 0:
        raise ArgumentError(f"an image is height x width x channels; this one is {array.shape}")
    if array.dtype != np.uint8:
        if array.dtype.kind not in "fuib":
            raise ArgumentError(f"an image has numbers; this one is of {array.dtype}")
        array = array.astype(np.float32, copy=False)
    return array


def _scalar(values: Scalar, same: bool = False) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return four numbers; a single one counts for all channels where `same`."""
    array = np.atleast_1d(np.asarray(values, np.float32))
    fill = array[0] if same and array.size == 1 else 0
    return np.append(array, np.full(4, fill, np.float32))[:4]


def _resized_image(image: Array, height: int, width: int, how: Any) -> Array:
    old = image.shape[:2]
    if old == (height, width):
        return image
    image = np.ascontiguousarray(image)
    if how.paddingmode == DNN_PMODE_CROP_CENTER:
        factor = max(width / old[1], height / old[0])
        image = _resized(image, round(old[0] * factor), round(old[1] * factor))
        top, left = (int(0.5 * (a - b)) for a, b in zip(image.shape, (height, width)))  # noqa: B905
        return image[top : top + height, left : left + width]
    if how.paddingmode == DNN_PMODE_LETTERBOX:
        factor = min(width / old[1], height / old[0])
        image = _resized(image, int(old[0] * factor), int(old[1] * factor))
        border = _scalar(how.borderValue).astype(image.dtype)
        framed = np.empty((height, width, image.shape[2]), image.dtype)
        framed[:] = border[: image.shape[2]]
        top, left = (height - image.shape[0]) // 2, (width - image.shape[1]) // 2
        framed[top : top + image.shape[0], left : left + image.shape[1]] = image
        return framed
    return _resized(image, height, width)


def _resized(image: Array, height: int, width: int) -> Array:
    sized = resize(image, (height, width), "cv2.linear")
    return sized if sized.ndim == 3 else sized[:, :, None]


def imagesFromBlob(blob_: Array, images_: Any = None) -> tuple[Array, ...]:
    """Return the images of a blob as height x width x channels; one channel as height x width."""
    blob = np.asarray(blob_)
    if blob.ndim != 4:
        raise ArgumentError(f"a blob of images has 4 axes; this one is {blob.shape}")
    images = (np.ascontiguousarray(image.transpose(1, 2, 0)) for image in blob)
    return tuple(image[:, :, 0] if image.shape[2] == 1 else image for image in images)
