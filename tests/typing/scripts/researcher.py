"""Somebody who writes nets and compares strategies on one machine."""

import numpy as np

import sparknet
from sparknet import Concat, Convolution, Eltwise, NetParams, Pooling, RDDLayer, ReLU, SolverParams
from sparknet.dsl import LayerSpec
from sparknet.training import AllReduce, Cluster, Downpour, Trained, simulate


def block(name: str, bottom: str, channels: int) -> list[LayerSpec]:
    return [
        Convolution(f"{name}_conv", bottom, num_output=channels, kernel_size=3, pad=1),
        ReLU(f"{name}_relu", f"{name}_conv"),
        Eltwise(f"{name}", [f"{name}_relu", bottom], operation="SUM", coeff=[1.0, 0.5]),
    ]


net = NetParams(
    "blocks",
    RDDLayer("data", shape=[32, 3, 32, 32]),
    RDDLayer("label", shape=[32]),
    *block("one", "data", 3),
    *block("two", "one", 3),
    Concat("both", ["one", "two"], axis=1),
    Pooling("pool", "both", pool="AVE", global_pooling=True),
    sparknet.InnerProduct("ip", "pool", num_output=10, weight_filler="msra"),
    sparknet.SoftmaxWithLoss("loss", ["ip", "label"]),
)
solver = SolverParams(
    net=net, type="Adam", base_lr=1e-3, momentum2=0.999, lr_policy="multistep", stepvalue=[100, 200]
)
rng = np.random.default_rng(0)
data = {"data": rng.random((1000, 3, 32, 32), np.float32), "label": rng.integers(0, 10, 1000)}
runs: list[Trained] = [
    sparknet.train(solver, data, strategy=strategy, workers=2, steps=300, validation=data)
    for strategy in (AllReduce(), Downpour(), "averaging:steps=10")
]
times = simulate(solver, data, workers=8, cluster=Cluster(bandwidth=1e9), steps=100)
planned = sparknet.plan(solver, data, workers=[1, 2, 4], target="time")
longest: float = max(run.history.loss[1][-1] for run in runs)
print(net.graph().param_count, solver.base_lr, planned, times.outcome.reason)
net.save("net.prototxt")
