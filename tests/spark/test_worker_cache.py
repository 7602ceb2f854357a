"""What a Python worker keeps."""

from __future__ import annotations

from typing import Any

import pytest

from sparknet.spark.worker_cache import forget, kept


@pytest.fixture(autouse=True)
def _empty() -> None:
    forget()


def test_made_once() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    assert kept("net", make) is kept("net", make) is made[0]
    forget("net")
    assert kept("net", make) is made[1]


def test_the_oldest_goes_first() -> None:
    for key in range(4):
        kept(key, lambda key=key: key)
    assert kept(0, lambda: "again") == 0
    kept(4, lambda: 4)
    assert kept(0, lambda: "again") == 0
    assert kept(1, lambda: "again") == "again"


def test_a_failed_make_leaves_nothing() -> None:
    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        kept("net", broken)
    assert kept("net", lambda: 3) == 3


def test_survives_between_jobs_of_a_worker(spark: Any) -> None:
    def look(_: Any) -> Any:
        import os

        from sparknet.spark.worker_cache import kept

        yield os.getpid(), kept("number", lambda: os.getpid())

    for _ in range(3):
        for pid, found in spark.sparkContext.parallelize([0, 1], 2).mapPartitions(look).collect():
            assert pid == found
