"""Dropout: values dropped at random while training."""

from __future__ import annotations

from typing import Any

from sparknet.layers.layer import TRAIN
from sparknet.layers.neuron import Neuron


class Dropout(Neuron):
    """Drops a share of the values in TRAIN and scales the rest; copies in TEST.

    Caffe: dropout_layer.cpp.  ``scale_train: false`` (R-FCN) leaves the rest as it is and scales
    by 1 - ratio in TEST; ``sample_weights_test`` (SegNet) drops in TEST as in TRAIN.
    Values: ratio (dropped), scale (of the values that stay), train (whether values are dropped).
    """

    type = "Dropout"
    stock = True
    field = "dropout_param"

    @property
    def draws(self) -> bool:
        return self.phase == TRAIN and bool(self.options.dropout_ratio)

    def constants(self) -> dict[str, Any]:
        ratio = self.options.dropout_ratio
        if not 0 <= ratio < 1:
            self.fail(f"dropout_ratio {ratio:g} must be at least 0 and less than 1")
        drops = self.phase == TRAIN or self.options.sample_weights_test
        kept = 1 / (1 - ratio) if drops else 1.0
        if not self.options.scale_train:
            kept = 1.0 if drops else 1 - ratio
        return {"ratio": ratio, "scale": kept, "train": drops}
