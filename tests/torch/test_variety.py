"""Modules, losses and optimizers of all sorts, each held against the loop that anybody would write.

What is trained goes the way to a worker and back: copied, pickled without weights, unpickled.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
from torch import nn

from sparknet.comm.local_comm import LocalComm
from sparknet.errors import SettingError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords
from sparknet.torch.modules.calling import chosen_inputs, named_outputs
from sparknet.torch.modules.torch_model import TorchModel
from sparknet.torch.modules.trial import parts_of
from sparknet.training import Averaging, RunPlan, work
from sparknet.training.module_setup import ModuleSetup
from sparknet.training.settings.module import ModuleKeywords
from sparknet.training.settings.training import RunSettings

COUNT, BATCH, STEPS = 96, 8, 9
DRAW = np.random.default_rng(0)
POINTS = DRAW.normal(size=(COUNT, 4)).astype(np.float32)
LABELS = (POINTS[:, 0] > 0).astype(np.int64)
SUMS = POINTS.sum(1, keepdims=True)
TOKENS = DRAW.integers(0, 7, (COUNT, 5))
CROSS = nn.CrossEntropyLoss()
Data = dict[str, Any]
PAIRS: Data = {"input": POINTS, "label": LABELS}
SCHEDULERS = torch.optim.lr_scheduler
Make = Callable[[nn.Module], Any]
Loss = Callable[[nn.Module, Data], Any]


def perceptron() -> nn.Module:
    torch.manual_seed(0)
    first = nn.Linear(4, 8, bias=False)  # whose gradient would be noise before BatchNorm
    return nn.Sequential(first, nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def sgd(module):
    return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


def ours(data, module, optimizer, loss=CROSS, **how):
    """The module as a worker leaves it."""
    precision = how.pop("precision", "float32")
    settings = {"batch_size": BATCH, **how}
    keywords = ModuleKeywords(module=module, loss=loss, optimizer=optimizer, **settings)
    parts = parts_of(keywords.module, keywords.loss, keywords.optimizer, keywords.lr_schedule)
    inputs = chosen_inputs(parts.module, list(data), keywords.targets)
    first = {name: values[:2] for name, values in data.items()}
    given = RunSettings(steps=STEPS, precision=precision)
    begun = ModuleSetup(given, None, False, False, keywords, parts, inputs, first)
    sent = begun.portable()
    model = TorchModel.learning(sent, 0, 0)
    model.weights.copy_from(begun.weights().flat)
    order = Order(COUNT, 0, False, 0, 1)
    learner = model.learner(Batches(ArrayRecords(**data), sent.batch_size, order))
    work(learner, Averaging(steps=4), LocalComm.group(1)[0], RunPlan(steps=STEPS))
    learner.settle()
    return model.module


def loop(
    data: Data,
    module: nn.Module,
    make: Make,
    loss: Loss,
    schedule: Make | None = None,
    accumulate: int = 1,
) -> nn.Module:
    """The same, as one writes it in torch."""
    module = copy.deepcopy(module).train()
    optimizer = make(module)
    rates = schedule(optimizer) if schedule else None
    given = batches(data)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(accumulate):
            (loss(module, next(given)) / accumulate).backward()
        optimizer.step()
        if rates is not None:
            rates.step()
    return module


def batches(data: Data) -> Iterator[Data]:
    for step in range(10 * STEPS):
        at = np.arange(step * BATCH, (step + 1) * BATCH) % COUNT
        yield {name: torch.from_numpy(values[at]) for name, values in data.items()}


def usual(module, batch):
    return CROSS(module(batch["input"]), batch["label"])


def check_equal(found: nn.Module, want: nn.Module, least: float = 1e-6) -> None:
    for name, values in want.state_dict().items():
        got = found.state_dict()[name]
        assert got.dtype == values.dtype
        torch.testing.assert_close(got, values, rtol=0, atol=least, msg=name)


# -- optimizers and rates --------------------------------------------------------------------


def two_groups(module):
    rest = [*module[1].parameters(), *module[3].parameters()]
    groups = [{"params": module[0].parameters(), "lr": 0.05}, {"params": rest, "weight_decay": 0.3}]
    return torch.optim.AdamW(groups, lr=0.01)


class Signs(torch.optim.Optimizer):
    """An optimizer of the user's own."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for one in group["params"]:
                kept = self.state[one]
                kept["mean"] = kept.get("mean", torch.zeros_like(one)) / 2 + one.grad.sign()
                one -= group["lr"] * kept["mean"]


