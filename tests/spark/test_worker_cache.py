"""What a Python worker keeps."""

from __future__ import annotations

from typing import Any

import pytest

from sparknet.spark.worker_cache import cached, clear_cache


@pytest.fixture(autouse=True)
def _empty() -> None:
    clear_cache()


def test_made_once() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    assert cached("net", make) is cached("net", make) is made[0]
    clear_cache("net")
    assert cached("net", make) is made[1]


def test_the_oldest_goes_first() -> None:
    for key in range(4):
        cached(key, lambda key=key: key)
    assert cached(0, lambda: "again") == 0
    cached(4, lambda: 4)
    assert cached(0, lambda: "again") == 0
    assert cached(1, lambda: "again") == "again"


def test_a_failed_make_leaves_nothing() -> None:
    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached("net", broken)
    assert cached("net", lambda: 3) == 3


def test_survives_between_jobs_of_a_worker(spark: Any) -> None:
    def look(_: Any) -> Any:
        import os

        yield os.getpid(), cached("number", lambda: os.getpid())

    for _ in range(3):
        for pid, found in spark.sparkContext.parallelize([0, 1], 2).mapPartitions(look).collect():
            assert pid == found
