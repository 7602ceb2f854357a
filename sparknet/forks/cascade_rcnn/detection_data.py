"""DetectionData: pictures with boxes and with labels for each anchor, for training a detector."""

from __future__ import annotations

from sparknet.forks.cascade_rcnn.boxed_source import BoxedSource
from sparknet.layers.layer import Plan, Shape, at_least
from sparknet.loaders.window import rounded

SHUFFLES = ("random", "random_aspect", "random_mix_aspect")


class DetectionData(BoxedSource):
    """detection_data_layer.cpp of Cascade R-CNN.

    After the pictures come, for each stride, the labels of an anchor of field_h x field_w at each
    place (N x 6 x H x W: class, centre, size, overlap), and with output_gt_boxes a row for each
    box: item, corners, class, ignored, difficult.  Pictures are mirrored, resized, rescaled by
    chance, cut around a box or put on an empty canvas, as the options say; without resize_height,
    crop_height or their likes the first picture of a batch says which size all of it has.
    Values: source, root_folder, batch_size, mean, scale, mirror.
    """

    type = "DetectionData"
    field = "detection_data_param"
    tops = at_least(1)
    row = 8
    """Numbers of a box of the last top."""

    def survey(self) -> Plan:
        options = self.settings
        batch = self.batch(self.options.batch_size)
        self._check()
        channels, *stored = self.first()
        high, wide = (
            self.both("crop_height", "crop_width")
            or self.both("crop_long_size", "crop_short_size")
            or self.both("resize_height", "resize_width")
            or self.both("long_size", "short_size")
            or self._by_ratio(stored)
        )
        tops: list[Shape] = [(batch, channels, high, wide)]
        for stride in options.stride:
            tops.append((batch, 6, rounded(high / stride), rounded(wide / stride)))
        if options.output_gt_boxes:
            tops.append((1, self.row, 1, 1))
        if len(self.parameter.top) != len(tops):
            self.fail(
                f"needs a top for the pictures, one for each of the {len(options.stride)} strides "
                f"and one with output_gt_boxes: {len(tops)}, not {len(self.parameter.top)}"
            )
        values = {**self.source_values(), "mirror": self.parameter.transform_param.mirror}
        return Plan(tuple(tops), values=values)

    def _by_ratio(self, stored: list[int]) -> tuple[int, int]:
        ratio = self.settings.resize_ratio if self.settings.HasField("resize_ratio") else 1
        high, wide = rounded(stored[0] * ratio), rounded(stored[1] * ratio)
        return max(high, 1), max(wide, 1)

    def _check(self) -> None:
        """Refuse settings that no picture can be prepared by."""
        options = self.settings
        anchors = [len(getattr(options, name)) for name in ("stride", "field_h", "field_w")]
        if len(set(anchors)) > 1:
            self.fail(
                "needs as many of stride, field_h and field_w; "
                f"there are {', '.join(map(str, anchors))}"
            )
        if min((*options.stride, *options.field_h, *options.field_w), default=1) < 1:
            self.fail("stride, field_h and field_w must be positive")
        if options.coord_num != 4:
            self.fail(f"coord_num must be 4; it is {options.coord_num}")
        if not options.fg_threshold > 0:
            self.fail(f"fg_threshold must be positive; it is {options.fg_threshold:g}")
        if options.HasField("shuffle") and options.shuffle not in SHUFFLES:
            self.fail(f"shuffle '{options.shuffle}' must be one of {', '.join(SHUFFLES)}")
        if options.mix_group_size < 1 or not 0 <= options.multiscale_prob <= 1:
            self.fail("needs a positive mix_group_size, and multiscale_prob from 0 to 1")
        if min(options.template_ratio, default=1) <= 0 or options.resize_ratio < 0:
            self.fail("template_ratio and resize_ratio must be positive")
        self._check_scales()

    def _check_scales(self) -> None:
        options = self.settings
        pairs = (
            ("min_scale", "max_scale"),
            ("low_scale_ratio", "high_scale_ratio"),
            ("min_whaspect", "max_whaspect"),
        )
        for low, high in pairs:
            if options.HasField(low) != options.HasField(high):
                self.fail(f"needs {low} and {high} together")
            least, most = getattr(options, low), getattr(options, high)
            if options.HasField(low) and not 0 < least <= most < float("inf"):
                self.fail(
                    f"{low} and {high} must be positive and in order; "
                    f"they are {least:g} and {most:g}"
                )
        if options.HasField("min_scale") and options.HasField("low_scale_ratio"):
            self.fail("takes either min_scale or low_scale_ratio; not both")
