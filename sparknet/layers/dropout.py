"""Dropout: values dropped at random while training."""

from __future__ import annotations

from typing import Any

from sparknet.layers.layer import TRAIN
from sparknet.layers.neuron import Neuron


class Dropout(Neuron):
    """Drops a share of the values in TRAIN and scales the rest; copies in TEST.

    Caffe: dropout_layer.cpp.  Values: ratio (dropped), scale = 1 / (1 - ratio), train.
    """

    type = "Dropout"
    field = "dropout_param"

    def constants(self) -> dict[str, Any]:
        ratio = self.options.dropout_ratio
        if not 0 <= ratio < 1:
            self.fail(f"dropout_ratio {ratio:g} must be at least 0 and less than 1")
        return {"ratio": ratio, "scale": 1 / (1 - ratio), "train": self.phase == TRAIN}
