"""Virtual trainings of small nets, one for each arm and seed, kept in a folder."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.digits import TRAINED
from benchmarks.digits import records as digits
from benchmarks.precisions import example_named
from sparknet import (
    Accuracy,
    LinearLayer,
    NetParams,
    RDDLayer,
    ReLU,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.errors import Diverged, ListenerError
from sparknet.loaders import ArrayRecords
from sparknet.training import AllReduce, Averaging, Cluster, Downpour, Strategy, simulate
from sparknet.training.planning.trials import Difference, Spread, difference

SEEDS = 5
folder = Path("papers") / "trainings"
"""Where trainings are kept, and what was measured; drawing cells again takes an empty one."""


MEETING = tuple(f"sparknet/comm/{name}.py" for name in ("tcp_comm", "mesh", "grid", "grid_comm"))
"""The files whose speed a mean over real connections depends on."""


@dataclass(frozen=True)
class Arm:
    """What is trained; a seed decides initial weights, order of the data and times of steps."""

    strategy: Strategy
    workers: int
    steps: int
    """Of each worker; with ``until`` the most."""
    task: str = "digits"
    batch: int = 4
    rate: float = 0.01
    hidden: int = 32
    records: int | None = None
    until: float | None = None
    """The accuracy that ends training."""
    every: int = 0
    """Iterations between two validations, or a round where that is longer; 0: at the end alone."""
    jitter: float = 0.1
    slow: tuple[tuple[int, float], ...] = ()
    bandwidth: float = 1e12
    """Bytes in the time of a step."""


@dataclass(frozen=True)
class ArmRun:
    points: list[tuple[int, float]]
    """Iterations, and the accuracy at each."""
    accuracy: float
    loss: float
    """Of validation."""
    iterations: float
    """Infinite where the accuracy that was waited for is not reached."""
    sent: float
    """Bytes of training, by each worker, without validations."""
    synchronisations: float
    seconds: float
    """Simulated: in units of C."""
    traffic: list[tuple[int, float, int]]
    """Iterations, bytes of all workers up to then, and synchronisations up to then."""
    dropped: float = 0.0
    """The share of the workers' pushes that a server dropped as too stale."""


class _Reached(Exception):
    """Ends a training from its listener."""


def run(arm: Arm, seed: int) -> ArmRun:
    """One training, from the folder if it is there."""
    name = hashlib.blake2b(repr((arm, seed)).encode(), digest_size=12).hexdigest()
    path = folder / f"{name}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_trained(arm, seed).__dict__))
        made = len(list(path.parent.iterdir()))
        if made % 25 == 0:
            print(f"{made} trainings in {path.parent}", file=sys.stderr)
    found = json.loads(path.read_text())
    for name in ("points", "traffic"):
        found[name] = [tuple(one) for one in found[name]]
    return ArmRun(**found)


def over_seeds(arm: Arm, number: Callable[[ArmRun], float]) -> dict[int, float]:
    return {seed: number(run(arm, seed)) for seed in range(1, SEEDS + 1)}


def spread(arm: Arm, number: Callable[[ArmRun], float]) -> Spread:
    return Spread.of(over_seeds(arm, number).values())


def apart(arm: Arm, control: Arm, number: Callable[[ArmRun], float]) -> Difference:
    """How much larger the arm's number is than the control's, paired by seed."""
    return difference(over_seeds(control, number), over_seeds(arm, number))


def mean_curve(arm: Arm) -> list[tuple[float, float]]:
    """Mean accuracy over the seeds, at the iterations of the first."""
    runs = [run(arm, seed) for seed in range(1, SEEDS + 1)]
    return [
        (float(at), float(np.mean([dict(one.points).get(at, np.nan) for one in runs])))
        for at, _ in runs[0].points
    ]


def round_of(strategy: Strategy) -> int:
    """The iterations of a round at least."""
    for name in ("steps", "check_every", "every"):
        if getattr(strategy, name, None):
            return int(getattr(strategy, name))
    return 1


def averaging(steps: float, most: int) -> Averaging:
    return Averaging(int(min(max(round(steps), 1), most)))


