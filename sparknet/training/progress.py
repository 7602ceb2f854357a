"""Progress: a bar on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import logging
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import import_module
from typing import Any, TextIO, cast

from sparknet.errors import clean
from sparknet.training.history import Event, is_new_fault, number, single, standstill, unsaved

RECENT = 20
"""Rounds over which the speed is measured."""


class Meter:
    """The state that a progress bar shows; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._first = 0.0
        self._goal: tuple[str, float] | None = None
        self._position = 0.0
        self._recent: deque[tuple[float, float]] = deque([(self._began, 0.0)], RECENT + 1)
        self._computing = self._communicating = 0.0
        self.iteration = 0
        self.loss: float | None = None
        self.metrics: dict[str, float] = {}

    def add(self, event: Event) -> None:
        """Update the state by an event."""
        self.iteration = int(event.get("iteration") or self.iteration)
        if event["event"] == "start":
            self._start(event)
        elif event["event"] == "round":
            self._round(event)
        elif event["event"] == "validation":
            self.metrics = {name: float(value) for name, value in event["metrics"].items()}

    def _start(self, event: Event) -> None:
        goals = ((name, number(event, name)) for name in ("steps", "seconds"))
        self._goal = next(((name, value) for name, value in goals if value), None)
        self._began = self._clock()
        self._recent.clear()
        self._recent.append((self._began, 0.0))
        self._first = self._position = self._measure(event)

    def _round(self, event: Event) -> None:
        self._recent.append((self._clock(), self._recent[-1][1] + (event.get("samples") or 0)))
        self._computing += event.get("seconds_computing") or 0.0
        self._communicating += event.get("seconds_communicating") or 0.0
        self.loss = number(event, "loss")
        self._position = self._measure(event)

    def _measure(self, event: Event) -> float:
        """Return the progress, in the unit of the goal."""
        if self._goal and self._goal[0] == "seconds":
            return self._clock() - self._began
        return number(event, "iteration") or 0.0

    @property
    def goal(self) -> tuple[str, float] | None:
        """The measure that ends the training, and its value at the end."""
        return self._goal

    @property
    def fraction(self) -> float | None:
        """The finished share, 0 to 1; None if no end is set."""
        return min(self._position / self._goal[1], 1.0) if self._goal else None

    @property
    def remaining(self) -> float | None:
        """The estimated seconds left."""
        if self._goal is None or self._position <= self._first:
            return None
        pace = (self._recent[-1][0] - self._began) / (self._position - self._first)
        return max(self._goal[1] - self._position, 0.0) * pace

    @property
    def samples_per_second(self) -> float | None:
        (began, before), (now, after) = self._recent[0], self._recent[-1]
        return (after - before) / (now - began) if now > began else None

    @property
    def share_communicating(self) -> float | None:
        total = self._computing + self._communicating
        return self._communicating / total if total else None


def kernel_display() -> Callable[..., Any] | None:
    """IPython's `display`, in a process that serves a notebook; it is not imported for this."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if getattr(shell, "kernel", None) is None:  # a terminal has none
        return None
    display: Callable[..., Any] = import_module("IPython.display").display
    return display


class Cell:
    """A bar with words beside it and lines below.

    It is IPython's own way to change an output (``display_id``): it needs no other package
    and no widgets in the browser, and a saved notebook keeps the last state.
    """

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None
        self._share: float | None = None
        self._words = ""
        self._lines: Sequence[str] = ()

    def show(self, share: float | None, words: str, lines: Sequence[str]) -> None:
        """Draw this in place of what was there."""
        self._share, self._words, self._lines = share, words, lines
        if self._handle is None:
            self._handle = self._display(self, display_id=True)
        else:
            self._handle.update(self)

    def __repr__(self) -> str:
        return "\n".join(filter(None, (self._words, *self._lines)))

    def _repr_html_(self) -> str:
        bar = ""
        if self._share is not None:
            bar = f'<progress max="1" value="{self._share:.4f}"></progress> '
        lines = "".join(f"<br>{escape(line)}" for line in self._lines)
        return f"<div>{bar}{escape(self._words)}{lines}</div>"


_logger = logging.getLogger("sparknet.training")
BAR = 24
CLEAR = "\r\x1b[K"
ENDS = {
    "steps": "all steps are done",
    "seconds": "the time is up",
    "patience": "no validation was better for long enough",
    "interrupted": "interrupted",
}
"""The reasons of a stop, in words."""
_LINES = 20
"""The most lines below a notebook's bar."""
_RENEWED = ("validation", "snapshot", "waiting")


