"""The budget of a net of unknown origin: numbers to hold, and work for one pass."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass

from sparknet.errors import LayerError, SettingError, clean
from sparknet.graph.graph import Graph, Node
from sparknet.layers.layer import count
from sparknet.proto.untrusted import UNTRUSTED

MEMORY = "SPARKNET_UNTRUSTED_MEMORY"
"""The environment variable that says how many bytes the blobs may have, and the parameters that no
file holds, all together: 500m, 8g."""
USUAL_MEMORY = "4g"
FOR_EACH_WEIGHT = 32
"""Further numbers for each parameter value that a file holds."""
WORK = 1 << 40
"""Multiplications, or what takes as long: a minute, or less."""
FOR_EACH_GIVEN = (1 << 12, 1 << 24)
"""Further numbers and multiplications for each number of an input whose shape the user gave."""


def untrusted_numbers() -> int:
    """Return how many numbers of four bytes that are."""
    text = os.environ.get(MEMORY) or USUAL_MEMORY
    match = re.fullmatch(r"([0-9]{1,9})([kmgt]?)b?", text.strip().lower())
    if match is None:
        raise SettingError(f"{MEMORY} is '{clean(text)}'; it is a number of bytes, as 500m or 8g")
    return (int(match[1]) << 10 * " kmgt".index(match[2] or " ")) // 4


class TooLarge(ValueError):
    """More memory or work than a file may ask for."""


@dataclass
class Budget:
    """What a net may take, and what its layers have taken so far."""

    most_numbers: int
    most_work: int
    numbers: int = 0
    work: int = 0

    @classmethod
    def of(cls, weights: int, numbers_given: int = 0) -> Budget:
        """Return the budget of a file of so many weights, and inputs of so many numbers."""
        numbers, work = (numbers_given * each for each in FOR_EACH_GIVEN)
        return cls(untrusted_numbers() + FOR_EACH_WEIGHT * weights + numbers, WORK + work)

    @classmethod
    def unlimited(cls) -> Budget:
        """For a file that its user trusts."""
        return cls(1 << 62, 1 << 62)

    def take(self, numbers: int, work: int) -> None:
        self.numbers += numbers
        self.work += work
        if self.numbers > self.most_numbers:
            what, most = f"hold {self.numbers} numbers", self.most_numbers
        elif self.work > self.most_work:
            what, most = f"take {self.work} multiplications a pass", self.most_work
        else:
            return
        raise TooLarge(f"the layers up to this one would {what}; {most} are the most")


def check_budget(graph: Graph, existing: Collection[int]) -> None:
    """Refuse a net of unknown origin beyond the budget, without parameters ``held``."""
    if not any(node.layer.parameter.untrusted for node in graph.nodes):
        return
    budget = Budget.of(sum(count(graph.params[place].shape) for place in existing))
    for node in graph.nodes:
        shapes = [graph.blob_shapes[blob] for blob in node.bottom_ids]
        try:
            budget.take(_numbers(node, graph, existing), node.layer.work(node.plan, shapes))
        except TooLarge as error:
            raise LayerError(node.name, f"{node.type}: {error}: {UNTRUSTED}") from None


def _numbers(node: Node, graph: Graph, existing: Collection[int]) -> int:
    own = [ref for ref in node.params if ref.owned and ref.learnable not in existing]
    total = sum(count(ref.shape) for ref in own)
    if not node.layer.is_view:
        new = {*node.top_ids}.difference(node.bottom_ids)
        total += sum(count(graph.blob_shapes[blob]) for blob in new)
    return total
