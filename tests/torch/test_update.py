"""The update on a device: the numbers of the native pass, and no parameter that crosses."""

import signal

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch

from sparknet import caffe
from sparknet.native import NDArray
from sparknet.native.solver import SolverPass
from sparknet.torch import update
from sparknet.torch.layer import hold
from sparknet.torch.memory import DevicePlace
from sparknet.torch.update import DevicePass
from tests.caffe.solvers import small

APART = DevicePlace.of("cpu", apart=True)
ENDS = [7, 7, 1500, 3001]
RULES = {
    "sgd": (0.9,),
    "nesterov": (0.9,),
    "adagrad": (1e-8,),
    "rmsprop": (0.98, 1e-8),
    "adadelta": (0.95, 1e-6),
    "adam": (0.9, 0.999, 1e-8, 0.31),
    "adamw": (0.9, 0.999, 1e-8, 0.31),
}
NUMBERS = {
    "plain": {"rate": 0.013},
    "decay": {"rate": 0.013, "decay": 0.0005, "share": 1 / 3},
    "l1, clipped": {"rate": 0.013, "decay": 0.1, "l1": True, "clip": 0.7},
    "factors": {"rate": 0.1, "factors": [0.3, 1.0, 0.01, 2.0]},
}


def buffers() -> list[NDArray]:
    draw = np.random.default_rng(5)
    made = [draw.normal(size=ENDS[-1]).astype(np.float32) for _ in range(4)]
    return [NDArray(np.abs(one) if number > 1 else one) for number, one in enumerate(made)]


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("factors", ["equal", "their own"])
@pytest.mark.parametrize("rule", RULES)
def test_the_numbers_of_the_native_pass(rule, factors, numbers):
    own = factors == "their own"
    rates, decays = ([1, 2, 0.1, 2], [1, 0, 1, 0.3]) if own else ([1] * 4, [1] * 4)
    here, there = buffers(), buffers()
    histories = 2 if rule in ("adadelta", "adam", "adamw") else 1
    native = SolverPass(*here[:2], here[2 : 2 + histories], ENDS, rates, decays)
    held = [hold(one, APART) for one in there]
    device = DevicePass(APART, *there[:2], there[2 : 2 + histories], ENDS, rates, decays)
    for _ in range(3):
        for flat in held[:2]:
            flat.to_device()
        native.take(rule, RULES[rule], **numbers)
        device.take(rule, RULES[rule], **numbers)
    near = 0 if rule in ("sgd", "nesterov") else 1e-6  # PyTorch's roots are rounded otherwise
    assert not any(flat.is_on_host for flat in held[: 2 + histories])
    for flat, mine, other in zip(held, here, there, strict=True):
        flat.to_host()
        np.testing.assert_allclose(other.numpy(), mine.numpy(), rtol=near, atol=near)


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("rule", ["sgd", "nesterov"])
def test_descent_in_one_kernel(rule, numbers):
    """As on GPUs: of numbers that are rounded once where the native pass rounds them twice."""
    rates, decays = [1, 2, 0.1, 2], [1, 0, 1, 0]
    here, there = buffers(), buffers()
    native = SolverPass(*here[:2], here[2:3], ENDS, rates, decays)
    held = [hold(one, APART) for one in there]
    device = DevicePass(APART, *there[:2], there[2:3], ENDS, rates, decays)
    device._fuses = True
    for _ in range(3):
        for flat in held[:2]:
            flat.to_device()
        native.take(rule, RULES[rule], **numbers)
        device.take(rule, RULES[rule], **numbers)
    for flat, mine, other in zip(held, here[:3], there, strict=False):
        flat.to_host()
        np.testing.assert_allclose(other.numpy(), mine.numpy(), rtol=1e-6, atol=1e-6)


def test_values_with_the_same_factors_are_one_part():
    assert update._runs([7, 7, 9, 20], [1, 2, 1, 2], [1, 0, 1, 0]) == {
        (1.0, 1.0): [slice(0, 9)],
        (2.0, 0.0): [slice(9, 20)],
    }
    assert update._runs([3, 5, 8], [1, 2, 1], [1, 0, 1]) == {
        (1.0, 1.0): [slice(0, 3), slice(5, 8)],
        (2.0, 0.0): [slice(3, 5)],
    }


