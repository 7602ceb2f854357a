"""Codecs cost no accuracy: 0.3 point of 1,500 digits at most, as the mean over three seeds.

A run with a codec and one without share the seed of weights and order.  They train in virtual time,
in which Downpour's results do not depend on the machine.
"""

from functools import cache

import pytest

from benchmarks.digits import TRAINED, records
from sparknet.comm.codecs import Codec
from sparknet.proto import caffe_pb2, parse_text
from sparknet.training import AllReduce, Cluster, DiLoCo, Downpour, simulate
from sparknet.training.planning.trials import Spread

# 36 trainings of 400 steps of two workers: about a minute.
pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("mnist")]

SEEDS, STEPS = (1, 2, 3), 400
NET = """
layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 32 dim: 1 dim: 28 dim: 28 } shape { dim: 32 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy"
  include { phase: TEST } }
"""
KINDS = {
    "allreduce": AllReduce,
    "downpour": Downpour,
    "diloco": lambda codec: DiLoCo(20, outer_lr=0.9, outer_momentum=0.5, codec=codec),
    "streaming": lambda codec: DiLoCo(
        20, outer_lr=0.9, outer_momentum=0.5, fragments=2, overlap=2, codec=codec
    ),
}


@cache
def accuracy(kind: str, codec: Codec | None, seed: int) -> float:
    """In per cent."""
    rates = f'base_lr: 0.03 lr_policy: "poly" power: 1 max_iter: {STEPS} momentum: 0.9'
    text = f"net_param {{ {NET} }} {rates} random_seed: {seed}"
    solver = parse_text(text, caffe_pb2.SolverParameter)
    made = simulate(
        solver,
        records(slice(0, TRAINED)),
        workers=2,
        strategy=KINDS[kind](codec=codec),
        steps=STEPS,
        seed=seed,
        cluster=Cluster(step=1.0, jitter=0.2),
        validation=records(slice(TRAINED, None)),
        validate_every=1 << 30,
        threads=1,
    )
    return 100 * made.outcome.metrics["accuracy"]


@pytest.mark.parametrize("codec", ["fp16", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_codec_costs_no_accuracy(kind, codec):
    plain = [accuracy(kind, None, seed) for seed in SEEDS]
    coded = [accuracy(kind, codec, seed) for seed in SEEDS]
    apart = Spread.of(one - other for one, other in zip(coded, plain, strict=True))
    assert min(plain) > 90
    assert abs(apart.mean) < 0.3, (apart, plain, coded)
