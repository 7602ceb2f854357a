"""Accuracy over iterations for K workers and τ, by virtual training; kept in build/papers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.digits import TRAINED
from benchmarks.strategies import records, solver
from sparknet import (
    Accuracy,
    LinearLayer,
    NetParams,
    RDDLayer,
    ReLU,
    SoftmaxWithLoss,
    SolverParams,
    models,
)
from sparknet.errors import ListenerError
from sparknet.training import Cluster, Strategy, simulate
from sparknet.training.planning.planned import short

KEPT = Path(__file__).resolve().parents[2] / "build" / "papers"
BATCH = 4


class Reached(Exception):
    """Ends a training from its listener."""


@dataclass(frozen=True)
class Setting:
    """A net, and the accuracy that is waited for."""

    net: str
    accuracy: float
    most: int
    """Iterations after which a training counts as one that does not reach it."""
    rate: float = 0.01
    """The learning rate of the net "mlp"."""
    every: int = 25
    """Iterations between validations, or a round where that is longer."""


LONG = Setting("mlp", 0.945, 20000, rate=0.004, every=100)
"""One that needs more iterations, with longer rounds."""
SETTINGS = {"mlp": Setting("mlp", 0.91, 4000), "lenet": Setting("lenet", 0.95, 1500)}


def make_solver(net: str, batch: int = BATCH, rate: float = 0.01) -> Any:
    if net == "lenet":
        shapes = {"data": [batch, 1, 28, 28], "label": [batch]}
        made = solver()
        made.ClearField("net")
        made.net_param.CopyFrom(models.net("lenet").with_input_shapes(shapes, "TRAIN").to_proto())
        return made
    layers = (
        RDDLayer("data", shape=[batch, 1, 28, 28]),
        RDDLayer("label", shape=[batch]),
        LinearLayer("ip1", "data", num_outputs=64, weight_filler="xavier"),
        ReLU("relu1", "ip1", in_place=True),
        LinearLayer("ip2", "ip1", num_outputs=10, weight_filler="xavier"),
        SoftmaxWithLoss("loss", ["ip2", "label"]),
        Accuracy("accuracy", ["ip2", "label"], phase="TEST"),
    )
    return SolverParams(
        net=NetParams("mlp", *layers),
        base_lr=rate,
        lr_policy="fixed",
        momentum=0.9,
        random_seed=1,
    )


def curve(
    setting: Setting,
    strategy: Strategy,
    workers: int,
    *,
    batch: int = BATCH,
    most: int | None = None,
) -> list[tuple[int, float]]:
    """Pairs of iteration and accuracy, up to the accuracy; ``most`` iterations if given."""
    name = f"{setting.net}-{setting.accuracy}-{batch}-{workers}-{most}-{short(strategy)}.json"
    path = KEPT / (name if setting.rate == 0.01 else f"{setting.rate}-{name}")
    if path.is_file():
        return [(int(at), float(value)) for at, value in json.loads(path.read_text())]
    points: list[tuple[int, float]] = []

    def hear(event: Any) -> None:
        if event["event"] == "validation":
            points.append((event["iteration"], event["metrics"]["accuracy"]))
            if most is None and points[-1][1] >= setting.accuracy:
                raise Reached

    try:
        simulate(
            make_solver(setting.net, batch, setting.rate),
            records(slice(0, TRAINED)),
            workers=workers,
            strategy=strategy,
            cluster=Cluster(step=1.0, jitter=0.1),
            validation=records(slice(TRAINED, None)),
            validate_every=max(1, setting.every // _round_of(strategy)),
            steps=most or setting.most,
            on_event=hear,
        )
    except ListenerError as error:
        if not isinstance(error.__cause__, Reached):
            raise
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(points))
    return points


def _round_of(strategy: Strategy) -> int:
    """The steps of a round; those of an all-reduce only say how often it reports."""
    return int(getattr(strategy, "steps", 1))


def iterations(setting: Setting, strategy: Strategy, workers: int) -> float:
    """Iterations until the accuracy; infinite where it is not reached."""
    at, value = curve(setting, strategy, workers)[-1]
    return float(at) if value >= setting.accuracy else float("inf")
