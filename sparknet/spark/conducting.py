"""conduct: a training by tasks of Spark, from its begin to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.native import NDArray
from sparknet.net.backend import EMBEDDED
from sparknet.spark import preflight
from sparknet.spark.address import bind_address, driver_address, is_encrypted
from sparknet.spark.launcher import SparkWorkers
from sparknet.spark.task import Columns
from sparknet.training.beginning import Beginning
from sparknet.training.run import Run
from sparknet.training.training_settings import Protection, RunSettings
from sparknet.training.wire import choose_seal
from sparknet.training.worker import Outcome

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
    **changed: Any,
) -> tuple[Outcome, NDArray, Run]:
    """Train on numbered rows, a partition for each worker; how it ended and with which weights.

    Workers may take ``patience`` seconds to start, and need so many bytes of memory.
    """
    store = begun.open_store()
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
    ) as run:
        link = run.link(driver_address(session, 0)[0])
        preflight.check(
            session,
            given.workers,
            link,
            patience,
            needed=needed,
            backend=backend,
            say=run.say,
        )
        spec = begun.spec(link, **changed)
        workers = SparkWorkers(
            session, rows, given.workers, run, spec, columns, f"sparknet: training {begun.name}"
        )
        outcome, trained = run.supervise(workers)
    return outcome, trained, run
