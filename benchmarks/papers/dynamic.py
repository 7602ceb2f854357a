"""Alkhoury et al. (2021): Table I with controls, Figures 3 to 5, Table II.

Their rule of dynamic averaging is that of Kamp et al. (2018).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from statistics import median
from threading import Thread
from typing import Any

from benchmarks.digits import records as digits
from benchmarks.papers.cells import CurvePanel, Curves, Item, MarkdownTable, Part, Said, TableCell
from benchmarks.papers.fits import Fit, fits
from benchmarks.papers.trainings import (
    MEETING,
    Arm,
    apart,
    averaging,
    mean_curve,
    round_of,
    run,
    spread,
)
from sparknet import models
from sparknet.comm.mesh import Listener
from sparknet.comm.tcp_comm import TcpComm
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.training import Averaging, DynamicAveraging, Strategy
from sparknet.training.planning.trials import Difference, Spread

STEPS, CHECK, WORKERS = 1000, 10, 4
THRESHOLDS = (0.02, 0.05, 0.1, 0.2)


def arm(strategy: Strategy) -> Arm:
    return Arm(strategy, WORKERS, STEPS, every=50)


def dynamic(threshold: float) -> DynamicAveraging:
    return DynamicAveraging(threshold, check_every=CHECK)


def control(threshold: float) -> Arm:
    """Plain averaging that synchronises as often."""
    count = spread(arm(dynamic(threshold)), lambda one: one.synchronisations).mean
    return arm(averaging(STEPS / max(count, 1.0), STEPS))


def difference(threshold: float) -> Difference:
    return apart(arm(dynamic(threshold)), control(threshold), lambda one: one.accuracy)


def _length(threshold: float) -> str:
    return str(round_of(control(threshold).strategy))


def _apart(threshold: float) -> Spread:
    return difference(threshold).spread


def _verdict(threshold: float) -> str:
    return difference(threshold).verdict


def table1() -> Part:
    def row(name: str, strategy: Strategy, *more: Item) -> list[Item]:
        one = arm(strategy)
        return [
            name,
            TableCell(lambda: spread(one, lambda run: run.accuracy), 100, unit=" %"),
            TableCell(lambda: spread(one, lambda run: run.synchronisations), digits=1),
            TableCell(lambda: spread(one, lambda run: run.sent * WORKERS), 1e-6),
            *(more or ("", "", "")),
        ]

    rows = [row(f"static, τ = {CHECK}", Averaging(CHECK))]
    rows += [
        row(
            f"dynamic, {threshold:g}",
            dynamic(threshold),
            Said(partial(_length, threshold)),
            TableCell(partial(_apart, threshold), 100, signed=True),
            Said(partial(_verdict, threshold)),
        )
        for threshold in THRESHOLDS
    ]
    rows += [row("once, at the end", Averaging(STEPS))]

    def text() -> str:
        seen = [threshold for threshold in THRESHOLDS if difference(threshold).is_significant]
        first = spread(arm(dynamic(THRESHOLDS[0])), lambda one: one.synchronisations).mean
        told = (
            f"at {', '.join(f'{one:g}' for one in seen)} a difference is seen"
            if seen
            else "no difference is seen at any threshold: what dynamic averaging saves here, "
            "longer rounds save as well"
        )
        return (
            "The control is plain averaging with as many synchronisations, equally far apart; its "
            "bytes are the same. "
            f"Held against it, {told}. The default threshold of {THRESHOLDS[0]:g} synchronises "
            f"{first:.0f} times of {STEPS // CHECK} and saves "
            f"{1 - first / (STEPS // CHECK):.0%} here. The paper compares with static averaging "
            "at fixed periods, not with equally many synchronisations.\n\nA check sends one number "
            "to each worker, which counts as a message and not in the bytes. Validations are not "
            "in the bytes, either. As in the paper, synchronisations are frequent at first, when "
            "the weights move fast, and rare later (third picture, seed 1)."
        )

    drawn = {"static": Averaging(CHECK)} | {f"dynamic, {t:g}": dynamic(t) for t in THRESHOLDS}

    def traffic() -> Curves:
        return {
            name: [(float(at), sent / 1e6) for at, sent, _ in run(arm(strategy), 1).traffic]
            for name, strategy in drawn.items()
        }

    def moments() -> Curves:
        found: Curves = {}
        for number, (name, strategy) in enumerate(drawn.items()):
            events = run(arm(strategy), 1).traffic
            before = [0, *(count for _, _, count in events)]
            found[name] = [
                (float(at), float(number))
                for (at, _, count), last in zip(events, before, strict=False)
                if count > last
            ]
        return found

    head = (
        *("averaging", "accuracy", "synchronisations", "MB in all"),
        *("τ of as many", "difference, points", "verdict"),
    )
    return Part(
        "dynamic",
        "Alkhoury et al., dynamic averaging, Table I and Figures 3 to 5: "
        f"K = {WORKERS}, {STEPS} steps each",
        text,
        [MarkdownTable(head, rows)],
        [
            CurvePanel(
                "Accuracy",
                "iteration",
                lambda: {name: mean_curve(arm(one)) for name, one in drawn.items()},
            ),
            CurvePanel("MB sent in all", "iteration", traffic),
            CurvePanel("Synchronisations (one row each)", "iteration", moments),
        ],
    )


# -- Table II ----------------------------------------------------------------------------------

SIZES = (2, 4, 6, 8, 12, 16)
TOTAL = 2400
"""Steps of all workers together."""
FEW = (0.05, 0.1)
BATCH = 64
"""Of the zoo's LeNet."""


