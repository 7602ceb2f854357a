"""The driver's end of a run, over real connections."""

import socket
import struct
import threading
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sparknet.comm.handshake import DRIVER, MESH, PREFLIGHT, Caller, call, dial, make_secret
from sparknet.comm.rpc import Line, Link
from sparknet.comm.wire import HMAC, Wire
from sparknet.errors import CommError, SettingError
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.driver.driver import Driver, DriverStore
from sparknet.training.driver.rendezvous import Presence
from sparknet.training.workers.worker import _tell

SECRET = make_secret()
LINK = Link("", ("127.0.0.1", 0), SECRET, HMAC)


@pytest.fixture
def events():
    return []


@pytest.fixture
def driver(tmp_path, events):
    threads = {*threading.enumerate()}
    weights = memoryview(bytes(range(100)))
    with Driver(LINK, weights, FolderStore(tmp_path), events.append) as driver:
        yield driver
    assert {*threading.enumerate()} <= threads  # those of an earlier test may end meanwhile


def called(driver: Driver, secret: bytes = SECRET) -> Line:
    return replace(driver.link, secret=secret).dial(0)


@pytest.fixture
def line(driver):
    line = called(driver)
    yield line
    line.close()


def test_weights_go_out_and_come_home(driver, line):
    assert line.call("initial")[1] == bytes(range(100))
    trained = bytes(range(100, 200))
    line.call("done", [memoryview(trained)], outcome={"round": 3})
    assert driver.progress.outcome == {"round": 3}
    assert driver.progress.weights == trained


def test_weights_of_another_size_are_refused(driver, line):
    with pytest.raises(CommError):
        line.call("done", [memoryview(bytes(99))], outcome={})
    assert driver.progress.weights is None


def test_events_arrive_in_order(driver, line, events):
    for number in range(20):
        line.call("event", event={"event": "round", "round": number})
    assert [event["round"] for event in events] == list(range(20))


def test_interrupts_are_seen(driver, line):
    assert line.call("interrupted")[0] == {"interrupted": False}
    driver.interrupt()
    assert line.call("interrupted")[0] == {"interrupted": True}


def test_a_store_at_the_driver(line, tmp_path):
    store = DriverStore(line)
    assert store.rounds() == []
    store.begin(4)
    big = bytes(3 << 20)
    store.put(4, "worker-0.state", iter([b"head", memoryview(big)]))
    store.commit(4)
    assert store.rounds() == [4]
    assert bytes(store.get(4, "worker-0.state")) == b"head" + big
    assert store.path(4) == str(tmp_path / "round-00000004")
    store.drop(4)
    assert store.rounds() == []
    with pytest.raises(CommError, match=r"refused 'get': .*round-00000004.* No such file"):
        store.get(4, "worker-0.state")


def begin(line):
    return Presence(line, "training", 1, "a", 60.0).meet()


def test_a_run_starts_from_the_newest_snapshot_only_when_run_again(driver, line):
    store = DriverStore(line)
    store.begin(2)
    store.commit(2)
    assert begin(line) == {"workers": [None], "resume": None, "own": True, "attempt": 1}
    line.call("failed", failure={"worker": 0, "type": "PeerLost", "message": "gone"})
    with closing(called(driver)) as another:
        assert begin(another) == {"workers": [None], "resume": 2, "own": True, "attempt": 2}


@pytest.mark.parametrize("name", ["../x", "/etc/x", ".hidden", "", "a/b"])
def test_names_lead_nowhere_else(line, name, tmp_path):
    line.call("begin", round=1)
    with pytest.raises(CommError, match="refused 'put'"):
        line.call("put", [memoryview(b"x")], round=1, name=name, size=1)
    assert line.call("rounds")[0] == {"rounds": []}


