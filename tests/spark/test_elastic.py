"""Runs that go on with the machines that there are, on a standalone cluster."""

import os
import shutil
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.spark import recorder
from tests.spark.cluster import Cluster, Driver, Event, Service, parent, until

pytestmark = pytest.mark.slow

ENOUGH = 30.0
"""Seconds that nothing may take longer to wait."""
RECORDS, BATCH, STEPS = 200, 20, 10


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


def used(driver: Driver, folder: Path) -> Counter[int]:
    """How often each record was trained on, in the rounds that were finished."""
    steps: Counter[int] = Counter()
    members: list[int] = []
    for event in driver.events:
        if event["event"] == "workers":
            members = [one["process"] for one in event["workers"]]
        if event["event"] == "round":
            for process, one in zip(members, event["workers"], strict=True):
                steps[process] += one["steps"]
    noted = recorder.steps(folder)
    return Counter(
        number
        for process, count in steps.items()
        for step in noted[process][:count]
        for number in step
    )


def each_once_in_an_epoch(driver: Driver, folder: Path) -> None:
    counts, total = used(driver, folder), driver.kinds("stop")[0]["total_samples"]
    assert sum(counts.values()) == total
    epochs = total // RECORDS
    assert {counts[number] for number in range(RECORDS)} <= {epochs, epochs + 1}


def settings(folder: Path, seconds: float = 0.03, slow: float = 0.0, **more: Any) -> dict[str, Any]:
    (folder / "steps").mkdir()
    noted = {"folder": str(folder / "steps"), "seconds": seconds, "slow": slow}
    usual = {"workers": 3, "min_workers": 1, "deadline": 20}
    return {**usual, "recorder": noted, **more}


def test_a_machine_that_is_lost_for_good(standalone, driver, tmp_path):
    lost = add_machine(standalone)

    def act(event: Event) -> None:
        if event["event"] == "round" and event["round"] == 3 and lost.left():
            lost.kill()

    result = driver.fit(act, **settings(tmp_path, min_workers=2))
    assert result["outcome"]["iteration"] == 80, result
    assert [event["workers"] for event in driver.kinds("generation")] == [3, 2]
    assert len(driver.kinds("lost")) == len(driver.kinds("start")) == 1
    assert longest_pause(driver) < ENOUGH
    each_once_in_an_epoch(driver, tmp_path / "steps")
    assert result["left"]["threads"] == 0


SEEDS = (1, 2, 3)
POINTS = 0.3


@pytest.mark.long
@pytest.mark.usefixtures("mnist")
def test_accuracy_after_a_machine_is_lost(standalone, driver):
    """LeNet by three workers, one of which is lost in the middle: as many samples are seen, and as
    many digits are recognised."""
    settings: Any = {"workers": 3, "min_workers": 2, "steps": 1000, "deadline": 20}
    apart = []
    for seed in SEEDS:
        while len(standalone.machines()) < 3:
            add_machine(standalone)
        whole = driver.fit(lenet=seed, start_wait=120, **settings)
        seen = driver.kinds("stop")[0]["total_samples"]
        assert [len(one["workers"]) for one in driver.kinds("round")] == [3] * 100
        lost = standalone.machines()[-1]

        def act(event: Event, lost: Service = lost) -> None:
            if event["event"] == "round" and event["round"] == 50 and lost.left():
                lost.kill()

        after = driver.fit(act, lenet=seed, start_wait=120, **settings)
        assert len(driver.kinds("round")[-1]["workers"]) == 2
        assert longest_pause(driver) < ENOUGH
        assert driver.kinds("stop")[0]["total_samples"] == pytest.approx(seen, rel=0.01)
        accuracies = [one["outcome"]["metrics"]["accuracy"] for one in (whole, after)]
        print(f"seed {seed}: {100 * accuracies[0]:.2f} % and {100 * accuracies[1]:.2f} %")
        apart.append(100 * (accuracies[1] - accuracies[0]))
    assert abs(sum(apart)) / len(apart) <= POINTS, apart


def speed(rounds: list[Event]) -> float:
    """Records a second."""
    first, last = rounds[0], rounds[-1]
    return float((last["total_samples"] - first["total_samples"]) / (last["time"] - first["time"]))


def test_a_machine_that_comes_in_the_middle(standalone, driver, tmp_path):
    come: list[Service] = []

    def act(event: Event) -> None:
        if event["event"] == "round" and event["round"] == 5 and not come:
            come.append(add_machine(standalone))
        if event["event"] == "round" and len(of_three(driver)) == 6:
            os.kill(driver.process.pid, signal.SIGINT)

    result = driver.fit(act, **settings(tmp_path, 0.25, steps=100_000, start_wait=1, min_workers=2))
    assert result["error"] in ("Interrupted", "KeyboardInterrupt"), result
    kinds = [event["event"] for event in driver.events]
    came = [place for place, kind in enumerate(kinds) if kind == "reading"][2]
    assert kinds[came : kinds.index("joined")].count("round") <= 2
    before = [one for one in driver.kinds("round") if len(one["workers"]) == 2]
    assert speed(of_three(driver)) > 1.2 * speed(before[1:])
    each_once_in_an_epoch(driver, tmp_path / "steps")


def of_three(driver: Driver) -> list[Event]:
    return [one for one in driver.kinds("round") if len(one["workers"]) == 3]


@pytest.mark.long
def test_machines_that_come_and_go(standalone, driver, tmp_path):
    """For five minutes."""
    come_and_go(standalone, driver, tmp_path, times=15, every=20)


def come_and_go(
    standalone: Cluster, driver: Driver, folder: Path, times: int, every: float, **more: Any
) -> None:
    """One machine is killed and another started, again and again."""
    due = [0.0, 0.0]

    def act(event: Event) -> None:
        due[1] = due[1] or (event["event"] == "round") * event["time"]
        late = event["event"] == "round" and event["time"] > due[1] + (due[0] + 1) * every
        if late and len(event["workers"]) > 1:
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
    rounds = [event["round"] for event in driver.kinds("round")]
    assert rounds == [*range(1, len(rounds) + 1)]
    assert longest_pause(driver) < ENOUGH
    each_once_in_an_epoch(driver, folder / "steps")


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
        each_once_in_an_epoch(driver, tmp_path / "steps")
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
    settings: Any = {"workers": 2, "min_workers": 2, "start_wait": 1, "deadline": 20}
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
