"""ContinuationIndicator: marks of where sequences go on, for recurrent layers."""

from __future__ import annotations

from sparknet.layers.layer import Plan, exactly
from sparknet.layers.source_layer import SourceLayer


class ContinuationIndicator(SourceLayer):
    """continuation_indicator_layer.cpp of crnn.caffe: time_step x batch_size, of which the first
    row is 0 and all others are 1."""

    type = "ContinuationIndicator"
    field = "continuation_indicator_param"
    tops = exactly(1)
    records = False
    fills = True

    def survey(self) -> Plan:
        options = self.options
        if options.time_step < 1 or options.batch_size < 1:
            self.fail(
                "time_step and batch_size must be positive; "
                f"they are {options.time_step} and {options.batch_size}"
            )
        return Plan(((options.time_step, options.batch_size),))
