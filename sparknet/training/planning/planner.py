"""plan: measures, predicts and advises; SparkNet's section 3.1 as a tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

from sparknet.errors import ArgumentError, SettingError
from sparknet.loaders.image_settings import ImageKeywords
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import Records
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.rows import Data
from sparknet.training.events import Event
from sparknet.training.local_training import train
from sparknet.training.opening import as_columns
from sparknet.training.planning.advice import (
    Planned,
    Row,
    Target,
    advised,
    needed,
    promising,
    strategies,
)
from sparknet.training.planning.measurement import Measured, Runner, coding_costs, measure
from sparknet.training.planning.prediction import predict
from sparknet.training.planning.subject import ModuleSubject, NetSubject, Subject
from sparknet.training.planning.trials import Trial, compared
from sparknet.training.settings.fields import called_with, check_settings, setting, values_of
from sparknet.training.settings.kinds import Choice, Name, Number, Numbers, Unwritten, Whole
from sparknet.training.settings.module import ModuleKeywords, check_subject
from sparknet.training.settings.training import WithSolver
from sparknet.training.strategies import Strategy
from sparknet.training.strategies.auto import Costs
from sparknet.training.training_net import training_net
from sparknet.training.virtual import Cluster
from sparknet.training.workers.local import usable_cores
from sparknet.training.workers.shared_data import as_records

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision

_ANY_LOSS = 1e30
"""Random records may let a net diverge: only its times count."""
_MADE_UP = 1024
"""Random records, where their memory allows."""


@dataclass(frozen=True)
class PlanningSettings(ImageKeywords, ModuleKeywords, WithSolver):
    """What `plan` is given."""

    solver: NetSource | Net | None = None  # type: ignore[assignment]
    data: Data | None = None
    _: KW_ONLY
    workers: int | Sequence[int] | None = setting(
        None, Numbers(), "Numbers of workers to compare; else 1, and one for each core.", "workers"
    )
    batches: int | Sequence[int] | None = setting(
        None, Numbers(), "Batch sizes to compare; else the net's.", "records"
    )
    target: Target = setting(
        "time", Choice(("time", "cost", "traffic")), "What to minimise: time, cost or traffic."
    )
    label: str | Sequence[str] = setting(
        "label", Unwritten(), "The column of the targets of a module's loss, or several."
    )
    cluster: Cluster | None = setting(
        None, Unwritten(), "What the network costs, and a step if it says so; else measured."
    )
    validation: Data | None = setting(None, Unwritten(), "Records for trials in virtual time.")
    accuracy: float | None = setting(
        None, Number(), "The accuracy that the best candidates are trained to."
    )
    metric: str = setting("accuracy", Name(), "The output of validation that is the accuracy.")
    records: int | None = setting(
        None, Whole(0), "The number of training records, where no data is given.", "records"
    )
    seconds: float = setting(30.0, Number(least=0), "The time for measuring, in all.", "seconds")
    seeds: int = setting(
        5, Whole(1), "The most seeds that each of the best candidates is tried with."
    )
    trial: float = setting(60.0, Number(least=0), "The time for trials, in all.", "seconds")
    run: Runner | None = setting(
        None,
        Unwritten(),
        "What trains elsewhere than on this machine, such as sparknet.spark.runner(data).",
    )
    precision: Precision = setting(
        "float32",
        Choice(("float32", "bf16")),
        "What the net multiplies: float32 or bf16 (docs/precision.md).",
    )

    def __post_init__(self) -> None:
        check_settings(self)
        check_subject(self, others=("target", "label"))
        if self.module is None and self.solver is None:
            raise ArgumentError("missing a required argument: 'solver'")
        if self.module is not None and self.data is None:
            raise SettingError("the shapes of a module's records are not known: give the data, too")
        if self.accuracy is not None and (self.data is None or self.validation is None):
            needed = "needs data and validation data to try"
            raise SettingError(f"accuracy={self.accuracy!r} {needed}")

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns of a module's targets."""
        return (self.label,) if isinstance(self.label, str) else tuple(self.label)


@called_with(PlanningSettings)
def plan(given: PlanningSettings) -> Planned:
    """Measure what a step and a synchronisation cost, and advise on strategy, τ and workers.

    Short runs with each number of ``workers`` and each batch size of ``batches`` measure C and S
    for about ``seconds`` in all.  A ``cluster`` says what its network costs instead, and its steps
    if it names them: what if my network were ten times slower?  Without ``data``, random records
    are used, and ``records`` says how many there will be.

    ``target`` is the shortest "time", the fewest worker-hours ("cost"), or the least "traffic".
    With ``validation`` data and an ``accuracy`` (of ``metric``), the best candidates are trained in
    virtual time with ``seeds`` seeds each, for ``trial`` seconds in all; otherwise the iterations
    that an accuracy needs are a rule of thumb.  ``run`` trains somewhere else than in processes of
    this machine, as `sparknet.spark.runner` does.  Other keywords say what happens to images.

    >>> from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
    >>> from sparknet.training import Cluster
    >>> lines = NetParams(
    ...     "lines",
    ...     RDDLayer("data", shape=[32, 2]),
    ...     RDDLayer("label", shape=[32]),
    ...     LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
    ...     SoftmaxWithLoss("loss", ["ip", "label"]),
    ... )
    >>> solver = SolverParams(net=lines, base_lr=0.5, lr_policy="fixed")
    >>> planned = plan(solver, workers=4, cluster=Cluster(step=0.01, latency=0.1))
    >>> planned.strategy.steps > 10
    True
    """
    images = values_of(given, ImageKeywords)
    subject, data = _subject(given)
    count = len(data) if isinstance(data, Records) else given.records
    sizes = _numbers(given.workers, sorted({1, usable_cores()}))
    batches = _numbers(given.batches, [subject.batch_size])
    run = given.run or _here(subject, data, given.precision, images)
    sites = _sites(subject, sizes, batches, given.cluster, run, given.seconds)
    nbytes, coding = subject.nbytes, coding_costs()
    rows = [row for site in sites for row in _rows(site.coded(coding), nbytes, subject, count)]
    trials = [] if given.accuracy is None else _trials(given, data, subject, sites, rows, images)
    row, reasons = advised(rows, trials, given.target)
    site = next(one for one in sites if (one.workers, one.batch) == (row.workers, row.batch))
    return Planned(
        net=subject.name,
        bytes=nbytes,
        records=count,
        target=given.target,
        measured=[site.measured for site in sites if site.measured is not None],
        rows=rows,
        strategy=row.strategy,
        workers=row.workers,
        batch=row.batch,
        reasons=[*site.reasons(nbytes), *reasons],
        trials=trials,
    )


