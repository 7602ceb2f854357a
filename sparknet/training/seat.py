"""Seat: the place of one worker."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seat:
    """The rank and the place of one worker."""

    rank: int
    size: int
    host: str
    folder: Path
    """The folder of its files."""
    device: int | None = None
    """The number of its GPU, or CPU, for a backend that can choose; None where nobody says."""

    @property
    def where(self) -> str:
        return f"{self.host} (process {os.getpid()})"
