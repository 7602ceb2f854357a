"""The applications' nets in float32, bfloat16 and eight bits: python -m benchmarks.precisions

    python -m benchmarks.precisions [--only segment …] [--seeds 3] [--share 1]

Each net of examples/ is trained in float32 on one core, without Spark, and judged on the records
that are held out, which calibrate nothing.  --share takes a share of the steps.  Some of the data
comes with packages, which the examples name.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sparknet
from sparknet import Net, NetParams, SolverParams
from sparknet.caffe.precision import Precision
from sparknet.training.planning.trials import Spread

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PRECISIONS: tuple[Precision, ...] = ("float32", "bf16", "int8")
Data = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A net, its records, and what judges it."""

    net: NetParams
    learned: Data
    held: Data
    steps: int
    metric: str = "accuracy"
    rate: float = 0.002
    solver: Mapping[str, Any] | None = None


def segment() -> Task:
    example, scenes = example_named("segment"), example_named("scenes")
    side, counts = example.SIDE, example.SCENES

    def drawn(first: int, count: int) -> Data:
        found = [
            scenes.scene(np.random.default_rng(n), side)[:2] for n in range(first, first + count)
        ]
        pictures, classes = map(np.stack, zip(*found, strict=True))
        data = (pictures.transpose(0, 3, 1, 2).astype(np.float32) - 96) / 64
        return {"data": data, "label": classes[:, np.newaxis].astype(np.float32)}

    learned, held = counts["learned"], counts["held out"]
    steps = example.EPOCHS * learned // example.BATCH
    return Task(example.net, drawn(0, learned), drawn(learned, held), steps, "mean_iou")


def letters(count: int = 1000, seed: int = 0) -> Task:
    """SGD, as the example has it; a quarter is held out."""
    example = example_named("imagenet_tars")
    random, side, crop = np.random.default_rng(seed), example.SIDE, example.CROP
    kinds, edge = np.arange(count) % len(example.LETTERS), (example.SIDE - example.CROP) // 2
    data = np.empty((count, 3, crop, crop), np.float32)
    for row, kind in zip(data, kinds, strict=True):
        picture = example.drawing(example.LETTERS[kind], random).resize((side, side))
        cut = np.asarray(picture)[edge : edge + crop, edge : edge + crop]
        row[:] = (cut.transpose(2, 0, 1).astype(np.float32) - 64) / 64
    split = count * 3 // 4
    learned, held = (
        {"data": data[part], "label": kinds[part].astype(np.float32)}
        for part in (slice(0, split), slice(split, None))
    )
    solver = {"momentum": 0.9, "lr_policy": "fixed"}
    net = example.net(len(example.LETTERS))
    return Task(net, learned, held, 600, rate=0.005, solver=solver)


