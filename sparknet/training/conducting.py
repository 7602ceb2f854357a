"""conduct: a training by processes of this machine, from its begin to its end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

from sparknet.native import NDArray
from sparknet.training.beginning import Beginning
from sparknet.training.local_launcher import LocalWorkers, Place
from sparknet.training.local_settings import ProcessSettings
from sparknet.training.run import Run
from sparknet.training.wire import choose_seal
from sparknet.training.worker import Outcome


def conduct(
    given: ProcessSettings,
    begun: Beginning,
    initial: NDArray,
    shared: Mapping[str, Any],
    folder: str,
    **changed: Any,
) -> tuple[Outcome, NDArray, Run]:
    """Train by processes, and return how it ended and with which weights."""
    store = begun.open_store()
    seal = choose_seal(given.protection or "sealed")
    with Run(
        initial,
        store,
        given.on_event,
        resume=given.resume,
        seal=seal,
        deadline=given.deadline,
    ) as run:
        place = None if store is None else store.place
        spec = begun.spec(run.link(), place, **changed)

        def places(workers: int) -> list[Place]:
            share = given.threads or share_of_cores(workers)
            own = tempfile.mkdtemp(prefix="workers-", dir=folder)
            return [
                Place(spec, rank, workers, folder, **shared, threads=share, own=own)
                for rank in range(workers)
            ]

        least = given.min_workers or given.workers
        outcome, trained = run.supervise(LocalWorkers(places, given.workers, store, least))
    return outcome, trained, run


def share_of_cores(workers: int) -> int:
    """The threads of each of so many workers."""
    return max(1, usable_cores() // workers)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
