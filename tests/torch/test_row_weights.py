"""Weights of rows in a module's loss, against losses that count row by row."""

import copy
from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("pyspark")

import torch
from torch import nn

from sparknet import train
from sparknet.errors import SettingError, SparkError
from sparknet.spark import Trainer, local_session
from sparknet.torch.modules.calling import ModuleLoss
from tests.spark.java import start_quickly
from tests.torch import shop
from tests.torch.modules import LABELS, POINTS, perceptron, values

start_quickly()
F = nn.functional
DRAWN = np.random.default_rng(4)
SCORES = torch.from_numpy(DRAWN.normal(size=(9, 4)).astype(np.float32))
CLASSES = torch.from_numpy(DRAWN.integers(0, 4, 9))
REAL = torch.from_numpy(DRAWN.random((9, 4)).astype(np.float32))
WEIGHTS = torch.from_numpy(DRAWN.random(9).astype(np.float32))
BY_CLASS = torch.tensor([1.0, 2.0, 0.5, 3.0])


def divided(loss, made, real, weights, by):
    """The sum over rows of weight times the row's own loss, divided."""
    rows = zip(made, real, weights, strict=True)
    return sum(float(one * loss(row[None], truth[None])) for row, truth, one in rows) / by


LOSSES = {
    "cross entropy": (nn.CrossEntropyLoss(), F.cross_entropy, CLASSES, 9),
    "function": (F.cross_entropy, F.cross_entropy, CLASSES, 9),
    "sum": (nn.CrossEntropyLoss(reduction="sum"), F.cross_entropy, CLASSES, 1),
    "smooth": (
        partial(F.cross_entropy, label_smoothing=0.1),
        partial(F.cross_entropy, label_smoothing=0.1),
        CLASSES,
        9,
    ),
    "by class": (
        nn.CrossEntropyLoss(BY_CLASS),
        partial(F.cross_entropy, weight=BY_CLASS, reduction="sum"),
        CLASSES,
        float(BY_CLASS[CLASSES].sum()),
    ),
    "ignored": (
        nn.CrossEntropyLoss(ignore_index=2),
        partial(F.cross_entropy, ignore_index=2, reduction="sum"),
        CLASSES,
        int((CLASSES != 2).sum()),
    ),
    "soft classes": (nn.CrossEntropyLoss(), F.cross_entropy, REAL, 9),
    "squares": (nn.MSELoss(), F.mse_loss, REAL, 9),
    "huber": (nn.HuberLoss(delta=0.3), partial(F.huber_loss, delta=0.3), REAL, 9),
    "logits": (
        nn.BCEWithLogitsLoss(pos_weight=BY_CLASS),
        partial(F.binary_cross_entropy_with_logits, pos_weight=BY_CLASS),
        REAL,
        9,
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_torch(name):
    given, one, real, by = LOSSES[name]
    loss = ModuleLoss(given)
    loss.check_weights()
    made = SCORES.clone().requires_grad_()
    found = loss(made, [real], WEIGHTS)
    assert float(found.detach()) == pytest.approx(divided(one, SCORES, real, WEIGHTS, by), rel=1e-5)
    equal = loss(made, [real], torch.ones(9))
    torch.testing.assert_close(equal, loss(made, [real]), rtol=1e-5, atol=1e-6)
    (slope,) = torch.autograd.grad(found, made)
    assert slope.shape == made.shape
    assert bool(slope.abs().sum() > 0)


def test_pixels_of_pictures():
    made = torch.from_numpy(DRAWN.normal(size=(3, 4, 5)).astype(np.float32))
    real = torch.from_numpy(DRAWN.integers(0, 4, (3, 5)))
    weights = torch.tensor([0.0, 1.0, 2.0])
    found = ModuleLoss(nn.CrossEntropyLoss())(made, [real], weights)
    wanted = divided(F.cross_entropy, made, real, weights, 3)
    assert float(found) == pytest.approx(wanted, rel=1e-5)


def test_a_loss_of_ones_own():
    def own(made, real, weights):
        return (weights * (made[:, 0] - real) ** 2).sum()

    loss = ModuleLoss(own)
    loss.check_weights()
    found = loss(SCORES, [CLASSES.float()], WEIGHTS)
    wanted = (WEIGHTS * (SCORES[:, 0] - CLASSES) ** 2).sum()
    torch.testing.assert_close(found, wanted)
    with pytest.raises(SettingError, match=r"the loss 'squares' cannot weigh records: give a loss"):
        ModuleLoss(shop.squares).check_weights()


@pytest.fixture(scope="module")
def session():
    found = local_session(2)
    yield found
    found.stop()


HOW = {
    "optimizer": partial(torch.optim.SGD, lr=0.2, momentum=0.9),
    "batch_size": 240,
    "steps": 6,
    "workers": 1,
    "columns": {"points": "features"},
}
COUNTS = 1 + np.arange(240) % 3
BALANCED = 240 / (2 * np.bincount(LABELS))


@pytest.mark.parametrize(
    ("how", "weights"),
    [
        ({"weight_column": "count"}, COUNTS),
        ({"class_weights": {0: 3.0}}, np.where(LABELS == 0, 3.0, 1.0)),
        ({"weight_column": "count", "class_weights": "balanced"}, COUNTS * BALANCED[LABELS]),
    ],
    ids=["rows", "classes", "both"],
)
def test_a_training_with_weights(session, how, weights):
    """All rows are one batch: a loop of plain torch, in which each row's loss counts that often."""
    rows = zip(POINTS.tolist(), LABELS.tolist(), COUNTS.tolist(), strict=True)
    data = session.createDataFrame(list(rows), "features array<float>, label long, count long")
    module = perceptron()
    trained = Trainer(module=module, loss=nn.CrossEntropyLoss(), **HOW, **how).fit(data, data)
    there = {"points": POINTS, "label": LABELS, "count": COUNTS}
    kept = {name: value for name, value in HOW.items() if name != "columns"} | how
    alike = train(module=module, loss=nn.CrossEntropyLoss(), data=there, validation=there, **kept)
    plain = copy.deepcopy(module)
    made = HOW["optimizer"]([one for one in plain.parameters() if one.requires_grad])
    shares = torch.from_numpy((weights / weights.mean()).astype(np.float32))
    points, labels = torch.from_numpy(POINTS), torch.from_numpy(LABELS)
    for _ in range(6):
        made.zero_grad()
        loss = (F.cross_entropy(plain(points), labels, reduction="none") * shares).mean()
        loss.backward()
        made.step()
    for name, wanted in values(plain).items():
        found = values(trained.module)[name]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=name)
        np.testing.assert_allclose(values(alike.module)[name], wanted, rtol=1e-4, atol=1e-5)
    # What is validated counts alike.
    held = float(F.cross_entropy(plain(points), labels).detach())
    assert trained.outcome.metrics["loss"] == pytest.approx(held, rel=1e-4)
    assert alike.outcome.metrics["loss"] == pytest.approx(held, rel=1e-4)


def test_what_cannot_be_weighed(session):
    rows = [(row, 1.0, -1.0) for row in POINTS.tolist()]
    data = session.createDataFrame(rows, "features array<float>, label double, count double")
    how = {**HOW, "module": partial(shop.Scorer, classes=1)}
    with pytest.raises(SparkError, match=r"column 'count' is -1 in a row: a weight must be finite"):
        Trainer(loss=nn.MSELoss(), weight_column="count", **how).fit(data)
    with pytest.raises(SettingError, match="class_weights needs a loss that reads class numbers"):
        Trainer(loss=nn.MSELoss(), class_weights={1: 2.0}, **how).fit(data)
    with pytest.raises(SettingError, match="the loss 'squares' cannot weigh records"):
        Trainer(loss=shop.squares, weight_column="label", **how).fit(data)
