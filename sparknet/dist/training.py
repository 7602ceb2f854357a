"""train: training on this machine, with one or more worker processes."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sparknet.caffe.idle import warn_of_idle
from sparknet.dist.events import Event, OnEvent
from sparknet.dist.identity import identity, sampled
from sparknet.dist.local_launcher import LocalWorkers, Place
from sparknet.dist.plan import Plan, steps_for
from sparknet.dist.portable import portable_solver
from sparknet.dist.run import Run
from sparknet.dist.run_spec import RunSpec
from sparknet.dist.runs import FolderRuns, find_resumed, save_weights
from sparknet.dist.seal import choose_seal
from sparknet.dist.shared_data import open_shared, share_records
from sparknet.dist.strategies import Strategy, make_strategy
from sparknet.dist.training_net import check_engine, last_step, seed_of, settings, training_net
from sparknet.dist.worker import Outcome
from sparknet.errors import SettingError
from sparknet.net import Net
from sparknet.net.scratch import scratch_folder
from sparknet.weights import WeightCollection

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Trained:
    """The result of training."""

    weights: WeightCollection
    history: list[Event] = field(repr=False)
    """The events (`sparknet.dist.events`); of more than 1024 of a kind, older ones are thinned."""
    net: Net
    """The net, with the trained weights."""
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

    ``workers`` processes, one for each core unless given, train on ``data`` (Records, their path,
    or arrays by name or in the order of the net's inputs) and synchronise by ``strategy``: a name
    or an object of `sparknet.dist`.  ``weights`` are the initial weights: a caffemodel, a
    WeightCollection, or a folder of snapshots, of which the newest is used.  The records are
    shuffled by ``seed``, or come as they are stored (``shuffle=False``).  Each worker has
    ``threads`` threads, an equal share of the machine's cores unless given.
    ``precision="bf16"`` multiplies in bfloat16: docs/precision.md.

    Training ends after ``steps`` iterations (the solver's max_iter unless given), ``epochs`` or
    ``seconds``.  The ``validation`` records are measured every ``validate_every`` rounds.  With
    ``patience``, training also ends after that many validations without a better ``metric``;
    ``goal`` says whether more of it is better ("max") or less ("min").  Training ends in an error
    when the loss reaches ``diverged`` times that of the first round, or when a worker sends no
    heartbeat for ``deadline`` seconds.

    A run writes a snapshot every ``snapshot_every`` rounds, into its own folder in ``snapshots``;
    the newest ``keep`` snapshots stay.  ``resume`` continues from the newest snapshot of the
    newest run there, if there is one.  Each event (`sparknet.dist.events`) is passed to
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
    size = _size(workers)
    chosen = make_strategy(strategy)
    runs = None if snapshots is None else FolderRuns(snapshots)
    resumed = find_resumed(runs, resume)
    resumed_seed = None if resumed is None else resumed.seed
    with scratch_folder() as name:
        if isinstance(weights, (str, os.PathLike)) and Path(weights).is_dir():
            weights = save_weights(FolderRuns, os.fspath(weights), name)
        net = training_net(solver, weights, resumed_seed, precision)
        last = last_step(net, steps, epochs, seconds)
        known = identity(net, seed_of(net, resumed_seed), seed, shuffle)
        if resumed is not None:
            resumed.check({"workers": size, "strategy": chosen.settings(), **known})
        shared = _share(net, data, validation, Path(name))
        if resumed is None:
            warn_of_idle(net.net)
        records = open_shared(shared["records"])
        known["data"], count = sampled(records), len(records)
        batch_size = net.batch_size * int(settings(net).iter_size)
        plan = Plan(
            steps=last if epochs is None else steps_for(epochs, count, batch_size, size),
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
        if resumed is not None:
            resumed.check({"records": count, "batch_size": batch_size, **known})
        store = None
        if runs is not None:
            store = runs.begin() if resumed is None else resumed.store
            runs.prepare()  # creates a folder, so only after all checks
        seal = choose_seal("sealed")
        with Run(net.net.flat_params, store, on_event, resume=resume, seal=seal) as run:
            spec = RunSpec(
                link=run.link(),
                solver=portable_solver(settings(net)),
                seed=known["seed"],
                precision=net.precision,
                strategy=chosen.settings(),
                plan=asdict(plan),
                epochs=epochs,
                order_seed=seed,
                shuffle=shuffle,
                validates=validation is not None,
                keeps=store is not None,
                folder=None if store is None else store.place,
                identity=known,
                ports=(0,),
                deadline=deadline,
            )
            share = threads or max(1, usable_cores() // size)
            places = [
                Place(spec, rank, size, name, **shared, threads=share) for rank in range(size)
            ]
            outcome, trained = run.supervise(LocalWorkers(places, store))
        net.net.flat_params.copy_from(trained)
        return Trained(net.get_weights(), run.history, net, outcome)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(workers: int | None) -> int:
    if workers is not None and workers < 1:
        raise SettingError(f"workers must be at least 1, not {workers}")
    return usable_cores() if workers is None else workers


def _share(net: Net, data: Any, validation: Any, folder: Path) -> dict[str, Any]:
    """Writes the files that workers map, in a folder that all of them reach."""
    records = share_records(data, net, folder / "records")
    net.set_training_data(open_shared(records))  # the data may decide the net's shapes
    check_engine(net)
    held_out = None
    if validation is not None:
        held_out = share_records(validation, net, folder / "validation")
    return {"records": records, "validation": held_out}
