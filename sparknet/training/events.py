"""Events of a training run: plain dicts, passed to ``on_event`` one by one.

Every event has ``event`` (its kind) and ``time`` (seconds since the epoch).  Numbers are plain
Python numbers, so that an event is a line of JSON.  ``round``, ``iteration`` and the
``total`` numbers count from the beginning of the run, over resumes.  ``epoch`` is None where the
number of records is not known.

``start``
    net (its name), workers, strategy (its name), settings (the strategy's), round, iteration,
    steps (the iteration at which training ends) and seconds (both may be None), records,
    batch_size (records that one worker takes in an iteration), run (the path of the folder that
    its snapshots lie in, or None), resumed (the path of the snapshot it goes on from, or None)

``workers``
    attempt, workers (a dict for each: host, process, records, held_out, dropped, the rows of a
    DataFrame that were left out because they cannot be read, reason, what is wrong with the first
    of these, engine, what it computes with (native, torch, or the name of another backend), and
    device (cpu, cuda:0))

``round``
    round, iteration, epoch, warmup (true where worker 0 trains alone, before the first round),
    steps (the most that a worker made), samples (of all workers), loss (mean over all steps),
    rate (learning rate of the next iteration), divergence (the largest of the workers, in the
    measure of the strategy), synchronised (whether the workers' weights came together at its end),
    dropped_pushes (pushes of `Downpour` that the server dropped as too stale), clipped (the
    workers' steps whose gradients were scaled down to clip_gradients; 0 where Caffe trains),
    seconds_computing, seconds_loading (its part in which a worker waited for records),
    seconds_communicating, seconds_waiting (its part in which small values were exchanged: mostly
    the waiting for slower workers) (means over the workers), bytes_sent (by all workers, in this
    round; totals contain what else was sent for training, such as the report of a round),
    total_samples, total_bytes_sent, total_seconds, workers (a dict for each: steps, samples,
    loss, the four times, bytes_sent, divergence, clipped, dropped_pushes)

``layers``
    round, iteration, epoch, parameters (a dict for each blob of parameters: layer, blob, size,
    weights and gradients).  Weights and gradients are dicts: norm (None where it is not finite),
    low, high and counts, a histogram of the values (docs/training.md).  It comes before the event
    of the round at whose first step worker 0 looked

``note``
    round, iteration, epoch, text (what a strategy decided, for people to read)

``validation``
    round, iteration, epoch, records, metrics (name → mean), best (whether it is the best so far),
    bytes_sent (by all workers, for this validation: of some strategies it takes a mean of its own),
    seconds

``snapshot``
    round, iteration, path, bytes, bytes_sent (by all workers, for this snapshot), seconds

``unsaved``
    round, iteration, epoch, path (of the snapshot that could not be written), worker (who could not
    write), error, seconds

``stop``
    reason (steps, seconds, patience, interrupted), best (the iteration of the best validation
    where the weights are those and not the last ones, else None), round, iteration, epoch,
    total_samples, total_bytes_sent, total_bytes_starting (the first weights, or those of a
    snapshot), total_bytes_validating, total_bytes_saving (snapshots; the first total leaves out all
    three), total_seconds, communication (share of the workers' time,
    0 … 1), snapshot (the newest one's path, or None)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from sparknet.errors import ListenerError
from sparknet.training.history import is_new_fault, standstill, unsaved

_logger = logging.getLogger("sparknet.training")

Event = dict[str, Any]
OnEvent = Callable[[Event], None]


def resumption(event: Mapping[str, Any]) -> str | None:
    """Return a line about the start of a run that continues from a snapshot, else None."""
    if event["event"] != "start" or not event.get("resumed"):
        return None
    run, _, round = str(event["resumed"]).rpartition("/")
    return f"resuming {run} from {round}, iteration {event['iteration']}"


def waiting(event: Mapping[str, Any]) -> str | None:
    """Return a line about a run that waits for Spark to start its workers, else None."""
    if event["event"] != "waiting":
        return None
    slots, needed, seconds = event["slots"], event["needed"], event["seconds"]
    since = f"nobody has worked for {seconds:.0f} s"
    if slots is None:
        unknown = "Spark Connect does not say how many there are"
        return f"{since}: waiting for {needed} slots at once ({unknown})"
    if slots < needed:
        return (
            f"{since}: waiting for slots, there are {slots} of the {needed} that the workers need"
        )
    workers = "1 worker" if needed == 1 else f"{needed} workers"
    return f"{since}: waiting for Spark to start {workers}, in {slots} slots"


def dropped(event: Mapping[str, Any]) -> str | None:
    """Return a line about rows that were left out, because they cannot be read, else None."""
    workers = event["workers"] if event["event"] == "workers" else ()
    count = sum(worker.get("dropped", 0) for worker in workers)
    if not count:
        return None
    first = next(worker["reason"] for worker in workers if worker["reason"])
    rows = "1 row that cannot be read is" if count == 1 else f"{count} rows that cannot be read are"
    return f"{rows} left out: {first}"


def changed(event: Mapping[str, Any]) -> str | None:
    """Return a line about a worker that was lost or has come, where members change, or None."""
    kind = event["event"]
    if kind not in {"lost", "joined", "behind"}:
        return None
    what = f"is lost: {event['message']}" if kind == "lost" else "has come"
    if kind == "behind":
        spent = f"{event['seconds']:.3g} s for a round, the others {event['median']:.3g} s"
        what = f"is left behind: it took {spent} (leave_behind={event['factor']:g})"
    return f"worker {event['worker']} on {event['where']} {what}"


def tell(listener: OnEvent | None, event: Event, known: set[str] | None = None) -> None:
    """Pass an event to a listener; ListenerError if it raises.

    ``known`` are faults of snapshots that were logged before, and are not again.
    """
    if sentence := resumption(event):
        _logger.info(sentence)
    if event["event"] == "standstill":
        _logger.warning(standstill(event))
    if event.get("doubt") and is_new_fault({"error": event["text"], "path": ""}, known):
        _logger.warning(event["text"])
    if event["event"] == "unsaved" and is_new_fault(event, known):
        _logger.warning(unsaved(event))
    for line in (waiting(event), dropped(event), changed(event)):
        if line:
            _logger.warning(line)
    if listener is None:
        return
    try:
        listener(event)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ListenerError(f"on_event failed at the event '{event['event']}': {what}") from error
