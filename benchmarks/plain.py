"""The nets of the small examples beside plain methods: python -m benchmarks.plain

    python -m benchmarks.plain [--only digits mnist shapes letters] [--seeds 3]

Handwritten digits of scikit-learn (examples/digits.py) and of MNIST's test files, the shapes of
examples/cifar10_spark.py and the letters of examples/imagenet_tars.py.  A seed is another split, or
another drawing, and the same for all ways.  The settings of the plain methods are the best on a
fifth of the records to learn from of seed 0, which no row has.  The nets learn on one core, those
of digits also from copies that are moved by a pixel.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

import sparknet
from benchmarks.digits import digits
from benchmarks.precisions import Data, Task, example_named, letters
from sparknet import SolverParams
from sparknet.loaders import MNIST
from sparknet.training.planning.trials import Spread, difference

CELL, SIDE = 4, 16
"""In pixels: of the gradients' histograms, and of an outline."""


@dataclass(frozen=True)
class Way:
    """A plain method: what it reads of the pictures, and a classifier for each setting."""

    reads: Callable[[Any], Any]
    made: Callable[..., Any]
    axes: Sequence[Sequence[Any]]
    """Values of each setting, in ascending order."""

    def score(self, setting: tuple[Any, ...], learned: Data, held: Data) -> float:
        machine = self.made(*setting).fit(self.reads(learned["data"]), learned["label"])
        return float(machine.score(self.reads(held["data"]), held["label"]))

    def best(self, learned: Data) -> tuple[Any, ...]:
        """From the middle of all axes on to the best neighbour, as long as there is a better one,
        on a fifth of the records.
        """
        split = len(learned["label"]) * 4 // 5
        first, last = (
            {name: values[part] for name, values in learned.items()}
            for part in (slice(0, split), slice(split, None))
        )

        @cache
        def score(at: tuple[int, ...]) -> float:
            return self.score(self.at(at), first, last)

        place = tuple(len(axis) // 2 for axis in self.axes)
        while sum(map(len, self.axes)) > len(self.axes):
            best = max((place, *self.near(place)), key=score)
            if best == place:
                break
            place = best
        return self.at(place)

    def at(self, place: Sequence[int]) -> tuple[Any, ...]:
        return tuple(axis[index] for axis, index in zip(self.axes, place, strict=True))

    def near(self, place: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The settings that are one value away on one axis."""
        for number, axis in enumerate(self.axes):
            for index in (place[number] - 1, place[number] + 1):
                if 0 <= index < len(axis):
                    yield (*place[:number], index, *place[number + 1 :])


# -- what plain methods read -----------------------------------------------------------------


def flat(pictures: Any) -> Any:
    return pictures.reshape(len(pictures), -1)


def halved(pictures: Any) -> Any:
    count, _, high, wide = pictures.shape
    return flat(pictures.reshape(count, -1, high // 2, 2, wide // 2, 2).mean((3, 5)))


def gradients(pictures: Any) -> Any:
    return example_named("solar").gradients(pictures[:, 0], CELL, 0.01)


def outlines(pictures: Any, is_shape: Callable[[Any], Any]) -> Any:
    """The pixels that are no background, in one size; their height, width and mean colour."""
    rows = []
    for picture in pictures:
        inside = is_shape(picture)
        spans = [span(np.flatnonzero(inside.any(axis))) for axis in (1, 0)]
        taken = [low + np.arange(SIDE) * (high - low) // SIDE for low, high in spans]
        colour = picture[:, inside].mean(1) if inside.any() else np.zeros(3)
        sizes = [high - low for low, high in spans]
        rows.append([*inside[np.ix_(*taken)].ravel(), *sizes, *colour])
    return np.array(rows, np.float32)


def span(places: Any) -> tuple[int, int]:
    return (int(places[0]), int(places[-1]) + 1) if places.size else (0, 1)


def saturated(picture: Any) -> Any:
    """What the noise of the coloured shapes, from 60 to 195, does not reach."""
    return ((picture < 50) | (picture > 205)).all(0)


def bright(picture: Any) -> Any:
    """What is brighter than the wall behind the letters; the pictures are (x - 64) / 64."""
    return picture.max(0) > (115 - 64) / 64


# -- methods and data ------------------------------------------------------------------------


def machine(penalty: float, gamma: Any) -> Any:
    from sklearn.svm import SVC

    return SVC(C=penalty, gamma=gamma)


def neighbours(count: int, weights: str) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(count, weights=weights)


def boosted(leaves: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_leaf_nodes=leaves, random_state=0)


def forest(trees: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(trees, random_state=0)


PENALTIES = (0.3, 1, 3, 10, 30, 100)
GAMMAS = (0.0003, 0.0006, 0.0012, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)
HAND = {
    "gradients, SVM": Way(gradients, machine, (PENALTIES, GAMMAS)),
    "pixels, SVM": Way(flat, machine, (PENALTIES, GAMMAS)),
    "pixels, nearest neighbours": Way(flat, neighbours, ((1, 2, 3, 4, 5, 7), ("distance",))),
    "pixels, boosted trees": Way(halved, boosted, ((15,),)),
}


def moved(pictures: Any) -> Any:
    """The pictures, and copies that are moved by a pixel up, down, left and right."""
    wide = np.pad(pictures, ((0, 0), (0, 0), (1, 1), (1, 1)))
    high, across = pictures.shape[2:]
    places = ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
    return np.concatenate([wide[:, :, y : y + high, x : x + across] for y, x in places])


def split(data: Any, labels: Any, held: int, seed: int, steps: int) -> Task:
    """The digits in another order, for the net of examples/digits.py."""
    order = np.random.default_rng(seed).permutation(len(labels))
    learned, rest = (
        {"data": data[part], "label": labels[part].astype(np.float32)}
        for part in (order[held:], order[:held])
    )
    solver = {
        "momentum": 0.9, "weight_decay": 0.0005, "lr_policy": "poly", "power": 1, "max_iter": steps,
    }  # fmt: skip
    return Task(example_named("digits").net, learned, rest, steps, rate=0.02, solver=solver)


def small_digits(seed: int) -> Task:
    parts = [part.take(slice(0, len(part))) for part in example_named("digits").digits()]
    data, labels = (np.concatenate([part[name] for part in parts]) for name in ("data", "label"))
    return split(data, labels, 360, seed, 1200)


def mnist(seed: int) -> Task:
    found = MNIST(*digits()).take(slice(0, 10_000))
    return split(found["data"].astype(np.float32) / 255, found["label"], 1500, seed, 4000)


def shapes(seed: int) -> Task:
    example = example_named("cifar10_spark")
    learned, held = (part.take(slice(0, len(part))) for part in example.shapes(seed))
    return Task(
        example.net, learned, held, 120, rate=0.005, solver={"momentum": 0.9, "lr_policy": "fixed"}
    )


COLOURED = {
    "threshold, outlines": Way(partial(outlines, is_shape=saturated), forest, ((200,),)),
    "pixels, SVM": Way(lambda pictures: flat(pictures) / 255, machine, (PENALTIES, GAMMAS)),
}
DRAWN = {"threshold, outlines": Way(partial(outlines, is_shape=bright), forest, ((500,),))}
DATA: dict[str, tuple[Callable[[int], Task], dict[str, Way]]] = {
    "digits": (small_digits, HAND),
    "mnist": (mnist, HAND),
    "shapes": (shapes, COLOURED),
    "letters": (lambda seed: letters(seed=seed), DRAWN),
}


def learned(task: Task, seed: int, copies: Callable[[Any], Any] | None = None) -> float:
    """The net's accuracy."""
    given = task.learned
    if copies is not None:
        data = copies(given["data"])
        given = {"data": data, "label": np.tile(given["label"], len(data) // len(given["label"]))}
    solver = SolverParams(net=task.net, base_lr=task.rate, random_seed=seed, **(task.solver or {}))
    trained = sparknet.train(
        solver,
        given,
        validation=task.held,
        steps=task.steps,
        validate_every=1 << 30,
        seed=seed,
        threads=1,
    )
    return float(trained.outcome.metrics["accuracy"])


def compared(name: str, seeds: int) -> list[str]:
    """The rows of a table: the net, and each plain method with its best settings."""
    made, ways = DATA[name]
    tuned = made(0).learned
    settings = {way: one.best(tuned) for way, one in ways.items()}
    scores: dict[str, list[float]] = {}
    for seed in range(1, seeds + 1):
        task = made(seed)
        scores.setdefault("net", []).append(learned(task, seed))
        if ways is HAND:
            moves = learned(task, seed, moved)
            scores.setdefault("net, of copies moved by a pixel, too", []).append(moves)
        for way, one in ways.items():
            score = one.score(settings[way], task.learned, task.held)
            scores.setdefault(f"{way} {settings[way]}", []).append(score)
    rows = []
    net = dict(enumerate(scores["net"]))
    for way, found in scores.items():
        apart = difference(net, dict(enumerate(found)))
        told = f"{apart.spread.text(100, 2)} | {apart.verdict}" if way != "net" else "|"
        rows.append(f"| {name} | {way} | {Spread.of(found).text(100, 2, ' %')} | {told} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=tuple(DATA), help="some of the data")
    parser.add_argument("--seeds", type=int, default=3, help="splits or drawings (3)")
    asked = parser.parse_args()
    print("| pictures | way | accuracy | less the net's, points | verdict |\n|---|---|---|---|---|")
    for name in asked.only or DATA:
        print("\n".join(compared(name, asked.seeds)), flush=True)


if __name__ == "__main__":
    main()
