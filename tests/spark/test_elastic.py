"""Runs that go on with the machines that there are, on a standalone cluster."""

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import pairwise

import pytest

pytest.importorskip("pyspark")

from tests.spark import recorder
from tests.spark.cluster import Cluster, Driver, Event, Service, parent, until

pytestmark = pytest.mark.slow

ENOUGH = 30.0
"""Seconds that nothing may take longer to wait."""
BATCH = 20


def add_machine(standalone: Cluster) -> Service:
    return standalone.add_worker()


@pytest.fixture
def driver(standalone):
    """With two machines, before and afterwards."""
    with closing(Driver(standalone.url, standalone.folder, spark_cores_max="8")) as driver:
        yield driver
    until(lambda: not standalone.processes(), "the executors end with their driver")
    for place in (standalone.folder / "local").iterdir():
        shutil.rmtree(place)  # a lost machine takes its disk with it
    while len(standalone.machines()) < 2:
        add_machine(standalone).said("(Successfully registered with master)")
    for service in standalone.machines()[2:]:
        service.kill()


def longest_pause(driver: Driver) -> float:
    """The most seconds between two events since the workers first met."""
    times = [event["time"] for event in driver.events]
    begun = driver.kinds("workers")[0]["time"]
    return float(max(after - before for before, after in pairwise(times) if before >= begun))


def each_step_counts_once(driver: Driver, workers: int = 3) -> None:
    (stop,) = driver.kinds("stop")
    assert stop["total_samples"] == stop["iteration"] * workers * BATCH


def settings(folder, seconds=0.03, slow=0.0, **more):
    (folder / "steps").mkdir()
    noted = {"folder": str(folder / "steps"), "seconds": seconds, "slow": slow}
    usual = {"workers": 3, "min_hosts": 1, "deadline": 20}
    return {**usual, "recorder": noted, **more}


def test_a_machine_that_is_lost_for_good(standalone, driver, tmp_path):
    lost = add_machine(standalone)

    def act(event: Event) -> None:
        if event["event"] == "round" and event["round"] == 3 and lost.left():
            lost.kill()

    result = driver.fit(act, **settings(tmp_path, min_hosts=2))
    assert result["outcome"]["iteration"] == 80, result
    assert [event["hosts"] for event in driver.kinds("generation")] == [3, 2]
    assert len(driver.kinds("lost")) == len(driver.kinds("start")) == 1
    assert longest_pause(driver) < ENOUGH
    each_step_counts_once(driver)
    assert result["left"]["threads"] == 0


def test_a_machine_that_comes_in_the_middle(standalone, driver, tmp_path):
    come: list[Service] = []

    def act(event: Event) -> None:
        if event["event"] == "round" and event["round"] == 5 and not come:
            come.append(add_machine(standalone))
        if event["event"] == "round" and len(with_hosts(driver, 3)) == 6:
            os.kill(driver.process.pid, signal.SIGINT)

    result = driver.fit(act, **settings(tmp_path, 0.25, steps=100_000, start_wait=1, min_hosts=2))
    assert result["error"] in ("Interrupted", "KeyboardInterrupt"), result
    assert len(driver.kinds("joined")) == 1
    kinds = [one["event"] for one in driver.events]
    taken = next(place for place, one in enumerate(driver.events) if one.get("hosts") == 3)
    assert kinds[kinds.index("joined") : taken].count("round") <= 2
    each_step_counts_once(driver)


def with_hosts(driver: Driver, count: int) -> list[Event]:
    """The rounds of so many hosts."""
    rounds, hosts = [], 0
    for event in driver.events:
        hosts = event["hosts"] if event["event"] == "generation" else hosts
        if event["event"] == "round" and hosts == count:
            rounds.append(event)
    return rounds


@pytest.mark.long
def test_machines_that_come_and_go(standalone, driver, tmp_path):
    """For five minutes."""
    come_and_go(standalone, driver, tmp_path, times=15, every=20)


