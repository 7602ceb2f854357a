"""Our nets as messages: in training with their losses, in inference without."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.contests import DECAY, MOMENTUM, RATE, Contest
from sparknet import models


def training_net(contest: Contest) -> Any:
    """The model as it is, at the contest's batch size."""
    return models.net(contest.name, contest.batch, contest.batch).to_proto()


def training_solver(contest: Contest) -> Any:
    """Descent with momentum and decay, on a net that is given in the message."""
    from sparknet.proto import caffe_pb2

    solver = caffe_pb2.SolverParameter(
        type="SGD", base_lr=RATE, lr_policy="fixed", momentum=MOMENTUM, weight_decay=DECAY
    )
    solver.net_param.CopyFrom(training_net(contest))
    solver.snapshot_after_train = False
    return solver


def inference_net(contest: Contest) -> Any:
    """The layers up to the scores, in the test phase, and a Softmax after them."""
    from sparknet.graph import filter_net, net_state
    from sparknet.proto import caffe_pb2

    whole = training_net(contest)
    whole.state.phase = caffe_pb2.TEST
    net = filter_net(whole, net_state(whole, caffe_pb2.TEST))
    needed, kept = {contest.scores}, []
    for layer in reversed(net.layer):
        if needed & set(layer.top):
            needed.update(layer.bottom)
            kept.append(layer)
    short = caffe_pb2.NetParameter(name=net.name, layer=reversed(kept))
    probabilities = short.layer.add(name="prob", type="Softmax", top=["prob"])
    probabilities.bottom.append(contest.scores)
    probabilities.softmax_param.axis = 2 if contest.words else 1
    return short
