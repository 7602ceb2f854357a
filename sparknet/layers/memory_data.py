"""MemoryData: batches from arrays that the caller hands over."""

from __future__ import annotations

from sparknet.layers.layer import Plan, exactly
from sparknet.layers.source_layer import SourceLayer


class MemoryData(SourceLayer):
    """Caffe: memory_data_layer.cpp.  Values: batch_size, channels, height, width."""

    type = "MemoryData"
    stock = True
    field = "memory_data_param"
    fields = ("transform_param",)
    tops = exactly(2)
    batches = True

    def survey(self) -> Plan:
        options = self.options
        names = ("batch_size", "channels", "height", "width")
        sizes = {name: getattr(options, name) for name in names}
        for name, size in sizes.items():
            if size < 1:
                self.fail(f"memory_data_param needs a positive {name}; it is {size}")
        return Plan(tops=(tuple(sizes.values()), (sizes["batch_size"],)), values=sizes)
