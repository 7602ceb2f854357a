"""Gradients of torch's modules that came through ONNX are torch's own in float64."""

import time
from random import Random

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("onnx", reason="onnx is not installed")

import torch
from torch import nn

from tests.torch.drawn_modules import Affine, Attention, Formula, Residual, differences, wrong

SECONDS, MOST = 8, 60


def embedding() -> nn.Module:
    """The beginning of openwakeword's embedding_model: a ReLU before a batch norm."""
    limit = Formula("max", lambda x: x.clamp(min=-0.4))
    first = [nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(4), nn.LeakyReLU(0.2), limit]
    second = [nn.Conv2d(4, 4, (1, 3), bias=False), nn.LeakyReLU(0.2), limit, nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Conv2d(4, 4, 1))


def block(size: int) -> nn.Module:
    """A block of a vision transformer with LayerScale, as DINOv2 has it."""
    attention = nn.Sequential(nn.LayerNorm(size), Attention(size), Affine(size))
    mlp = [nn.LayerNorm(size), nn.Linear(size, 12), nn.GELU(), nn.Linear(12, size), Affine(size)]
    return nn.Sequential(Residual(attention, True), Residual(nn.Sequential(*mlp), True))


CHAINS = {
    "Linear, LayerNorm, ReLU, Linear": (
        nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)),
        (5, 6),
    ),
    "Softmax, factor": (nn.Sequential(nn.Linear(6, 6), nn.Softmax(-1), Affine(6)), (5, 6)),
    "LogSoftmax, factor": (nn.Sequential(nn.Linear(6, 6), nn.LogSoftmax(-1), Affine(6)), (5, 6)),
    "ReLU, factor, ReLU": (nn.Sequential(nn.Linear(6, 6), nn.ReLU(), Affine(6), nn.ReLU()), (5, 6)),
    "embedding_model": (embedding(), (2, 4, 8, 8)),
    "DINOv2": (nn.Sequential(nn.Linear(6, 6), block(6), block(6), nn.LayerNorm(6)), (2, 5, 6)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHAINS)
def test_a_known_chain(name, tmp_path):
    torch.manual_seed(1)
    module, shape = CHAINS[name]
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0.1, 0.5)
    found = differences(module.eval(), torch.randn(shape), tmp_path / "chain.onnx")
    assert found is not None
    assert any(name.endswith("[0]") for name in found)
    assert max(found.values()) < 1e-5, found


def test_drawn_sequences(tmp_path):
    """`python -m tests.torch.drawn_modules --seconds 600` draws more."""
    rng, end = Random(49), time.monotonic() + SECONDS
    told = 0
    for _ in range(MOST):
        seed = rng.randrange(1 << 32)
        found = wrong(seed, tmp_path)
        assert not found, f"python -m tests.torch.drawn_modules --case {seed}: {found}"
        told += found is not None
        if time.monotonic() > end:
            break
    assert told >= 5
