"""Virtual time: K workers that train truly in one process, on a cluster whose time is simulated."""

from __future__ import annotations

from sparknet.dist.virtual.cluster import Cluster
from sparknet.dist.virtual.comm import VirtualComm
from sparknet.dist.virtual.simulation import simulate

__all__ = ["Cluster", "VirtualComm", "simulate"]
