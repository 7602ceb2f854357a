"""conduct: a training by processes of this machine, from its begin to its end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparknet.comm.wire import choose_seal
from sparknet.native import NDArray
from sparknet.training.beginning import Beginning
from sparknet.training.local_launcher import LocalWorkers, Place
from sparknet.training.local_settings import ProcessSettings
from sparknet.training.membership import Elastic
from sparknet.training.rounds import Outcome
from sparknet.training.run import Run
from sparknet.training.strategies import Strategy
from sparknet.training.training_settings import RunSettings


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
    elastic = elastic_of(given, begun.strategy)
    seal = choose_seal(given.protection or "sealed")
    with Run(
        initial,
        store,
        given.on_event,
        resume=given.resume,
        seal=seal,
        deadline=given.deadline,
        elastic=elastic,
    ) as run:
        place = None if store is None else store.place
        spec = replace(begun.spec(run.link(), place, **changed), elastic=elastic is not None)

        def places(workers: int) -> list[Place]:
            share = given.threads or share_of_cores(workers)
            own = tempfile.mkdtemp(prefix="workers-", dir=folder)
            return [
                Place(spec, rank, workers, folder, **shared, threads=share, own=own)
                for rank in range(workers)
            ]

        least = given.min_workers or given.workers
        restarts = None if elastic is None else given.restarts
        workers = LocalWorkers(places, given.workers, store, least, restarts)
        outcome, trained = run.supervise(workers)
    return outcome, trained, run


def elastic_of(given: RunSettings, strategy: Strategy) -> Elastic | None:
    """How many workers a run may have, if those that are left go on in their processes."""
    if given.min_workers is None or not strategy.goes_on:
        return None
    behind = given.leave_behind, given.deadline / 4
    return Elastic(given.workers, given.min_workers, given.start_wait, *behind)


def share_of_cores(workers: int) -> int:
    """The threads of each of so many workers."""
    return max(1, usable_cores() // workers)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
