"""The base of layers that map each value to one value (Caffe: neuron_layer.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.layers.layer import Layer, Plan, Shape


class Neuron(Layer):
    """One bottom, one top of the same shape; in place unless the type forbids it."""

    in_place = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return Plan(tops=(bottoms[0],), values=self.constants())

    def constants(self) -> dict[str, Any]:
        """The resolved options; they do not depend on shapes."""
        return {}
