"""Host: what carries workers of a run in one process, or in one task of Spark."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from sparknet.comm.rpc import Line, Link
from sparknet.comm.threads import start
from sparknet.errors import CommError
from sparknet.training.workers.worker import reporting

Work = Callable[[int, Line], None]
"""What a worker does, by its rank and with its line to the driver."""


def carry(link: Link, ranks: Sequence[int], work: Work) -> None:
    """Run workers, each in a thread of its own; raise the first error that one of them raised."""
    errors: list[Exception] = []

    def run(rank: int) -> None:
        try:
            reporting(link, rank, partial(work, rank))
        except Exception as error:  # it was reported to the driver
            errors.append(error)

    others = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in ranks[1:]]
    for thread in others:
        start(thread)
    run(ranks[0])
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]


_LOOK = 0.25
"""Seconds after which a host with workers asks again which ones it carries."""


class Departure:
    """Lets a host hand its workers over after their round."""

    def __init__(self) -> None:
        self.is_due = False
        self.news = threading.Event()
        """Set when the host is to ask the driver at once."""

    def ask(self) -> None:
        self.is_due = True
        self.news.set()


def carry_for(link: Link, number: int, work: Work, departure: Departure) -> None:
    """Run the workers that the driver gives this host, until it has no more for it."""
    threads: dict[int, threading.Thread] = {}
    errors: list[Exception] = []

    def run(rank: int) -> None:
        try:
            reporting(link, rank, partial(work, rank))
        except CommError:  # it begins again if the driver says so
            pass
        except Exception as error:
            errors.append(error)
        finally:
            departure.news.set()

    with closing(link.dial(number)) as line:
        where = f"{line.host} (process {os.getpid()})"
        while not errors:
            alive = sorted(rank for rank, one in threads.items() if one.is_alive())
            answer, _ = line.call(
                "carry", host=number, where=where, known=alive, leaves=departure.is_due
            )
            if answer["over"]:
                break
            for rank in answer["workers"]:
                if rank not in alive:
                    threads[rank] = threading.Thread(target=run, args=(rank,), daemon=True)
                    start(threads[rank])
            if answer["workers"]:
                departure.news.wait(_LOOK)
                departure.news.clear()
        for thread in threads.values():
            thread.join()
    if errors:
        raise errors[0]
