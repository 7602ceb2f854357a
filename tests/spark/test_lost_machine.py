"""A machine is lost and no other comes for a while: training says so, and goes on when one does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.spark.cluster import Cluster, Driver, Event, until

pytestmark = pytest.mark.slow


# 30 s or more: that nobody comes is said after 15, and a worker counts as lost after 20.
def test_a_run_that_waits_for_a_machine_says_so(standalone: Cluster, tmp_path: Path) -> None:
    driver = Driver(standalone.url, standalone.folder)
    lost = standalone.machines()[-1]

    def act(event: Event) -> None:
        if event["event"] == "round" and event["round"] == 3 and lost.left():
            lost.kill()
        if event["event"] == "waiting" and len(standalone.machines()) == 1:
            standalone.add_worker()

    result = driver.fit(act, snapshots=str(tmp_path / "runs"), snapshot_every=2, deadline=20)
    first = driver.kinds("waiting")[0]
    assert (first["slots"], first["needed"]) == (1, 2)
    assert 15 <= first["seconds"] < 60
    driver.said(r"(waiting for slots, there are 1 of the 2 that the workers need)")
    assert result["outcome"]["iteration"] == 80
    assert driver.events[-1]["event"] == "stop"
    driver.close()
    until(lambda: not standalone.processes(), "the executors end with their driver")
    for place in (standalone.folder / "local").iterdir():
        shutil.rmtree(place)  # a lost machine takes its disk with it
