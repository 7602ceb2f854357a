"""HardSwish: Swish in straight lines."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class HardSwish(Neuron):
    """y = x * min(1, max(0, x / 6 + 1 / 2)) (Howard et al., 2019), as MobileNetV3 has it."""

    type = "HardSwish"
