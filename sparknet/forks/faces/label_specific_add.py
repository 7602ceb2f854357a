"""LabelSpecificAdd: a number added to the score of the label, as a margin."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import TRAIN, Layer, Plan, Shape, between, count, exactly, shape_text


class LabelSpecificAdd(Layer):
    """label_specific_add.cpp of happynear's fork (Wang et al., Additive Margin Softmax for Face
    Verification); bottoms: scores (N x C) and class numbers.

    In TRAIN the label's score grows by bias where it is above -bias; in TEST nothing changes.
    With bias_base the bias of pass n is bias_base + (1 + bias_gamma n)^bias_power - 1, from
    bias_min to bias_max.  A second top shows it.
    Values: bias, base (or None), gamma, power, least, most, iteration, train.
    """

    type = "LabelSpecificAdd"
    field = "label_specific_add_param"
    bottoms = exactly(2)
    tops = between(1, 2)
    in_place = True
    labelled = True
    classes = 1
    copied = ("bias", "iteration")
    unforced = (1,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if len(bottoms[0]) < 2 or count(bottoms[1]) != bottoms[0][0]:
            self.fail(
                "takes N x C scores and N class numbers; they are "
                f"{shape_text(bottoms[0])} and {shape_text(bottoms[1])}"
            )
        values = {
            "base": options.bias_base if options.HasField("bias_base") else None,
            "gamma": options.bias_gamma,
            "power": options.bias_power,
            "least": options.bias_min,
            "most": options.bias_max,
            "train": self.phase == TRAIN,
        }
        tops: tuple[Shape, ...] = (bottoms[0], (1,))
        return Plan(tops[: len(self.parameter.top)], values=values)
