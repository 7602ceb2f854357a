"""A machine is lost and no other comes for a while: training says so, and goes on when one does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.spark.cluster import Driver, Event, cluster

pytestmark = pytest.mark.slow


def test_a_run_that_waits_for_a_machine_says_so(tmp_path: Path) -> None:
    if shutil.which("java") is None or not Path("/proc/self").exists():
        pytest.skip("a cluster needs a Java on the PATH, and its processes are looked up in /proc")
    with cluster(tmp_path) as running:
        driver = Driver(running.url, tmp_path)
        lost = running.services[1]

        def act(event: Event) -> None:
            if event["event"] == "round" and event["round"] == 3 and lost.left():
                lost.kill()
            if event["event"] == "waiting" and len(running.services) == 3:
                running.add_worker()

        result = driver.fit(act, snapshots=str(tmp_path / "runs"), snapshot_every=2, deadline=20)
        first = driver.kinds("waiting")[0]
        assert (first["slots"], first["needed"]) == (1, 2)
        assert 15 <= first["seconds"] < 30
        driver.said(r"(waiting for slots, there are 1 of the 2 that the workers need)")
        assert result["outcome"]["iteration"] == 80
        assert driver.events[-1]["event"] == "stop"
        driver.close()
