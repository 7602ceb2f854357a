"""Fast R-CNN, Faster R-CNN (Ren et al., 2015) and R-FCN (Dai et al., 2016): regions and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import (
    Layer,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.layers.losses import Loss, SoftmaxWithLoss, normalization, normalizing


class Regions(Layer):
    """Bottom 1 has a region in each row: (image, x1, y1, x2, y2)."""

    other_bottoms = "indices"
    bottoms = exactly(2)
    mixes_records = True

    def regions(self, bottoms: Sequence[Shape]) -> int:
        """Return the number of regions."""
        regions = legacy_shape(self, bottoms[1], "the regions")
        if count(regions[1:]) != 5:
            self.fail(f"a region has 5 values; the regions are {shape_text(bottoms[1])}")
        return regions[0]

    def pooled_size(self) -> tuple[int, int]:
        """pooled_h and pooled_w of roi_pooling_param."""
        size = (self.options.pooled_h, self.options.pooled_w)
        if min(size) < 1:
            self.fail(f"pooled_h and pooled_w must be positive; they are {shape_text(size)}")
        return size


@layer("ROIPooling")
class ROIPooling(Regions):
    """roi_pooling_layer.cpp of Fast R-CNN.  A region is (image, x1, y1, x2, y2).

    ``pad_ratio``, of Cascade R-CNN, widens a region on each side by this share of its size."""

    field = "roi_pooling_param"
    plain_options = ("spatial_scale", "pad_ratio")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        size = self.pooled_size()
        channels = legacy_shape(self, bottoms[0], "the input")[1]
        regions = self.regions(bottoms)
        return Plan(((regions, channels, *size),), values={"pooled": size})


@layer("ROIAlign")
class ROIAlign(Regions):
    """roi_align_layer.cpp of Cascade R-CNN.  A region is (image, x1, y1, x2, y2).

    The top has the values at the corners of pooled_h x pooled_w bins, one more than bins on each
    axis, found by bilinear interpolation and 0 outside the image; a Pooling of 2 x 2 corners
    with stride 1 usually follows."""

    field = "roi_pooling_param"
    plain_options = ("spatial_scale", "pad_ratio")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        size = self.pooled_size()
        if len(bottoms[0]) != 4 or not count(bottoms[0][2:]):
            self.fail(f"takes images of at least one pixel; the input is {shape_text(bottoms[0])}")
        regions = self.regions(bottoms)
        return Plan(((regions, bottoms[0][1], size[0] + 1, size[1] + 1),))


@layer("PSROIPooling")
class PSROIPooling(Regions):
    """psroi_pooling_layer.cpp of R-FCN.  A region is (image, x1, y1, x2, y2).

    A region falls into group_size x group_size bins; each takes the average of its own
    output_dim of the channels."""

    field = "psroi_pooling_param"
    plain_options = ("spatial_scale",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        group, outputs = options.group_size, options.output_dim
        if min(group, outputs) < 1 or not options.spatial_scale > 0:
            self.fail(
                "group_size, output_dim and spatial_scale must be positive; "
                f"they are {group}, {outputs} and {options.spatial_scale:g}"
            )
        image = bottoms[0]
        if len(image) != 4 or image[1] != outputs * group * group:
            self.fail(
                f"takes images of {outputs} x {group} x {group} channels; "
                f"the input is {shape_text(image)}"
            )
        regions = self.regions(bottoms)
        values = {"group_size": group, "output_dim": outputs}
        return Plan(((regions, outputs, group, group),), values=values)


@layer("SmoothL1Loss")
class SmoothL1Loss(Loss):
    """Of Fast R-CNN: divided by N; bottoms 2 and 3 are weights inside and outside the loss.

    R-FCN's and MATLAB's Faster R-CNN divide by places, too, and R-FCN's and Intel's follow
    loss_param.  Where theirs would be another number the layer is refused in TRAIN: give
    ``loss_param { normalization: BATCH_SIZE }`` for Fast R-CNN's, or ``dialect="rfcn"``."""

    field = "smooth_l1_loss_param"
    fields = ("loss_param",)
    bottoms = between(2, 4)
    bottoms_without_gradient = (2, 3)

    def ambiguous(self, bottoms: Sequence[Shape]) -> str:
        mode = normalization(self.parameter.loss_param, "")
        spread = len(bottoms) == 3 and count(bottoms[0][2:]) > 1
        if mode == "batch_size" or not (mode or spread):
            return ""
        others = "R-FCN's (dialect=\"rfcn\") and MATLAB's Faster R-CNN's by N x H x W"
        if mode:
            others = f"R-FCN's (dialect=\"rfcn\") and Intel's follow normalization {mode.upper()}"
        return (
            "Fast R-CNN's divides by N (loss_param { normalization: BATCH_SIZE }), "
            f"{others} (or change loss_weight): Fast R-CNN's is taken"
        )

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        for index, shape in enumerate(bottoms):
            if count(shape) != count(bottoms[0]):
                self.fail(
                    "all bottoms must have the same number of values; "
                    f"bottom 0 is {shape_text(bottoms[0])}, bottom {index} is {shape_text(shape)}"
                )
        return {
            "num": bottoms[0][0],
            "sigma2": self.options.sigma**2,
            "inside": len(bottoms) > 2,
            "outside": len(bottoms) > 3,
        }


