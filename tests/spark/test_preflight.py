"""What is looked at before a job."""

import os
import socket
from contextlib import closing
from typing import Any

import pytest

import sparknet
from sparknet.comm.handshake import make_secret
from sparknet.comm.rpc import Link
from sparknet.comm.wire import choose_seal
from sparknet.errors import SettingError, SparkError
from sparknet.spark import Trainer
from sparknet.spark.cluster import preflight, probe
from sparknet.training.driver.driver import Driver
from tests.spark.conftest import SLOTS

SECRET = make_secret()


@pytest.fixture
def link():
    with Driver(linked("127.0.0.1", 0), memoryview(b""), None, lambda _: None) as driver:
        yield driver.link


def linked(host: str, port: int) -> Link:
    return Link("", (host, port), SECRET, choose_seal("sealed"))


def test_what_the_workers_find(spark, link):
    found = preflight.check(spark, 3, link)
    assert [finding["worker"] for finding in found] == [0, 1, 2]
    assert len({finding["process"] for finding in found} - {os.getpid()}) == 3
    assert {finding["sparknet"] for finding in found} == {sparknet.__version__}
    assert all(finding["unreached"] == [] for finding in found)


def test_too_few_slots(spark, link):
    assert preflight.slots_of(spark) == SLOTS
    with pytest.raises(SparkError, match=rf"9 workers need as many slots .* there are {SLOTS} "):
        preflight.check(spark, 9, link)


def test_too_few_slots_behind_spark_connect(session):
    preflight.check_slots(session, SLOTS - 2, 2)
    said = rf"9 workers and 2 tasks by which they meet need 11 slots .* there are {SLOTS} "
    with pytest.raises(SparkError, match=said):
        preflight.check_slots(session, 9, 2)
    with pytest.raises(SparkError, match=rf"^9 workers need 9 slots at once, .* are {SLOTS} "):
        preflight.check_slots(session, 9)


def test_no_workers(spark, link):
    for workers in (0, 2.0, "2", None):
        with pytest.raises(SparkError, match=f"workers is {workers!r}: a whole number"):
            preflight.check(spark, workers, link)


def test_a_driver_out_of_reach(spark):
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        address = listener.getsockname()
    with pytest.raises(SparkError, match=r"cannot reach the driver at 127.0.0.1:\d+: set spark.dr"):
        preflight.check(spark, 1, linked(*address))


def test_workers_that_do_not_start(spark, link):
    with pytest.raises(SparkError, match=r"2 workers did not start together within 0 s"):
        preflight.check(spark, 2, link, patience=0)


class Clocked(preflight.Start):
    """The wait for workers of which there are slots for one, on a clock of its own."""

    def __init__(self, patience, slots, monkeypatch):
        self.now, self.said = 1000.0, list[Any]()
        monkeypatch.setattr(preflight, "slots_of", lambda *_: slots)
        monkeypatch.setattr(preflight, "is_classic", lambda _: True)
        super().__init__(None, 2, patience, self.said.append, lambda: self.now)

    def after(self, seconds: float) -> bool:
        self.now += seconds
        return self.is_over()


def test_the_wait_for_workers_is_told_and_has_its_limit(monkeypatch):
    start = Clocked(600, 1, monkeypatch)
    assert [start.after(1) for _ in range(599)] == [False] * 599
    assert [event["seconds"] for event in start.said] == [15, 30, 60, 120, 240, 480]
    assert {(event["event"], event["slots"], event["needed"]) for event in start.said} == {
        ("waiting", 1, 2)
    }
    assert start.pause == pytest.approx(0.2)
    assert start.after(0.9) is False
    assert start.pause == pytest.approx(0.1)
    assert start.after(0.1) is True
    assert Clocked(None, 1, monkeypatch).after(1e9) is False


def test_a_limit_that_is_no_time():
    for wrong in (-1, "1", float("nan")):
        with pytest.raises(SettingError, match=f"start_timeout must be .*, not {wrong!r}"):
            Trainer("", start_timeout=wrong)


def test_other_versions(spark, link, monkeypatch):
    monkeypatch.setattr(sparknet, "__version__", "9.9")
    with pytest.raises(SparkError, match=r"worker 0 on .* has sparknet .*, the driver 9.9"):
        preflight.check(spark, 1, link)


def test_failures_in_one_sentence():
    assert "cannot import sparknet" in str(
        preflight.translated(Exception("x\nModuleNotFoundError: No module named 'sparknet'\n\tat"))
    )
    assert str(
        preflight.translated(
            Exception("Traceback (most recent call last):\nValueError: no\n\n\tat org")
        )
    ) == ("the Spark job failed: ValueError: no")
    java = (
        "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: "
        "File /x is gone\n\tat org\nCaused by: java.io.Exception: \nno"
    )
    assert str(preflight.translated(Exception(java))) == "the Spark job failed: File /x is gone"
    python = "x\nTraceback (most recent call last):\n  File\nmine.Bad: 3\n\n\tat org"
    assert str(preflight.translated(Exception(python))) == "the Spark job failed: mine.Bad: 3"
    own = "Traceback (most recent call last):\n  File\nsparknet.errors.SparkError: that is it\n"
    assert str(preflight.translated(Exception(own))) == "that is it"


def test_an_address_is_reached_where_somebody_listens():
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        assert probe._reaches(server.getsockname())
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        assert not probe._reaches(bound.getsockname())
