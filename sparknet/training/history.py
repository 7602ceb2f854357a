"""History: the events of a training, stored or read from a log."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from sparknet.errors import DataError, FileError, extra
from sparknet.graph.curves import Curves, Panel, Series, svg

if TYPE_CHECKING:
    from pandas import DataFrame

Event = Mapping[str, Any]
Value = TypeVar("Value")
Listener = Callable[[Event], None]


def together(*listeners: Listener | None) -> Listener:
    """Return a listener that passes each event to all ``listeners``; None is skipped."""
    present = [listener for listener in listeners if listener is not None]

    def tell(event: Event) -> None:
        for listener in present:
            listener(event)

    return tell


def number(event: Event, field: str) -> float | None:
    """Return a field's value, None where it is unknown."""
    value = event.get(field)
    return None if value is None else float(value)


KINDS = ("weights", "gradients")
"""What an event of layers tells of each blob."""


def blob_name(parameter: Event) -> str:
    """Return a blob of parameters: the layer's name, with the blob's number after the first."""
    number = int(parameter["blob"])
    return f"{parameter['layer']}[{number}]" if number else str(parameter["layer"])


def edges(histogram: Event) -> list[float]:
    """Return where the bins of a histogram begin, and where the last one ends."""
    low, high, count = histogram["low"], histogram["high"], len(histogram["counts"])
    return [low + (high - low) * place / count for place in range(count + 1)]


def single(metrics: Mapping[str, Value]) -> dict[str, Value]:
    """Return the metrics of one number; those with one for each class do not fit on a line."""
    return {name: value for name, value in metrics.items() if not name.endswith("]")}


def seconds(event: Event) -> float:
    """Return the time that a round took."""
    parts = (number(event, f"seconds_{part}") for part in ("computing", "communicating"))
    return sum(part or 0.0 for part in parts)


def share_communicating(event: Event) -> float | None:
    """Return the share of a round's time that its workers spent in communication."""
    total = seconds(event)
    spent = number(event, "seconds_communicating")
    return None if spent is None or not total else spent / total


def unsaved(event: Event) -> str:
    """Return a line about a snapshot that could not be written."""
    path, worker, error = event["path"], event["worker"], event["error"]
    return f"no snapshot in {path}: worker {worker} could not write it: {error}"


def is_new_fault(event: Event, known: set[str] | None) -> bool:
    """Return whether no snapshot before failed so, and add the fault to those that are known."""
    fault = str(event["error"]).replace(str(event["path"]), "")
    if known is None or fault not in known:
        (set[str]() if known is None else known).add(fault)
        return True
    return False


def standstill(event: Event) -> str:
    """Return a line about workers that do not get on."""
    text = "; ".join(f"worker {rank} {doing}" for rank, doing in event["workers"].items())
    return f"no worker has got on for {event['seconds']:.0f} s: {text}"


Item = TypeVar("Item")


class Thinned(Generic[Item]):
    """Holds the newest ``most`` values, and every n-th of the older ones.

    n is 1 until there are ``most`` older values, and doubles whenever there are more.  The first
    value stays, and the older values that stay are equally far apart.
    """

    def __init__(self, most: int) -> None:
        self._most, self._count, self._step = most, 0, 1
        self._old: list[tuple[int, Item]] = []
        """The older values, each with its number in the order of arrival."""
        self._new: deque[tuple[int, Item]] = deque()

    def add(self, value: Item) -> None:
        self._new.append((self._count, value))
        self._count += 1
        if len(self._new) > self._most:
            self._age(*self._new.popleft())

    def _age(self, number: int, value: Item) -> None:
        if number % self._step:
            return
        self._old.append((number, value))
        if len(self._old) > self._most:
            self._step *= 2
            self._old = [one for one in self._old if one[0] % self._step == 0]

    @property
    def values(self) -> list[Item]:
        """The values, oldest first."""
        return [value for _, value in (*self._old, *self._new)]


MOST = 1024
"""Events of one kind that are kept of the newest, and of the older ones."""

_WIDE = 16
"""Looks at the layers are kept this many times fewer: one has dozens of numbers for each blob."""