class Progress:
    """A listener that shows loss, accuracy, samples/s, communication and the time left.

    On a terminal it redraws one line, in a notebook a bar in the cell.  Elsewhere it prints a line
    for the first round and then at most one in ``every`` seconds.  Lines about single events (a
    validation, a snapshot) stay on the screen.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        every: float = 5.0,
        terminal: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty() if terminal is None else terminal
        display = kernel_display() if stream is None and terminal is None else None
        self._display = display
        self._cell: Cell | None = None
        self._lines: dict[str, str] = {}
        self._clock, self._every = clock, 0.1 if self._terminal or display else every
        self._meter = Meter(clock)
        self._shown: float | None = None
        self._drawn = False
        self._stale = False
        self._faults: set[str] = set()

    def __call__(self, event: Event) -> None:
        self._meter.add(event)
        self._stale |= event["event"] in ("round", "validation")
        kind = event["event"]
        if kind == "round":
            self._round()
        elif kind == "stop":
            self.close()
        if kind == "unsaved" and not is_new_fault(event, self._faults):
            return
        if line := _line(kind, event):
            self._say(line, kind)
        if kind == "stop":
            self._cell, self._lines = None, {}

    def close(self) -> None:
        """Show the last state, and leave the cursor on a line of its own."""
        if self._stale and self._meter.loss is not None:
            self._show()
        if self._drawn:
            self._stream.write("\n")
            self._drawn = False
        self._stream.flush()

    def _round(self) -> None:
        now = self._clock()
        if self._shown is None or now - self._shown >= self._every:
            self._shown = now
            self._show()

    def _show(self) -> None:
        self._stale = False
        if self._display:
            self._redraw(self._display)
            return
        if not self._terminal:
            self._say(", ".join(_parts(self._meter)))
            return
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(CLEAR + bar(self._meter, width))
        self._stream.flush()
        self._drawn = True

    def _redraw(self, display: Callable[..., Any]) -> None:
        self._cell = self._cell or Cell(display)
        words = ", ".join(_parts(self._meter))
        self._cell.show(self._meter.fraction, words, [*self._lines.values()][-_LINES:])

    def _say(self, line: str, kind: str = "") -> None:
        """Print a line that stays; in a notebook a newer one of some kinds takes its place."""
        if self._display:
            self._lines[kind if kind in _RENEWED else f"{kind} {len(self._lines)}"] = line
            self._redraw(self._display)
            return
        self._stream.write(f"{CLEAR if self._drawn else ''}{line}\n")
        self._stream.flush()
        self._drawn = False


class LineProgress(Progress):
    """What a program without a terminal shows of a training: one line at its start, then at most
    one a minute, by logging at INFO where the program has set it up, else on stderr."""

    def __init__(self) -> None:
        super().__init__(cast(TextIO, _LogStream()), every=60.0, terminal=False)

    def __call__(self, event: Event) -> None:
        if event["event"] == "start":
            self._say(_start_line(event))
        super().__call__(event)


class _LogStream:
    """A stream whose lines go to the log."""

    def write(self, text: str) -> int:
        if _logger.hasHandlers():
            _logger.info(text.rstrip("\n"))
        else:
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()


def _start_line(event: Event) -> str:
    end = [f"{event['steps']} steps"] if event.get("steps") else []
    end += [f"{event['seconds']:g} s"] if event.get("seconds") else []
    workers = "1 worker" if event["workers"] == 1 else f"{event['workers']} workers"
    net = clean(str(event.get("net") or "a net"))
    return f"training {net}: {workers}, {event['strategy']}, up to {' or '.join(end) or 'a stop'}"


def bar(meter: Meter, width: int) -> str:
    """Return the state in one line of at most ``width`` characters."""
    first, *parts = _parts(meter)
    text = "  ".join([first, *parts])
    if meter.fraction is not None and len(text) + BAR + 4 <= width:
        done = round(BAR * meter.fraction)
        text = "  ".join([f"{first}  [{'#' * done}{'.' * (BAR - done)}]", *parts])
    return text[:width]


def _parts(meter: Meter) -> Iterator[str]:
    yield _position(meter)
    if meter.loss is not None:
        yield f"loss {meter.loss:.4g}"
    for name, value in single(meter.metrics).items():
        if "loss" not in name:
            yield f"{name} {value:.4g}"
    if meter.samples_per_second is not None:
        yield f"{meter.samples_per_second:,.0f} samples/s"
    if meter.share_communicating is not None:
        yield f"{meter.share_communicating:.0%} communicating"
    if meter.remaining is not None:
        yield f"eta {clock_time(meter.remaining)}"


def _position(meter: Meter) -> str:
    text = f"step {meter.iteration}"
    if meter.goal is None or meter.fraction is None:
        return text
    unit, value = meter.goal
    end = f"/{value:.0f}" if unit == "steps" else ""
    return f"{text}{end} {meter.fraction:.0%}"


def clock_time(seconds: float) -> str:
    """Return seconds as 0:07 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _line(kind: str, event: Event) -> str | None:
    at = f"step {event.get('iteration', 0)}"
    if kind == "start" and event.get("resumed"):
        run, round = event["resumed"].rsplit("/", 1)
        return f"resuming {run} from {round}, iteration {event['iteration']}"
    if kind == "validation":
        scores = single(event["metrics"]).items()
        metrics = ", ".join(f"{clean(name)} {value:.4g}" for name, value in scores)
        return f"{at}: validation {metrics}"
    if kind == "snapshot":
        return f"{at}: snapshot in {event['path']}"
    if kind == "note":
        return f"{at}: {event['text']}"
    if kind == "slow":
        return (
            f"{at}: worker {event['worker']} on {event['where']} is slow: "
            f"{event['seconds']:.3g} s a step, others {event['median']:.3g} s"
        )
    if kind == "workers" and event["attempt"] > 1:
        return f"a worker was lost; all start again (attempt {event['attempt']})"
    if kind == "waiting":
        slots = "" if event["slots"] is None else f" ({event['slots']} there)"
        return f"{at}: waiting for {event['needed']} slots{slots} for {event['seconds']:.0f} s"
    if kind == "unsaved":
        return f"{at}: {unsaved(event)}"
    if kind == "standstill":
        return f"{at}: {standstill(event)}"
    if kind == "stop":
        best = event.get("best")
        of_best = "" if best is None else f"; the weights are those of step {best}, the best"
        return f"{at}: {ENDS.get(event['reason'], event['reason'])}{of_best}"
    return None
