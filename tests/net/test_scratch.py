"""What killed processes leave in the temporary folder goes with the next one of the same user."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sparknet.net.scratch import owner, remove_abandoned, scratch_folder

HOLDING = """
import sys
from sparknet.net.scratch import scratch_folder
with scratch_folder() as folder:
    open(folder + "/records", "w").close()
    print(folder, flush=True)
    sys.stdin.read()
"""

TRAINING = """
import os, signal
import sparknet
from tests.training.small import records, settings

def end(event):
    if event["event"] == "workers":
        for one in event["workers"]:
            os.kill(one["process"], signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

sparknet.train(settings(), records(), workers=2, steps=1000, on_event=end)
"""


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def holder() -> tuple[subprocess.Popen[str], Path]:
    """A process with a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def killed() -> Path:
    process, folder = holder()
    with process:
        process.kill()
    return folder


def test_a_folder_goes_at_the_end(place):
    with scratch_folder() as name:
        assert Path(name).parent == place
    assert list(place.iterdir()) == []


def test_what_a_killed_process_left_goes_and_a_live_ones_stays(place):
    left = killed()
    assert (left / "records").exists()
    process, live = holder()
    with process:
        assert not left.exists()
        with scratch_folder() as mine:
            assert set(place.iterdir()) == {live, Path(mine)}
            assert (live / "records").exists()
        process.communicate("")
    assert list(place.iterdir()) == []


def test_only_the_same_users_folders_go(place, monkeypatch):
    left = killed()
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: left.stat().st_uid + 1)
        assert remove_abandoned(place) == 0
    assert remove_abandoned(place) == 1


def test_what_only_looks_like_one_stays(place):
    left = killed()
    machine, process = left.name.rsplit("-", 2)[1:]
    target = place / "target"
    left.rename(target)
    (place / f"sparknet-run-link-{machine}-{process}").symlink_to(target)
    (place / f"sparknet-run-file-{machine}-{process}").write_text("")
    (place / f"sparknet-run-elsewhere-00000000-{process}").mkdir()
    (place / f"sparknet-run-odd-{machine}-²").mkdir()
    (place / f"sparknet-run-mine-{owner()}").mkdir()
    (place / "sparknet-run").mkdir()
    assert remove_abandoned(place) == 0
    assert (target / "records").exists()


def test_a_run_that_was_killed_whole_is_swept_by_the_next(place):
    done = subprocess.run([sys.executable, "-c", TRAINING], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name.split("-")[:2] for path in place.iterdir()] == [["sparknet", "run"]]
    with scratch_folder() as mine:
        assert list(place.iterdir()) == [Path(mine)]
