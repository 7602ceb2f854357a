"""A module of PyTorch where it predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparknet.spark.derived import Array, Derived, with_derived
from sparknet.training.modules.calling import named_outputs, tensor
from sparknet.training.modules.trainee import evaluating


@dataclass(frozen=True)
class WorkerModule:
    """A module in a Python worker."""

    module: Any
    derived: Mapping[str, Derived] = field(default_factory=dict)

    def run(self, values: dict[str, Array], blobs: Sequence[str]) -> dict[str, Array]:
        made = with_derived(computed(self.module, values), self.derived)
        return {name: made[name] for name in blobs}

    def trim(self) -> None:
        """Nothing is kept between partitions but the weights."""


def computed(module: Any, values: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a batch by name, as float32."""
    import torch

    given = {name: tensor(one, True) for name, one in values.items()}
    with torch.no_grad(), evaluating(module):
        made = module(**given)
    return {
        name: one.detach().cpu().to(torch.float32).numpy()
        for name, one in named_outputs(made).items()
        if isinstance(one, torch.Tensor)
    }
