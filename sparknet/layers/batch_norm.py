"""BatchNorm: normalisation by batch or running statistics; Scale follows it."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant
from sparknet.layers.layer import TEST, Layer, Plan, Shape, shape_text
from sparknet.layers.learnable import learnable
from sparknet.proto import caffe_pb2

STATISTICS = 3
"""The first blobs, which the forward pass computes."""


class BatchNorm(Layer):
    """Caffe: batch_norm_layer.cpp.

    The blobs are running sums: mean, variance, and the factor that divides both.

    NVIDIA's ``scale_bias``, which scale_filler and bias_filler imply, adds two that learn: a
    factor and a shift for each channel.  Intel's ``filler``, and a bias_filler beside it, are read
    and not followed.
    """

    type = "BatchNorm"
    stock = True
    field = "batch_norm_param"
    tolerates_int8 = True
    in_place = True
    frozen = True
    statistics = slice(STATISTICS)
    copied = ("moving_average_fraction", "eps")

    def check_params(self, specs: Sequence[caffe_pb2.ParamSpec]) -> None:
        for index, spec in enumerate(specs[:STATISTICS]):
            if spec.lr_mult != 0:
                self.fail(
                    f"the statistics cannot be trained: param {index} must have lr_mult 0; "
                    f"it has {spec.lr_mult:g}"
                )

    @property
    def scales(self) -> bool:
        """Whether NVIDIA's factor and shift follow the statistics."""
        options = self.options
        if options.HasField("scale_filler") or options.scale_bias:
            return True
        return bool(options.HasField("bias_filler") and not options.HasField("filler"))

    def fixed(self, index: int) -> bool:
        return index < STATISTICS

    @property
    def by_running(self) -> bool:
        """Whether it normalises by the running statistics, not by the batch's."""
        given = self.options.HasField("use_global_stats")
        return bool(self.options.use_global_stats if given else self.phase == TEST)

    def mixes(self, bottom: Shape, axis: int) -> bool:
        return not self.by_running

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        if len(bottom) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); the input is {shape_text(bottom)}")
        options = self.options
        zero = constant(0)
        shapes = ((bottom[1],), (bottom[1],), (1,))
        params = tuple(learnable(self, shape, zero) for shape in shapes)
        if self.scales:
            slope = options.scale_filler if options.HasField("scale_filler") else constant(1)
            params += (learnable(self, shapes[0], slope),)
            params += (learnable(self, shapes[0], options.bias_filler),)
        values = {"use_global_stats": self.by_running}
        return Plan((bottom,), params, values)
