"""A small regression net, and solvers for it."""

import numpy as np

from sparknet import caffe
from sparknet.caffe.solvers import SOLVERS, Solver
from sparknet.proto import caffe_pb2, parse_net, parse_text

KINDS = sorted(SOLVERS)

NET = """
name: "small"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 3 } } }
layer { name: "t" type: "Input" top: "t" input_param { shape { dim: 4 dim: 2 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "act" type: "TanH" bottom: "h" top: "h" }
layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""


def settings(kind="SGD", text=""):
    """A SolverParameter with sensible numbers, and ``text`` on top."""
    momentum = "" if kind in ("AdaGrad", "RMSProp") else "momentum: 0.9"
    solver = parse_text(
        f'type: "{kind}" base_lr: 0.05 lr_policy: "fixed" random_seed: 7 {momentum}',
        caffe_pb2.SolverParameter,
    )
    solver.MergeFrom(parse_text(text, caffe_pb2.SolverParameter))
    solver.net_param.CopyFrom(parse_net(NET))
    return solver


def make_solver(kind: str = "SGD", text: str = "") -> Solver:
    return caffe.get_solver(settings(kind, text))


def feed(solver: Solver, number: int) -> None:
    """The inputs of an iteration: the same for the same number."""
    rng = np.random.default_rng(number)
    for name in ("x", "t"):
        blob = solver.net.blobs[name]
        blob.data[...] = rng.standard_normal(blob.shape, np.float32)


def train(solver: Solver, iterations: int) -> None:
    for _ in range(iterations):
        feed(solver, solver.iter)
        solver.step(1)


def weights(solver):
    return np.array(solver.net.flat_params)
