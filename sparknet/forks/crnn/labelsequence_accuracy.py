"""LabelsequenceAccuracy: the share of sequences that are read without an error."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text


class LabelsequenceAccuracy(Layer):
    """labelsequence_accuracy_layer.cpp of crnn.caffe; bottoms: scores (N x time x classes) and
    labels (N x L), blank_label where there is none.

    The best class of each time, repetitions and blanks left out, must be the labels.
    Values: blank.
    """

    type = "LabelsequenceAccuracy"
    field = "labelsequence_accuracy_param"
    bottoms = exactly(2)
    gradient = False
    judges = True
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        scores, labels = bottoms
        if len(scores) != 3 or len(labels) < 2 or labels[0] != scores[0] or not scores[2]:
            self.fail(
                "takes N x time x classes scores and N x L labels; they are "
                f"{shape_text(scores)} and {shape_text(labels)}"
            )
        return Plan(((),), values={"blank": self.options.blank_label})
