"""SSD (Liu et al., 2016): MultiBoxLoss and DetectionOutput; TrueBoxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.errors import clean
from sparknet.layers.layer import (
    EVERY,
    BoxRows,
    Layer,
    Plan,
    Shape,
    between,
    count,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.layers.layer import count as values_in
from sparknet.layers.losses import Loss, normalization


def check_predictions(
    layer: Layer, bottoms: Sequence[Shape], classes: int, shared: bool, first_stage: int = 0
) -> int:
    """Return the number of priors; the last ``first_stage`` bottoms are RefineDet's."""
    locations, confidences, priors = (
        legacy_shape(layer, shape, what)
        for shape, what in zip(bottoms, ("locations", "confidences", "priors"), strict=False)
    )
    if locations[0] != confidences[0]:
        layer.fail(
            f"locations and confidences must have the same number of images; "
            f"they are {locations[0]} and {confidences[0]}"
        )
    count = priors[2] // 4
    if not count or priors[2] % 4 or values_in(bottoms[2]) < 8 * count:
        layer.fail(
            "priors are rows of corners and of variances, 1 x 2 x 4 times their number; "
            f"the shape is {shape_text(bottoms[2])}"
        )
    _check_first_stage(layer, bottoms[len(bottoms) - first_stage :], locations[0], count)
    for name, actual, expected in (
        ("locations", locations[1], count * 4 * (1 if shared else classes)),
        ("confidences", confidences[1], count * classes),
    ):
        if actual != expected:
            layer.fail(
                f"{count} priors need {expected} {name} for each image; there are {actual} "
                '(dialect="textboxes" and "faceboxes" lay other priors)'
            )
    for name, shape in (("locations", locations), ("confidences", confidences)):
        if shape[2:] != (1, 1):
            layer.fail(f"{name} must be one row for each image; their shape is {shape_text(shape)}")
    return count


def _check_first_stage(layer: Layer, bottoms: Sequence[Shape], images: int, priors: int) -> None:
    for (name, each), shape in zip((("scores", 2), ("locations", 4)), bottoms, strict=False):
        if values_in(shape) != images * priors * each:
            layer.fail(
                f"{images} images of {priors} priors need {images * priors * each} {name} of the "
                f"first stage; their shape is {shape_text(shape)}"
            )


WIDTHS = (5, 6)
"""The values of a box: label, four corners, and perhaps whether it is difficult."""


@layer("TrueBoxes")
class TrueBoxes(Layer):
    """Of sparknet: makes true boxes that lie by records into what MultiBoxLoss and
    DetectionEvaluate read, so that a column of a table can hold them.

    The bottom is records x boxes x 5 (label, xmin, ymin, xmax, ymax as shares of the image) or x 6
    (and 1 for a difficult box); a row whose label is negative is no box.  The top is a row for each
    box: record, label, its number, corners, difficult; -1 for the record where there is no box."""

    has_gradient = False
    other_bottoms = "indices"
    padding_value = -1.0
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        (boxes,) = bottoms
        if len(boxes) != 3 or boxes[2] not in WIDTHS:
            self.fail(f"the boxes must be records x boxes x 5 or 6; they are {shape_text(boxes)}")
        return Plan(((1, 1, boxes[0] * boxes[1], 8),))


