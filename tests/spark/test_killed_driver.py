"""The driver is killed in each phase: nothing of it is left, and the next one goes on."""

import pytest

pytest.importorskip("pyspark")

from tests.spark.cluster import Driver, until
from tests.spark.saboteur import (
    Act,
    Saboteur,
    at,
    at_round,
    both_read,
    kill,
    while_communicating,
    while_snapshotting,
)

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def drivers(standalone):
    started: list[Driver] = []
    yield started
    for driver in started:
        driver.close()


# More than 30 s: six drivers start one after another, and each has two executors start.
def test_drivers_killed_one_after_another(standalone, drivers, tmp_path):
    """Five are killed, each in another phase; the sixth ends as if nothing had been."""
    faults = {
        "ingest": (lambda act: act, both_read(), None),
        "computing": (lambda act: act, at_round(3), None),
        "communicating": (while_communicating, at_round(5), 2),
        "snapshotting": (lambda act: while_snapshotting(tmp_path, act), at_round(6), 4),
        "end": (lambda act: act, at("stop"), 4),
    }
    for during, when, newest in faults.values():
        driver = Driver(standalone.url, standalone.folder)
        drivers.append(driver)
        killed: Act = lambda _, driver=driver: kill(driver.process.pid)  # noqa: E731
        saboteur = Saboteur(during(killed), when)
        result = driver.fit(saboteur, snapshots=str(tmp_path), snapshot_every=2, resume=True)
        assert result == {"ended": -9}
        assert resumed(driver)[-1:] in ([], [newest])
        until(lambda driver=driver: not driver.left(), "the driver's JVM ends")
        until(lambda: not standalone.processes(), "the executors and their Python end")
        until(lambda: not standalone.files(), "their files go")
    last = Driver(standalone.url, standalone.folder)
    drivers.append(last)
    result = last.fit(snapshots=str(tmp_path), snapshot_every=2, resume=True)
    assert resumed(last) == [8]
    assert list(tmp_path.rglob(".round-*")) == []
    assert result["weights"] == last.fit()["weights"]


def resumed(driver: Driver) -> list[int | None]:
    """The rounds of the snapshots from which it went on."""
    paths: list[str | None] = [event["resumed"] for event in driver.kinds("start")]
    return [path and int(path.rpartition("-")[2]) for path in paths]
