"""A machine is lost and no other comes for a while: training says so, and goes on when one does."""

import json
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from tests.spark.cluster import PATIENCE, Driver, Event, environment, until
from tests.spark.test_net_rdd import ROUNDS, STEPS

pytestmark = pytest.mark.slow


def test_nets_of_a_killed_executor_are_made_again(standalone, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.rdd_loop", standalone.url, str(tmp_path / "killed")],
        env=environment(standalone.folder),
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
        check=True,
    )
    assert (tmp_path / "killed").exists()
    told = json.loads(done.stdout.splitlines()[-1])
    assert len(told) == 2
    assert 1 <= sum(lost for _, lost, _ in told) <= 2
    for built, lost, iteration in told:
        assert built > lost
        assert iteration == STEPS * ROUNDS  # it goes on where the last mean was


# 30 s or more: that nobody comes is said after 15, and a worker counts as lost after 20.
def test_a_run_that_waits_for_a_machine_says_so(standalone, tmp_path):
    driver = Driver(standalone.url, standalone.folder)
    lost = standalone.machines()[-1]

    def act(event: Event) -> None:
        if event["event"] == "round" and event["round"] == 3 and lost.left():
            lost.kill()
        if event["event"] == "waiting" and len(standalone.machines()) == 1:
            standalone.add_worker()

    result = driver.fit(act, snapshots=str(tmp_path / "runs"), snapshot_every=2, deadline=20)
    # On a busy machine the start is waited for as well, with both slots there.
    first = next(event for event in driver.kinds("waiting") if event["slots"] == 1)
    assert first["needed"] == 2
    assert 15 <= first["seconds"] < 60
    driver.said(r"(waiting for slots, there are 1 of the 2 that the workers need)")
    assert result["outcome"]["iteration"] == 80
    assert driver.events[-1]["event"] == "stop"
    driver.close()
    until(lambda: not standalone.processes(), "the executors end with their driver")
    for place in (standalone.folder / "local").iterdir():
        shutil.rmtree(place)  # a lost machine takes its disk with it
