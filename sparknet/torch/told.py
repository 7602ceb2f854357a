"""What a device tells the host at the end of a pass: the loss, and whether all checks were fine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from sparknet.torch.layer import TorchLayer

Check: TypeAlias = tuple[TorchLayer, Tensor, Callable[[], str]]


class Told:
    """Numbers on their way from the device, which does not wait until they are read."""

    def __init__(self, numbers: Tensor, checks: list[Check]) -> None:
        self.checks = checks
        self._numbers = numbers
        self._come: torch.cuda.Event | None = None
        if numbers.is_cuda:
            here = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self._numbers = here.copy_(numbers, non_blocking=True)
            self._come = torch.cuda.Event()
            self._come.record(torch.cuda.current_stream(numbers.device))

    def numbers(self) -> list[float]:
        if self._come is not None:
            self._come.synchronize()
        return [float(one) for one in self._numbers.tolist()]
