"""Upsample: put values back where max pooling took them from, or repeat pixels."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, between, shape_text
from sparknet.layers.pooling import check_image


class Upsample(Layer):
    """upsample_layer.cpp: SegNet's with a mask as second bottom, YOLO's without.

    YOLO's repeats each pixel ``scale`` times; its default of 1 means SegNet's 2 here.
    """

    type = "Upsample"
    field = "upsample_param"
    bottoms = between(1, 2)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = check_image(self, bottoms[0])
        if len(bottoms) == 1:
            return self._repeat(bottom)
        if bottoms[1] != bottom:
            self.fail(
                f"the mask {shape_text(bottoms[1])} must have the input's shape "
                f"{shape_text(bottom)}"
            )
        size = self._size(bottom)
        return Plan(((*bottom[:2], *size),), values={"method": "unpool"})

    def _repeat(self, bottom: Shape) -> Plan:
        scale = self.options.scale
        if scale < 1:
            self.fail(f"scale must be positive; it is {scale}")
        top = (*bottom[:2], bottom[2] * scale, bottom[3] * scale)
        return Plan((top,), values={"method": "repeat", "scale": scale})

    def _size(self, bottom: Shape) -> tuple[int, int]:
        options = self.options
        if options.HasField("upsample_h") and options.HasField("upsample_w"):
            size = (options.upsample_h, options.upsample_w)
            if min(size) < 2:
                self.fail(f"upsample_h and upsample_w must be above 1; they are {size}")
            return size
        scales = self._scales()
        compensate = (options.pad_out_h, options.pad_out_w)
        if any(pad and scale != 2 for pad, scale in zip(compensate, scales, strict=True)):
            self.fail(f"pad_out_h and pad_out_w go with a scale of 2; it is {shape_text(scales)}")
        return (
            bottom[2] * scales[0] - int(compensate[0]),
            bottom[3] * scales[1] - int(compensate[1]),
        )

    def _scales(self) -> tuple[int, int]:
        options = self.options
        apart = options.HasField("scale_h"), options.HasField("scale_w")
        if any(apart) and (options.HasField("scale") or not all(apart)):
            self.fail("give upsample_h and upsample_w, or scale, or scale_h and scale_w")
        scales = (
            (options.scale_h, options.scale_w) if all(apart) else (options.scale, options.scale)
        )
        if min(scales) < 2:
            self.fail(f"scale must be above 1; it is {shape_text(scales)}")
        return scales