def _subject(given: PlanningSettings) -> tuple[Subject, Any]:
    """Return what is planned for, and its records, where they are given."""
    if given.module is not None:
        data = as_columns(given.data, given.module, given.targets)
        return ModuleSubject(given, data, given.precision), data
    net = training_net(given.solver, None, 0, given.precision, Preprocessing.of(given))
    data = None if given.data is None else as_records(given.data, net)
    if data is not None:
        net.set_training_data(data)
    return NetSubject(net), data


def _trials(
    given: PlanningSettings,
    data: Any,
    subject: Subject,
    sites: Sequence[Site],
    rows: Sequence[Row],
    images: dict[str, Any],
) -> list[Trial]:
    """Train the most promising candidates in virtual time, until the accuracy."""
    assert given.accuracy is not None
    places = {(site.workers, site.batch): site.cluster for site in sites}
    candidates = [
        (row.strategy, row.workers, places[row.workers, row.batch])
        for row in promising(rows, given.target)
        if row.batch == subject.batch_size
    ]
    keywords = {"metric": given.metric, "precision": given.precision, **images}
    keywords |= {} if given.module is None else subject.with_batch(subject.batch_size)
    accuracy, limit = given.accuracy, given.trial
    validation, seeds = given.validation, given.seeds
    return compared(given.solver, data, validation, candidates, accuracy, limit, seeds, **keywords)


@dataclass(frozen=True)
class Site:
    """A number of workers, a batch size, and what they cost."""

    workers: int
    batch: int
    cluster: Cluster
    error: float = 0.0
    measured: Measured | None = None

    def coded(self, coding: dict[str, float]) -> Site:
        return replace(self, cluster=replace(self.cluster, coding=coding))

    def reasons(self, nbytes: int) -> list[str]:
        if self.workers == 1 or not self.cluster.step:
            return []
        costs = Costs(self.cluster.step, self.cluster.sync(nbytes, self.workers))
        if self.measured is not None:
            waiting = max(self.measured.sync - self.measured.transfer, costs.sync) - costs.sync
            costs = replace(costs, sync=costs.sync + waiting)
        length = costs.length()
        return [
            f"{costs}: rounds of 1 step would spend {costs.share(1):.0%} in communication",
            f"Auto would settle near rounds of {length:.3g} steps "
            f"({costs.share(length):.0%} in communication)",
        ]


def _sites(
    subject: Subject,
    sizes: Sequence[int],
    batches: Sequence[int],
    cluster: Cluster | None,
    run: Runner,
    seconds: float,
) -> list[Site]:
    """Return the costs for each number of workers and each batch size."""
    pairs = [(size, batch) for size in sizes for batch in batches]
    if cluster is not None and cluster.step is not None:
        return [Site(size, batch, cluster) for size, batch in pairs]
    rough = subject.rough_pass()
    sites = []
    for size, batch in pairs:
        one = measure(run, subject.with_batch, size, batch, rough, seconds / len(pairs))
        costs = one.cluster(subject.nbytes)
        if cluster is not None:
            costs = replace(cluster, step=costs.step, slow=costs.slow, jitter=costs.jitter)
        sites.append(Site(size, batch, costs, one.error, one))
    return sites


def _here(subject: Subject, given: Any, precision: Precision, images: dict[str, Any]) -> Runner:
    """Trains in processes of this machine, on random records where none are given."""

    def run(solver: Any, workers: int, strategy: Strategy, seconds: float) -> Sequence[Event]:
        trained = train(
            **subject.keywords(solver),
            data=subject.made_up(_MADE_UP) if given is None else given,
            workers=workers,
            strategy=strategy,
            seconds=seconds,
            diverged=_ANY_LOSS,
            precision=precision,
            **images,
        )
        return trained.history

    return run


def _rows(site: Site, nbytes: int, subject: Subject, records: int | None) -> Iterator[Row]:
    """Yield the strategies on a site."""
    smooth = replace(site.cluster, failures=(), mtbf=inf)
    for strategy in strategies(site.workers):
        between = 0.0 if site.measured is None else site.measured.between
        prediction = predict(strategy, smooth, site.workers, nbytes, between)
        each = site.workers * site.batch * subject.iter_size
        yield Row(
            strategy=strategy,
            workers=site.workers,
            batch=site.batch,
            iteration=prediction.seconds,
            epoch=None if records is None else prediction.seconds * records / each,
            share=prediction.share,
            megabytes=prediction.bytes * 1000 / 1e6,
            error=site.error,
            needed=needed(strategy, site.workers),
        )


def _numbers(given: int | Sequence[int] | None, usual: list[int]) -> list[int]:
    values = usual if given is None else [given] if isinstance(given, int) else given
    return sorted(set(values))
