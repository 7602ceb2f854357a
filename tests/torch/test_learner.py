"""TorchLearner, held against the loop that one writes in torch."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")


import torch
from torch import nn

from sparknet.comm.local_comm import LocalComm
from sparknet.errors import DataError, SettingError
from sparknet.torch.modules.calling import ModuleLoss, chosen_inputs, tensor
from sparknet.torch.modules.updater import ScheduledRates
from sparknet.training import AllReduce, Averaging, RunPlan, work
from sparknet.training.checkpoints.resume import Carried
from sparknet.training.strategies import STRATEGIES, make_strategy
from tests.comm.groups import together
from tests.torch.modules import (
    LABELS,
    POINTS,
    batches,
    learner_of,
    perceptron,
    plain,
    records,
    values,
)
from tests.torch.test_variety import PAIRS, check_equal, loop, ours, sgd, usual

SGD, ADAM = torch.optim.SGD, torch.optim.Adam
OPTIMIZERS = {
    "sgd": partial(SGD, lr=0.1),
    "momentum": partial(SGD, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "nesterov": partial(SGD, lr=0.1, momentum=0.9, nesterov=True),
    "dampening": partial(SGD, lr=0.1, momentum=0.9, dampening=0.5),
    "adam": partial(ADAM, lr=0.01),
    "amsgrad": partial(ADAM, lr=0.01, amsgrad=True),
    "adamw": partial(torch.optim.AdamW, lr=0.01, weight_decay=0.1),
    "nadam": partial(torch.optim.NAdam, lr=0.01),
    "radam": partial(torch.optim.RAdam, lr=0.01),
    "adagrad": partial(torch.optim.Adagrad, lr=0.1, initial_accumulator_value=0.1),
    "adadelta": partial(torch.optim.Adadelta, lr=1.0),
    "rmsprop": partial(torch.optim.RMSprop, lr=0.01, momentum=0.5, centered=True),
}
Make = Callable[[Any], Any]


def trained(workers, steps, strategy, **how):
    """The learners of so many workers, after training."""
    module = how.pop("module", perceptron())
    batch = how.pop("batch", 12)
    comms = LocalComm.group(workers)
    made = [
        learner_of(module, how["optimizer"], records(), batch, rank, workers, **_rest(how))
        for rank in range(workers)
    ]
    plan = RunPlan(steps=steps)
    together(comms, lambda comm: work(made[comm.rank], strategy, comm, plan))
    return made


def _rest(how):
    return {name: value for name, value in how.items() if name != "optimizer"}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_worker_is_the_loop_of_torch(name):
    module = perceptron(norm=True)
    (learner,) = trained(1, 25, Averaging(steps=10), optimizer=OPTIMIZERS[name], module=module)
    plain(module, OPTIMIZERS[name], batches(25, 12))
    found = values(learner.flat.module)
    for key, value in values(module).items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_allreduce_of_two_is_one_with_twice_the_batch(name):
    module = perceptron()
    first, second = trained(2, 25, AllReduce(), optimizer=OPTIMIZERS[name], module=module)
    np.testing.assert_array_equal(first.weights.numpy(), second.weights.numpy())
    plain(module, OPTIMIZERS[name], (joined(step) for step in range(25)))
    found = values(first.flat.module)
    for key, value in values(module).items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["adam", "nadam", "radam"])
def test_numbers_beside_the_histories_go_on(name, workers):
    """Two workers update a half each and stop; as many, or one, go on.  All see the same records,
    so that the loop of torch is theirs."""
    module, make = perceptron(), OPTIMIZERS[name]

    def made(count):
        return [learner_of(module, make, records()) for _ in range(count)]

    before, after = made(2), made(workers)
    halves = by_parts(before, 6)
    learned = [json.loads(json.dumps(one.state())) for one in before]
    carried = Carried({}, learned, [], [])
    for rank, one in enumerate(after):
        for (begin, end), owner in zip(halves, before, strict=True):
            for mine, theirs in zip(one.histories, owner.histories, strict=True):
                mine[begin:end].copy_from(theirs[begin:end])
        one.weights.copy_from(before[0].weights)
        state = learned[rank] if workers == 2 else carried.learner_of(rank, one.state())
        one.restore({**state, "cursor": learned[0]["cursor"]})
    by_parts(after, 6)
    plain(module, make, batches(12, 12))
    after[0].settle()
    found = values(after[0].flat.module)
    for key, value in values(module).items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-6, err_msg=key)


def by_parts(learners, steps):
    """Each learner updates its part of the weights, and has the others' parts from them."""
    size = learners[0].weights.size
    ends = [0, *(size // len(learners) * one for one in range(1, len(learners))), size]
    parts = list(pairwise(ends))
    for _ in range(steps):
        for one, (begin, end) in zip(learners, parts, strict=True):
            one.compute_gradient()
            one.apply_update(begin, end, one.gradients.norm2)
        for one in learners:
            for owner, (begin, end) in zip(learners, parts, strict=True):
                one.weights[begin:end].copy_from(owner.weights[begin:end])
    return parts


def joined(step):
    """What two workers have in a step: each takes every second record."""
    at = np.arange(step * 24, (step + 1) * 24) % len(POINTS)
    return torch.from_numpy(POINTS[at]), torch.from_numpy(LABELS[at])


def test_gradients_are_clipped_as_torch_clips_them():
    for workers in (1, 2):
        module = perceptron()
        (learner, *_) = trained(
            workers, 20, AllReduce(), optimizer=OPTIMIZERS["sgd"], module=module, clip=0.05
        )
        plain(
            module,
            OPTIMIZERS["sgd"],
            batches(20, 12) if workers == 1 else (joined(step) for step in range(20)),
            clip=0.05,
        )
        assert 0 < learner.clipped <= 20
        for key, value in values(module).items():
            found = values(learner.flat.module)[key]
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5, err_msg=key)


SCHEDULES = {
    "step": lambda made: torch.optim.lr_scheduler.StepLR(made, 7, 0.5),
    "cosine": lambda made: torch.optim.lr_scheduler.CosineAnnealingLR(made, 20),
    "onecycle": lambda made: torch.optim.lr_scheduler.OneCycleLR(made, 0.2, 25),
    "sequence": lambda made: torch.optim.lr_scheduler.SequentialLR(
        made,
        [
            torch.optim.lr_scheduler.LinearLR(made, 0.1, total_iters=5),
            torch.optim.lr_scheduler.ExponentialLR(made, 0.9),
        ],
        [5],
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_that_of_the_loop(name):
    module, make = perceptron(), OPTIMIZERS["momentum"]
    (learner,) = trained(
        1, 25, Averaging(), optimizer=make, module=module, schedule=SCHEDULES[name]
    )
    plain(module, make, batches(25, 12), schedule=SCHEDULES[name])
    for key, value in values(module).items():
        np.testing.assert_array_equal(values(learner.flat.module)[key], value, err_msg=key)


def test_a_schedule_is_a_function_of_the_iteration():
    made = OPTIMIZERS["momentum"](list(perceptron().parameters()))
    rates = ScheduledRates(made, SCHEDULES["step"])
    told = [rates.at(iteration)[0]["lr"] for iteration in range(3000)]
    assert told == pytest.approx([0.1 * 0.5 ** (at // 7) for at in range(3000)])
    for at in (2999, 2500, 30, 0, 13):  # nearby, and further back than is remembered
        assert rates.at(at)[0]["lr"] == told[at]
    policy = ScheduledRates(made, {"lr_policy": "step", "stepsize": 10, "gamma": 0.1})
    assert [policy.at(at)[0]["lr"] for at in (0, 9, 10, 25)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.001]
    )
    assert policy.at(25)[0]["momentum"] == 0.9


def test_buffers_are_averaged_or_kept():
    """A worker with batches of its own has running means of its own."""
    made = {}
    for buffers in ("average", "keep"):
        module = perceptron(norm=True)
        pair = trained(
            2,
            20,
            Averaging(steps=10),
            optimizer=OPTIMIZERS["sgd"],
            module=module,
            buffers=buffers,
        )
        begin, end = pair[0].statistics[0]
        means = [one.weights.numpy()[begin:end] for one in pair]
        np.testing.assert_array_equal(*means)
        assert int(pair[0].flat.module.norm.num_batches_tracked) == 20
        made[buffers] = pair
    assert made["average"][0]._own is None
    first, second = (one._own.numpy() for one in made["keep"])
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_allclose(
        (first + second) / 2, made["keep"][0]._buffers().numpy(), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_brings_two_workers_together(name):
    if name == "auto":
        pytest.skip("chooses among the others")
    strategy = make_strategy(name)
    make = OPTIMIZERS["momentum" if name == "bmuf" else "adam"]
    pair = trained(2, 40, strategy, optimizer=make, module=perceptron(norm=True))
    np.testing.assert_array_equal(pair[0].weights.numpy(), pair[1].weights.numpy())
    module = pair[0].flat.module.eval()
    with torch.no_grad():
        right = module(torch.from_numpy(POINTS)).argmax(1).numpy() == LABELS
    assert right.mean() > 0.75
    assert module.third.weight is module.second.weight
    np.testing.assert_array_equal(
        module.frozen.weight.numpy(), perceptron(norm=True).frozen.weight.numpy()
    )


# -- columns, tensors and losses ------------------------------------------------------------


class Pair(nn.Module):
    def forward(self, left, right, mask=None): ...


def test_arguments_have_the_columns_of_their_names():
    both = {"left": "left", "right": "right"}
    assert chosen_inputs(Pair(), ["left", "right", "label"], ["label"]) == both
    assert chosen_inputs(Pair(), ["left", "right", "mask"], []) == {**both, "mask": "mask"}
    named = chosen_inputs(Pair(), ["a", "right", "label"], ["label"], {"left": "a"})
    assert named == {"left": "a", "right": "right"}
    assert chosen_inputs(nn.Linear(1, 1), ["anything", "label"], ["label"]) == {"input": "anything"}
    assert chosen_inputs(nn.Linear(1, 1), ["input"], ["input"]) == {"input": "input"}
    with pytest.raises(DataError, match=r"no column for the argument 'right' of module 'Pair': it"):
        chosen_inputs(Pair(), ["left", "x", "label"], ["label"])
    with pytest.raises(DataError, match=r"no column 'label' for the target: it has 'left', 'right"):
        chosen_inputs(Pair(), ["left", "right"], ["label"])
    with pytest.raises(SettingError, match=r"columns names 'centre', but the forward of module 'P"):
        chosen_inputs(Pair(), ["left", "right"], [], {"centre": "left"})


def test_types_of_columns():
    kinds = [np.float64, np.float16, np.int32, np.uint8, np.bool_]
    found = [[str(tensor(np.ones(2, k), one).dtype)[6:] for k in kinds] for one in (True, False)]
    assert found == [
        ["float32", "float32", "int64", "float32", "bool"],
        ["float32", "float32", "int64", "int64", "bool"],
    ]


def test_losses_of_torch_get_targets_that_fit():
    outputs = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
    real = torch.tensor([1.0, 0.0])
    wanted = nn.functional.cross_entropy(outputs, real.long())
    for loss in (nn.CrossEntropyLoss(), nn.functional.cross_entropy):
        assert ModuleLoss(loss)(outputs, [real]) == wanted
        assert ModuleLoss(loss)(outputs, [real[:, None]]) == wanted
    one = outputs[:, :1]
    for loss in (nn.MSELoss(), nn.functional.mse_loss):
        assert float(ModuleLoss(loss)(one, [torch.tensor([1, 0])])) == pytest.approx(4.5)
    for loss in (nn.BCEWithLogitsLoss(), nn.functional.binary_cross_entropy_with_logits):
        assert ModuleLoss(loss).judged(one, [real])[2] == 0.5
    several = ModuleLoss(lambda made, given: (made * given[0] * given[1]).sum())
    assert float(several(real, [real, real])) == 1.0
    assert float(ModuleLoss(torch.sum)(outputs, [])) == 6.0
    with pytest.raises(SettingError, match=r"the loss of a batch must be one number, not \(2, 2\)"):
        ModuleLoss(lambda made, given: made)(outputs, [real])


# -- modes and types -------------------------------------------------------------------------


class Frozen(nn.Module):
    """Whose own `train` keeps its BatchNorm in the mode of evaluation."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))

    def train(self, mode=True):
        super().train(mode)
        self.layers[1].eval()
        return self

    def forward(self, input):
        return self.layers(input)


def test_a_module_is_asked_for_its_mode_of_training():
    module = Frozen()
    for whole in (module, nn.Sequential(module)):
        found = ours(PAIRS, whole, sgd(whole))
        check_equal(found, loop(PAIRS, whole, sgd, usual))
        assert not any(one.any() for name, one in found.named_buffers() if name.endswith("mean"))
    by_hand = Frozen().layers
    by_hand[1].eval()
    kept = ours(PAIRS, by_hand, sgd(by_hand))
    assert not kept[1].training
    assert not kept[1].num_batches_tracked


class Mixed(nn.Module):
    """A layer in another type; ``master`` keeps its weights in float32 and rounds them."""

    def __init__(self, dtype: torch.dtype, master: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.middle, self.last = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        self.middle.to(dtype).to(torch.float32 if master else dtype)
        self.dtype = dtype

    def forward(self, input):
        weights = [one.to(self.dtype) for one in (self.middle.weight, self.middle.bias)]
        hidden = torch.tanh(self.first(input)).to(self.dtype)
        return self.last(nn.functional.linear(hidden, *weights).float())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_parameters_of_other_types_have_masters_in_float32(dtype):
    module = Mixed(dtype, master=False)
    found = ours(PAIRS, module, sgd(module), accumulate=2)
    want = loop(PAIRS, Mixed(dtype, master=True), sgd, usual, accumulate=2)
    want.middle.to(dtype)
    assert not torch.equal(want.middle.weight, module.middle.weight)
    check_equal(found, want, 1e-6 if dtype == torch.float64 else 1e-3)


_PAGES = """
import resource
from functools import partial
from torch import nn, optim
from tests.torch.modules import learner_of, records

class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 1024), nn.Linear(1024, 784), nn.Linear(784, 2))

    def forward(self, points):
        return self.layers(points)

learner = learner_of(Wide(), partial(optim.AdamW, lr=1e-3), records())
learner.step(5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
learner.step(20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_malloc_keeps_what_a_step_frees():
    """A step makes tensors of 800 pages; glibc gave each back, and had it mapped anew."""
    words = [sys.executable, "-c", _PAGES]
    result = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert int(result.stdout) < 800
