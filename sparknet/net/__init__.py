"""Net: SparkNet's small interface to a net, over any module with pycaffe's interface."""

from __future__ import annotations

from sparknet.net.entries import Entry
from sparknet.net.net import Net

__all__ = ["Entry", "Net"]