def come_and_go(standalone, driver, folder, times, every, **more):
    """One machine is killed and another started, again and again."""
    due = [0.0, 0.0]

    def act(event: Event) -> None:
        due[1] = due[1] or (event["event"] == "round") * event["time"]
        late = event["event"] == "round" and event["time"] > due[1] + (due[0] + 1) * every
        if late and driver.kinds("generation")[-1]["hosts"] > 1:
            due[0] += 1
            if due[0] > times:
                os.kill(driver.process.pid, signal.SIGINT)
            else:
                standalone.machines()[0].kill()
                add_machine(standalone)

    result = driver.fit(act, **settings(folder, steps=1_000_000, start_wait=1, **more))
    assert result["error"] in ("Interrupted", "KeyboardInterrupt"), result
    assert len(driver.kinds("lost")) >= times
    assert [one["generation"] for one in driver.kinds("generation")] == [
        number + 1 for number in range(len(driver.kinds("generation")))
    ]
    assert longest_pause(driver) < ENOUGH
    each_step_counts_once(driver)


def test_a_worker_whose_executor_is_decommissioned_hands_in_its_work(standalone, tmp_path):
    told: list[int] = []

    def act(event: Event) -> None:
        if event["event"] == "round" and len(event["workers"]) == 2 and not told:
            told.append(driver.kinds("workers")[-1]["workers"][1]["process"])
            os.kill(parent(parent(told[0])), signal.SIGPWR)
        if event["event"] == "round" and driver.kinds("left"):
            os.kill(driver.process.pid, signal.SIGINT)

    spark = {"spark_decommission_enabled": "true", "spark_cores_max": "2"}
    with closing(Driver(standalone.url, standalone.folder, **spark)) as driver:
        result = driver.fit(act, **settings(tmp_path, steps=100_000, workers=2, start_wait=60))
        assert result["error"] in ("Interrupted", "KeyboardInterrupt"), result
        assert driver.kinds("lost") == []
        assert len(driver.kinds("left")) == 1
        each_step_counts_once(driver, 2)
    until(lambda: not standalone.processes(), "the executors end with their driver")


# 90 s on a busy machine.
@pytest.mark.long
def test_two_applications_that_each_hold_half_of_the_machines(standalone):
    """One gives up after its start_timeout; when its application ends the other one goes on."""
    spark = {
        "spark_dynamicAllocation_enabled": "true",
        "spark_dynamicAllocation_shuffleTracking_enabled": "true",
        "spark_dynamicAllocation_minExecutors": "1",
        "spark_executor_cores": "1",
    }
    settings = {"workers": 2, "min_hosts": 2, "start_wait": 1, "deadline": 20}
    with (
        closing(Driver(standalone.url, standalone.folder, **spark)) as second,
        ThreadPoolExecutor(1) as threads,
    ):
        with closing(Driver(standalone.url, standalone.folder, **spark)) as first:
            until(lambda: len(standalone.processes()) == 2, "each has a machine")
            stays = threads.submit(partial(second.fit, **settings))
            gave_up = first.fit(**settings, start_timeout=20)
        trained = stays.result()
    assert gave_up["error"] == "SparkError"
    assert "at least 2 workers need as many slots at once" in gave_up["message"]
    assert first.kinds("start") == []
    assert trained["outcome"]["iteration"] == 80, trained
    assert len(second.kinds("start")) == 1
    until(lambda: not standalone.processes(), "the executors end with their driver")


@pytest.mark.long
def test_they_come_and_go_under_dynamic_allocation_beside_a_slow_worker(standalone, tmp_path):
    spark = {
        "spark_dynamicAllocation_enabled": "true",
        "spark_dynamicAllocation_shuffleTracking_enabled": "true",
        "spark_dynamicAllocation_initialExecutors": "1",
        "spark_executor_cores": "1",
    }
    with closing(Driver(standalone.url, standalone.folder, **spark)) as driver:
        come_and_go(standalone, driver, tmp_path, times=2, every=8, slow=0.3)
        steps = recorder.steps(tmp_path / "steps")
        assert (tmp_path / "steps" / "slow").exists()
        assert len(steps) > 2
    until(lambda: not standalone.processes(), "the executors end with their driver")
