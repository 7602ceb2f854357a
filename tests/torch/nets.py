"""Modules of three kinds, with data that they can learn: pictures, texts and sequences."""

from typing import Any

import numpy as np
import torch
from torch import nn

Array = np.ndarray[Any, Any]


class Residual(nn.Module):
    """Two convolutions and what they are added to."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = nn.Sequential()
        if before != after:
            self.downsample.append(nn.Conv2d(before, after, 1, stride, bias=False))
            self.downsample.append(nn.BatchNorm2d(after))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        found = torch.relu(self.bn1(self.conv1(values)))
        return torch.relu(self.bn2(self.conv2(found)) + self.downsample(values))


class ResNet18(nn.Module):
    """torchvision's, by its names and sizes: torchvision's packages do not load with every
    build of torch.  Pictures of 16 x 16 have a first convolution of their own, and no pooling."""

    def __init__(self, classes: int = 1000, small: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3 if small else 7, 1 if small else 2, bias=False)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        self.bn1 = nn.BatchNorm2d(64)
        widths = [64, 64, 128, 256, 512]
        for number in range(1, 5):
            before, after = widths[number - 1 : number + 1]
            first = Residual(before, after, 1 if before == after else 2)
            setattr(self, f"layer{number}", nn.Sequential(first, Residual(after, after, 1)))
        self.fc = nn.Linear(512, classes)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        for number in range(1, 5):
            values = getattr(self, f"layer{number}")(values)
        return self.fc(values.mean((2, 3)))


def resnet18() -> nn.Module:
    torch.manual_seed(0)
    module = ResNet18(classes=3, small=True)
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


def make_module(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind()