@layer("SmoothL1LossOHEM")
class SmoothL1LossOHEM(Loss):
    """smooth_L1_loss_ohem_layer.cpp of R-FCN; bottom 2 holds weights inside the loss.

    Top 1 is the loss of each place.  As there, the weights are in the error but not once more in
    the gradient."""

    fields = ("loss_param",)
    bottoms = between(2, 3)
    tops = between(1, 2)
    bottoms_without_gradient = (2,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        shapes = [legacy_shape(self, shape, "the input") for shape in bottoms]
        for index, shape in enumerate(shapes):
            if shape != shapes[0]:
                self.fail(
                    f"all bottoms must have one shape; bottom 0 is {shape_text(bottoms[0])}, "
                    f"bottom {index} is {shape_text(bottoms[index])}"
                )
        outer, channels, high, wide = shapes[0]
        values = {
            "outer": outer,
            "channels": channels,
            "inner": high * wide,
            **normalizing(self.parameter.loss_param, default="valid"),
        }
        each = ((outer, 1, high, wide),) if len(self.parameter.top) > 1 else ()
        return Plan(((), *each), values=values)


@layer("SoftmaxWithLossOHEM")
class SoftmaxWithLossOHEM(SoftmaxWithLoss):
    """softmax_loss_ohem_layer.cpp of R-FCN: SoftmaxWithLoss with its third top."""


@layer("BoxAnnotatorOHEM")
class BoxAnnotatorOHEM(Layer):
    """box_annotator_ohem_layer.cpp of R-FCN; bottoms: regions, their losses, labels and weights.

    Of each image the roi_per_img regions with the largest losses keep label and weights; the
    others get ignore_label and zeros.  Of equal losses the first counts."""

    field = "box_annotator_ohem_param"
    bottoms = exactly(4)
    tops = exactly(2)
    has_gradient = False
    other_bottoms = "indices"
    plain_options = ("roi_per_img", "ignore_label")
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.roi_per_img < 1:
            self.fail(f"roi_per_img must be positive; it is {options.roi_per_img}")
        names = ("regions", "losses", "labels", "weights")
        shapes = [
            legacy_shape(self, shape, name) for shape, name in zip(bottoms, names, strict=True)
        ]
        regions, _, labels, weights = shapes
        for name, shape, channels in zip(names, shapes, (5, 1, 1, weights[1]), strict=True):
            if shape != (regions[0], channels, *regions[2:]):
                self.fail(
                    f"the {name} must be {shape_text((regions[0], channels, *regions[2:]))}; "
                    f"they are {shape_text(shape)}"
                )
        return Plan((labels, weights))
