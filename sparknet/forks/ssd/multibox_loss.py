"""MultiBoxLoss: locations and confidences matched to true boxes (SSD)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.forks.ssd.boxes import check_predictions
from sparknet.layers.layer import Shape, between, count, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.layers.loss import Loss, normalization


class MultiBoxLoss(Loss):
    """Of SSD (multibox_loss_layer.cpp).  Bottoms: locations, confidences, priors, true boxes.

    RefineDet's second stage has the first one's scores and locations as bottoms 4 and 5: priors are
    moved by these, and background that the first stage is sure of, by objectness_score, teaches
    nothing.  Where objectness_score is given and there are two classes, all labels count as 1.
    Values: priors, truths (rows of true boxes), normalization (default "valid"), nms (whether
    nms_param is given), nms_threshold, top_k (-1: all), loc_counts and conf_counts (whether
    that part is in the loss: propagate_down), and every option under its own name,
    enumerations as lowercase words; mining_type is "none" where the older
    ``do_neg_mining: false`` says so.
    """

    type = "MultiBoxLoss"
    labelled = True
    field = "multibox_loss_param"
    fields = ("loss_param",)
    bottoms = between(4, 6)
    copied = (
        "num_classes",
        "share_location",
        "loc_weight",
        "overlap_threshold",
        "use_prior_for_matching",
        "background_label_id",
        "use_difficult_gt",
        "neg_pos_ratio",
        "neg_overlap",
        "encode_variance_in_target",
        "map_object_to_agnostic",
        "ignore_cross_boundary_bbox",
        "objectness_score",
        "bp_inside",
        "sample_size",
        "use_prior_for_nms",
        "loc_loss_type",
        "conf_loss_type",
        "match_type",
        "code_type",
        "mining_type",
    )
    unforced = (2, 3, 4, 5)

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
