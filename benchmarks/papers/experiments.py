"""The tables and figures, each as a part of a report: title, text, panels, tables, command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import inf, isfinite
from typing import Any

from benchmarks.papers.curves import LONG, Setting, curve, iterations, make_solver
from benchmarks.papers.fits import fits
from benchmarks.strategies import records
from sparknet.training import (
    AllReduce,
    Averaging,
    Cluster,
    Downpour,
    DynamicAveraging,
    Strategy,
    simulate,
)
from sparknet.training.planning import Planned, plan, predict

Part = dict[str, Any]
Points = list[tuple[float, float]]

WORKERS = (1, 2, 3, 5, 10)
LENGTHS = (1, 5, 10, 25, 50, 100)
LONGER = (1, 25, 100, 250, 500, 1000)
COSTS = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
"""S, in units of C."""
FIXED = 1000
"""Iterations of trainings of a fixed length."""


def speedup_table(setting: Setting) -> Part:
    """SparkNet, Figure 3: N_a / (τ M_a) without costs of communication."""
    alone = iterations(setting, Averaging(1), 1)
    rows = []
    for workers in WORKERS:
        made = [alone / iterations(setting, Averaging(steps), workers) for steps in LENGTHS]
        rows.append([workers, *(round(one, 2) for one in made)])
    row = rows[0][1:]
    best = max(value for line in rows for value in line[1:])
    return {
        "name": "figure3",
        "title": "SparkNet, Figure 3: speed-up over K and τ, S = 0",
        "text": f"The row of K = 1 is {min(row):.2f} to {max(row):.2f}: rounds of τ steps end at "
        f"multiples of τ. The "
        f"best of all is {best:.2f}. As in the paper, several workers are faster than one, and K "
        f"of them are not K "
        "times as fast: what they save is the noise of small batches.",
        "tables": [{"head": ["K", *(f"τ = {steps}" for steps in LENGTHS)], "rows": rows}],
    }


def speedup_over_cost(
    setting: Setting, name: str, lengths: Sequence[int], workers: int = 5
) -> Part:
    """SparkNet, Figure 4: speed-up over S, of the naive way and of SparkNet."""
    alone = iterations(setting, Averaging(1), 1)
    together = iterations(setting, AllReduce(), workers)  # batches of K b
    naive, ours, rows = [], [], []
    for cost in COSTS:
        # The naive way divides a batch of K b, which one machine computes in K C, among the K.
        slow = alone / (together * (1 + cost))
        found = {
            steps: alone * steps / (iterations(setting, Averaging(steps), workers) * (steps + cost))
            for steps in lengths
        }
        steps = max(found, key=lambda one: found[one])
        naive.append((cost, slow))
        ours.append((cost, found[steps]))
        rows.append([cost, round(slow, 3), round(found[steps], 3), steps])
    falls = next((cost for cost, value in naive if value < 1), inf)
    kept = ours[-1][1] / ours[0][1]
    ten = next(value for cost, value in ours if cost == 10) / ours[0][1]
    return {
        "name": name,
        "title": f"SparkNet, Figure 4: speed-up over S, K = {workers}, N_a = {alone:,.0f}",
        "text": f"Until {setting.accuracy:.1%} at a learning rate of {setting.rate:g}. "
        f"The naive way is slower than one machine from S = {falls:g} C on, as in the "
        f"paper. SparkNet keeps {ten:.0%} of its speed-up at S = 10 C and {kept:.0%} at S = 100 C. "
        f"{_flatness(alone, kept, steps)}",
        "panels": [
            {"title": "Speed-up", "across": "S / C", "curves": {"naive": naive, "SparkNet": ours}}
        ],
        "tables": [{"head": ["S / C", "naive", "SparkNet, best τ", "τ"], "rows": rows}],
    }


def _flatness(alone: float, kept: float, steps: int) -> str:
    """Why the curve is as flat as it is; ``steps`` are those of the best rounds at S = 100 C."""
    share = steps / (steps + COSTS[-1])
    told = (
        "Rounds of τ steps keep τ / (τ + S / C) of what they give without costs: at S = 100 C, "
        f"τ = {steps} keeps {share:.0%}, and 90% needs τ = 900. "
    )
    if kept > 0.7:
        return told + "As in the paper, the curve is nearly flat up to there."
    return told + (
        "The paper's curve is nearly flat up to there. One worker needs only "
        f"{alone:,.0f} iterations here, which leaves room for no rounds that long; the next "
        "figure is of a training that needs more."
    )


def over_time(setting: Setting, cost: float = 5.0) -> Part:
    """SparkNet, Figures 5 and 6: accuracy over simulated time, S = 5 C."""

    def timed(workers: int, steps: int) -> Points:
        strategy = Averaging(steps)
        found = curve(setting, strategy, workers, most=FIXED)
        each = 1 + (cost / steps if workers > 1 else 0)
        return [(round(at * each, 3), value) for at, value in found]

    sizes = {f"K = {workers}": timed(workers, 25) for workers in (1, 3, 5, 10)}
    lengths = {f"τ = {steps}": timed(5, steps) for steps in LENGTHS}
    rows = [
        [name, _until(points, setting.accuracy), f"{points[-1][1]:.2%}"]
        for name, points in {**sizes, **lengths}.items()
    ]
    return {
        "name": "figures5and6",
        "title": f"SparkNet, Figures 5 and 6: accuracy over simulated time, S = {cost:g} C",
        "text": f"At τ = 1, {cost / (1 + cost):.0%} of the time is communication, at τ = 25 "
        f"{cost / (25 + cost):.0%}. As in the paper, "
        "long rounds reach an accuracy earlier on a slow network, and several workers get further "
        "than one.",
        "panels": [
            {"title": "Accuracy, τ = 25", "across": "time / C", "curves": sizes},
            {"title": "Accuracy, K = 5", "across": "time / C", "curves": lengths},
        ],
        "tables": [
            {
                "head": ["", f"time to {setting.accuracy:.0%}, in C", f"after {FIXED} steps"],
                "rows": rows,
            }
        ],
    }


def _until(points: Points, accuracy: float) -> str:
    return next((f"{at:.0f}" for at, value in points if value >= accuracy), "not reached")


def dynamic(setting: Setting, workers: int = 4) -> Part:
    """Dynamic averaging, Table I and Figures 3 to 5."""
    strategies: dict[str, Strategy] = {
        "static": Averaging(10),
        "dynamic, 0.02": DynamicAveraging(0.02, check_every=10),
        "dynamic, 0.05": DynamicAveraging(0.05, check_every=10),
        "dynamic, 0.1": DynamicAveraging(0.1, check_every=10),
        "once, at the end": Averaging(FIXED),
    }
    rows, traffic, accuracy, moments = [], {}, {}, {}
    for number, (name, strategy) in enumerate(strategies.items()):
        made = simulate(
            make_solver(setting.net),
            records(slice(0, 8500)),
            workers=workers,
            strategy=strategy,
            cluster=Cluster(step=1.0),
            validation=records(slice(8500, None)),
            validate_every=2,
            steps=FIXED,
        )
        rounds = [event for event in made.history if event["event"] == "round"]
        least = made.weights.flat.nbytes // 8
        syncs = [event["iteration"] for event in rounds if event["bytes_sent"] / workers > least]
        total, sent = 0.0, []
        for event in rounds:
            total += event["bytes_sent"] / 1e6
            sent.append((event["iteration"], total))
        traffic[name] = sent
        moments[name] = [(at, number) for at in syncs]
        accuracy[name] = [
            (event["iteration"], event["metrics"]["accuracy"])
            for event in made.history
            if event["event"] == "validation"
        ]
        final = made.outcome.metrics["accuracy"]
        rows.append([name, f"{final:.2%}", len(syncs), f"{total:.1f}"])
    return {
        "name": "dynamic",
        "title": f"Dynamic averaging, Table I and Figures 3 to 5: K = {workers}, {FIXED} steps "
        "each",
        "text": _compared(rows),
        "panels": [
            {"title": "Accuracy", "across": "iteration", "curves": accuracy},
            {"title": "MB sent in all", "across": "iteration", "curves": traffic},
            {"title": "Synchronisations (one row each)", "across": "iteration", "curves": moments},
        ],
        "tables": [
            {"head": ["averaging", "accuracy", "synchronisations", "MB in all"], "rows": rows}
        ],
    }


def _compared(rows: list[list[Any]]) -> str:
    static, *others, once = rows
    told = ", ".join(f"{float(row[3]) / float(static[3]):.0%}" for row in others)
    return (
        f"Dynamic averaging sends {told} of the bytes of static averaging, by threshold, for "
        f"accuracies of "
        f"{', '.join(str(row[1]) for row in others)} against {static[1]}, as in the paper. Its "
        f"synchronisations are frequent at the "
        f"beginning, when the weights move fast, and rare later. Averaging once at the end gives "
        f"{once[1]}."
    )


def scaling(cluster: Cluster, nbytes: int, total: int = 4096) -> Part:
    """Dynamic averaging, Table II: Amdahl's and USL's fits to times of a fixed number of steps.

    The cluster's steps are ten times as long as here: those of a net that is worth a cluster.
    """
    sizes = (2, 4, 8, 16, 32, 64)
    cases: dict[str, Strategy] = {
        "static, τ = 1": Averaging(1),
        "static, τ = 10": Averaging(10),
        "all-reduce": AllReduce(),
    }
    rows, curves = [], {}
    for name, strategy in cases.items():
        times = {
            size: predict(strategy, cluster, size, nbytes).seconds * total / size for size in sizes
        }
        amdahl, usl = fits(times)
        curves[name] = [(float(size), seconds) for size, seconds in times.items()]
        curves[f"{name}, USL"] = [(float(size), usl.seconds(size)) for size in sizes]
        best = "–" if not isfinite(usl.best) else f"{usl.best:.0f}"
        alone = [f"{amdahl.sigma:.4f}", f"{amdahl.error:.1%}"]
        rows.append(
            [name, *alone, f"{usl.sigma:.4f}", f"{usl.kappa:.5f}", f"{usl.error:.1%}", best]
        )
    head = ["", "Amdahl σ", "error", "USL σ", "USL κ", "error", "best K"]
    return {
        "name": "table2",
        "title": "Dynamic averaging, Table II: fits of Amdahl's law and of the USL",
        "text": f"Times of {total:,} steps in all. {_fitted(rows)}",
        "panels": [{"title": "Seconds", "across": "workers", "curves": curves}],
        "tables": [{"head": head, "rows": rows}],
    }


def _fitted(rows: list[list[Any]]) -> str:
    better = [row[0] for row in rows if float(row[5][:-1]) < float(row[2][:-1])]
    alone = "One worker is left out: it sends nothing."
    if better:
        told = "; ".join(better)
        return f"As in the paper, the USL fits better than Amdahl's law for {told}. {alone}"
    return (
        "Other than in the paper, the USL fits no better than Amdahl's law, and κ is 0. N steps "
        "take N / K (C + S / τ). The S of a direct mean is constant but for a part that grows as "
        "K, for the messages to each peer: that part gives a time that does not fall with K, "
        "which is Amdahl's σ. κ stands for a time that grows with K, which needs an S that grows "
        "as K², as where all workers' messages share one link. The constant part of S makes both "
        f"errors. {alone}"
    )


def synchronisation(cluster: Cluster, nbytes: int, measured: dict[int, float]) -> Part:
    """BigDL: the share of a synchronisation in an iteration, by K."""
    assert cluster.step is not None
    sizes = (2, 4, 8, 16, 32, 64)
    rows = []
    for size in sizes:
        foreseen = cluster.sync(nbytes, size)
        real = f"{1e3 * measured[size]:.1f}" if size in measured else ""
        rows.append([size, f"{1e3 * foreseen:.1f}", real, f"{foreseen / cluster.step:.2f}"])
    share = [(float(size), cluster.sync(nbytes, size) / cluster.step) for size in sizes]
    return {
        "name": "bigdl",
        "title": "BigDL: the cost of a synchronisation by K",
        "text": "As in the paper, the bytes that a worker sends grow towards twice the weights and "
        "no further. What grows here is the cost of each peer, which is taken for a quarter of the "
        "measured latency. The measured S contains the waiting for the slowest worker.",
        "panels": [{"title": "S / C", "across": "workers", "curves": {"": share}}],
        "tables": [{"head": ["K", "S predicted, ms", "S measured, ms", "S / C"], "rows": rows}],
    }


def staleness(setting: Setting, workers: int = 4, samples: int = 25600) -> Part:
    """TensorSpark: accuracy after as many samples, by batch size and staleness."""
    pulls, batches = (1, 4, 16), (4, 16, 64)
    rows = []
    for batch in batches:
        found = []
        for pull in pulls:
            made = simulate(
                make_solver(setting.net, batch),
                records(slice(0, 8500)),
                workers=workers,
                strategy=Downpour(pull_every=pull, max_staleness=1000),
                cluster=Cluster(step=1.0, jitter=0.2, latency=0.01, bandwidth=1e9),
                validation=records(slice(8500, None)),
                validate_every=1 << 30,
                steps=samples // (batch * workers),
                diverged=1e9,
            )
            found.append(f"{made.outcome.metrics['accuracy']:.2%}")
        rows.append([batch, *found])
    head = ["batch", *(f"staleness {workers * pull - 1}" for pull in pulls)]
    return {
        "name": "tensorspark",
        "title": f"TensorSpark: staleness against batch size, {workers} workers, {samples:,} "
        "samples in all",
        "text": "Staleness is the usual number of contributions between a worker's pull and its "
        "push. It costs accuracy, "
        "and a large one ruins training; small batches make more updates of the same samples, of "
        "which each is a small one.",
        "tables": [{"head": head, "rows": rows}],
    }


def all_parts(setting: Setting) -> dict[str, Callable[[], Part]]:
    """What makes each of them; C and S of two are measured, once."""

    @cache
    def measured() -> tuple[Cluster, Planned]:
        solver = make_solver("lenet", 64)
        made = plan(solver, records(slice(0, 8500)), workers=[2, 4], seconds=10.0)
        two = made.measured[0]
        return replace(two.cluster(made.bytes), slow={}, overhead=two.latency / 4), made

    def table2() -> Part:
        cluster, made = measured()
        return scaling(replace(cluster, step=10 * made.measured[0].step), made.bytes)

    def bigdl() -> Part:
        cluster, made = measured()
        known = {one.workers: one.sync for one in made.measured}
        return synchronisation(cluster, made.bytes, known)

    return {
        "figure3": partial(speedup_table, setting),
        "figure4": partial(speedup_over_cost, setting, "figure4", LENGTHS),
        "figure4long": partial(speedup_over_cost, LONG, "figure4long", LONGER),
        "figures5and6": partial(over_time, setting),
        "dynamic": partial(dynamic, setting),
        "table2": table2,
        "bigdl": bigdl,
        "tensorspark": partial(staleness, setting),
    }
