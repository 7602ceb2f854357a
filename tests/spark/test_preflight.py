"""What is looked at before a job."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import sparknet
from sparknet.errors import SparkError
from sparknet.spark import preflight
from tests.spark.conftest import SLOTS


@pytest.fixture
def driver() -> Iterator[tuple[str, int]]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()


def test_what_the_workers_find(spark: Any, driver: tuple[str, int]) -> None:
    found = preflight.check(spark, 3, driver)
    assert [finding["worker"] for finding in found] == [0, 1, 2]
    assert len({finding["process"] for finding in found} - {os.getpid()}) == 3
    assert {finding["sparknet"] for finding in found} == {sparknet.__version__}
    assert all(finding["unreached"] == [] for finding in found)


def test_too_few_slots(spark: Any, driver: tuple[str, int]) -> None:
    assert preflight.slots_of(spark) == SLOTS
    with pytest.raises(SparkError, match=rf"9 workers need as many slots .* there are {SLOTS} "):
        preflight.check(spark, 9, driver)


def test_no_workers(spark: Any, driver: tuple[str, int]) -> None:
    with pytest.raises(SparkError, match="workers is 0"):
        preflight.check(spark, 0, driver)


def test_a_driver_out_of_reach(spark: Any) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = listener.getsockname()
    with pytest.raises(SparkError, match=r"cannot reach the driver at 127.0.0.1:\d+: set spark.dr"):
        preflight.check(spark, 1, address)


def test_workers_that_do_not_start(spark: Any, driver: tuple[str, int]) -> None:
    with pytest.raises(SparkError, match=r"2 workers did not start together within 0 s"):
        preflight.check(spark, 2, driver, patience=0)


def test_other_versions(
    spark: Any, driver: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparknet, "__version__", "9.9")
    with pytest.raises(SparkError, match=r"worker 0 on .* has sparknet .*, the driver 9.9"):
        preflight.check(spark, 1, driver)


def test_failures_in_one_sentence() -> None:
    assert "cannot import sparknet" in str(
        preflight.translated(Exception("x\nModuleNotFoundError: No module named 'sparknet'\n\tat"))
    )
    assert str(preflight.translated(Exception("Traceback\nValueError: no\n\n\tat org"))) == (
        "the Spark job failed: ValueError: no"
    )
