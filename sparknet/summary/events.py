"""Events: the plain dicts that training passes to its listeners.

Every event has ``event``, its kind:

==============  =====================================================================
``start``       ``iteration`` (0, or that of the resumed snapshot) and the end: ``steps`` (an
                iteration) or ``seconds``
``round``       ``iteration``, ``samples`` (of all workers), ``loss``, ``seconds_computing``,
                ``seconds_communicating`` (means over the workers), ``bytes_sent``,
                ``divergence``
``validation``  ``iteration``, ``metrics``: a dict of numbers
``layers``      ``iteration``, ``parameters``: for each blob its ``layer``, ``blob``, ``size``,
                ``weights`` and ``gradients``, dicts of ``norm``, ``low``, ``high`` and ``counts``
``snapshot``    ``iteration``, ``path``
``unsaved``     ``iteration``, ``path``, ``worker``, ``error``: of a snapshot that was not written
``waiting``     ``slots``, ``needed``, ``seconds``
``standstill``  ``seconds``, ``workers``: worker → what it does
``stop``        ``iteration``, ``reason``, ``best``: the iteration of the weights, if not the last
==============  =====================================================================

These are the fields that the listeners here read; `sparknet.train` sends more.  A field that is
missing or None counts as unknown; unknown kinds of events are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Event = Mapping[str, Any]
Value = TypeVar("Value")
Listener = Callable[[Event], None]


def together(*listeners: Listener | None) -> Listener:
    """A listener that passes each event to all ``listeners``; None is skipped."""
    present = [listener for listener in listeners if listener is not None]

    def tell(event: Event) -> None:
        for listener in present:
            listener(event)

    return tell


def number(event: Event, field: str) -> float | None:
    """A field's value, None where it is unknown."""
    value = event.get(field)
    return None if value is None else float(value)


KINDS = ("weights", "gradients")
"""What an event of layers tells of each blob."""


def blob_name(parameter: Event) -> str:
    """A blob of parameters: the layer's name, with the blob's number after the first."""
    number = int(parameter["blob"])
    return f"{parameter['layer']}[{number}]" if number else str(parameter["layer"])


def edges(histogram: Event) -> list[float]:
    """Where the bins of a histogram begin, and where the last one ends."""
    low, high, count = histogram["low"], histogram["high"], len(histogram["counts"])
    return [low + (high - low) * place / count for place in range(count + 1)]


def single(metrics: Mapping[str, Value]) -> dict[str, Value]:
    """The metrics of one number; those with one for each class do not fit on a line."""
    return {name: value for name, value in metrics.items() if not name.endswith("]")}


def seconds(event: Event) -> float:
    """The time that a round took."""
    parts = (number(event, f"seconds_{part}") for part in ("computing", "communicating"))
    return sum(part or 0.0 for part in parts)


def share_communicating(event: Event) -> float | None:
    """The share of a round's time that its workers spent in communication."""
    total = seconds(event)
    spent = number(event, "seconds_communicating")
    return None if spent is None or not total else spent / total


def unsaved(event: Event) -> str:
    """A line about a snapshot that could not be written."""
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
    """A line about workers that do not get on."""
    told = "; ".join(f"worker {rank} {doing}" for rank, doing in event["workers"].items())
    return f"no worker has got on for {event['seconds']:.0f} s: {told}"