def strange(port: int, said: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(said)
        connection.settimeout(10)
        found = b""
        with suppress(ConnectionResetError):  # with what it has not read
            while piece := connection.recv(4096):
                found += piece
        return found


def test_strangers_are_hung_up_on(driver, line):
    with pytest.raises(CommError, match="does not take this worker"):
        called(driver, b"wrong")
    assert len(strange(driver.link.driver[1], b"GET / HTTP/1.1\r\n" * 6)) == 48
    assert line.call("interrupted")[0] == {"interrupted": False}


def test_nonsense_from_one_who_knows_the_secret(driver, line):
    for said in (struct.pack("!IQ", 1 << 31, 0), struct.pack("!IQ", 3, 0) + b"[1]", b"xx"):
        other = called(driver)
        other._wire.send(said)
        if len(said) > 2:
            assert other._wire.connection.recv(1) == b""
        other.close()
    with pytest.raises(CommError, match="hung up"):
        called(driver).call("nothing")
    assert line.call("interrupted")[0] == {"interrupted": False}


def test_a_driver_that_is_gone(tmp_path):
    with Driver(LINK, memoryview(b""), None, lambda _: None) as driver:
        line = called(driver)
    with pytest.raises(CommError, match="the driver"):
        line.call("interrupted")
    with pytest.raises(CommError, match="cannot be reached"):
        called(driver)


def test_a_driver_with_too_many_open_files_hears_callers_later(driver):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with closing(socket.socket()) as caller:
        resource.setrlimit(resource.RLIMIT_NOFILE, (caller.fileno() + 1, hard))
        try:
            caller.connect(driver.link.driver)
            while not driver.trouble[0]:
                pass
            assert driver.trouble[1] == "Too many open files"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        keys = call(caller, SECRET, Caller(DRIVER, "", 0))
        assert Line(Wire(caller, keys, HMAC), 0, DRIVER).call("initial")[1] == bytes(range(100))
    assert driver.trouble == (0.0, "")


def test_a_driver_without_threads_hears_callers_later(driver, monkeypatch):
    refused = threading.Event()
    start = threading.Thread.start

    def once(thread: threading.Thread) -> None:
        if not refused.is_set() and thread.name.startswith("sparknet-line"):
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", once)
    with closing(called(driver)) as line:
        assert line.call("initial")[1] == bytes(range(100))
    assert refused.is_set()


def test_silent_strangers_do_not_keep_a_worker_out(driver):
    address = driver.link.driver
    with ExitStack() as strangers:
        for _ in range(200):
            strangers.enter_context(socket.create_connection(address))
        with closing(called(driver)) as line:
            assert line.call("interrupted")[0] == {"interrupted": False}


def test_a_preflight_line_cannot_be_used_for_more(driver):
    link = driver.link
    with (
        closing(link.dial(0, PREFLIGHT)) as line,
        pytest.raises(CommError, match="hung up"),
    ):
        line.call("initial")
    with (
        closing(link.dial(0, PREFLIGHT)) as line,
        pytest.raises(CommError, match="another purpose"),
    ):
        Presence(line, "training", 1, "a", 60.0).meet()


@pytest.mark.parametrize("who", [Caller(MESH, "", 0), Caller(DRIVER, "other", 0)])
def test_a_caller_of_another_purpose_or_run_is_no_worker(driver, who):
    with pytest.raises(CommError, match="does not take this worker"):
        dial(driver.link.driver, SECRET, who)


@pytest.mark.parametrize(
    ("error", "kind", "traced"),
    [
        (SettingError("no such layer"), "SettingError", False),
        (ConnectionResetError("cut"), "CommError", False),
        (KeyError("x"), "KeyError", True),
    ],
)
def test_errors_that_are_not_sparknets_own_are_told_with_their_trace(error, kind, traced):
    told = []
    line = SimpleNamespace(call=lambda name, **values: told.append((name, values["failure"])))
    _tell(line, 2, error)
    [(name, failure)] = told
    assert (name, failure["worker"], failure["type"]) == ("failed", 2, kind)
    assert ("trace" in failure) == traced
