"""What a Python worker keeps."""

import pytest

from sparknet.predict.worker_cache import cached, clear_cache


@pytest.fixture(autouse=True)
def _empty():
    clear_cache()


def test_made_once():
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    assert cached("net", make) is cached("net", make) is made[0]
    clear_cache("net")
    assert cached("net", make) is made[1]


def test_the_oldest_goes_first():
    for key in range(4):
        cached(key, lambda key=key: key)
    assert cached(0, lambda: "again") == 0
    cached(4, lambda: 4)
    assert cached(0, lambda: "again") == 0
    assert cached(1, lambda: "again") == "again"


def test_a_failed_make_leaves_nothing():
    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached("net", broken)
    assert cached("net", lambda: 3) == 3


@pytest.mark.parametrize("reads", [True, False])
def test_a_job_that_reads_its_records_keeps_its_worker(spark, reads):
    def look(records):
        import os

        made: list[int] = []
        for _ in records if reads else ():
            pass
        cached(f"reads {reads}", lambda: made.append(1))
        yield os.getpid(), len(made)

    data = spark.sparkContext.parallelize([*range(2000)], 2)
    results = [pair for _ in range(8) for pair in data.mapPartitions(look).collect()]
    processes = {process for process, _ in results}
    assert sum(made for _, made in results) == len(processes)
    assert len(processes) <= 4 if reads else len(processes) > 4  # slots of the session
