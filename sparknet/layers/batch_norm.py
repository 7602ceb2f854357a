"""BatchNorm: normalisation by batch or running statistics; Scale follows it."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant
from sparknet.layers.layer import TEST, Layer, Plan, Shape, shape_text
from sparknet.layers.learnable import learnable
from sparknet.proto import caffe_pb2


class BatchNorm(Layer):
    """Caffe: batch_norm_layer.cpp.

    The blobs are running sums: mean, variance, and the factor that divides both.
    """

    type = "BatchNorm"
    field = "batch_norm_param"
    in_place = True
    frozen = True

    def check_params(self, specs: Sequence[caffe_pb2.ParamSpec]) -> None:
        for index, spec in enumerate(specs):
            if spec.lr_mult != 0:
                self.fail(
                    f"the statistics cannot be trained: param {index} must have lr_mult 0; "
                    f"it has {spec.lr_mult:g}"
                )

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
        values = {
            "use_global_stats": self.by_running,
            "moving_average_fraction": options.moving_average_fraction,
            "eps": options.eps,
        }
        return Plan((bottom,), tuple(learnable(self, shape, zero) for shape in shapes), values)
