"""conduct: a training by tasks of Spark, from its begin to its end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparknet.comm.wire import choose_seal
from sparknet.errors import SparkError
from sparknet.native import NDArray
from sparknet.net.backend import EMBEDDED
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.session import bind_address, driver_address, is_encrypted
from sparknet.spark.lasting import LastingWorkers
from sparknet.spark.launcher import SparkWorkers
from sparknet.spark.resources import TaskResources
from sparknet.spark.seats import Seats, SeatWorkers, stored, tidy
from sparknet.spark.task import Columns
from sparknet.training.beginning import Beginning
from sparknet.training.conducting import elastic_of
from sparknet.training.rounds import Outcome
from sparknet.training.run import Run
from sparknet.training.training_settings import Protection, RunSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def conduct(
    session: SparkSession,
    given: RunSettings,
    begun: Beginning,
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
        if given.min_workers is None:
            workers = SparkWorkers(
                session, rows, given.workers, run, spec, columns, name, resources
            )
            outcome, trained = run.supervise(workers)
        else:
            with stored(session, rows) as kept:
                seats = Seats(session, kept, given, run, spec, columns, name, patience, resources)
                seats.check()
                try:
                    lasting = LastingWorkers(seats) if spec.elastic else SeatWorkers(seats)
                    outcome, trained = run.supervise(lasting)
                finally:
                    tidy(session, given.workers, link.run)
    return outcome, trained, run


def partitions(given: RunSettings) -> int | None:
    """The partitions of the rows that workers read; None where each reads all of them."""
    return given.workers if given.min_workers is None else None
