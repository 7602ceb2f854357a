"""plan: measures, predicts and advises; SparkNet's section 3.1 as a tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from sparknet.errors import SettingError
from sparknet.loaders.image_keywords import ImageKeywords
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import Records
from sparknet.net import Net
from sparknet.net.rows import Data
from sparknet.summary.spread import difference
from sparknet.training.conducting import usable_cores
from sparknet.training.costs import Costs
from sparknet.training.events import Event
from sparknet.training.kinds import Choice, Name, Number, Numbers, Unwritten, Whole
from sparknet.training.local_training import train
from sparknet.training.planning.batches import made_up
from sparknet.training.planning.measuring import Measured, Runner, coding_costs, measure, rough_pass
from sparknet.training.planning.planned import Planned, Row, duration, short
from sparknet.training.planning.predicting import predict
from sparknet.training.planning.trials import Trial, compared
from sparknet.training.setting import called_with, check_settings, setting, values_of
from sparknet.training.shared_data import as_records
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)
from sparknet.training.training_net import settings, training_net
from sparknet.training.training_settings import WithSolver
from sparknet.training.virtual import Cluster
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision

Target = Literal["time", "cost", "traffic"]

LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200)
"""The τ that are compared."""
_ANY_LOSS = 1e30
"""Random records may let a net diverge: only its times count."""
_MADE_UP = 1024
"""Random records, where their memory allows."""
_PATIENCE = 2.0
"""Least traffic is searched among what takes at most so many times the shortest time."""


@dataclass(frozen=True)
class PlanningSettings(ImageKeywords, WithSolver):
    """What `plan` is given."""

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
        if self.accuracy is not None and (self.data is None or self.validation is None):
            needed = "needs data and validation data to try"
            raise SettingError(f"accuracy={self.accuracy!r} {needed}")


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
    net = training_net(given.solver, None, 0, given.precision, Preprocessing.of(given))
    data = None if given.data is None else as_records(given.data, net)
    if data is not None:
        net.set_training_data(data)
    count = len(data) if isinstance(data, Records) else given.records
    sizes = _numbers(given.workers, sorted({1, usable_cores()}))
    asked = _numbers(given.batches, [net.batch_size])
    run = given.run or _here(net, data, given.precision, images)
    sites = _sites(net, sizes, asked, given.cluster, run, given.seconds)
    nbytes = WeightCollection.of(net.net, copy=None).flat.nbytes
    coding = coding_costs()
    rows = [row for site in sites for row in _rows(site.coded(coding), nbytes, net, count)]
    trials = [] if given.accuracy is None else _trials(given, data, net, sites, rows, images)
    row, reasons = advised(rows, trials, given.target)
    site = next(one for one in sites if (one.workers, one.batch) == (row.workers, row.batch))
    return Planned(
        net=net.described.name,
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


def _trials(
    given: PlanningSettings,
    data: Any,
    net: Net,
    sites: Sequence[Site],
    rows: Sequence[Row],
    images: dict[str, Any],
) -> list[Trial]:
    """Train the most promising candidates in virtual time, until the accuracy."""
    assert given.accuracy is not None
    places = {(site.workers, site.batch): site.cluster for site in sites}
    candidates = [
        (row.strategy, row.workers, places[row.workers, row.batch])
        for row in _promising(rows, given.target)
        if row.batch == net.batch_size
    ]
    told = {"metric": given.metric, "precision": given.precision, **images}
    wanted, limit = given.accuracy, given.trial
    held, seeds = given.validation, given.seeds
    return compared(given.solver, data, held, candidates, wanted, limit, seeds, **told)


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
    net: Net,
    sizes: Sequence[int],
    batches: Sequence[int],
    cluster: Cluster | None,
    run: Runner,
    seconds: float,
) -> list[Site]:
    """The costs for each number of workers and each batch size."""
    pairs = [(size, batch) for size in sizes for batch in batches]
    if cluster is not None and cluster.step is not None:
        return [Site(size, batch, cluster) for size, batch in pairs]
    rough = rough_pass(net, net.batch_size)
    nbytes = WeightCollection.of(net.net, copy=None).flat.nbytes
    found = []
    for size, batch in pairs:
        one = measure(run, net, size, batch, rough, seconds / len(pairs))
        costs = one.cluster(nbytes)
        if cluster is not None:
            costs = replace(cluster, step=costs.step, slow=costs.slow, jitter=costs.jitter)
        found.append(Site(size, batch, costs, one.error, one))
    return found


def _here(net: Net, given: Any, precision: Precision, images: dict[str, Any]) -> Runner:
    """Trains in processes of this machine, on random records where none are given."""

    def run(solver: Any, workers: int, strategy: Strategy, seconds: float) -> Sequence[Event]:
        data = made_up(net, _MADE_UP) if given is None else given
        made = train(
            solver,
            data,
            workers=workers,
            strategy=strategy,
            seconds=seconds,
            diverged=_ANY_LOSS,
            precision=precision,
            **images,
        )
        return made.history

    return run


def _rows(site: Site, nbytes: int, net: Net, records: int | None) -> Iterator[Row]:
    """The strategies on a site."""
    smooth = replace(site.cluster, failures=(), mtbf=inf)
    for strategy in strategies(site.workers):
        between = 0.0 if site.measured is None else site.measured.between
        made = predict(strategy, smooth, site.workers, nbytes, between)
        each = site.workers * site.batch * int(settings(net).iter_size)
        yield Row(
            strategy=strategy,
            workers=site.workers,
            batch=site.batch,
            iteration=made.seconds,
            epoch=None if records is None else made.seconds * records / each,
            share=made.share,
            megabytes=made.bytes * 1000 / 1e6,
            error=site.error,
            needed=needed(strategy, site.workers),
        )


def strategies(workers: int) -> list[Strategy]:
    """What is compared."""
    if workers == 1:
        return [Averaging(1)]
    return [
        *(Averaging(steps) for steps in LENGTHS),
        Averaging(10, codec="fp16"),
        Averaging(10, codec="int8"),
        AllReduce(),
        DynamicAveraging(),
        DynamicAveraging(sync_at_least_every=DynamicAveraging().check_every),
        Downpour(),
        ElasticAveraging(),
        SlowMo(),
        DiLoCo(100),
        BMUF(),
    ]


def needed(strategy: Strategy, workers: int) -> float | None:
    """A rule of thumb: iterations of each worker until an accuracy, relative to one worker's.

    It follows LeNet on digits (docs/planning.md); None for strategies of which less is known.
    """
    if isinstance(strategy, AllReduce):
        return float(workers**-0.15)
    if not isinstance(strategy, Averaging) or strategy.codec is not None:
        return None
    return float(workers**-0.15 * (1 + strategy.steps / 150 * (1 - 1 / workers)))


def _promising(rows: Sequence[Row], target: Target) -> list[Row]:
    """The candidates, the best by the rule of thumb first."""
    known = [row for row in rows if row.needed is not None]
    return sorted(known, key=lambda row: _score(row, target))


def _score(row: Row, target: Target) -> float:
    needed = row.needed or inf
    if target == "traffic":
        return needed * row.megabytes * row.workers
    return needed * row.iteration * (row.workers if target == "cost" else 1)


def advised(rows: Sequence[Row], trials: Sequence[Trial], target: Target) -> tuple[Row, list[str]]:
    """The best row, and why it is the best."""
    known = _promising(rows, target)
    reached = [one for one in trials if one.reached]
    if not reached:
        return _by_rule(known, target)
    pairs = [
        (row, one)
        for row in known
        for one in reached
        if (row.strategy, row.workers) == (one.strategy, one.workers)
    ]
    fast = min(one.seconds for _, one in pairs)

    def cost(pair: tuple[Row, Trial]) -> float:
        row, one = pair
        if target == "traffic":
            late = one.seconds > _PATIENCE * fast
            return inf if late else row.megabytes * row.workers * one.iterations
        return one.seconds * (row.workers if target == "cost" else 1)

    best, one = min(pairs, key=cost)
    many = f", means over {one.seeds} seeds" if one.seeds > 1 else " with one seed"
    reasons = [
        f"in virtual time it reached {one.accuracy:.2%} after {one.iterations:.0f} iterations, "
        f"{duration(one.seconds)}{many}, best of {len(trials)} trials for the least {target}"
    ]
    close = [row for row, other in pairs if _close(other, one)]
    return best, [*reasons, *_uncertain(best, close, "no slower, as far as these seeds show")]


def _by_rule(known: Sequence[Row], target: Target) -> tuple[Row, list[str]]:
    fast = min(row.until_accuracy or inf for row in known)
    if target == "traffic":
        known = [row for row in known if (row.until_accuracy or inf) <= _PATIENCE * fast]
    best = known[0]
    others = [row for row in known[1:] if _score(row, target) <= 1.05 * _score(best, target)]
    rule = (
        "how many iterations an accuracy needs is a rule of thumb here, from LeNet on digits: "
        "validation data and an accuracy let it be tried"
    )
    return best, [f"it has the least {target} until an accuracy", rule, *_uncertain(best, others)]


def _close(one: Trial, best: Trial) -> bool:
    """Whether no difference is seen over the seeds; within 5 % where there are too few of them."""
    seen = difference(best.by_seed, one.by_seed).seen
    return one is not best and (one.seconds <= 1.05 * best.seconds if seen is None else not seen)


def _uncertain(best: Row, others: Sequence[Row], close: str = "within 5 % of it") -> list[str]:
    found = []
    if best.error:
        found.append(f"the times are uncertain by {best.error:.0%}, as rounds took unequally long")
    if others:
        named = ", ".join(f"{short(row.strategy)} with {row.workers}" for row in others[:4])
        found.append(f"{close}: {named}")
    return found


def _numbers(given: int | Sequence[int] | None, usual: list[int]) -> list[int]:
    values = usual if given is None else [given] if isinstance(given, int) else given
    return sorted(set(values))
