"""What `sparknet train` shows and writes of a training: events, curves, the model."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.cli.verb import WrongUse
from sparknet.errors import FileError

if TYPE_CHECKING:
    from sparknet.proto.caffe_pb2 import SolverParameter
    from sparknet.report import History, Listener

FLAGS = ("out", "log", "plot", "tensorboard", "run_folder", "json")
"""Flags that only show or write something: none of them changes who trains."""


def add(parser: ArgumentParser) -> None:
    title = "What is shown and written; none of these flags changes who trains."
    add = parser.add_argument_group("outputs", title).add_argument
    add(
        "--out",
        metavar="FILE",
        help="the model, a folder or .caffemodel; else snapshot_prefix with '_iter_N.caffemodel'",
    )
    add("--log", metavar="FILE", help="a line of JSON for each event, added to the file")
    add("--plot", metavar="FILE", help="loss and accuracy, as .svg, .png or .pdf")
    add("--tensorboard", metavar="FOLDER", help="scalars and histograms for TensorBoard")
    add("--run-folder", metavar="FOLDER", help="a folder for what sparknet report shows")
    add("--json", action="store_true", default=None, help="events on stdout, in place of a bar")


def are_wanted(chosen: Namespace) -> bool:
    return any(getattr(chosen, name) is not None for name in FLAGS)


def check(chosen: Namespace, prefix: str) -> None:
    """Refuse names that cannot be written, before training."""
    from sparknet.graph.curves import Curves
    from sparknet.net.model_folder import SUFFIXES

    for path in (chosen.out or f"{prefix}_iter_0", chosen.log, chosen.plot):
        _check_folder(path)
    if chosen.out and Path(chosen.out).suffix not in ("", *SUFFIXES):
        kinds = ", ".join(SUFFIXES)
        raise WrongUse(f"--out {chosen.out}", f"name a folder, or a file that ends in {kinds}")
    if chosen.plot:
        Curves.check(chosen.plot)


def _check_folder(path: str | None) -> None:
    if path is None:
        return
    folder = Path(path).parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise FileError(path, f"the folder '{folder}' is missing or cannot be written")


def listener(
    chosen: Namespace, settings: SolverParameter, stack: ExitStack, bar: bool = True
) -> Listener:
    """Return the listeners to the training's events; the stack closes them, the plot last."""
    from sparknet.report import History, JsonLines, Progress, RunFolder, TensorBoard, together

    history = History()
    if chosen.plot:
        stack.callback(_plot, history, chosen.plot)
    listeners: list[Listener] = [history]
    if chosen.json or bar:
        display = JsonLines(sys.stdout) if chosen.json else Progress()
        listeners.insert(0, stack.enter_context(closing(display)))
    if chosen.log:
        listeners.append(stack.enter_context(closing(JsonLines(chosen.log))))
    if chosen.tensorboard:
        listeners.append(stack.enter_context(closing(TensorBoard(chosen.tensorboard))))
    if chosen.run_folder:
        more = {"data": " ".join(chosen.data)} if getattr(chosen, "data", None) else {}
        folder = RunFolder(chosen.run_folder, settings, **more)
        listeners.append(stack.enter_context(closing(folder)))
    return together(*listeners)


def _plot(history: History, path: str) -> None:
    """Draw the plot, also after an interruption, if there is anything to draw."""
    from sparknet.report import plot

    if history.loss[0] or history.metrics:
        plot(history, path)


def metric_lines(metrics: Mapping[str, float]) -> Iterator[str]:
    """Yield a line for each metric; a row for each class of the confusion matrix."""
    from sparknet.net.scores import confusion_of, without_confusion

    for name, value in without_confusion(metrics).items():
        yield f"{name} = {value:g}"
    if (counts := confusion_of(metrics)) is None:
        return
    yield "confusion, true classes in rows and predicted ones in columns:"
    wide = max(len(f"{count:g}") for count in counts.ravel())
    for row in counts:
        yield " ".join(f"{count:{wide}g}" for count in row)


def say_written(out: str) -> None:
    print(f"sparknet train: wrote {out}", file=sys.stderr)
