"""Training in pieces: gradients by themselves, updates of slices, positions, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.errors import SpecError
from sparknet.proto import parse_net
from tests.caffe.solvers import small

DROPOUT = small.NET.replace(
    'layer { name: "ip2"',
    'layer { name: "drop" type: "Dropout" bottom: "h" top: "h" }\nlayer { name: "ip2"',
)


@pytest.mark.parametrize("kind", small.KINDS)
def test_slices_make_a_whole_update(kind: str) -> None:
    text = "weight_decay: 0.01 clip_gradients: 0.1 iter_size: 2"
    whole, pieces = small.made(kind, text), small.made(kind, text)
    size = whole.net.flat_params.size
    for number in range(3):
        losses = [solver.compute_gradient(lambda s=solver, n=number: small.feed(s, n))
                  for solver in (whole, pieces)]  # fmt: skip
        assert losses[0] == losses[1]
        whole.apply_update()
        norm = pieces.net.flat_diffs.norm2()
        for begin, end in ((0, 7), (7, 7), (7, 18), (18, size)):
            pieces.seek(whole.iter - 1)
            pieces.update_slice(begin, end, lambda n=norm: n)
    assert whole.iter == pieces.iter == 3
    # Whole updates are a device's, whose roots may be rounded otherwise.
    near = 1e-6 if whole.net.device not in (None, "cpu") else 0.0
    np.testing.assert_allclose(small.weights(whole), small.weights(pieces), rtol=near, atol=near)
    for one, other in zip(whole.flat_history, pieces.flat_history, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=near, atol=near)
        assert one.norm2() > 0


def test_gradient_and_update_are_a_step() -> None:
    stepped, pieces = small.made(), small.made()
    small.train(stepped, 4)
    for number in range(4):
        pieces.compute_gradient(lambda n=number: small.feed(pieces, n))
        pieces.apply_update()
    assert np.array_equal(small.weights(stepped), small.weights(pieces))


def test_seek_finds_the_rate() -> None:
    text = 'lr_policy: "multistep" stepvalue: 2 stepvalue: 5 gamma: 0.1'
    walked, jumped = small.made("SGD", text), small.made("SGD", text)
    rates = []
    for _ in range(8):
        rates.append(walked.lr)
        small.train(walked, 1)
    for iteration, rate in enumerate(rates):
        jumped.seek(iteration)
        assert jumped.lr == rate
    assert rates[1:3] == pytest.approx([0.05, 0.005])
    assert rates[7] == pytest.approx(0.0005)


def test_the_rate_of_the_current_iteration_while_training() -> None:
    solver = small.made("Adam", 'base_lr: 0.5 lr_policy: "step" stepsize: 2 gamma: 0.1')
    seen: list[float] = []
    solver.add_callback(lambda: seen.append(solver.lr))
    small.train(solver, 5)
    assert seen == pytest.approx([0.5, 0.5, 0.05, 0.05, 0.005])
    assert solver.lr == pytest.approx(0.005)


def test_every_solver_is_a_kind_of_sgd() -> None:
    for kind in small.KINDS:
        assert isinstance(small.made(kind), caffe.SGDSolver)


def test_random_numbers_go_on_in_another_net() -> None:
    nets = [caffe.Net.from_proto(parse_net(DROPOUT), caffe.TRAIN, seed=seed) for seed in (1, 2)]
    for net in nets:
        for name in ("ip1", "ip2"):
            net.params[name][0].data[...] = 1
        net.blobs["x"].data[...] = np.arange(12).reshape(4, 3)
    nets[0].forward()
    nets[1].random_state = nets[0].random_state

    def drawn(net: Any) -> Any:
        net.forward()
        return np.array(net.blobs["h"].data)

    first, second = ([drawn(net) for _ in range(3)] for net in nets)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], first[1])
    with pytest.raises(SpecError, match="2 draws do not fit"):
        nets[0].random_state = (1, [0, 0])
