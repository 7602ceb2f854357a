"""WindowData: windows cut from images, foreground and background."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.layers.host import BatchHost
from sparknet.layers.layer import EVERY, Plan, exactly, layer, shape_text
from sparknet.layers.source_layer import SourceLayer, TransformParam
from sparknet.loaders.batches import Array, Arrays, Maker, room
from sparknet.loaders.image_decoding import LARGEST_FILE, Decoders, Pixels, decode
from sparknet.loaders.window import first_channels, read_windows, warp_window
from sparknet.native.transform import resize_image
from sparknet.proto.byte_source import read_file


class WindowDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        values = self.node.plan.values
        # The layer has a scale of its own; transform_param's is that of upgraded nets.
        scale = self.node.layer.options.scale * values["scale"]
        return partial(WindowMaker, values, self.node.plan.tops[0][1], scale, self.seed)


class WindowMaker:
    """Background first, then the share of foreground; a batch's number seeds its random draws."""

    def __init__(
        self, values: Mapping[str, Any], channels: int, scale: float, seed: int, first: int
    ) -> None:
        self.values, self.channels, self.seed = values, channels, seed
        self.scale = np.float32(scale)
        self.crop: int = values["crop_size"]
        self.windows = read_windows(
            values["source"], values["fg_threshold"], values["bg_threshold"]
        )
        size: int = values["batch_size"]
        share = int(np.float32(size) * np.float32(values["fg_fraction"]))
        self.counts = (size - share, share)
        pools = (self.windows.background, self.windows.foreground)
        for count, pool, name in zip(self.counts, pools, ("background", "foreground"), strict=True):
            if count < 0 or (count > 0 and len(pool) == 0):
                raise FileError(values["source"], f"has no {name} window for {count} of {size}")
        self.pools = pools
        self.mean = self._mean()
        self.decoders = Decoders()
        self.files: dict[str, bytes] = {}

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        rng = np.random.default_rng([self.seed, number])
        boxes = [
            pool[rng.integers(len(pool), size=count)]
            for count, pool in zip(self.counts, self.pools, strict=True)
            if count
        ]
        windows = np.concatenate(boxes)
        mirrored = rng.integers(2, size=len(windows)).astype(bool) & self.values["mirror"]
        out = room([(len(windows), self.channels, self.crop, self.crop), (len(windows),)], spare)
        out[0].fill(0)
        work = zip(out[0], windows, mirrored, strict=True)
        self.decoders.map(lambda one: self._place(*one), work)
        out[1][:] = windows[:, 1]
        return out

    def close(self) -> None:
        self.decoders.close()

    def _image(self, number: int) -> Pixels:
        path = self.values["root_folder"] + self.windows.images[number]
        file = self._file(path) if self.values["cache_images"] else path
        pixels: Pixels = decode(file, path, True).transpose(1, 2, 0)
        if pixels.shape[2] != self.channels:
            raise FileError(self.values["source"], f"says {self.channels} channels; {path} has 3")
        return pixels

    def _file(self, path: str) -> bytes:
        if path not in self.files:
            self.files[path] = read_file(path, LARGEST_FILE)
        return self.files[path]

    def _place(self, out: Array, box: Any, mirror: bool) -> None:
        """Put one window, warped and mirrored, in its place."""
        options = self.values
        image = self._image(int(box[0]))
        square = options["crop_mode"] == "square"
        try:
            part = warp_window(image, box[2:], self.crop, options["context_pad"], square)
        except ValueError as error:
            name = self.windows.images[int(box[0])]
            raise FileError(options["source"], f"image {name}: {error}") from error
        start = part.right if mirror else part.left
        width = min(part.width, self.crop - start)
        pixels = resize_image(part.pixels, part.height, width)
        values = pixels[:, ::-1] if mirror else pixels
        place = (slice(None), slice(part.top, part.top + part.height), slice(start, start + width))
        mean = self.mean[place] if self.mean.shape[1] > 1 else self.mean
        out[place] = (values.transpose(2, 0, 1).astype(np.float32) - mean) * self.scale

    def _mean(self) -> Array:
        """Return the middle of the mean image, one value a channel, or zero."""
        mean = self.values["mean"]
        if mean is None:
            values = np.zeros(self.channels, np.float32)
            values[:] = self.values["mean_values"] or 0.0
            return values.reshape(-1, 1, 1)
        # Caffe takes the margin of the width for both axes.
        margin = (mean.shape[2] - self.crop) // 2
        middle: Array = mean[:, margin : margin + self.crop, margin : margin + self.crop]
        if middle.shape[1:] != (self.crop, self.crop):
            raise FileError(self.values["source"], "needs a mean image that is no lower than wide")
        return middle


@layer("WindowData", stock=True)
class WindowData(SourceLayer):
    """Batches of windows cut from images (R-CNN) (Caffe: window_data_layer.cpp).

    The window file says how many channels images have."""

    host = WindowDataHost
    field = "window_data_param"
    fields = ("transform_param",)
    tops = exactly(2)
    reads_files = has_batch_size = has_images = True
    plain_options = EVERY

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        transform = TransformParam(self, self.parameter.transform_param)
        crop = transform.crop_size
        if crop < 1:
            self.fail(f"needs a positive transform_param.crop_size; it is {crop}")
        if options.crop_mode not in ("warp", "square"):
            self.fail(f"crop_mode '{options.crop_mode}' must be 'warp' or 'square'")
        with self.reading(f"the window file '{options.source}'"):
            channels = first_channels(options.source)
        self._check_mean(transform, channels)
        values = {
            "batch_size": batch,
            **transform.values(),
        }
        return Plan(tops=((batch, channels, crop, crop), (batch,)), values=values)

    def _check_mean(self, transform: TransformParam, channels: int) -> None:
        """Check the mean image, which is cropped in its middle and may be larger than a window."""
        transform.check_mean_values(channels)
        mean, crop = transform.mean, transform.crop_size
        if mean is None:
            return
        if mean.shape[0] != channels or min(mean.shape[1:]) < crop:
            self.fail(
                f"the mean file is {shape_text(mean.shape)}; "
                f"it needs {channels} channels and at least {crop} x {crop}"
            )
