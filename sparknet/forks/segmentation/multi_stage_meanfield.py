"""MultiStageMeanfield: a dense CRF as the last layer of a segmenting net."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import (
    INTERPRETED,
    Layer,
    Param,
    Plan,
    Shape,
    count,
    exactly,
    shape_text,
)
from sparknet.proto import caffe_pb2

MOST = 1000
"""Iterations that a layer may have."""
LATTICE = 64
"""Multiplications for each value that goes through a permutohedral lattice."""


class MultiStageMeanfield(Layer):
    """multi_stage_meanfield.cpp of crfasrnn (Zheng et al., Conditional Random Fields as Recurrent
    Neural Networks); bottoms: scores, the scores to begin with, and the picture (N x 3 x H x W).

    In each iteration the softmax of the scores is blurred twice, over places (theta_gamma) and
    over places and colours (theta_alpha, theta_beta), weighed by the blobs 0 and 1, compared by
    blob 2, and taken from the first scores.  The first two blobs are the filter weights times the
    unit matrix (1, where there are none: files such as spatial.par are not read), the third is
    minus it.  Values: iterations, alpha, beta, gamma.
    """

    type = "MultiStageMeanfield"
    field = "multi_stage_meanfield_param"
    bottoms = exactly(3)
    unforced = (2,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        scores = bottoms[0]
        if len(scores) != 4 or bottoms[1] != scores or not scores[1]:
            self.fail(
                "takes scores of N x C x H x W twice; they are "
                f"{shape_text(scores)} and {shape_text(bottoms[1])}"
            )
        if bottoms[2] != (scores[0], 3, *scores[2:]):
            self.fail(
                f"needs pictures of {shape_text((scores[0], 3, *scores[2:]))}; "
                f"they are {shape_text(bottoms[2])}"
            )
        if not 0 < options.num_iterations <= MOST:
            self.fail(f"num_iterations is {options.num_iterations}; it must be from 1 to {MOST}")
        thetas = (options.theta_alpha, options.theta_beta, options.theta_gamma)
        if not min(thetas) > 0 or not max(thetas) < float("inf"):
            self.fail("theta_alpha, theta_beta and theta_gamma must be positive")
        if options.compatibility_mode != caffe_pb2.MultiStageMeanfieldParameter.POTTS:
            self.fail("compatibility_mode must be POTTS")
        shape = (1, 1, scores[1], scores[1])
        params = tuple(Param(shape, _diagonal(value)) for value in (*self._weights(), -1.0))
        names = ("iterations", "alpha", "beta", "gamma")
        values = dict(zip(names, (options.num_iterations, *thetas), strict=True))
        return Plan((scores,), params, values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        turns: int = plan.values["iterations"] + 1
        return turns * (bottoms[0][0] * INTERPRETED + LATTICE * count(bottoms[0]))

    def _weights(self) -> tuple[float, float]:
        options = self.options
        given = [
            getattr(options, name) if options.HasField(name) else 1.0
            for name in ("spatial_filter_weight", "bilateral_filter_weight")
        ]
        return given[0], given[1]


def _diagonal(value: float) -> caffe_pb2.FillerParameter:
    return caffe_pb2.FillerParameter(type="diagonal", value=value)
