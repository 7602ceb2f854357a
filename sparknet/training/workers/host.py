"""Host: what carries workers of a run in one process, or in one task of Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from sparknet.comm.rpc import Line, Link
from sparknet.comm.threads import start
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
