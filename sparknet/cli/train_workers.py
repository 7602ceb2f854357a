"""`sparknet train` with several workers: runs `sparknet.train` from the command line."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.cli import image_flags, inputs, setting_flags, train_spark
from sparknet.cli.settings import read_settings
from sparknet.cli.verb import WrongUse
from sparknet.errors import FileError

if TYPE_CHECKING:
    from sparknet.proto.caffe_pb2 import SolverParameter
    from sparknet.report import History, Listener
    from sparknet.spark import SparkTrained
    from sparknet.training.trained import Trained

_EXPLICIT = {"strategy", "workers", "snapshots", "validation", "weights", "dialect"}
"""Settings that are put together from several flags, or have been read with the solver."""
_OURS = (
    "data",
    "validation",
    "out",
    "log",
    "plot",
    "tensorboard",
    "run_folder",
    "json",
)


def add(parser: ArgumentParser) -> None:
    """Add the flags that `caffe train` does not have."""
    group = parser.add_argument_group(
        "workers and data", "With any of these flags worker processes train, as by sparknet.train."
    )
    add = group.add_argument
    add("--data", metavar="SOURCE", nargs="+", help=inputs.HELP)
    add("--validation", metavar="SOURCE", nargs="+", help="records to test with, every few rounds")
    add("--strategy", metavar="NAME[:SETTING=VALUE,…]", help="such as averaging:steps=10")
    add("--snapshots", metavar="FOLDER", help="else snapshot_prefix with '_snapshots'")
    setting_flags.add(parser, group, setting_flags.of_train())
    add(
        "--out",
        metavar="FILE",
        help="the model, a folder or .caffemodel; else snapshot_prefix with '_iter_N.caffemodel'",
    )
    add("--log", metavar="FILE", help="a line of JSON for each event, added to the file")
    add("--plot", metavar="FILE", help="loss and accuracy, as .svg, .png or .pdf")
    add("--tensorboard", metavar="FOLDER", help="scalars and histograms for TensorBoard")
    add("--run-folder", metavar="FOLDER", help="a folder for what sparknet report shows")
    add("--json", action="store_true", default=None, help="events on stdout, in place of the bar")


def is_wanted(chosen: Namespace) -> bool:
    """Whether a flag is given that `caffe train` does not have."""
    theirs = {"steps", "threads", "precision", "weights", "dialect"}
    names = {*setting_flags.of_train(), *_OURS, *train_spark.flags(), *image_flags.NAMES} - theirs
    return any(getattr(chosen, name, None) is not None for name in names)


def train(chosen: Namespace) -> int:
    """Train; returns the exit status.  At a signal sparknet.train writes a snapshot and raises."""
    from sparknet.graph.curves import Curves
    from sparknet.net.model_folder import SUFFIXES

    if chosen.snapshot:
        raise WrongUse("-snapshot is for training by the solver alone", "give --resume")
    settings = read_settings(chosen)
    prefix = settings.snapshot_prefix
    for path in (chosen.out or f"{prefix}_iter_0", chosen.log, chosen.plot):
        check_folder(path)
    if chosen.out and Path(chosen.out).suffix not in ("", *SUFFIXES):
        kinds = ", ".join(SUFFIXES)
        raise WrongUse(f"--out {chosen.out}", f"name a folder, or a file that ends in {kinds}")
    if chosen.plot:
        Curves.check(chosen.plot)
    with ExitStack() as stack:
        trained = _train(chosen, settings, listener(chosen, settings, stack))
    outcome = trained.outcome
    made = outcome.iteration if outcome.best is None else outcome.best
    out = chosen.out or f"{prefix}_iter_{made}.caffemodel"
    trained.save(out)
    print(f"sparknet train: wrote {out}", file=sys.stderr)
    if not chosen.json:
        for line in metric_lines(outcome.metrics):
            print(line)
    return 0


def metric_lines(metrics: Mapping[str, float]) -> Iterator[str]:
    """A line for each metric; a row for each class of the confusion matrix."""
    from sparknet.net.scores import confusion_of, without_confusion

    for name, value in without_confusion(metrics).items():
        yield f"{name} = {value:g}"
    if (counts := confusion_of(metrics)) is None:
        return
    yield "confusion, true classes in rows and predicted ones in columns:"
    wide = max(len(f"{count:g}") for count in counts.ravel())
    for row in counts:
        yield " ".join(f"{count:{wide}g}" for count in row)


def _train(chosen: Namespace, settings: SolverParameter, hear: Listener) -> Trained | SparkTrained:
    from sparknet.training.local_training import train as start

    strategy = parse_strategy(chosen.strategy or "averaging")
    snapshots = chosen.snapshots or f"{settings.snapshot_prefix}_snapshots"
    if train_spark.is_wanted(chosen):
        return train_spark.train(chosen, settings, strategy, snapshots, hear)
    how = image_flags.preprocessing(chosen)
    data, validation = (None, None) if chosen.data else inputs.of_solver(settings)
    if chosen.data:
        data = inputs.open_records(chosen.data, how)
    if chosen.validation:
        validation = inputs.open_records(chosen.validation, how)
    if data is None:
        raise WrongUse("the net names no data", "give --data SOURCE")
    names = setting_flags.of_train().keys() - _EXPLICIT
    return start(
        settings,
        data,
        workers=chosen.workers or 1,
        validation=validation,
        strategy=strategy,
        snapshots=snapshots,
        on_event=hear,
        **setting_flags.given(chosen, names),
        **image_flags.keywords(chosen),
    )


def listener(chosen: Namespace, settings: SolverParameter, stack: ExitStack) -> Listener:
    """The listeners to the training's events; the stack closes them, the plot last."""
    from sparknet.report import History, JsonLines, Progress, RunFolder, TensorBoard, together

    history = History()
    if chosen.plot:
        stack.callback(_plot, history, chosen.plot)
    shown = JsonLines(sys.stdout) if chosen.json else Progress()
    heard: list[Listener] = [stack.enter_context(closing(shown)), history]
    if chosen.log:
        heard.append(stack.enter_context(closing(JsonLines(chosen.log))))
    if chosen.tensorboard:
        heard.append(stack.enter_context(closing(TensorBoard(chosen.tensorboard))))
    if chosen.run_folder:
        told = {"data": " ".join(chosen.data)} if chosen.data else {}
        folder = RunFolder(chosen.run_folder, settings, **told)
        heard.append(stack.enter_context(closing(folder)))
    return together(*heard)


def _plot(history: History, path: str) -> None:
    """Draw the plot, also after an interruption, if there is anything to draw."""
    from sparknet.report import plot

    if history.loss[0] or history.metrics:
        plot(history, path)


def parse_strategy(text: str) -> Any:
    """The strategy in ``name:setting=value,…``; values are JSON, or words."""
    from sparknet.training.strategies import make_strategy

    name, _, rest = text.partition(":")
    settings = {}
    for part in filter(None, rest.split(",")):
        setting, equals, value = part.partition("=")
        if not equals:
            raise WrongUse(f"--strategy {text}: '{part}' is no SETTING=VALUE")
        settings[setting] = _value(value)
    return make_strategy(name, **settings)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_folder(path: str | None) -> None:
    """Refuse a file that cannot be written, before training."""
    if path is None:
        return
    folder = Path(path).parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise FileError(path, f"the folder '{folder}' is missing or cannot be written")
