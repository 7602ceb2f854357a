"""ImageGtData: pictures with boxes and with labels for each anchor, for MS-CNN."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sparknet.forks.cascade_rcnn.detection_data import DetectionData
from sparknet.forks.cascade_rcnn.readers.boxed_pictures import read_listed
from sparknet.layers.layer import at_least
from sparknet.proto import caffe_pb2

STEP = 0.05
"""Shapes of boxes lie so far apart."""
MOST_TIMES = 1000


class ImageGtData(DetectionData):
    """image_gt_data_layer.cpp of MS-CNN, from which DetectionData came.

    A box of the window file is class, ignored and corners.  After the pictures come, for each
    downsample_rate, the labels of an anchor of field_h x field_w at each place (N x 6 x H x W:
    class, centre, size, overlap), and with output_gt_boxes a row for each box: item, corners,
    class, ignored.  Pictures are mirrored, resized, cut around a box or put on an empty canvas;
    with do_multiple_scale half of them are rescaled, so that a box has a size from min_scale to
    max_scale.  A picture with a box that is not ignored comes fg_img_multiple times.  Without a
    resize and a crop the last picture of the list says which size all have.
    cache_images and the `mirror` and mean_file of image_gt_data_param have no effect.
    Values: those of DetectionData.
    """

    type = "ImageGtData"
    field = "image_gt_data_param"
    tops = at_least(2)
    row = 7
    facts = 2

    @property
    def scale(self) -> float:
        return float(self.options.scale)

    @cached_property
    def settings(self) -> Any:
        """What it shares with DetectionData, as options of that."""
        options = self.options
        self._check_own()
        high, wide = self._size()
        settings = caffe_pb2.DetectionDataParameter(
            source=options.source,
            stride=options.downsample_rate,
            field_h=options.field_h,
            field_w=options.field_w,
            coord_num=options.coord_num,
            fg_threshold=options.fg_threshold,
            ignore_fg_threshold=0.4,
            pickup_iou_thr=0.2,
            min_gt_height=options.min_gt_height,
            min_gt_width=options.min_gt_width,
            crop_height=high,
            crop_width=wide,
            output_gt_boxes=options.output_gt_boxes,
        )
        if options.shuffle:
            settings.shuffle = "random"
        if self._resizes():
            settings.resize_height = options.resize_height
            settings.resize_width = options.resize_width
        return settings

    def _resizes(self) -> bool:
        return all(self.options.HasField(name) for name in ("resize_height", "resize_width"))

    def _size(self) -> tuple[int, int]:
        """The canvas: of each side the crop, or what it is cut from."""
        options = self.options
        crop = options.crop_height, options.crop_width
        if not all(options.HasField(name) for name in ("crop_height", "crop_width")):
            crop = (0, 0)
        if all(crop):
            return crop
        if self._resizes():
            stored = (options.resize_height, options.resize_width)
        else:
            with self.reading(f"the window file '{options.source}'"):
                stored = read_listed(options.source, facts=self.facts)[-1].shape[1:]
        return crop[0] or stored[0], crop[1] or stored[1]

    def _check_own(self) -> None:
        options = self.options
        anchors = [
            len(getattr(options, name)) for name in ("downsample_rate", "field_h", "field_w")
        ]
        if len(set(anchors)) > 1 or not anchors[0]:
            self.fail(
                "needs as many of downsample_rate, field_h and field_w, and at least one; "
                f"there are {', '.join(map(str, anchors))}"
            )
        if not 1 <= options.fg_img_multiple <= MOST_TIMES:
            self.fail(
                f"fg_img_multiple must be from 1 to {MOST_TIMES}; it is {options.fg_img_multiple}"
            )
        if self._resizes() and min(options.resize_height, options.resize_width) < 1:
            self.fail("resize_height and resize_width must be positive")
        if self.multiplies() and not 0 < options.min_scale <= options.max_scale:
            self.fail(
                "min_scale and max_scale must be positive and in order; "
                f"they are {options.min_scale} and {options.max_scale}"
            )
        least, most = options.min_whaspect, options.max_whaspect
        if self.shapes() and not (least > 0 and STEP / 2 <= most - least < 1000):
            self.fail(
                "min_whaspect and max_whaspect must be positive, in order and not the same; "
                f"they are {least:g} and {most:g}"
            )

    def multiplies(self) -> bool:
        """Pictures are rescaled by chance."""
        both = all(self.options.HasField(name) for name in ("min_scale", "max_scale"))
        return bool(self.options.do_multiple_scale and both)

    def shapes(self) -> bool:
        """Rescaling changes the shapes of boxes too."""
        return all(self.options.HasField(name) for name in ("min_whaspect", "max_whaspect"))
