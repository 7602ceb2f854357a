"""Listeners to the events of training, and what is made of the events: logs, plots, pages, MLflow.

A listener is called with a plain dict for each event; `sparknet.training.events` lists the fields.
``sparknet.train(..., on_event=together(Progress(), JsonLines("train.jsonl")))``
"""

from __future__ import annotations

from sparknet.graph.plots import Plot
from sparknet.graph.tiles import tiles
from sparknet.report.log import JsonLines, RunFolder
from sparknet.report.page import report
from sparknet.report.tensorboard import TensorBoard
from sparknet.training.history import Event, History, Listener, plot, together
from sparknet.training.progress import Progress

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
