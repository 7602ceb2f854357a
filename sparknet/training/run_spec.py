"""RunSpec: the description of a run that every worker gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparknet.comm.rpc import Link
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net.portable import Portable
from sparknet.net.scores import Goal
from sparknet.torch.modules.flat_module import PortableModule
from sparknet.training.plan import RunPlan
from sparknet.training.training_settings import RunSettings


@dataclass(frozen=True)
class RunSpec:
    """What a run is, the same for all workers: small, without weights."""

    link: Link
    """The link to the driver."""
    solver: Portable | PortableModule
    seed: int
    """The seed of the net's random numbers; that of the records' order is a setting."""
    net: str
    """The net's name, for events."""
    settings: RunSettings
    """What the user set, with what can be sent to a worker: the strategy made, no listener."""
    validates: bool
    folder: str | None
    """The folder of the driver's store for snapshots, if workers reach it themselves."""
    identity: dict[str, Any]
    """What must be equal in a snapshot to resume it, beside workers and strategy."""
    preprocessing: Preprocessing | None = None
    """What was asked for images."""
    goals: Mapping[str, Goal] = field(default_factory=dict)
    """Whether a larger or a smaller value of a metric is better, where that is known."""
    elastic: bool = False
    """Whether those that are left go on when workers are lost."""

    def plan(self, records: int, batch_size: int, begun_with: int) -> RunPlan:
        """The plan, completed by what is known after the records are read.

        Iterations count by the number of workers that the run began with.
        """
        settings = replace(self.settings, workers=begun_with)
        return settings.plan(self.net, self.validates, records, batch_size, self.goals)
