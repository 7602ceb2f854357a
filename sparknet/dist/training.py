"""train: training on this machine, with as many worker processes as wanted."""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from sparknet.dist import job as jobs
from sparknet.dist.crew import Crew
from sparknet.dist.events import Event, OnEvent
from sparknet.dist.job import Job
from sparknet.dist.plan import Plan, steps_for
from sparknet.dist.snapshot import newest, read_manifest
from sparknet.dist.store import FolderStore
from sparknet.dist.strategies import Strategy, make_strategy
from sparknet.dist.worker import Outcome
from sparknet.errors import SettingError
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.weights import WeightCollection

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Trained:
    """What training gives."""

    weights: WeightCollection
    history: list[Event]
    """All events (`sparknet.dist.events`)."""
    net: Net
    """With the trained weights."""
    outcome: Outcome


def train(
    solver: Any,
    data: Any,
    *,
    workers: int | None = None,
    strategy: str | Strategy = "averaging",
    validation: Any = None,
    weights: StrPath | WeightCollection | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    seconds: float | None = None,
    validate_every: int = 10,
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
    on_event: OnEvent | None = None,
) -> Trained:
    """Train the net of a solver (whatever `Net` takes) on this machine.

    ``workers`` processes, one for each core unless given, train on ``data`` (Records, their
    path, or arrays by name or in the order of the net's inputs) and agree by ``strategy``.
    Training ends after ``steps`` iterations (the solver's max_iter unless given), ``epochs`` or
    ``seconds``.  ``validation`` is measured every so many rounds, and training ends when
    ``patience`` validations have brought no better ``metric``, or in an error when the loss is
    ``diverged`` times that of the first round.  Snapshots go to a folder;
    ``resume`` goes on from the newest one there, if there is one.  ``seed`` is that of the order
    of the records.  ``precision="bf16"`` multiplies in bfloat16: docs/precision.md.

    An interruption (Ctrl-C) lets the workers finish their round and snapshot, and is raised
    again.
    """
    size = _size(workers)
    chosen = make_strategy(strategy)
    resumed = _newest(snapshots) if resume else None
    net = _net(solver, weights, resumed, precision)
    with tempfile.TemporaryDirectory(prefix="sparknet-") as name:
        shared = _share(net, data, validation, Path(name))
        count = len(jobs.open_shared(shared["records"]))
        batch_size = net.batch_size * int(_settings(net).iter_size)
        plan = Plan(
            steps=_last_step(net, steps, epochs, seconds, count, batch_size * size),
            seconds=seconds,
            validate_every=validate_every if validation is not None else 0,
            metric=metric,
            goal=goal,
            patience=patience,
            diverged=diverged,
            snapshot_every=snapshot_every if snapshots is not None else 0,
            keep=keep,
            records=count,
            batch_size=batch_size,
            net=net.net.name,
        )
        job = Job(
            **shared,
            seed=_seed(net, resumed),
            strategy=chosen.settings(),
            plan=asdict(plan),
            order_seed=seed,
            shuffle=shuffle,
            threads=threads or max(1, usable_cores() // size),
            deadline=deadline,
            snapshots=None if snapshots is None else str(Path(snapshots).absolute()),
            resume=None if resumed is None else resumed.round,
            precision=net.precision,
        )
        return _run(job, size, net, on_event)


def usable_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(workers: int | None) -> int:
    if workers is not None and workers < 1:
        raise SettingError(f"workers must be at least 1, not {workers}")
    return usable_cores() if workers is None else workers


def _share(net: Net, data: Any, validation: Any, folder: Path) -> dict[str, Any]:
    """The files that workers map, in a folder that all of them reach."""
    records = jobs.share_records(data, net, folder / "records")
    net.set_training_data(jobs.open_shared(records))  # which may tell the shape of the net
    if net.flat_weights is None:
        raise SettingError("train needs the embedded engine: this Net has another backend")
    held_out = None
    if validation is not None:
        held_out = jobs.share_records(validation, net, folder / "validation")
    return {
        "folder": str(folder),
        "records": records,
        "validation": held_out,
        "solver": jobs.share_solver(net, folder / "solver.prototxt"),
        "weights": jobs.share_weights(net.net.flat_params, folder / "weights"),
    }


@dataclass(frozen=True)
class _Resumed:
    round: int
    seed: int


def _newest(snapshots: StrPath | None) -> _Resumed | None:
    if snapshots is None:
        raise SettingError("resume needs the folder of the snapshots")
    store = FolderStore(snapshots)
    round = newest(store)
    return (
        None if round is None else _Resumed(round, int(read_manifest(store, round)["run"]["seed"]))
    )


def _net(
    solver: Any,
    weights: StrPath | WeightCollection | None,
    resumed: _Resumed | None,
    precision: str,
) -> Net:
    """The net to train, by the engine that can be trained in parts."""
    net: Net = solver
    if not isinstance(solver, Net):
        seed = None if resumed is None else resumed.seed
        net = Net(solver, weights, seed=seed, precision=precision)
    elif weights is not None:
        raise SettingError("this Net has weights already: give it those to begin with")
    else:
        check_precision(net, precision)
    _settings(net)
    return net


def check_precision(net: Net, precision: str) -> None:
    """Refuse another precision than that of a Net that is there already."""
    if precision not in ("float32", net.precision):
        raise SettingError(f"this Net computes in {net.precision}: give precision to Net itself")


def _settings(net: Net) -> Any:
    if net.settings is None:
        raise SettingError("train needs a solver: a net alone does not say how it is trained")
    return net.settings


def _seed(net: Net, resumed: _Resumed | None) -> int:
    if resumed is not None:
        return resumed.seed
    given = int(_settings(net).random_seed)
    return given if given >= 0 else secrets.randbits(31)


def _last_step(
    net: Net,
    steps: int | None,
    epochs: float | None,
    seconds: float | None,
    records: int,
    at_once: int,
) -> int | None:
    if steps is not None and epochs is not None:
        raise SettingError("give steps or epochs, not both")
    if epochs is not None:
        return steps_for(epochs, records, at_once, 1)
    if steps is None and seconds is None:
        return int(_settings(net).max_iter)
    return steps


def _run(job: Job, size: int, net: Net, on_event: OnEvent | None) -> Trained:
    history: list[Event] = []

    def hear(event: Event) -> None:
        history.append(event)
        if on_event is not None:
            on_event(event)

    try:
        outcome = Crew(job, size, hear).run()
    finally:
        if job.snapshots is not None:
            FolderStore(job.snapshots).clean()
    if outcome.reason == "interrupted":
        kept = outcome.snapshot or "no snapshot, as there is no folder for them"
        raise KeyboardInterrupt(f"interrupted at iteration {outcome.iteration}; left: {kept}")
    flat = net.net.flat_params
    flat.copy_from(NDArray.map(job.trained, flat.shape))
    return Trained(net.get_weights(), history, net, outcome)