def solver() -> Any:
    """The zoo's LeNet, which begins with the same weights each time."""
    chosen = models.solver("lenet").to_proto()
    chosen.random_seed = 1
    return chosen


@cache
def step() -> float:
    """C: the seconds of a step of LeNet on one core."""
    net = Net(solver())
    net.set_training_data(digits(slice(0, 2000)))
    net.train(20)
    begun = time.perf_counter()
    net.train(60)
    return (time.perf_counter() - begun) / 60


@cache
def network(workers: int) -> tuple[float, float]:
    """Seconds of a mean of LeNet's weights, S, and of a small message, of K workers that share
    this machine's cores: medians over real connections."""
    size = Net(solver()).get_weights().flat.size
    listeners = [Listener("127.0.0.1") for _ in range(workers)]
    addresses = [one.address for one in listeners]
    found: list[tuple[list[float], list[float]]] = [([], []) for _ in listeners]

    def work(rank: int) -> None:
        with TcpComm.connect(listeners[rank], rank, addresses, b"papers", 60.0) as comm:
            buffer = NDArray.zeros((size,))
            acts: tuple[Callable[[], None], ...] = (partial(comm.mean, buffer), comm.barrier)
            for _ in range(25):
                for act, times in zip(acts, found[rank], strict=True):
                    comm.barrier()
                    begun = time.perf_counter()
                    act()
                    times.append(time.perf_counter() - begun)

    threads = [Thread(target=work, args=(rank,)) for rank in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mean, small = (
        median(max(one) for one in zip(*(times[kind] for times in found), strict=True))
        for kind in range(2)
    )
    return mean, small


def _share(threshold: float, workers: int) -> Spread:
    """The share of checks at which dynamic averaging synchronises, from trainings on digits."""
    steps = TOTAL // workers
    one = Arm(dynamic(threshold), workers, steps)
    return spread(one, lambda made: made.synchronisations / (steps // CHECK))


def seconds(name: str, workers: int, on: str) -> float:
    """The time of the steps: each has C, each synchronisation S, each check a message."""
    if on == "measured":
        mean, small = network(workers)
    else:
        first, small = network(2)
        mean = first * 2 * (workers - 1) / workers
    steps = TOTAL / workers
    if name.startswith("static"):
        return steps * step() + steps / int(name.split("= ")[1]) * mean
    checks = steps / CHECK
    return steps * step() + checks * (
        small + _share(float(name.split(", ")[1]), workers).mean * mean
    )


NAMES = ("static, τ = 1", "static, τ = 10", *(f"dynamic, {one:g}" for one in FEW))


@cache
def fitted(name: str, on: str) -> tuple[Fit, Fit]:
    return fits({size: seconds(name, size, on) for size in SIZES})


def table2() -> Part:
    def timed(number: float, digits: int, scale: float = 1.0, unit: str = "") -> TableCell:
        return TableCell(lambda: Spread.of([number]), scale, digits, unit, is_timed=True)

    def row(name: str, on: str) -> list[Item]:
        amdahl, usl = fitted(name, on)
        return [
            name,
            timed(amdahl.sigma, 4),
            timed(amdahl.error, 1, 100, " %"),
            timed(usl.sigma, 4),
            timed(usl.kappa, 5),
            timed(usl.error, 1, 100, " %"),
            timed(usl.best, 0) if usl.kappa > 0 else "–",
        ]

    def costs() -> list[list[Item]]:
        return [
            [
                str(size),
                *(timed(one, 2, 1e3) for one in network(size)),
                *(TableCell(partial(_share, threshold, size), 100, 0, " %") for threshold in FEW),
            ]
            for size in SIZES
        ]

    def text() -> str:
        better = [name for name in NAMES if _gain(name, "measured") > 0.002]
        told = (
            "With the measured S the USL fits better than Amdahl's law, as in the paper, because "
            f"the workers share two cores and one link. That holds for {'; '.join(better)}."
            if better
            else "The USL fits no better than Amdahl's law, other than in the paper."
        )
        return (
            f"Times of {TOTAL:,} steps of all workers together, at C = {1e3 * step():.1f} ms "
            f"(LeNet, batches of {BATCH}, one core). Nobody measured them on a cluster of as many "
            "machines: they are N / K steps of C and the synchronisations of S.\n\n"
            "One S is measured over real connections between workers that share this machine. The "
            "other is the formula of a network that has room for all of them: S(2) · 2 (K - 1) / "
            "K. Trainings with each K say how often the dynamic method synchronises. One worker "
            f"is left out: it sends nothing.\n\n{told}"
        )

    def curves() -> Curves:
        return {
            name: [(float(size), seconds(name, size, "measured")) for size in SIZES]
            for name in NAMES
        }

    head = ("", "Amdahl σ", "error", "USL σ", "USL κ", "error", "best K")
    titles = {"measured": "S measured on this machine", "formula": "S by the formula"}
    shares = (f"dynamic, {one:g}: share of checks" for one in FEW)
    return Part(
        "table2",
        "Alkhoury et al., dynamic averaging, Table II: fits of Amdahl's law and of the USL",
        text,
        [
            MarkdownTable(
                ("K", "S, ms", "message, ms", *shares), costs(), "**What the times are made of**:"
            ),
            *(
                MarkdownTable(head, [row(name, on) for name in NAMES], f"**{title}**:")
                for on, title in titles.items()
            ),
        ],
        [CurvePanel("Seconds, S measured", "workers", curves)],
        measures=MEETING,
    )


def _gain(name: str, on: str) -> float:
    amdahl, usl = fitted(name, on)
    return amdahl.error - usl.error
