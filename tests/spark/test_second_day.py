"""The second day: training again, into the same paths, from yesterday's model on other data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import FileError
from sparknet.spark import Trainer
from sparknet.spark.filesystem import remote as hadoop
from tests.spark.conftest import CONNECT
from tests.spark.digits import solver
from tests.spark.test_trainer import Killer, events, flat, frame

STORES = [
    "folder",
    pytest.param(
        "hadoop",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(CONNECT, reason="Connect has no Hadoop"),
        ],
    ),
]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def runs(folder: Path) -> dict[str, list[str]]:
    """The rounds of each run, in the order of the runs."""
    return {
        path.name: sorted(one.name[-2:] for one in path.iterdir() if one.name[0] != ".")
        for path in sorted(folder.iterdir())
    }


@pytest.mark.parametrize("store", STORES)
def test_the_second_day(session, tmp_path, store, monkeypatch):
    if store == "hadoop":  # whose own local file system stands for any other
        monkeypatch.setattr(hadoop, "local_path", lambda path: None)
    folder = tmp_path / "snapshots"
    url = f"file://{folder}" if store == "hadoop" else str(folder)
    old, new = frame(session, 200), frame(session, 240, seed=1)

    trainer = Trainer(solver(80), workers=2, snapshots=url, snapshot_every=1, deadline=20)
    first = trainer.fit(old)
    scored = first.model.transform(old, ["ip"]).collect()
    yesterday = contents(folder)
    assert list(runs(folder).values()) == [["06", "07", "08"]]

    today = replace(trainer, workers=3, steps=40, weights=url)
    whole = replace(today, steps=60, snapshots=None, snapshot_every=0).fit(new)
    killer = Killer(2, 1)
    lost = replace(today, on_event=killer).fit(new)
    assert killer.attempts == [1, 2]
    begun, again = events(lost, "start")
    assert begun["resumed"] is None
    assert begun["iteration"] == 0
    assert again["iteration"] in (10, 20)  # its own first or second round, not yesterday's eighth
    assert again["run"] == begun["run"]
    assert again["resumed"].startswith(begun["run"])
    resumed = replace(today, steps=60).fit(new, resume=True)
    (start,) = events(resumed, "start")
    assert start["resumed"] == lost.outcome.snapshot
    assert start["iteration"] == 40
    np.testing.assert_array_equal(flat(resumed), flat(whole))

    assert yesterday.items() <= contents(folder).items()
    assert list(runs(folder).values()) == [["06", "07", "08"], ["04", "05", "06"]]
    for one in (first, resumed):
        place = Path(str(one.outcome.snapshot).removeprefix("file://"))
        assert (place / "manifest.json").is_file()
    assert first.model.transform(old, ["ip"]).collect() == scored
    with pytest.raises(FileError, match=r"/run-.*/round-0+6: is of another run: its data has"):
        replace(today, steps=80).fit(frame(session, 240, seed=2), resume=True)
    with pytest.raises(FileError, match=r"its records is 240, not 200 "):
        trainer.fit(old, resume=True)
