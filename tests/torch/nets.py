"""Modules of three kinds, with data that they can learn: pictures, texts and sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

Array = np.ndarray[Any, Any]


def resnet18() -> nn.Module:
    """torchvision's, with a first convolution and no pooling for pictures of 16 x 16."""
    from torchvision.models import resnet18 as make

    torch.manual_seed(0)
    module: nn.Module = make(num_classes=3)
    module.conv1 = nn.Conv2d(3, 64, 3, bias=False)
    module.maxpool = nn.Identity()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 0.3  # few steps are to be enough for the running statistics
    return module


class Transformer(nn.Module):
    """Tokens to a class: two layers of attention over 12 places, with a tied embedding."""

    def __init__(self, words: int = 20, width: int = 16, classes: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(12, width) / 10)
        layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = nn.Linear(width, words, bias=False)
        self.last.weight = self.words.weight
        self.head = nn.Linear(words, classes)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.last(self.layers(self.words(tokens) + self.places).mean(1)))


class Recurrent(nn.Module):
    """A sequence of pairs to one number."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 8, num_layers=2, batch_first=True)
        self.last = nn.Linear(8, 1)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(steps)[0][:, -1])


def pictures(count: int) -> tuple[Array, Array]:
    """Each class is brighter in a channel of its own."""
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 3, count)
    pixels = draw.normal(size=(count, 3, 16, 16)).astype(np.float32) / 2
    pixels[np.arange(count), labels] += 1
    return pixels, labels


def texts(count: int) -> tuple[Array, Array]:
    """Whether the word 3 occurs."""
    draw = np.random.default_rng(2)
    labels = draw.integers(0, 2, count)
    tokens = draw.integers(4, 20, (count, 12))
    tokens[np.arange(count), draw.integers(0, 12, count)] = np.where(labels, 3, 5)
    return tokens, labels


def sequences(count: int) -> tuple[Array, Array]:
    """The sum of the first numbers of all pairs."""
    steps = np.random.default_rng(3).normal(size=(count, 6, 2)).astype(np.float32) / 2
    return steps, steps[:, :, 0].sum(1)


def made(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind()
