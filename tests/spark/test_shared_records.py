"""Records that one worker of an executor reads, and the others link."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sparknet.spark import Trainer
from sparknet.spark.filesystem import scratch as shared_records
from sparknet.spark.filesystem.scratch import forget, once
from tests.spark.conftest import SLOTS
from tests.spark.digits import pixels, solver

NAMES = ("records", "records.npz")
READING = """
import sys
from pathlib import Path
from sparknet.spark.filesystem.scratch import once
folder = Path(sys.argv[1])

def make():
    (folder / "records").write_text("half")
    print("reading", flush=True)
    sys.stdin.readline()
    (folder / "records").write_text("whole")
    (folder / "records.npz").write_text("last")

once(folder, ("records", "records.npz"), make)
print("there", flush=True)
sys.stdin.readline()
"""


def worker(place: Path, process: int) -> Path:
    folder = place / f"sparknet-7-aaaa-{process}"
    folder.mkdir(mode=0o700)
    return folder


def make_in(folder: Path, text: str = "mine") -> Callable[[], None]:
    def make() -> None:
        for name in NAMES:
            (folder / name).write_text(text)

    return make


def reader(folder: Path) -> subprocess.Popen[str]:
    """A process that reads and waits in the middle."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", READING, str(folder)]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert said_by(process) == "reading"
    return process


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def no_reading() -> None:
    raise AssertionError("another worker has them")


def test_the_second_one_waits_for_the_first_and_links_what_it_made(tmp_path, monkeypatch):
    first, second = worker(tmp_path, 1), worker(tmp_path, 2)
    with reader(first) as process:

        def pause(seconds: float) -> None:
            go_on(process)
            assert said_by(process) == "there"

        monkeypatch.setattr(shared_records.time, "sleep", pause)
        once(second, NAMES, no_reading)
        go_on(process)
    assert (second / "records").read_text() == "whole"
    assert all((first / name).samefile(second / name) for name in NAMES)
    (first / "records").unlink()
    assert (second / "records").read_text() == "whole"


def test_one_that_is_killed_in_the_middle_is_followed_by_the_next(tmp_path):
    first, second, third = (worker(tmp_path, number) for number in (1, 2, 3))
    with reader(first) as process:
        process.kill()
    once(second, NAMES, make_in(second))
    assert (second / "records").read_text() == "mine"
    once(third, NAMES, no_reading)
    assert (third / "records").read_text() == "mine"


def test_one_that_gets_no_further_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_records, "PATIENCE", 0.2)
    first, second = worker(tmp_path, 1), worker(tmp_path, 2)
    with reader(first) as process:
        process.send_signal(signal.SIGSTOP)
        once(second, NAMES, make_in(second))
        assert (second / "records").read_text() == "mine"
        process.kill()


def test_one_that_writes_on_is_waited_for(tmp_path, monkeypatch):
    """A long reading is no standstill: the clock begins again with each byte."""
    first, second = worker(tmp_path, 1), worker(tmp_path, 2)
    now, waits = [0.0], [0]
    with reader(first) as process:

        def pause(seconds: float) -> None:
            now[0] += 0.75 * shared_records.PATIENCE
            waits[0] += 1
            with (first / "draft").open("a") as draft:
                draft.write("more")
            if waits[0] == 10:
                go_on(process)
                assert said_by(process) == "there"

        monkeypatch.setattr(shared_records.time, "sleep", pause)
        monkeypatch.setattr(shared_records.time, "monotonic", lambda: now[0])
        once(second, NAMES, no_reading)
        go_on(process)
    assert waits[0] >= 10


def test_folders_of_other_runs_and_of_other_users_are_not_looked_at(tmp_path, monkeypatch):
    other = tmp_path / "sparknet-8-aaaa-1"
    other.mkdir()
    make_in(other, "theirs")()
    mine = worker(tmp_path, 2)
    once(mine, NAMES, make_in(mine))
    assert (mine / "records").read_text() == "mine"
    third = worker(tmp_path, 3)
    monkeypatch.setattr(shared_records.os, "getuid", lambda: os.geteuid() + 1)
    once(third, NAMES, make_in(third, "third"))
    assert (third / "records").read_text() == "third"


def test_where_files_have_no_links_each_reads_its_own(tmp_path, monkeypatch):
    first, second = worker(tmp_path, 1), worker(tmp_path, 2)
    once(first, NAMES, make_in(first))
    links: list[Path] = []

    def no_link(self: Path, target: Path) -> None:
        links.append(target)
        if len(links) == 2:
            raise PermissionError("no links")
        os.link(target, self)

    monkeypatch.setattr(Path, "hardlink_to", no_link)
    once(second, NAMES, make_in(second, "second"))
    assert [(second / name).read_text() for name in NAMES] == ["second"] * 2
    assert [(first / name).read_text() for name in NAMES] == ["mine"] * 2


def test_the_lock_goes_with_the_run(tmp_path):
    folder = worker(tmp_path, 1)
    once(folder, NAMES, make_in(folder))
    forget(tmp_path, "8")
    assert (tmp_path / "sparknet-7.lock").exists()
    forget(tmp_path, "7")
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name]


def test_the_workers_of_an_executor_map_one_file(spark, tmp_path):
    """The records are there once, however many workers train on them, and go with the run."""
    files: list[Path] = []
    counts: list[int] = []

    def look(event):
        if event["event"] == "workers":
            found = [mapped_by(one["process"]) for one in event["workers"]]
            files.extend(found)
            counts.extend(path.stat().st_nlink for path in found)
            assert all(path.samefile(found[0]) for path in found)

    given = Trainer(
        solver(),
        columns={"data": "pixels", "label": "digit"},
        workers=SLOTS,
        min_hosts=SLOTS,
        steps=20,
        on_event=look,
    )
    given.fit(pixels(spark, 200))
    assert counts == [SLOTS] * SLOTS
    assert len(set(files)) == SLOTS
    place = files[0].parents[1]
    assert not list(place.glob("sparknet-*"))


def mapped_by(process: int) -> Path:
    """The file of records that a process of this machine has mapped."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    return next(Path(line.split(maxsplit=5)[5]) for line in lines if line.endswith("/records"))
