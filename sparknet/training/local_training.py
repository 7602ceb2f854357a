"""train: training on this machine, with one or more worker processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

from sparknet.errors import SettingError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.scratch import scratch_folder
from sparknet.summary import History
from sparknet.training.events import OnEvent
from sparknet.training.identity import sampled
from sparknet.training.local_launcher import LocalWorkers, Place
from sparknet.training.run import Run
from sparknet.training.runs import FolderRuns, save_weights
from sparknet.training.seal import choose_seal
from sparknet.training.shared_data import open_shared, share_records
from sparknet.training.strategies import Strategy
from sparknet.training.training_net import settings, training_net
from sparknet.training.training_settings import Beginning, Protection, TrainingSettings
from sparknet.training.worker import Outcome
from sparknet.weights import WeightCollection

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Trained:
    """The result of training."""

    weights: WeightCollection
    history: History = field(repr=False)
    """The events (`sparknet.training.events`); of more than 1024 of a kind, some are left out."""
    net: Net
    """The net, with the trained weights."""
    outcome: Outcome

    def _repr_html_(self) -> str:
        """The curves, the outcome and the net, in a notebook."""
        outcome = self.outcome
        told: dict[str, Any] = {"ended because": outcome.reason, "iteration": outcome.iteration}
        told |= {"samples": outcome.samples, **outcome.metrics}
        cells = ((name, f"{v:.5g}" if isinstance(v, float) else str(v)) for name, v in told.items())
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in cells
        )
        return f"{self.history._repr_html_()}<table>{rows}</table>{self.net._repr_html_()}"


def train(
    solver: Any,
    data: Any,
    *,
    workers: int = 1,
    strategy: str | Strategy = "averaging",
    validation: Any = None,
    weights: StrPath | WeightCollection | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    seconds: float | None = None,
    validate_every: int = 10,
    histograms_every: int = 0,
    metrics: Sequence[str] = (),
    metric: str | None = None,
    goal: Literal["max", "min"] | None = None,
    patience: int | None = None,
    diverged: float = 20.0,
    snapshots: StrPath | None = None,
    snapshot_every: int = 0,
    keep: int = 3,
    resume: bool = False,
    seed: int = 0,
    shuffle: bool = True,
    threads: int | None = None,
    deadline: float = 60.0,
    precision: str = "float32",
    backend: Any = "embedded",
    protection: Protection | None = None,
    on_event: OnEvent | None = None,
    **images: Any,
) -> Trained:
    """Train the net of a solver (whatever `Net` takes) on this machine.

    ``workers`` processes train on ``data`` (Records, their path, arrays by name or in the order of
    the net's inputs, or a pandas DataFrame) and synchronise by ``strategy``: a name or an object of
    `sparknet.training`.  ``weights`` are the initial weights: a caffemodel, a
    WeightCollection, or a folder of snapshots, of which the newest is used.  The records are
    shuffled by ``seed``, or come as they are stored (``shuffle=False``).  Each worker has
    ``threads`` threads, an equal share of the machine's cores unless given.
    ``precision="bf16"`` multiplies in bfloat16: docs/precision.md.  ``backend`` is that of `Net`:
    "caffe" trains with another pycaffe, docs/net.md.  ``protection`` says how what travels between
    workers is protected: docs/comm.md.  Other keywords (``resize``, ``crop``, ``mean``, ``mirror``
    …) say what happens to images: docs/images.md.

    Training ends after ``steps`` iterations (the solver's max_iter unless given), ``epochs`` or
    ``seconds``.  The ``validation`` records are measured every ``validate_every`` rounds;
    ``metrics`` names further ones than the test net's outputs (docs/training.md).  With
    ``patience``, training also ends after that many validations without a better ``metric``;
    ``goal`` says whether more of it is better ("max") or less ("min").  Every ``histograms_every``
    rounds an event says how large each layer's weights and gradients are.  Training ends in an
    error when the loss reaches ``diverged`` times that of the first round, or when a worker sends
    no heartbeat for ``deadline`` seconds.

    A run writes a snapshot every ``snapshot_every`` rounds, into its own folder in ``snapshots``;
    the newest ``keep`` snapshots stay.  ``resume`` continues from the newest snapshot of the
    newest run there, if there is one.  Each event (`sparknet.training.events`) is passed to
    ``on_event``.  An interruption (Ctrl-C) lets the workers finish their round and write a
    snapshot, and is raised again.

    >>> import numpy as np
    >>> from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
    >>> lines = NetParams(
    ...     "lines",
    ...     RDDLayer("data", shape=[32, 2]),
    ...     RDDLayer("label", shape=[32]),
    ...     LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
    ...     SoftmaxWithLoss("loss", ["ip", "label"]),
    ... )
    >>> solver = SolverParams(net=lines, base_lr=0.5, lr_policy="fixed")
    >>> points = np.random.default_rng(0).normal(size=(1000, 2))
    >>> trained = train(solver, (points, points[:, 0] > points[:, 1]), workers=2, steps=50)
    >>> trained.outcome.iteration
    50
    """
    ports = (0,)
    _check_size(workers)
    how = Preprocessing.of(images)
    given = TrainingSettings.of(locals())
    runs = None if snapshots is None else FolderRuns(snapshots)
    with scratch_folder() as folder:

        def make_net(resumed_seed: int | None) -> Net:
            begin_with = weights
            if isinstance(weights, (str, os.PathLike)) and Path(weights).is_dir():
                begin_with = save_weights(FolderRuns, os.fspath(weights), folder)
            return training_net(solver, begin_with, resumed_seed, precision, how, backend)

        begun = Beginning(given, runs, resume, make_net)
        begun.check()
        net = begun.net
        shared = share_data(net, data, validation, Path(folder))
        initial = begun.weights()
        records = open_shared(shared["records"])
        begun.identity["data"] = sampled(records)
        batch_size = net.batch_size * int(settings(net).iter_size)
        given.plan(net, validation is not None)  # may be refused
        begun.check(records=len(records), batch_size=batch_size)
        store = begun.open_store()
        seal = choose_seal(protection or "sealed")
        with Run(initial.flat, store, on_event, resume=resume, seal=seal, deadline=deadline) as run:
            place = None if store is None else store.place
            spec = begun.spec(run.link(), validation is not None, store, place, net.precision)
            share = threads or max(1, usable_cores() // workers)
            places = [
                Place(spec, rank, workers, folder, **shared, threads=share)
                for rank in range(workers)
            ]
            outcome, trained = run.supervise(LocalWorkers(places, store))
        net.set_weights(WeightCollection(initial.layout, trained))
        return Trained(net.get_weights(), run.history, net, outcome)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_size(workers: object) -> None:
    if type(workers) is not int or workers < 1:
        raise SettingError(f"workers must be a whole number, at least 1, not {workers!r}")


def share_data(net: Net, data: Any, validation: Any, folder: Path) -> dict[str, Any]:
    """Writes the files that workers map, in a folder that all of them reach."""
    records = share_records(data, net, folder / "records")
    net.set_training_data(open_shared(records))  # the data may decide the net's shapes
    held_out = None
    if validation is not None:
        held_out = share_records(validation, net, folder / "validation")
    return {"records": records, "validation": held_out}
