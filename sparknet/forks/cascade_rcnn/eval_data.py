"""EvalData: pictures with boxes, in their order, for the test of a detector."""

from __future__ import annotations

from sparknet.forks.cascade_rcnn.boxed_source import BoxedSource
from sparknet.layers.layer import Plan, Shape, between


class EvalData(BoxedSource):
    """eval_data_layer.cpp of Cascade R-CNN.

    Top 1 has a row for each box of the batch: item, corners, class, ignored, difficult; top 2 the
    height and width of each picture.  Pictures are resized to resize_height x resize_width, or
    until their smaller side is short_size and none is more than long_size, then to multiples of 32.
    Values: source, root_folder, batch_size, mean, scale.
    """

    type = "EvalData"
    field = "eval_data_param"
    tops = between(2, 3)

    def survey(self) -> Plan:
        options = self.options
        batch, (channels, *size) = self.batch(options.batch_size), self.first()
        fixed = self.both("resize_height", "resize_width")
        if not fixed and batch != 1:
            self.fail(f"needs resize_height and resize_width, or batch_size 1; it is {batch}")
        high, wide = fixed or self.both("long_size", "short_size") or size
        tops: tuple[Shape, ...] = ((batch, channels, high, wide), (1, 8, 1, 1), (batch, 2, 1, 1))
        return Plan(tops[: len(self.parameter.top)], values=self.source_values())
