"""SparkNet (Moritz et al., 2016): Figures 3 to 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.papers.cells import CurvePanel, Curves, Item, MarkdownTable, Part, Said, TableCell
from benchmarks.papers.trainings import SEEDS, Arm, ArmRun, mean_curve, over_seeds, run, spread
from sparknet.training import AllReduce, Averaging
from sparknet.training.planning.trials import Spread

COSTS = (0.0, 0.1, 0.5, 0.8, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
"""S, in units of C."""


@dataclass(frozen=True)
class Waited:
    """A training until an accuracy."""

    name: str
    accuracy: float
    rate: float
    most: int
    every: int
    lengths: Sequence[int]

    def arm(self, steps: int, workers: int) -> Arm:
        return self._arm(Averaging(steps), workers)

    def _arm(self, strategy: Averaging | AllReduce, workers: int) -> Arm:
        return Arm(
            strategy,
            workers,
            self.most,
            rate=self.rate,
            until=self.accuracy,
            every=self.every,
        )

    def alone(self) -> dict[int, float]:
        """N_a, by seed."""
        return over_seeds(self.arm(1, 1), lambda one: one.iterations)

    def speedup(self, steps: int, workers: int, cost: float = 0.0) -> Spread:
        """N_a C / (M_a (τ C + S)), by seed."""
        made = over_seeds(self.arm(steps, workers), lambda one: one.iterations)
        alone = self.alone()
        return Spread.of(
            alone[seed] / made[seed] * steps / (steps + cost) for seed in range(1, SEEDS + 1)
        )

    def best(self, workers: int, cost: float) -> int:
        """The τ with the largest mean speed-up."""
        return max(self.lengths, key=lambda steps: self.speedup(steps, workers, cost).mean)

    def at_best(self, workers: int, cost: float) -> Spread:
        return self.speedup(self.best(workers, cost), workers, cost)

    def larger_batch(self, workers: int, cost: float) -> Spread:
        """One machine against iterations of K workers with batches of b each and a mean in each."""
        strategy = AllReduce(steps=max(1, self.every // 2))
        made = over_seeds(self._arm(strategy, workers), lambda one: one.iterations)
        alone = self.alone()
        return Spread.of(alone[seed] / made[seed] / (1 + cost) for seed in range(1, SEEDS + 1))


SHORT = Waited("figure4", 0.9, 0.01, 4000, 10, (1, 5, 10, 25, 50, 100))
LONG = Waited("figure4long", 0.925, 0.004, 8000, 50, (1, 25, 100, 250, 500))


def _best(waited: Waited, workers: int, cost: float) -> str:
    return str(waited.best(workers, cost))


def _accuracy(one: ArmRun) -> float:
    return one.accuracy


def divided(workers: int, cost: float) -> float:
    """The paper's naive way: a batch that one machine computes in C, divided among K."""
    return 1 / (1 / workers + cost)


def figure3() -> Part:
    sizes = (2, 3, 5, 10)
    rows: list[list[Item]] = [
        [str(size), *(TableCell(partial(SHORT.speedup, steps, size)) for steps in SHORT.lengths)]
        for size in sizes
    ]

    def text() -> str:
        found = {(t, k): SHORT.speedup(t, k) for k in sizes for t in SHORT.lengths}
        (steps, size), best = max(found.items(), key=lambda pair: pair[1].mean)
        return (
            f"One worker needs {Spread.of(SHORT.alone().values()).text(digits=0)} iterations until "
            f"{SHORT.accuracy:.0%}. The table has this number divided by that of K workers, each "
            f"on batches as large as those of the one. Validation is every {SHORT.every} "
            "iterations or after each round, and ratios are paired by seed.\n\n"
            f"The best is {best} with K = {size} and τ = {steps}. As in the paper, K workers are "
            "faster than one, but not K times as fast: they save the noise of small batches. The "
            "paper's grid goes to K = 6 on AlexNet. Cells whose ± overlap do not say which τ is "
            "better."
        )

    head = ["K", *(f"τ = {steps}" for steps in SHORT.lengths)]
    return Part(
        "figure3",
        "SparkNet, Figure 3: speed-up over K and τ, S = 0",
        text,
        [MarkdownTable(head, rows)],
    )