@layer("MultiBoxLoss")
class MultiBoxLoss(Loss):
    """Of SSD (multibox_loss_layer.cpp).  Bottoms: locations, confidences, priors, true boxes.

    RefineDet's second stage has the first one's scores and locations as bottoms 4 and 5: priors are
    moved by these, and background that the first stage is sure of, by objectness_score, teaches
    nothing.  Where objectness_score is given and there are two classes, all labels count as 1."""

    other_bottoms = "indices"
    field = "multibox_loss_param"
    fields = ("loss_param",)
    bottoms = between(4, 6)
    plain_options = EVERY
    bottoms_without_gradient = (2, 3, 4, 5)

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        options = self.options
        self._check_options()
        first_stage = len(bottoms) - 4
        if first_stage and not options.share_location:
            self.fail("a first stage needs share_location: true")
        priors = check_predictions(
            self, bottoms, options.num_classes, options.share_location, first_stage
        )
        truths = legacy_shape(self, bottoms[3], "the true boxes")
        if truths[3] != 8:
            self.fail(
                "a true box is a row of 8 values (item, label, instance, 4 corners, difficult); "
                f"the shape is {shape_text(bottoms[3])}"
            )
        nms = options.nms_param
        parts = (*self.parameter.propagate_down, True, True)
        return {
            "priors": priors,
            "truths": truths[2] if count(truths) else 0,
            "loc_counts": parts[0],
            "conf_counts": parts[1],
            "nms": options.HasField("nms_param"),
            "mining_type": self._mining(),
            "normalization": normalization(self.parameter.loss_param, default="valid"),
            "nms_threshold": nms.nms_threshold,
            "top_k": nms.top_k if nms.HasField("top_k") else -1,
            "refines": bool(first_stage) or options.HasField("objectness_score"),
        }

    def _mining(self) -> str:
        """``mining_type``; the older ``do_neg_mining`` counts where it is given."""
        mining = self.choice("mining_type")
        if self.options.HasField("do_neg_mining"):
            if not self.options.do_neg_mining:
                return "none"
            return "max_negative" if mining == "none" else mining
        return mining

    def _check_options(self) -> None:
        options = self.options
        if options.num_classes < 1:
            self.fail(f"num_classes {options.num_classes} must be positive")
        if self._mining() != "none":
            if not options.share_location:
                self.fail("mining of negatives needs share_location: true")
            if not options.neg_pos_ratio > 0:
                self.fail(f"neg_pos_ratio {options.neg_pos_ratio:g} must be positive")
        if self._mining() == "hard_example" and not options.sample_size > 0:
            self.fail(f"sample_size {options.sample_size} must be positive")
        self._check_background()

    def _check_background(self) -> None:
        options = self.options
        classes, background = options.num_classes, options.background_label_id
        needed = self._mining() != "none" or self.choice("conf_loss_type") == "softmax"
        if needed and background >= classes:
            self.fail(
                f"background_label_id {background} is out of range: there are {classes} classes"
            )
        if options.map_object_to_agnostic and options.num_classes != 2:
            self.fail(f"map_object_to_agnostic needs 2 classes; there are {classes}")
        if options.map_object_to_agnostic and background:
            self.fail(f"map_object_to_agnostic needs background_label_id 0; it is {background}")


def refuse_saving(layer: Layer) -> None:
    """Refuse a save_output_param by which the forks write files: one that names all three."""
    saving = layer.options.save_output_param
    if saving.output_directory and saving.label_map_file and saving.name_size_file:
        layer.fail(
            "save_output_param asks for files of detections in "
            f"'{clean(saving.output_directory)}', which sparknet does not write: leave out "
            "output_directory, and take the rows of the top"
        )


@layer("DetectionOutput")
class DetectionOutput(BoxRows):
    """Of SSD (detection_output_layer.cpp).  A save_output_param that would write files is refused.

    With five bottoms, or where objectness_score is given, the layer is RefineDet's: bottom 3 has
    the first stage's scores of background and object, which hold for sure below objectness_score,
    and bottom 4 its locations, by which the priors are moved first.

    The number of boxes is known only in the forward pass; until then it is 1."""

    field = "detection_output_param"
    fields = ("transform_param",)
    bottoms = between(3, 5)
    plain_options = EVERY

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        refuse_saving(self)
        options = self.options
        if options.num_classes < 1:
            self.fail(f"num_classes {options.num_classes} must be positive")
        nms = options.nms_param
        if not nms.nms_threshold >= 0:
            self.fail(f"nms_threshold {nms.nms_threshold:g} must not be negative")
        if not 0 < nms.eta <= 1:
            self.fail(f"eta {nms.eta:g} must be more than 0 and at most 1")
        shared, classes = options.share_location, options.num_classes
        refines = len(bottoms) > 4 or options.HasField("objectness_score")
        first_stage = len(bottoms) - 3 if refines else 0
        if first_stage and (not shared or options.background_label_id):
            self.fail("a first stage needs share_location: true and background_label_id: 0")
        least = options.confidence_threshold if options.HasField("confidence_threshold") else None
        values = {
            "priors": check_predictions(self, bottoms, classes, shared, first_stage),
            "num_classes": classes,
            "share_location": shared,
            "confidence_threshold": least,
            "nms_threshold": nms.nms_threshold,
            "top_k": nms.top_k if nms.HasField("top_k") else -1,
            "eta": nms.eta,
            "refines": refines,
        }
        return Plan(tops=((1, 1, 1, 7),), values=values)
