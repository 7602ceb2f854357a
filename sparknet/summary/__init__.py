"""Listeners to the events of training: progress, logs, plots.

A listener is called with a plain dict for each event; `events` lists the fields.
``sparknet.train(..., on_event=together(Progress(), JsonLines("train.jsonl")))``
"""

from __future__ import annotations

from sparknet.graph.plots import Plot
from sparknet.graph.tiles import tiles
from sparknet.summary.events import Event, Listener, together
from sparknet.summary.history import History
from sparknet.summary.json_lines import JsonLines
from sparknet.summary.plot import plot
from sparknet.summary.progress import Progress
from sparknet.summary.report import report
from sparknet.summary.run_folder import RunFolder
from sparknet.summary.tensorboard import TensorBoard

__all__ = [
    "Event",
    "History",
    "JsonLines",
    "Listener",
    "Plot",
    "Progress",
    "RunFolder",
    "TensorBoard",
    "plot",
    "report",
    "tiles",
    "together",
]
