"""WindowData: batches of windows cut from images (R-CNN)."""

from __future__ import annotations

from sparknet.layers.layer import Plan, exactly, shape_text
from sparknet.layers.source_layer import SourceLayer
from sparknet.layers.transform_param import TransformParam
from sparknet.loaders.window import first_channels


class WindowData(SourceLayer):
    """Caffe: window_data_layer.cpp.  The window file says how many channels images have.

    Values: source, root_folder, batch_size, fg_threshold, bg_threshold, fg_fraction,
    context_pad, crop_mode, cache_images, and those of `TransformParam`.
    """

    type = "WindowData"
    stock = True
    field = "window_data_param"
    fields = ("transform_param",)
    tops = exactly(2)
    reads = batches = pictures = True
    copied = (
        "source",
        "root_folder",
        "fg_threshold",
        "bg_threshold",
        "fg_fraction",
        "context_pad",
        "crop_mode",
        "cache_images",
    )

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
        """The mean image is cropped in its middle; it may be larger than a window."""
        transform.check_mean_values(channels)
        mean, crop = transform.mean, transform.crop_size
        if mean is None:
            return
        if mean.shape[0] != channels or min(mean.shape[1:]) < crop:
            self.fail(
                f"the mean file is {shape_text(mean.shape)}; "
                f"it needs {channels} channels and at least {crop} x {crop}"
            )
