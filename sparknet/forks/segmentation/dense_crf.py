"""DenseCRF: what a dense CRF makes of scores."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.segmentation.multi_stage_meanfield import LATTICE, MOST
from sparknet.layers.layer import INTERPRETED, Layer, Plan, Shape, between, count, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class DenseCRF(Layer):
    """densecrf_layer.cpp of DeepLab (Krahenbuhl and Koltun, Efficient Inference in Fully Connected
    CRFs with Gaussian Edge Potentials); bottoms: scores (N x C x H x W), height and width of each
    picture (N x 2), and the pictures (N x 3 x H x W).

    Potts potentials of each pos_w with pos_xy_std over places and, if there are pictures, of each
    bi_w with bi_xy_std and bi_rgb_std over places and colours.  The top has the probabilities, or
    without output_probability their logarithms, and zeros outside of the picture.
    Values: iterations, places, colours, probability.
    """

    type = "DenseCRF"
    field = "dense_crf_param"
    bottoms = between(2, 3)
    gradient = False

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options, scores = self.options, bottoms[0]
        sizes = legacy_shape(self, bottoms[1], "the sizes")
        if len(scores) != 4 or not scores[1] or sizes[0] != scores[0] or count(sizes[1:]) != 2:
            self.fail(
                "takes scores of N x C x H x W, and N x 2 sizes; they are "
                f"{shape_text(scores)} and {shape_text(bottoms[1])}"
            )
        if len(bottoms) > 2 and bottoms[2] != (scores[0], 3, *scores[2:]):
            self.fail(
                f"needs pictures of {shape_text((scores[0], 3, *scores[2:]))}; "
                f"they are {shape_text(bottoms[2])}"
            )
        numbers = [
            list(getattr(options, name))
            for name in ("pos_w", "pos_xy_std", "bi_w", "bi_xy_std", "bi_rgb_std")
        ]
        counts = [len(values) for values in numbers]
        if counts[0] != counts[1] or len(set(counts[2:])) > 1 or max(counts) > MOST:
            self.fail("needs as many of pos_w and pos_xy_std, and of bi_w, bi_xy_std, bi_rgb_std")
        if min((*numbers[1], *numbers[3], *numbers[4]), default=1) <= 0:
            self.fail("the deviations must be positive")
        if not 0 <= options.max_iter <= MOST:
            self.fail(f"max_iter is {options.max_iter}; it must be from 0 to {MOST}")
        values = {
            "iterations": options.max_iter,
            "places": tuple(zip(numbers[0], numbers[1], strict=True)),
            "colours": tuple(zip(*numbers[2:], strict=True)) if len(bottoms) > 2 else (),
            "probability": options.output_probability,
        }
        return Plan((scores,), values=values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        turns: int = plan.values["iterations"] + 1
        return turns * (bottoms[0][0] * INTERPRETED + LATTICE * count(bottoms[0]))
