"""Folders of the workers' processes."""

import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet.net.scratch import owner, remove_abandoned
from sparknet.spark.filesystem.scratch import scratch

WAITING = """
import sys
from sparknet.spark.filesystem.scratch import scratch
with scratch("9") as folder:
    (folder / "records").write_bytes(b"x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/x,{tmp_path}/y")
    return tmp_path / "x"


def test_the_folder_of_a_run(place):
    with scratch("7") as folder:
        assert folder == place / f"sparknet-7-{owner()}"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "records").write_bytes(b"x")
    assert list(place.iterdir()) == []


def end(number: int) -> Path:
    """The folder of a process that was ended by a signal."""
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert (folder / "records").exists()
        process.send_signal(number)
        process.wait(30)
        return folder


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_process_that_is_ended_tidies_up(place, number):
    assert not end(number).exists()


AWKWARD = {
    "destructor": """
class Dropped:
    def __del__(self):
        os.kill(os.getpid(), number)
Dropped()
""",
    "lock": """
try:
    os.kill(os.getpid(), number)
finally:
    threading.Lock().release()  # as a Condition does that a handler's exception left unlocked
""",
}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("moment", AWKWARD)
def test_a_signal_at_an_awkward_moment(place, moment, number):
    """A handler's exception was lost, or became another, which the driver took for the user's."""
    script = f"""
import os, threading
from sparknet.spark.filesystem.scratch import scratch
number = {int(number)}
with scratch("9") as folder:
    print(folder.exists(), flush=True)
    try:
        exec({AWKWARD[moment]!r})
    except Exception as error:
        print("told the driver:", error, flush=True)
    print("went on", flush=True)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "True\n", "")
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next(place):
    left = end(signal.SIGKILL)
    assert (left / "records").exists()
    with scratch("8") as folder:
        assert list(place.iterdir()) == [folder]
        assert remove_abandoned(place) == 0  # its process lives
    (place / "sparknet-of-somebody-else").mkdir()
    assert remove_abandoned(place) == 0
