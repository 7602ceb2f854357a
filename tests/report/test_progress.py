"""Progress and what it shows, by a clock that the test turns."""

import io
import os
import subprocess
import sys

import pytest

from sparknet.report import Progress
from sparknet.training.progress import CLEAR, Meter, bar, clock_time
from tests.report.events import START, TRAINING, round_event, validation


class Clock:
    """Seconds; each reading is the same until `now` is changed."""

    def __init__(self):
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def bar_text(terminal, events, step=1.0, **options):
    clock, out = Clock(), io.StringIO()
    progress = Progress(out, terminal=terminal, clock=clock, **options)
    for event in events:
        clock.now += step if event["event"] == "round" else 0
        progress(event)
    progress.close()
    return out.getvalue()


def test_lines():
    lines = bar_text(False, TRAINING).splitlines()
    assert lines == [
        "step 10/40 25%, loss 2, 640 samples/s, 25% communicating, eta 0:03",
        "step 10: validation accuracy 0.5, loss 1.5",
        "step 20: snapshot in snapshots/round-2",
        "step 30: validation accuracy 0.9, loss 0.7",
        "step 40/40 100%, loss 0.5, accuracy 0.9, 640 samples/s, 25% communicating, eta 0:00",
        "step 40: all steps are done",
    ]


def test_lines_come_every_so_often():
    rounds = [START, *(round_event(number) for number in range(1, 5))]
    lines = bar_text(False, rounds, every=2.0).splitlines()
    assert [line.split()[1] for line in lines] == ["10/40", "30/40", "40/40"]


def test_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    text = bar_text(True, TRAINING[:4])
    assert text == (
        f"{CLEAR}step 10/40 25%  [{'#' * 6}{'.' * 18}]  loss 2  640 samples/s  "
        "25% communicating  eta 0:03"
        f"{CLEAR}step 10: validation accuracy 0.5, loss 1.5\n"
        f"{CLEAR}step 20/40 50%  [{'#' * 12}{'.' * 12}]  loss 1  accuracy 0.5  640 samples/s  "
        "25% communicating  eta 0:02\n"
    )


@pytest.mark.parametrize("width", [10, 40, 79, 200])
def test_the_bar_fits(width):
    meter = Meter(Clock())
    for event in TRAINING[:5]:
        meter.add(event)
    assert len(bar(meter, width)) <= width
    assert ("#" in bar(meter, width)) == (width == 200)


@pytest.mark.parametrize(
    ("goal", "fraction", "text"),
    [
        ({"steps": 40}, 0.5, "step 20/40 50%"),
        ({"seconds": 8}, 0.25, "step 20 25%"),
        ({}, None, "step 20"),
    ],
)
def test_goals(goal, fraction, text):
    clock = Clock()
    meter = Meter(clock)
    meter.add({"event": "start", "iteration": 0, **goal})
    for number in (1, 2):
        clock.now += 1
        meter.add(round_event(number))
    assert meter.fraction == fraction
    assert bar(meter, 300).startswith(text)
    assert meter.remaining == (None if fraction is None else pytest.approx(2 / fraction - 2))


def test_a_resumed_training_is_not_faster():
    clock = Clock()
    meter = Meter(clock)
    meter.add({"event": "start", "iteration": 20, "steps": 40})
    clock.now += 3
    meter.add(round_event(3))
    assert meter.fraction == 0.75
    assert meter.remaining == pytest.approx(3)


def test_what_is_unknown_is_left_out():
    meter = Meter(Clock())
    meter.add({"event": "start"})
    meter.add({"event": "round", "iteration": 3})
    meter.add({"event": "weather", "iteration": 3})
    assert bar(meter, 300) == "step 3"
    assert meter.share_communicating is None


def test_nothing_is_said_of_nothing():
    assert bar_text(False, [START]) == ""
    assert "accuracy 1" in bar_text(False, [START, validation(0, accuracy=1)])


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (61, "1:01"), (3723, "1:02:03")]
)
def test_clock_time(seconds, text):
    assert clock_time(seconds) == text


def test_a_terminal():
    """A real one: the line is drawn again and again, and ends with the training."""
    if sys.platform == "win32":
        pytest.skip("no terminals of this kind here")
    import pty

    ours, theirs = pty.openpty()
    program = (
        "from sparknet.report import Progress; from tests.report.events import TRAINING\n"
        "progress = Progress()\nfor event in TRAINING: progress(event)\nprogress.close()"
    )
    subprocess.run([sys.executable, "-c", program], stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert text.startswith("\r\x1b[Kstep 10/40 25%")
    assert "\r\x1b[Kstep 40/40 100%" in text
    assert text.endswith("\r\nstep 40: all steps are done\r\n")


def test_a_pipe_is_no_terminal(capsys):
    progress = Progress()
    progress(round_event(1))
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err
    assert "loss 2" in err
