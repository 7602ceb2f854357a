"""Eight bits against our own float32, in turn: python -m benchmarks.int8

First the speed of CaffeNet, ResNet-50 and VGG-16, then the accuracy on 1,500 digits of LeNet and of
a net of residual blocks, which are trained here first, for each way to calibrate.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any, Literal

import numpy as np

from benchmarks.digits import ALL, TRAINED, digits
from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.ours import Ours
from sparknet import Net
from sparknet.caffe.int8 import METHODS
from sparknet.dsl import (
    Accuracy,
    ActivationLayer,
    Eltwise,
    LinearLayer,
    NetParams,
    PoolLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.loaders import MNIST
from sparknet.models.blocks import inputs
from sparknet.models.lenet import net as lenet
from sparknet.models.resnet50 import conv
from sparknet.proto import parse_net

FAST = ("caffenet", "resnet50", "vgg16")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", choices=CONTESTS, default=FAST)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each precision (5)")
    parser.add_argument("--seeds", type=int, nargs="*", default=(1, 2), help="of the trainings")
    parser.add_argument("--iterations", type=int, default=1500, help="of each training (1500)")
    options = parser.parse_args()
    for name in options.models:
        speed(name, options.rounds)
    for seed in options.seeds:
        for name, described in (("LeNet", lenet()), ("residual", residual())):
            found = accuracies(described, seed, options.iterations)
            shown = ", ".join(f"{kind} {share:.2%}" for kind, share in found.items())
            print(f"{name}, seed {seed}: {shown}", flush=True)
    return 0


def speed(name: str, rounds: int) -> None:
    sides = {}
    for precision in ("float32", "int8"):
        sides[precision] = Ours()
        sides[precision].load(CONTESTS[name], "inference", precision, "")
        sides[precision].step()
    wall: dict[str, list[float]] = {one: [] for one in sides}
    spent: dict[str, list[float]] = {one: [] for one in sides}
    for _ in range(rounds):
        for precision, side in sides.items():
            start, used = time.perf_counter(), time.process_time()
            side.step()
            wall[precision].append(time.perf_counter() - start)
            spent[precision].append(time.process_time() - used)
    for kind, found in (("ms", wall), ("ms of processor time", spent)):
        ratio = median(a / b for a, b in zip(found["float32"], found["int8"], strict=True))
        wide, narrow = (median(found[one]) * 1e3 for one in ("float32", "int8"))
        print(
            f"{name}: float32 {wide:.1f}, int8 {narrow:.1f} {kind}: {ratio:.2f} times", flush=True
        )


def residual(blocks: int = 3, filters: int = 16) -> NetParams:
    """A small net of residual blocks."""
    layers, last = conv("0", "data", filters, 3, 2), "res0"
    for number in range(1, blocks + 1):
        first, second, total = f"{number}a", f"{number}b", f"sum{number}"
        layers += conv(first, last, filters, 3)
        layers += conv(second, f"res{first}", filters, 3, relu=False)
        layers.append(Eltwise(total, [last, f"res{second}"]))
        layers.append(ActivationLayer(f"relu{number}", total, activation="relu", in_place=True))
        last = total
    net = NetParams(
        "residual",
        inputs(64, 100, (1, 28, 28)),
        *layers,
        PoolLayer("pool", last, pool="ave", global_pooling=True),
        LinearLayer("scores", "pool", num_outputs=10, weight_filler="xavier"),
        Accuracy("accuracy", ["scores", "label"], include="TEST"),
        SoftmaxWithLoss("loss", ["scores", "label"]),
    )
    # Caffe's 0.999 remembers weights of a thousand steps ago: these trainings are too short for it.
    described = parse_net(str(net))
    for layer in described.layer:
        if layer.type == "BatchNorm":
            layer.batch_norm_param.moving_average_fraction = 0.9
    return NetParams.from_proto(described)


def accuracies(described: NetParams, seed: int, iterations: int) -> dict[str, float]:
    """Of a net that is trained first, in float32 and by each way to calibrate eight bits."""
    images, labels = records()
    train = {"data": images[:TRAINED], "label": labels[:TRAINED]}
    test = {"data": images[TRAINED:ALL], "label": labels[TRAINED:ALL]}
    solver = SolverParams(
        net=described, base_lr=0.01, momentum=0.9, weight_decay=0.0005, lr_policy="inv",
        gamma=0.0001, power=0.75, max_iter=iterations, random_seed=seed,
    )  # fmt: skip
    trained = Net(solver)
    trained.set_training_data(train)
    trained.train(iterations)
    return {
        method or "float32": judged(described, trained, test, method, train)
        for method in (None, *METHODS)
    }


def judged(
    described: NetParams,
    trained: Net,
    test: dict[str, Any],
    method: Literal["auto", "mse", "max"] | None,
    train: Any,
) -> float:
    """The accuracy in float32, or in eight bits as a method calibrates."""
    net = Net(described, trained.get_weights())
    if method:
        net.quantize(train, method=method)
    net.set_validation_data(test)
    return float(net.test()["accuracy"])


def records() -> tuple[Any, Any]:
    found = MNIST(*digits()).take(range(ALL))
    return np.asarray(found["data"], np.float32) / 256, np.asarray(found["label"])


if __name__ == "__main__":
    raise SystemExit(main())
