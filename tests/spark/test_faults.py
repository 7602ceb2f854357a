"""What is killed, when, on a standalone cluster: what it costs, and what is left."""

import os
import re
import signal
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.spark.cluster import Cluster, Driver, Event, alive, until
from tests.spark.saboteur import (
    Saboteur,
    at,
    at_round,
    both_read,
    kill_executor,
    kill_worker,
    while_communicating,
    while_snapshotting,
)

pytestmark = pytest.mark.slow

LIMIT = {"snapshot_every": 2, "deadline": 20}


@pytest.fixture(scope="module")
def driver(standalone):
    """One for all faults that it should survive."""
    driver = Driver(standalone.url, standalone.folder)
    yield driver
    driver.close()
    assert driver.left() == []
    until(lambda: not standalone.processes(), "the executors end with their driver")


@pytest.fixture(scope="module")
def whole(driver):
    """What a run without faults gives."""
    return driver.fit()


def resumed(driver: Driver) -> list[int]:
    """The rounds from which attempts began.

    A worker whose executor was killed lives for a moment, and may come as far as the end.
    """
    paths: list[str | None] = [event["resumed"] for event in driver.kinds("start")]
    return [int(path.rpartition("-")[2]) if path else 0 for path in paths]


def is_clean(standalone: Cluster, result: Event, whole: Event, folder: Path) -> None:
    """Nothing of a run is left: neither in the driver nor on the executors nor at the store.

    The sockets are those that PySpark keeps after a run without faults.
    """
    assert result["left"] == {"threads": 0, "sockets": whole["left"]["sockets"]}
    until(lambda: not standalone.files(), "the workers' files go")
    assert list(folder.rglob(".round-*")) == []


WHO = {"worker 0": kill_worker(0), "executor 1": kill_executor(1)}


@pytest.mark.parametrize("phase", ["ingest", "computing", "communicating", "snapshotting", "end"])
@pytest.mark.parametrize("who", WHO)
def test_a_killed_worker_costs_no_more_than_since_the_snapshot(
    standalone, driver, whole, tmp_path, who, phase
):
    act, when = {
        "ingest": (WHO[who], both_read()),
        "computing": (WHO[who], at_round(5)),
        "communicating": (while_communicating(WHO[who]), at_round(5)),
        "snapshotting": (while_snapshotting(tmp_path, WHO[who]), at_round(4)),
        "end": (WHO[who], at("stop")),
    }[phase]
    saboteur = Saboteur(act, when)
    result = driver.fit(saboteur, snapshots=str(tmp_path), **LIMIT)
    assert saboteur.done
    assert result.get("weights") == whole["weights"], result
    least = {"ingest": 0, "computing": 4, "communicating": 4, "snapshotting": 2, "end": 8}[phase]
    assert all(round >= least for round in resumed(driver)[1:])
    is_clean(standalone, result, whole, tmp_path)


@pytest.mark.parametrize("phase", ["computing", "communicating"])
def test_streaming_diloco_after_the_loss_of_an_executor(standalone, driver, whole, tmp_path, phase):
    """A mean was under way beside the training; a later run goes on from the last snapshot."""
    streaming = {"chosen": "diloco", "steps": 8, "fragments": 2, "overlap": 2, "codec": "int8"}
    undisturbed = driver.fit(strategy=streaming)
    act = kill_executor(1) if phase == "computing" else while_communicating(kill_executor(1))
    saboteur = Saboteur(act, at_round(5))
    result = driver.fit(saboteur, strategy=streaming, snapshots=str(tmp_path), **LIMIT)
    assert saboteur.done
    assert result.get("weights") == undisturbed["weights"], result
    begun, again = resumed(driver)
    assert begun == 0
    assert again >= 4
    assert again % 2 == 0
    is_clean(standalone, result, whole, tmp_path)


def test_a_worker_that_dies_every_time(driver, standalone):
    """Spark runs the stage four times; then one sentence says so, with the last words."""
    saboteur = Saboteur(kill_worker(1), at_round(2))

    def every_time(event: Event) -> None:
        saboteur.done = False
        saboteur(event)

    result = driver.fit(every_time)
    assert result["error"] == "SparkError"
    assert re.fullmatch(
        r"the Spark job failed 4 times in a row \(spark.stage.maxConsecutiveAttempts\); "
        r"the last words: worker 1 on 127.0.0.1:\d+ is lost: .* \(worker 0\)",
        result["message"],
    )
    assert [event["attempt"] for event in driver.kinds("workers")] == [1, 2, 3, 4]
    assert result["left"]["threads"] == 0
    until(lambda: not standalone.files(), "the workers' files go")


@pytest.mark.parametrize("phase", ["ingest", "computing"])
def test_a_worker_that_hangs_is_noticed_within_the_deadline(driver, whole, tmp_path, phase):
    saboteur = Saboteur(
        lambda saboteur: os.kill(saboteur.workers[1], signal.SIGSTOP),
        both_read() if phase == "ingest" else at_round(5),
    )
    settings = {"snapshots": str(tmp_path), "snapshot_every": 2, "deadline": 3}
    result = driver.fit(saboteur, **settings)
    assert result.get("weights") == whole["weights"], result
    (failure,) = driver.kinds("failure")
    assert re.search("(no heartbeat for|did not come within) 3 s", failure["message"])
    until(lambda: not alive(saboteur.workers[1]), "what hung is killed")


def test_an_interruption_leaves_a_snapshot_from_which_a_later_run_goes_on(driver, whole, tmp_path):
    """Ctrl-C in the driver: Spark's own handler would cancel the job."""
    interrupt = Saboteur(lambda _: os.kill(driver.process.pid, signal.SIGINT), at_round(3))
    result = driver.fit(interrupt, snapshots=str(tmp_path))
    assert result["error"] == "Interrupted"
    assert re.fullmatch(r"interrupted at iteration \d+; left: .*/round-0\d+; .*", result["message"])
    again = driver.fit(snapshots=str(tmp_path), resume=True)
    assert again["weights"] == whole["weights"]