def solar() -> Task:
    example = example_named("solar")
    from sklearn.model_selection import train_test_split

    pictures, labels, kinds = example.cells()
    small = example.prepared(pictures)[:, np.newaxis].astype(np.float32)
    learn, test = train_test_split(
        np.arange(len(labels)), test_size=0.25, random_state=1, stratify=kinds
    )
    turns = [np.rot90(small[learn], turn, (2, 3)) for turn in range(4)]
    turns += [turn[..., ::-1] for turn in turns]
    learned = {"data": np.concatenate(turns), "label": np.tile(labels[learn], 8).astype(np.float32)}
    held = {"data": small[test], "label": labels[test].astype(np.float32)}
    return Task(example.net, learned, held, 3 * len(learned["data"]) // example.BATCH)


def exercises() -> Task:
    example = example_named("exercises")
    values, labels, people, tested = example.windows()
    held = np.isin(people, (1, 2))
    random = np.random.default_rng(1)
    copies = [values[~held], *(example.turned(values[~held], random) for _ in range(3))]
    given, test = np.concatenate(copies), values[held & tested]
    mean, deviation = given.mean((0, 1)), given.std((0, 1))

    def arrays(moved: Any, told: Any) -> Data:
        halved = ((moved - mean) / deviation).reshape(len(moved), -1, 2, moved.shape[2]).mean(2)
        data = halved.transpose(0, 2, 1)[..., np.newaxis].astype(np.float32)
        return {"data": data, "label": told.astype(np.float32)}

    learned = arrays(given, np.tile(labels[~held], 4))
    steps = 5 * len(given) // example.BATCH
    return Task(example.net, learned, arrays(test, labels[held & tested]), steps)


def reuters() -> Task:
    example = example_named("reuters")
    (learned, held), words, topics = reuters_records()
    net = example.reader(example.FIRST + len(words), topics)
    return Task(net, learned, held, 6 * len(learned["ids"]) // example.BATCH)


def reuters_records() -> tuple[list[Data], list[str], int]:
    """Return ids of texts to learn from and to test, the words that have ids, and the topics."""
    from sklearn.feature_extraction.text import CountVectorizer

    example = example_named("reuters")
    parts = example.texts()
    topics = sorted({topic for _, topic in parts[0]})
    counted = CountVectorizer(token_pattern=r"\S+", min_df=3).fit(text for text, _ in parts[0])
    ids = {word: example.FIRST + place for word, place in counted.vocabulary_.items()}

    def arrays(rows: Any) -> Data:
        data = np.zeros((len(rows), example.LENGTH), np.float32)
        for row, (text, _) in zip(data, rows, strict=True):
            words = [ids.get(word, 1) for word in text.split()[: example.LENGTH]]
            row[: len(words)] = words
        return {"ids": data, "label": np.array([topics.index(one) for _, one in rows], np.float32)}

    return [arrays(part) for part in parts], [*counted.get_feature_names_out()], len(topics)


def languages() -> Task:
    """The ids that SequenceEncoder makes of letters, in the example's first split."""
    import random
    from collections import Counter

    import django

    example = example_named("languages")
    rows = sorted(example.texts(Path(django.__file__).parent))
    random.Random(1).shuffle(rows)
    split = len(rows) * 4 // 5
    counts = Counter(letter for text, _ in rows[:split] for letter in text)
    known = [letter for letter, count in counts.items() if count >= 3]
    ids = {letter: example_named("reuters").FIRST + place for place, letter in enumerate(known)}

    def arrays(part: Any) -> Data:
        data = np.zeros((len(part), example.LENGTH), np.float32)
        for row, (text, _) in zip(data, part, strict=True):
            letters = [ids.get(letter, 1) for letter in text[: example.LENGTH]]
            row[: len(letters)] = letters
        return {"ids": data, "label": np.array([number for _, number in part], np.float32)}

    net = example.reader(len(ids) + example_named("reuters").FIRST)
    steps = example.EPOCHS * split // example.BATCH
    return Task(net, arrays(rows[:split]), arrays(rows[split:]), steps)


TASKS: dict[str, Callable[[], Task]] = {
    "segment": segment,
    "letters": letters,
    "solar": solar,
    "exercises": exercises,
    "reuters": reuters,
    "languages": languages,
}


def example_named(name: str) -> Any:
    """The module of examples/, which is no package."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def accuracies(task: Task, seed: int, share: float = 1.0) -> dict[str, float]:
    """Of one training, in each precision."""
    steps = max(1, round(share * task.steps))
    settings: Mapping[str, Any] = task.solver or {
        "type": "Adam", "momentum": 0.9, "lr_policy": "poly", "power": 1, "max_iter": steps,
    }  # fmt: skip
    solver = SolverParams(net=task.net, base_lr=task.rate, random_seed=seed, **settings)
    trained = sparknet.train(solver, task.learned, steps=steps, seed=seed, threads=1)
    random = np.random.default_rng(seed)
    shown = random.choice(len(task.learned["label"]), 512, replace=False)
    calibrating = {name: values[shown] for name, values in task.learned.items()}
    found: dict[str, float] = {}
    for precision in PRECISIONS:
        wide: Precision = "float32" if precision == "int8" else precision
        net = Net(task.net, trained.weights, precision=wide)
        if precision == "int8":
            net.quantize(calibrating)
        net.set_validation_data(task.held)
        asked = () if task.metric == "accuracy" else (task.metric,)
        found[precision] = float(net.test(metrics=asked)[task.metric])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=tuple(TASKS), help="some of the nets")
    parser.add_argument("--seeds", type=int, default=3, help="of each training (3)")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps (1)")
    asked = parser.parse_args()
    print("| net | measure | float32 | bf16 − float32, points | int8 − float32, points |")
    print("|---|---|---|---|---|")
    for name in asked.only or TASKS:
        print(line(name, TASKS[name](), asked.seeds, asked.share), flush=True)


def line(name: str, task: Task, seeds: int, share: float) -> str:
    """A row: the mean of float32, and the others' differences to it, paired by seed."""
    found = [accuracies(task, seed, share) for seed in range(1, seeds + 1)]
    print([{kind: round(one, 5) for kind, one in each.items()} for each in found], file=sys.stderr)
    wide = Spread.of(one["float32"] for one in found).text(100, 2, " %")
    apart = (
        Spread.of(one[kind] - one["float32"] for one in found).text(100, 2)
        for kind in PRECISIONS[1:]
    )
    return f"| {name} | {task.metric} | {wide} | {' | '.join(apart)} |"


if __name__ == "__main__":
    main()