def figure4(waited: Waited, workers: int = 5) -> Part:
    rows: list[list[Item]] = [
        [
            f"{cost:g}",
            f"{divided(workers, cost):.2f}",
            TableCell(partial(waited.larger_batch, workers, cost)),
            TableCell(partial(waited.at_best, workers, cost)),
            Said(partial(_best, waited, workers, cost)),
        ]
        for cost in COSTS
    ]

    def curves() -> Curves:
        return {
            "naive, the paper's formula": [(s, divided(workers, s)) for s in COSTS],
            "naive, batches of K·b": [(s, waited.larger_batch(workers, s).mean) for s in COSTS],
            "SparkNet": [(s, waited.at_best(workers, s).mean) for s in COSTS],
        }

    def text() -> str:
        alone = Spread.of(waited.alone().values())
        free = waited.at_best(workers, 0).mean
        kept = {s: waited.at_best(workers, s).mean / free for s in COSTS}
        lost = [s for s in COSTS if waited.larger_batch(workers, s).mean < 1]
        last = waited.best(workers, COSTS[-1])
        return (
            f"Until {waited.accuracy:.1%} at a learning rate of {waited.rate:g}; one worker needs "
            f"{alone.text(digits=0)} iterations. There are two naive ways:\n\n"
            "- The paper's divides a batch of b among the K machines; one machine computes it in "
            "C. Its speed-up is C / (C/K + S), a formula and no measurement. It is slower than "
            f"one machine from S = {1 - 1 / workers:g} C on.\n"
            "- Ours gives each of the K workers a batch of b, as SparkNet's workers have, and "
            "takes the mean gradient in each iteration. Its speed-up is N_a C / (N_K (C + S)), "
            "with N_a and N_K from trainings. It is slower than one machine from S = "
            f"{lost[0]:g} C on in this table.\n\n"
            f"SparkNet keeps {kept[10.0]:.0%} of its speed-up at S = 10 C and "
            f"{kept[100.0]:.0%} at S = 100 C; the paper's keeps nearly all of it up to 100 C. "
            f"Rounds of τ steps keep τ / (τ + S / C): τ = {last} keeps "
            f"{last / (last + COSTS[-1]):.0%} at 100 C. The same trainings choose the best τ and "
            "fill the table, which flatters it a little."
        )

    head = ["S / C", "paper's formula", "batches of K·b", "SparkNet, best τ", "τ"]
    return Part(
        waited.name,
        f"SparkNet, Figure 4: speed-up over S, K = {workers}, until {waited.accuracy:.1%}",
        text,
        [MarkdownTable(head, rows)],
        [CurvePanel("Speed-up", "S / C", curves)],
    )


STEP_OF_GPU, SYNCHRONISATION = 0.0398, 0.060
"""Seconds, as measured with CaffeNet on an H100: docs/gpu.md."""


def figures5and6_of_gpu() -> Part:
    """With the times of one GPU of today."""
    above = (
        "The times are those of a GPU of today, an H100. CaffeNet's step with a batch of 256 in "
        f"float32 takes {1000 * STEP_OF_GPU:.1f} ms. A mean of its 244 MB of weights by two "
        f"workers of that machine takes {1000 * SYNCHRONISATION:.0f} ms.\n\n"
    )
    cost = round(SYNCHRONISATION / STEP_OF_GPU, 2)
    return figures5and6(cost, name="figures5and6_of_gpu", above=above)


def figures5and6(
    cost: float = 5.0, steps: int = 1000, name: str = "figures5and6", above: str = ""
) -> Part:
    """Accuracy over simulated time."""

    def arm(workers: int, length: int) -> Arm:
        return Arm(Averaging(length), workers, steps, every=20)

    def each(workers: int, length: int) -> float:
        return 1 + (cost / length if workers > 1 else 0)

    cases = {f"K = {size}, τ = 25": (size, 25) for size in (1, 3, 5, 10)}
    cases |= {f"K = 5, τ = {length}": (5, length) for length in (1, 5, 10, 50, 100)}

    def until(workers: int, length: int) -> Spread:
        return Spread.of(
            next(
                (
                    at * each(workers, length)
                    for at, value in run(arm(workers, length), seed).points
                    if value >= SHORT.accuracy
                ),
                float("inf"),
            )
            for seed in range(1, SEEDS + 1)
        )

    def curves(chosen: Sequence[tuple[int, int]]) -> Curves:
        return {
            f"K = {size}, τ = {length}": [
                (round(at * each(size, length), 3), value)
                for at, value in mean_curve(arm(size, length))
            ]
            for size, length in chosen
        }

    def rows() -> Iterator[list[str | TableCell]]:
        for name, (size, length) in cases.items():
            yield [
                name,
                TableCell(partial(until, size, length), digits=0),
                TableCell(partial(spread, arm(size, length), _accuracy), 100, unit=" %"),
            ]

    def text() -> str:
        times = {name: until(*case) for name, case in cases.items()}
        best = min(times, key=lambda name: times[name].mean)
        return (
            f"{above}S = {cost:g} C. At τ = 1, {cost / (1 + cost):.0%} of the time is "
            f"communication, at τ = 25 {cost / (25 + cost):.0%}. {best} reaches "
            f"{SHORT.accuracy:.0%} first, after {times[best].text(digits=0)} C; one worker needs "
            f"{times['K = 1, τ = 25'].text(digits=0)} C. As in the paper, long rounds reach an "
            "accuracy earlier on a slow network. The curves are means over the seeds."
        )

    head = ["", f"time to {SHORT.accuracy:.0%}, in C", f"accuracy after {steps} iterations"]
    names = list(cases.values())
    return Part(
        name,
        f"SparkNet, Figures 5 and 6: accuracy over simulated time, S = {cost:g} C",
        text,
        [MarkdownTable(head, list(rows()))],
        [
            CurvePanel("Accuracy, τ = 25", "time / C", lambda: curves(names[:4])),
            CurvePanel("Accuracy, K = 5", "time / C", lambda: curves([*names[4:], (5, 25)])),
        ],
    )