@pytest.mark.parametrize(
    "make",
    [
        two_groups,
        lambda module: torch.optim.Adam(module.parameters(), lr=0.01, fused=True),
        lambda module: torch.optim.Adam(module.parameters(), lr=0.01, foreach=True),
        lambda module: Signs(module.parameters(), lr=0.01),
    ],
    ids=["groups", "fused", "foreach", "own"],
)
def test_optimizers(make):
    module = perceptron()
    check_equal(ours(PAIRS, module, make(module)), loop(PAIRS, module, make, usual))


SCHEDULES: dict[str, Make] = {
    "cyclic": lambda made: SCHEDULERS.CyclicLR(made, 0.01, 0.2, step_size_up=3),
    "restarts": lambda made: SCHEDULERS.CosineAnnealingWarmRestarts(made, 4),
    "lambda": lambda made: SCHEDULERS.LambdaLR(made, lambda epoch: 0.9**epoch),
    "chained": lambda made: SCHEDULERS.ChainedScheduler(
        [SCHEDULERS.ConstantLR(made, 0.1, 3), SCHEDULERS.ExponentialLR(made, 0.9)]
    ),
    "sequence": lambda made: SCHEDULERS.SequentialLR(
        made,
        [SCHEDULERS.LinearLR(made, 0.1, total_iters=4), SCHEDULERS.StepLR(made, 2)],
        milestones=[4],
    ),
    "onecycle": lambda made: SCHEDULERS.OneCycleLR(made, 0.3, STEPS),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("given", ["function", "object"])
def test_schedules(name, given):
    module, make = perceptron(), SCHEDULES[name]
    want = loop(PAIRS, module, sgd, usual, make)
    optimizer = sgd(module)
    schedule = make(optimizer) if given == "object" else make
    check_equal(ours(PAIRS, module, optimizer, lr_schedule=schedule), want)


def test_a_schedule_of_another_optimizer_is_refused():
    module = perceptron()
    schedule = SCHEDULERS.StepLR(sgd(module), 3)
    with pytest.raises(SettingError, match="the scheduler of another optimizer than the given"):
        ours(PAIRS, module, sgd(module), lr_schedule=schedule)


def test_gradients_of_several_batches():
    module = perceptron()
    want = loop(PAIRS, module, sgd, usual, accumulate=3)
    check_equal(ours(PAIRS, module, sgd(module), accumulate=3), want)


def test_bfloat16():
    module = perceptron()

    def narrow(module, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return usual(module, batch)

    want = loop(PAIRS, module, sgd, narrow)
    check_equal(ours(PAIRS, module, sgd(module), precision="bf16"), want)
    wide = loop(PAIRS, module, sgd, usual).state_dict()["0.weight"]
    assert (want.state_dict()["0.weight"] - wide).abs().max() > 1e-4


# -- inputs and outputs ----------------------------------------------------------------------


@dataclasses.dataclass
class Output:
    loss: Any = None
    logits: Any = None


class Named(NamedTuple):
    loss: Any = None
    logits: Any = None


class Model(nn.Module):
    """As those of Hugging Face: everything may be missing, and the loss comes with the labels."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Embedding(7, 6), nn.Flatten(), nn.Linear(30, 2))
        self.kind = kind

    def forward(self, input_ids=None, labels=None, return_dict=True):
        logits = self.layers(input_ids)
        loss = None if labels is None else CROSS(logits, labels)
        return self.kind(loss=loss, logits=logits)


@pytest.mark.parametrize("kind", [Output, Named, dict])
def test_outputs_with_names(kind):
    module = Model(kind)
    data = {"input_ids": TOKENS, "labels": LABELS}

    def own(module, batch):
        return named_outputs(module(**batch))["loss"]

    want = loop(data, module, sgd, own)
    found = ours(data, module, sgd(module), lambda made: named_outputs(made)["loss"], target=())
    check_equal(found, want)
    data = {"input_ids": TOKENS, "label": LABELS}

    def ours_too(made, label):
        return CROSS(named_outputs(made)["logits"], label)

    check_equal(ours(data, module, sgd(module), ours_too), want)


class Several(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.number, self.classes = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)

    def forward(self, x, y=None):
        hidden = torch.tanh(self.first(x if y is None else x + y))
        return self.classes(hidden), self.number(hidden)


def test_several_inputs_outputs_and_targets():
    def both(made, targets):
        return CROSS(made[0], targets[0]) + ((made[1] - targets[1]) ** 2).mean()

    def own(module, batch):
        return both(module(batch["x"], batch["y"]), [batch["label"], batch["sum"]])

    module = Several()
    data = {"x": POINTS, "y": POINTS[::-1].copy(), "label": LABELS, "sum": SUMS}
    found = ours(data, module, sgd(module), both, target=("label", "sum"))
    check_equal(found, loop(data, module, sgd, own))


class Open(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 2)

    def forward(self, **batch):
        return self.layer(batch["x"] + batch["y"])


def test_a_forward_of_any_arguments_gets_all_columns():
    def own(module, batch):
        return CROSS(module(x=batch["x"], y=batch["y"]), batch["label"])

    module, data = Open(), {"x": POINTS, "y": POINTS, "label": LABELS}
    check_equal(ours(data, module, sgd(module)), loop(data, module, sgd, own))


class Language(nn.Module):
    """Whose embedding is its last layer, too."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.last = nn.Embedding(7, 6), nn.Linear(6, 7, bias=False)
        self.last.weight = self.words.weight

    def forward(self, tokens):
        return self.last(self.words(tokens))


def test_a_language_model_with_a_tied_embedding():
    def flat(made, real):
        return CROSS(made.reshape(-1, 7), real.reshape(-1))

    module, data = Language(), {"tokens": TOKENS}
    found = ours(data, module, sgd(module), flat, target="tokens")
    check_equal(
        found, loop(data, module, sgd, lambda one, batch: flat(one(**batch), *batch.values()))
    )
    assert found.last.weight is found.words.weight


# -- parameters and buffers ------------------------------------------------------------------


class Partly(nn.Module):
    """Of which the loss never sees one layer, and another one only now and then."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.always, self.never, self.at_times = nn.Linear(4, 2), nn.Linear(3, 3), nn.Linear(4, 2)

    def forward(self, input):
        made = self.always(input)
        return made + self.at_times(input) if input[0, 0] > 0 else made


def test_a_parameter_without_a_gradient_stays_as_it_is():
    def make(module):
        return torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.5)

    module = Partly()
    assert 2 < (POINTS[: BATCH * STEPS : BATCH, 0] > 0).sum() < STEPS - 2
    found = ours(PAIRS, module, make(module))
    check_equal(found, loop(PAIRS, module, make, usual))
    assert torch.equal(found.never.weight, module.never.weight)


class Buffers(nn.Module):
    """Buffers of many types, some replaced and some changed in place, in both modes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 2)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("flag", torch.tensor([True, False]))
        self.register_buffer("wide", torch.zeros(2, dtype=torch.float64))
        self.register_buffer("narrow", torch.zeros(2, dtype=torch.bfloat16))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("turns", torch.tensor([1j, 2.0]))
        self.register_buffer("big", torch.tensor(2**40 + 1))
        self.register_buffer("own", torch.ones(2), persistent=False)

    def forward(self, input):
        self.count += 1
        self.flag = ~self.flag
        self.wide += 0.5
        self.narrow = self.narrow + 1
        self.mean = 0.9 * self.mean + 0.1 * input.detach().mean(0)
        scale = self.turns.abs() * (self.big - 2**40) * self.own
        return self.layer(input + self.mean) * scale


def test_buffers_of_all_types():
    module = Buffers()
    check_equal(ours(PAIRS, module, sgd(module)), loop(PAIRS, module, sgd, usual))
    assert not module.count


def test_lazy_modules_have_a_function_for_an_optimizer():
    torch.manual_seed(0)
    module = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2))
    found = ours(PAIRS, module, partial(torch.optim.SGD, lr=0.1))
    assert found[0].weight.shape == (8, 4)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: torch.compile(perceptron(), backend="eager"), "module is compiled: give the"),
        (lambda: torch.jit.script(perceptron()), "module is TorchScript: give the module"),
        (
            lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 2)),
            "module 'ParametrizedLinear' cannot be sent to workers: Serialization of param",
        ),
    ],
    ids=["compiled", "script", "parametrized"],
)
def test_modules_that_cannot_travel(make, said):
    module = make()
    with pytest.raises(SettingError, match=said):
        ours(PAIRS, module, sgd(module))


def test_an_optimizer_that_fails():
    module = perceptron()
    with pytest.raises(SettingError, match="optimizer SparseAdam fails in a step: SparseAdam does"):
        ours(PAIRS, module, torch.optim.SparseAdam(list(module.parameters())))