def _trained(arm: Arm, seed: int) -> ArmRun:
    train, held_out = _data(arm.task, arm.records, seed)
    points: list[tuple[int, float]] = []
    events: list[Any] = []

    def hear(event: Any) -> None:
        if event["event"] in ("round", "stop"):
            events.append(event)
        if event["event"] == "validation":
            points.append((event["iteration"], event["metrics"]["accuracy"]))
            events.append(event)
            if arm.until is not None and points[-1][1] >= arm.until:
                raise _Reached

    weights: Any = None
    try:
        made = simulate(
            _solver(arm, seed),
            train,
            workers=arm.workers,
            strategy=arm.strategy,
            cluster=Cluster(
                step=1.0,
                jitter=arm.jitter,
                latency=0.01,
                bandwidth=arm.bandwidth,
                slow=dict(arm.slow),
                seed=seed,
            ),
            validation=held_out,
            validate_every=max(1, arm.every // round_of(arm.strategy)) if arm.every else 1 << 30,
            steps=arm.steps,
            seed=seed,
            threads=1,
            diverged=1e9,
            on_event=hear,
        )
        weights = made.weights
    except Diverged:
        return ArmRun([], 0.0, 1e9, inf, 0.0, 0.0, 0.0, [])
    except ListenerError as error:
        if not isinstance(error.__cause__, _Reached):
            raise
    rounds = [event for event in events if event["event"] == "round"]
    last = [event for event in events if event["event"] == "validation"][-1]
    size = _size(arm) if weights is None else weights.flat.nbytes
    so_far, traffic = 0, []
    for event in rounds:
        so_far += synchronisations(size, arm.strategy, [event], arm.workers)
        traffic.append((event["iteration"], event["total_bytes_sent"], so_far))
    missed = arm.until is not None and points[-1][1] < arm.until
    return ArmRun(
        points=points,
        accuracy=last["metrics"]["accuracy"],
        loss=last["metrics"]["loss"],
        iterations=inf if missed else last["iteration"],
        sent=sum(event["bytes_sent"] for event in rounds) / arm.workers,
        synchronisations=so_far,
        seconds=rounds[-1]["total_seconds"],
        traffic=traffic,
        dropped=sum(event["dropped_pushes"] for event in rounds)
        / sum(worker["steps"] for event in rounds for worker in event["workers"]),
    )


def synchronisations(nbytes: int, strategy: Strategy, rounds: list[Any], workers: int) -> int:
    """The number of synchronisations of weights or gradients of so many bytes."""
    if isinstance(strategy, AllReduce | Downpour):
        return sum(event["steps"] for event in rounds)
    least = nbytes // 8
    return sum(event["bytes_sent"] / workers > least for event in rounds)


def _size(arm: Arm) -> int:
    inputs, outputs = _SHAPES[arm.task]
    return 4 * ((inputs + 1) * arm.hidden + (arm.hidden + 1) * outputs)


WORDS = 4096
_SHAPES = {"digits": (196, 10), "cancer": (30, 2), "reuters": (WORDS, 52)}


def _solver(arm: Arm, seed: int) -> SolverParams:
    inputs, outputs = _SHAPES[arm.task]
    layers = (
        RDDLayer("data", shape=[arm.batch, inputs]),
        RDDLayer("label", shape=[arm.batch]),
        LinearLayer("ip1", "data", num_outputs=arm.hidden, weight_filler="xavier"),
        ReLU("relu1", "ip1", in_place=True),
        LinearLayer("ip2", "ip1", num_outputs=outputs, weight_filler="xavier"),
        SoftmaxWithLoss("loss", ["ip2", "label"]),
        Accuracy("accuracy", ["ip2", "label"], phase="TEST"),
    )
    return SolverParams(
        net=NetParams("mlp", *layers),
        base_lr=arm.rate,
        lr_policy="fixed",
        momentum=0.9,
        random_seed=seed,
    )


def _data(task: str, count: int | None, seed: int) -> tuple[ArrayRecords, ArrayRecords]:
    if task == "cancer":
        return _cancer(seed)
    train, held_out = _reuters() if task == "reuters" else _flat_digits()
    return (train if count is None else _taken(train, slice(0, count))), held_out


@cache
def _flat_digits() -> tuple[ArrayRecords, ArrayRecords]:
    return _flat(digits(slice(0, TRAINED))), _flat(digits(slice(TRAINED, None)))


def _taken(given: ArrayRecords, part: slice) -> ArrayRecords:
    return ArrayRecords(**given.take(part))


def _flat(given: ArrayRecords) -> ArrayRecords:
    """The digits at half their width and height, as rows."""
    batch = given.take(slice(0, len(given)))
    small = batch["data"].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4), dtype=np.float32)
    return ArrayRecords(data=small.reshape(len(given), -1), label=batch["label"])


@cache
def _reuters() -> tuple[ArrayRecords, ArrayRecords]:
    """R52's news (examples/reuters.py): tf-idf of the words that most texts have."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    parts = example_named("reuters").texts()
    (texts, topics), (held_out, truth) = (zip(*part, strict=True) for part in parts)
    names = sorted({*topics})
    words = TfidfVectorizer(token_pattern=r"\S+", max_features=WORDS, sublinear_tf=True).fit(texts)
    order = np.random.default_rng(0).permutation(len(texts))

    def records(rows: Any, labels: Any, order: Any) -> ArrayRecords:
        numbers = np.array([names.index(label) for label in labels], np.float32)
        # Rows of length 1 are lengthened, so that inputs are of the size that the filler expects.
        data = words.transform(rows).toarray().astype(np.float32) * np.float32(WORDS**0.5)
        return ArrayRecords(data=data[order], label=numbers[order])

    return records(texts, topics, order), records(held_out, truth, np.arange(len(truth)))


@cache
def _cancer(seed: int) -> tuple[ArrayRecords, ArrayRecords]:
    """scikit-learn's 569 records of breast cancer; each seed holds out another 30 %."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    values, labels = load_breast_cancer(return_X_y=True)
    parts = train_test_split(values, labels, test_size=0.3, random_state=seed, stratify=labels)
    train, held_out = parts[:2]
    mean, deviation = train.mean(axis=0), train.std(axis=0)

    def made(data: Any, label: Any) -> ArrayRecords:
        scaled = ((data - mean) / deviation).astype(np.float32)
        return ArrayRecords(data=scaled, label=label.astype(np.float32))

    return made(train, parts[2]), made(held_out, parts[3])
