"""conduct: a training by tasks of Spark, from its begin to its end."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparknet.comm.wire import choose_seal
from sparknet.errors import SparkError
from sparknet.native import NDArray
from sparknet.net.backend import EMBEDDED
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.session import bind_address, driver_address, is_encrypted
from sparknet.spark.hosts.barrier import BarrierWorkers
from sparknet.spark.hosts.elastic import ElasticWorkers
from sparknet.spark.hosts.jobs import JobWorkers, WorkerTasks, stored
from sparknet.spark.hosts.resources import TaskResources
from sparknet.spark.hosts.task import Columns
from sparknet.training.driver.run import Run, Workers
from sparknet.training.driver.setup import RunSetup
from sparknet.training.settings.training import Protection, RunSettings
from sparknet.training.workers.local import elastic_of
from sparknet.training.workers.rounds import Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def conduct(
    session: SparkSession,
    given: RunSettings,
    begun: RunSetup,
    initial: NDArray,
    rows: DataFrame,
    columns: Columns,
    *,
    resume: bool,
    patience: float | None,
    needed: int,
    backend: str = EMBEDDED,
    profile: Any = None,
    **changed: Any,
) -> tuple[Outcome, NDArray, Run]:
    """Train on numbered rows; how it ended and with which weights.

    Each worker has a partition of them (`partitions`), and needs so many bytes of memory; its task
    has the resources of a ``profile`` of PySpark's, if one is given.
    """
    resources = TaskResources(session, profile)
    store = begun.open_store()
    elastic = elastic_of(given, begun.strategy)
    usual: Protection = "encrypted" if is_encrypted(session) else "sealed"
    seal = choose_seal(given.protection or usual)
    with Run(
        initial,
        store,
        given.on_event,
        resume=resume,
        seal=seal,
        host=bind_address(session),
        deadline=given.deadline,
        foreign=SparkError,
        elastic=elastic,
    ) as run:
        link = run.link(driver_address(session, 0)[0])
        preflight.check(
            session,
            given.workers,
            link,
            patience,
            needed=needed,
            backend=backend,
            device=given.device,
            resources=resources,
            say=run.say,
            together=given.min_workers is None,
        )
        spec = replace(begun.spec(link, **changed), elastic=elastic is not None)
        name = f"sparknet: training {begun.name}"
        barrier = given.min_workers is None
        with nullcontext(rows) if barrier else stored(session, rows) as frame:
            tasks = WorkerTasks(
                session, frame, given, run, spec, columns, name, patience, resources
            )
            workers = _workers(tasks)
            try:
                outcome, trained = run.supervise(workers)
            finally:
                if not barrier:
                    tasks.tidy(barrier=False)
    return outcome, trained, run


def _workers(tasks: WorkerTasks) -> Workers:
    """Choose what starts the workers' tasks; nothing else knows which it is."""
    if tasks.given.min_workers is None:
        return BarrierWorkers(tasks)
    tasks.check()
    return ElasticWorkers(tasks) if tasks.spec.elastic else JobWorkers(tasks)


def partitions(given: RunSettings) -> int | None:
    """Return the partitions of the rows that workers read; None where each reads all of them."""
    return given.workers if given.min_workers is None else None
