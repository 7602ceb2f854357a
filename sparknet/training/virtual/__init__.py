"""Virtual time: K workers that train truly in one process, on a cluster whose time is simulated."""

from __future__ import annotations

from sparknet.training.virtual.cluster import Cluster
from sparknet.training.virtual.comm import VirtualComm
from sparknet.training.virtual.simulation import simulate

__all__ = ["Cluster", "VirtualComm", "simulate"]
