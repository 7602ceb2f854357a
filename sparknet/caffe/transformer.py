"""`Transformer`: an image into the numbers that a net's input expects, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparknet.caffe.images import resize_image
from sparknet.errors import ArrayError, SpecError

Array = npt.NDArray[Any]


class Transformer:
    """Settings for each input of a net, by name.

    `inputs` maps the inputs' names to their shapes, batch axis first:
    ``Transformer({"data": net.blobs["data"].data.shape})``."""

    def __init__(self, inputs: Mapping[str, Sequence[int]]) -> None:
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose: dict[str, Sequence[int]] = {}
        self.channel_swap: dict[str, Sequence[int]] = {}
        self.raw_scale: dict[str, float] = {}
        self.mean: dict[str, Array] = {}
        self.input_scale: dict[str, float] = {}

    def preprocess(self, in_: str, data: Array) -> Array:
        """Resize to the input's size, transpose, reorder channels, scale, subtract, scale.

        `data` is (H, W, K); the result float32.  Unlike pycaffe's, `data` itself stays as it is."""
        self._check(in_)
        out = np.array(data, np.float32)
        dims = self.inputs[in_][2:]
        if out.shape[:2] != dims:
            out = resize_image(out, dims)
        if (order := self.transpose.get(in_)) is not None:
            out = out.transpose(order)
        if (swap := self.channel_swap.get(in_)) is not None:
            out = out[list(swap), :, :]
        if (scale := self.raw_scale.get(in_)) is not None:
            out *= np.float32(scale)
        if (mean := self.mean.get(in_)) is not None:
            self._check_mean(in_, out, mean)
            out -= mean
        if (scale := self.input_scale.get(in_)) is not None:
            out *= np.float32(scale)
        return out

    def deprocess(self, in_: str, data: Array) -> Array:
        """Undo `preprocess`, except for the resizing."""
        self._check(in_)
        out = np.array(data).squeeze()
        if (scale := self.input_scale.get(in_)) is not None:
            out = out / np.asarray(scale, out.dtype)
        if (mean := self.mean.get(in_)) is not None:
            self._check_mean(in_, out, mean)
            out = (out + mean).astype(out.dtype)
        if (scale := self.raw_scale.get(in_)) is not None:
            out = out / np.asarray(scale, out.dtype)
        if (swap := self.channel_swap.get(in_)) is not None:
            out = out[np.argsort(swap), :, :]
        if (order := self.transpose.get(in_)) is not None:
            out = out.transpose(np.argsort(order))
        return out

    def set_transpose(self, in_: str, order: Sequence[int]) -> None:
        """Set the order of the image's axes in the input: (2, 0, 1) for channels first."""
        self._check(in_)
        axes = len(self.inputs[in_]) - 1
        if sorted(order) != list(range(axes)):
            raise SpecError(f"input '{in_}': a transpose order of {axes} axes is not {order}")
        self.transpose[in_] = order

    def set_channel_swap(self, in_: str, order: Sequence[int]) -> None:
        """Set the order of the channels, after the transpose: (2, 1, 0) turns RGB into BGR."""
        self._check(in_)
        channels = self.inputs[in_][1]
        if len(order) != channels or not all(-channels <= i < channels for i in order):
            raise SpecError(f"input '{in_}': an order of {channels} channels is not {order}")
        self.channel_swap[in_] = order

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """Set the factor before the mean is subtracted: 255 for images in [0, 1]."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_: str, mean: Array) -> None:
        """Set the mean: one number per channel, or a (channels, height, width) array.

        An array of another height or width is resized."""
        self._check(in_)
        shape = self.inputs[in_][1:]
        channels = {1: mean.shape[:1], 2: (1,), 3: mean.shape[:1]}.get(mean.ndim, ())
        if channels != shape[:1] and not (channels == (1,) and mean.ndim > 1):
            raise ArrayError(f"input '{in_}' of shape {shape}, a mean of shape {mean.shape}")
        if mean.ndim < 3:
            mean = mean[:, np.newaxis, np.newaxis] if mean.ndim == 1 else mean[np.newaxis]
        if mean.shape[1:] not in ((1, 1), shape[1:]):
            mean = resize_image(mean.transpose(1, 2, 0), shape[1:]).transpose(2, 0, 1)
        self.mean[in_] = mean

    def set_input_scale(self, in_: str, scale: float) -> None:
        """Set the factor after the mean is subtracted."""
        self._check(in_)
        self.input_scale[in_] = scale

    def _check(self, in_: str) -> None:
        if in_ not in self.inputs:
            names = ", ".join(map(repr, self.inputs))
            raise SpecError(f"'{in_}' is not an input of the net; its inputs are {names}")

    def _check_mean(self, in_: str, out: Array, mean: Array) -> None:
        try:
            fits = np.broadcast_shapes(out.shape, mean.shape) == out.shape
        except ValueError:
            fits = False
        if not fits:
            raise ArrayError(f"input '{in_}': a mean of shape {mean.shape} for {out.shape}")
