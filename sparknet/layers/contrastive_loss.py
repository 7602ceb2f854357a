"""ContrastiveLoss: pairs drawn together or pushed apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Shape, count, exactly, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.layers.loss import Loss, check_one_label_each


class ContrastiveLoss(Loss):
    """Two batches of features and a same-or-not label (Caffe: contrastive_loss_layer.cpp).

    Values: num, channels, margin, legacy_version.
    """

    type = "ContrastiveLoss"
    stock = True
    labelled = True
    field = "contrastive_loss_param"
    bottoms = exactly(3)
    copied = ("margin", "legacy_version")
    unforced = (2,)

    def examine(self, bottoms: Sequence[Shape]) -> dict[str, Any]:
        one, two, same = bottoms
        shapes = [legacy_shape(self, shape, "features") for shape in (one, two)]
        if shapes[0][1] != shapes[1][1] or any(s[2:] != (1, 1) for s in shapes):
            self.fail(
                "the features must be two batches of vectors of one length; "
                f"their shapes are {shape_text(one)} and {shape_text(two)}"
            )
        check_one_label_each(self, same)
        if count(same) != one[0]:
            self.fail(f"{one[0]} pairs need as many labels; there are {count(same)}")
        return {"num": one[0], "channels": shapes[0][1]}
