"""MemoryData: batches from arrays that the caller hands over."""

from __future__ import annotations

from sparknet.layers.layer import Plan, Shape, between
from sparknet.layers.source_layer import SourceLayer


class MemoryData(SourceLayer):
    """Caffe: memory_data_layer.cpp.

    A third top, of DeepLab's nets, is N x 1 x 1 x 2: the height and width of each picture, those of
    the layer unless `set_input_arrays` is given others.
    Values: batch_size, channels, height, width.
    """

    type = "MemoryData"
    stock = True
    field = "memory_data_param"
    fields = ("transform_param",)
    tops = between(2, 3)
    batches = True

    def survey(self) -> Plan:
        options = self.options
        names = ("batch_size", "channels", "height", "width")
        sizes = {name: getattr(options, name) for name in names}
        for name, size in sizes.items():
            if size < 1:
                self.fail(f"memory_data_param needs a positive {name}; it is {size}")
        batch = sizes["batch_size"]
        tops: tuple[Shape, ...] = (tuple(sizes.values()), (batch,), (batch, 1, 1, 2))
        return Plan(tops=tops[: len(self.parameter.top)], values=sizes)