@pytest.mark.parametrize("kind", small.KINDS)
def test_a_step_moves_the_batch_alone(kind, monkeypatch):
    """Of four records, each of 3 numbers and 2 targets; what is looked at is moved when it is."""
    crossed: list[tuple[str, int]] = []
    copy_of, copy_to = DevicePlace.copy_of, DevicePlace.copy_to

    def up(self, values):
        crossed.append(("blob", values.numel()))
        return copy_of(self, values)

    def across(target, values):
        crossed.append(("buffer", values.numel()))
        copy_to(target, values)

    monkeypatch.setattr(DevicePlace, "copy_of", up)
    monkeypatch.setattr(DevicePlace, "copy_to", staticmethod(across))
    text = "weight_decay: 0.01 clip_gradients: 0.01"
    solver = caffe.get_solver(small.settings(kind, text), device="apart")
    native = caffe.get_solver(small.settings(kind, text), device="native")
    for one in (solver, native):
        small.train(one, 2)
    crossed.clear()
    small.train(solver, 3)
    assert crossed == 3 * [("blob", 12), ("blob", 8)]
    size = native.net.flat_params.size
    small.train(native, 3)
    np.testing.assert_allclose(small.weights(solver), small.weights(native), rtol=1e-4, atol=1e-6)
    assert crossed[6:] == [("buffer", size)]
    for mine, other in zip(solver.history, native.history, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-7)
    assert crossed[7:] == solver.histories * [("buffer", size)]


def test_the_update_is_where_the_gradients_are(monkeypatch):
    """A program that writes to weights and gradients between a pass and the update."""
    taken: list[str] = []
    take = SolverPass.take
    monkeypatch.setattr(
        SolverPass,
        "take",
        lambda self, *given, **more: taken.append("host") or take(self, *given, **more),
    )
    made = []
    for device in ("apart", "native"):
        solver = caffe.get_solver(small.settings("Adam"), device=device)
        taken.clear()
        for number in range(4):
            small.feed(solver, number)
            solver.compute_gradient()
            if number == 2:
                solver.net.flat_diffs.scale(2.0)
            if number == 3:
                solver.net.params["ip1"][0].diff[...] = 1.0
                solver.net.params["ip2"][0].data[...] *= 0.5
            solver.apply_update()
        made.append((small.weights(solver), list(taken)))
    np.testing.assert_allclose(made[0][0], made[1][0], rtol=1e-5)
    assert (made[0][1], made[1][1]) == (["host"], ["host"] * 4)


def test_an_interrupt_waits_for_the_end_of_the_update(monkeypatch):
    solver, whole = (caffe.get_solver(small.settings(), device="apart") for _ in range(2))
    for one in (solver, whole):
        small.feed(one, 0)
    rule = update._RULES["sgd"]

    def interrupted(*given):
        signal.raise_signal(signal.SIGINT)
        return rule(*given)

    monkeypatch.setitem(update._RULES, "sgd", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.step(1)
    monkeypatch.undo()
    whole.step(1)
    assert solver.iter == 1
    np.testing.assert_array_equal(small.weights(solver), small.weights(whole))
    np.testing.assert_array_equal(solver.history[0], whole.history[0])


def test_adamw_is_that_of_pytorch():
    """But for the place of epsilon, which Caffe's Adam adds before the correction."""
    text = "weight_decay: 0.1 momentum: 0.9 momentum2: 0.999 delta: 1e-12 base_lr: 0.05"
    solver = caffe.get_solver(small.settings("AdamW", text))
    weights = torch.tensor(np.array(solver.net.flat_params, np.float64), requires_grad=True)
    theirs = torch.optim.AdamW([weights], lr=0.05, weight_decay=0.1, eps=1e-12)
    draw = np.random.default_rng(0)
    for _ in range(20):
        gradient = draw.standard_normal(weights.numel())
        np.asarray(solver.net.flat_diffs)[:] = gradient
        weights.grad = torch.tensor(gradient)
        solver.apply_update()
        theirs.step()
    np.testing.assert_allclose(solver.net.flat_params, weights.detach(), rtol=1e-4, atol=1e-5)
