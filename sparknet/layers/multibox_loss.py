"""MultiBoxLoss: locations and confidences matched to true boxes (SSD)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.boxes import check_predictions
from sparknet.layers.layer import Shape, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.layers.loss import Loss, normalization

PLAIN = (
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
    "bp_inside",
    "sample_size",
    "use_prior_for_nms",
)
CHOICES = ("loc_loss_type", "conf_loss_type", "match_type", "code_type", "mining_type")


class MultiBoxLoss(Loss):
    """Of SSD (multibox_loss_layer.cpp).  Bottoms: locations, confidences, priors, true boxes.

    Values: priors, normalization (default "valid"), nms_threshold, top_k (-1: all), eta, and
    every option under its own name, enumerations as lowercase words; mining_type is "none"
    where the older ``do_neg_mining: false`` says so.
    """

    type = "MultiBoxLoss"
    field = "multibox_loss_param"
    fields = ("loss_param",)
    bottoms = exactly(4)

    def force_backward(self, bottom: int) -> bool:
        return bottom < 2

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        options = self.options
        self._check_options()
        priors = check_predictions(self, bottoms, options.num_classes, options.share_location)
        if legacy_shape(self, bottoms[3], "the true boxes")[3] != 8:
            self.fail(
                "a true box is a row of 8 values (item, label, instance, 4 corners, difficult); "
                f"the shape is {shape_text(bottoms[3])}"
            )
        nms = options.nms_param
        return {
            "priors": priors,
            **{name: getattr(options, name) for name in PLAIN},
            **{name: self.choice(name) for name in CHOICES},
            "mining_type": self._mining(),
            "normalization": normalization(self.parameter.loss_param, default="valid"),
            "nms_threshold": nms.nms_threshold,
            "top_k": nms.top_k if nms.HasField("top_k") else -1,
            "eta": nms.eta,
        }

    def _mining(self) -> str:
        """``mining_type``; the older ``do_neg_mining`` counts where it is given."""
        if self.options.HasField("do_neg_mining"):
            return "max_negative" if self.options.do_neg_mining else "none"
        return self.choice("mining_type")

    def _check_options(self) -> None:
        options = self.options
        if options.num_classes < 1:
            self.fail(f"num_classes {options.num_classes} must be positive")
        if self._mining() != "none":
            if not options.share_location:
                self.fail("mining of negatives needs share_location: true")
            if not options.neg_pos_ratio > 0:
                self.fail(f"neg_pos_ratio {options.neg_pos_ratio:g} must be positive")
        if options.map_object_to_agnostic and options.num_classes != 2:
            self.fail(f"map_object_to_agnostic needs 2 classes; there are {options.num_classes}")