class History(Sequence[dict[str, Any]]):
    """A listener that remembers events, in order, and the sequence of them.

    Of each kind it keeps the newest ``most``, and up to as many of the older ones, equally far
    apart: a curve of a million rounds keeps its shape in a few megabytes.  `JsonLines` writes all
    of them to a file.  ``most=None`` keeps all, as `read` does.
    """

    def __init__(self, events: Iterable[Event] = (), most: int | None = MOST) -> None:
        self._most = sys.maxsize if most is None else most
        self._kinds: dict[str, Thinned[tuple[int, dict[str, Any]]]] = {}
        self._count = 0
        for event in events:
            self(event)

    def __call__(self, event: Event) -> None:
        most = self._most // (_WIDE if event["event"] == "layers" else 1)
        series = self._kinds.setdefault(event["event"], Thinned(most))
        series.add((self._count, dict(event)))
        self._count += 1

    def __len__(self) -> int:
        return sum(len(series.values) for series in self._kinds.values())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.events)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        return self.events[place]

    def __repr__(self) -> str:
        parts = [f"{len(self.of_kind(kind))} {kind}s" for kind in ("round", "validation")]
        values = {"training loss": self.loss, **self.metrics}
        parts += [
            f"{name} {points[-1]:.4g}"
            for name, (_, points) in values.items()
            if points and not name.endswith("]")
        ]
        return f"<History: {', '.join(parts)}>"

    @property
    def events(self) -> list[dict[str, Any]]:
        """Those that are kept, oldest first."""
        pairs = [pair for series in self._kinds.values() for pair in series.values]
        return [event for _, event in sorted(pairs, key=itemgetter(0))]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> History:
        """Return what `JsonLines` wrote; a last line that was cut short is left out."""
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
        except OSError as error:
            raise FileError(os.fspath(path), f"cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise FileError(os.fspath(path), "is no log of events: it is no text") from error
        whole = [line for line in lines if line.endswith("\n") and line.strip()]
        return cls((_event(line, path, place) for place, line in enumerate(whole, 1)), None)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [event for _, event in self._kinds[kind].values] if kind in self._kinds else []

    @property
    def loss(self) -> Series:
        """The training loss of each round."""
        return _series(self.of_kind("round"), lambda event: number(event, "loss"))

    @property
    def samples_per_second(self) -> Series:
        """The speed of each round, without what lies between rounds."""

        def speed(event: Event) -> float | None:
            samples, duration = number(event, "samples"), seconds(event)
            return samples / duration if samples is not None and duration else None

        return _series(self.of_kind("round"), speed)

    @property
    def rate(self) -> Series:
        """The learning rate after each round."""
        return _series(self.of_kind("round"), lambda event: number(event, "rate"))

    @property
    def workers(self) -> list[dict[str, Any]]:
        """What each worker did in each round: a dict with its number, the round and the times."""
        return [
            {"round": event["round"], "iteration": event["iteration"], "worker": rank, **worker}
            for event in self.of_kind("round")
            for rank, worker in enumerate(event.get("workers", ()))
        ]

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Each look at a blob of parameters, with the norms of its weights and gradients."""
        return [
            {
                "iteration": event["iteration"],
                "parameter": blob_name(one),
                "size": one["size"],
                **{f"{kind}_{name}": one[kind][name] for kind in KINDS for name in one[kind]},
            }
            for event in self.of_kind("layers")
            for one in event["parameters"]
        ]

    def to_pandas(self, kind: str = "round") -> DataFrame:
        """Return the events of a kind as a DataFrame.

        "worker" has a row for each worker and round, "layers" for each look at a
        blob of parameters.  The metrics of a validation are columns of their own.
        """
        with extra("pandas", "spark", "a DataFrame of a history"):
            import pandas
        if kind == "worker":
            return pandas.DataFrame(self.workers)
        if kind == "layers":
            return pandas.DataFrame(self.layers)
        rows = [{**event, **event.get("metrics", {})} for event in self.of_kind(kind)]
        hidden = ("event", "workers", "metrics")
        return pandas.DataFrame(rows).drop(columns=list(hidden), errors="ignore")

    def panels(self) -> list[Panel]:
        """Losses on one axis, all other metrics on another, the learning rate on a third."""
        losses = {"training": self.loss}
        others: dict[str, Series] = {}
        for name, series in single(self.metrics).items():
            if "loss" in name:
                losses["validation" if name == "loss" else f"validation {name}"] = series
            else:
                others[name] = series
        panels = [Panel("loss", losses), Panel(" and ".join(others) or "accuracy", others)]
        panels.append(Panel("learning rate", {"rate": self.rate}))
        metric_values = (
            Panel(panel.title, {name: curve for name, curve in panel.curves.items() if curve[0]})
            for panel in panels
        )
        return [panel for panel in metric_values if panel.curves]

    def plot(self, out: str | os.PathLike[str] | None = None) -> Curves:
        """Loss, metrics and learning rate as a picture, which a notebook shows.

        It is written to ``out``, a file named .svg, .png or .pdf, if that is given.
        """
        panels = self.panels()
        if not panels:
            raise DataError("there is nothing to plot: no round and no validation was recorded")
        return Curves(panels).saved(out)

    def _repr_html_(self) -> str:
        """Return the same picture, in a notebook."""
        panels = self.panels()
        return svg(panels) if panels else "no round was recorded"

    @property
    def metrics(self) -> dict[str, Series]:
        """Each validation metric over the iterations."""
        validations = self.of_kind("validation")
        names = dict.fromkeys(name for event in validations for name in event["metrics"])
        return {
            name: _series(validations, lambda event, name=name: number(event["metrics"], name))
            for name in names
        }


def _series(events: Iterable[Event], value_of: Any) -> Series:
    pairs = [(int(event["iteration"]), value_of(event)) for event in events]
    points = [(at, value) for at, value in pairs if value is not None]
    return [at for at, _ in points], [value for _, value in points]


def _event(line: str, path: str | os.PathLike[str], place: int) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict) or "event" not in event:
        raise FileError(os.fspath(path), f"line {place} is no event of a training log")
    return event


def plot(source: History | Iterable[Event] | str | os.PathLike[str], out: str | Path) -> None:
    """Draw a history, or its JSON lines, to a file named .svg, .png or .pdf.

    SVG needs no other package; matplotlib (extra ``plots``) draws the other formats.
    """
    Curves.check(out)
    try:
        _history(source).plot(out)
    except DataError as error:
        raise FileError(out, str(error)) from None


def _history(source: Any) -> History:
    if isinstance(source, History):
        return source
    return History.read(source) if isinstance(source, (str, os.PathLike)) else History(source)
