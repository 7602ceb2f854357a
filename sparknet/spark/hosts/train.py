"""conduct: a training by tasks of Spark, from its begin to its end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from sparknet.comm.wire import choose_seal
from sparknet.errors import SparkError
from sparknet.native import NDArray
from sparknet.net.backend import EMBEDDED
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.background_job import is_classic
from sparknet.spark.cluster.session import bind_address, driver_address, is_encrypted
from sparknet.spark.hosts.crew import SparkCrew, WorkerTasks, stored
from sparknet.spark.hosts.remote_driver import RemoteDriver, reaches_client
from sparknet.spark.hosts.resources import TaskResources
from sparknet.spark.hosts.task import Columns
from sparknet.training.driver.driver import Driver
from sparknet.training.driver.membership import Elastic
from sparknet.training.driver.run import Run
from sparknet.training.driver.setup import RunSetup
from sparknet.training.settings.training import Protection, RunSettings
from sparknet.training.workers.rounds import Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def conduct(
    session: SparkSession,
    given: RunSettings,
    setup: RunSetup,
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
    resources, hosts = TaskResources(session, profile), given.hosts or given.workers
    store = setup.open_store()
    usual: Protection = "encrypted" if is_encrypted(session) else "sealed"
    make_driver: Callable[..., Driver] = Driver
    # Two slots more than a driver of this process: not for classic sessions, which executors reach.
    is_remote = not (is_classic(session) or reaches_client(session, patience))
    if is_remote:
        make_driver = partial(RemoteDriver, session=session, patience=patience)
    if profile is None and not is_classic(session):
        preflight.check_slots(session, given.min_hosts or hosts, 2 * is_remote)
    with Run(
        initial,
        store,
        given.on_event,
        resume=resume,
        seal=choose_seal(given.protection or usual),
        host=bind_address(session),
        deadline=given.deadline,
        foreign=SparkError,
        elastic=Elastic.of(given),
        make_driver=make_driver,
    ) as run:
        is_remote = isinstance(run.driver, RemoteDriver)
        link = run.link((run.driver.link.driver if is_remote else driver_address(session, 0))[0])
        preflight.check(
            session,
            hosts,
            link,
            patience,
            needed=needed * -(-given.workers // hosts),
            backend=backend,
            device=given.device,
            resources=resources,
            say=run.say,
            together=given.min_hosts is None,
        )
        spec = setup.spec(link, **changed)
        name = f"sparknet: training {setup.name}"
        with stored(session, rows) if spec.is_elastic else nullcontext(rows) as frame:
            tasks = WorkerTasks(session, frame, given, spec, columns, name, patience, resources)
            if spec.is_elastic:
                tasks.check()
            is_clean = False
            try:
                outcome, trained = run.supervise(SparkCrew(run, tasks))
                is_clean = not (spec.is_elastic or run.driver.progress.failures)
            finally:
                if not is_clean:
                    tasks.tidy()
    return outcome, trained, run


def partitions(given: RunSettings) -> int | None:
    """Return the partitions of the rows that workers read; None where each reads all of them."""
    return given.workers if given.min_hosts is None else None
