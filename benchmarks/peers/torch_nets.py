"""The nets in PyTorch, layer for layer as in sparknet.models: Caffe's rounding, groups, biases.

In training each returns its loss, in inference its probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def relu() -> nn.Module:
    return nn.ReLU(inplace=True)


def max_pool(kernel: int, stride: int, pad: int = 0) -> nn.Module:
    """Caffe rounds the number of windows up."""
    return nn.MaxPool2d(kernel, stride, pad, ceil_mode=True)


def average_pool(kernel: int, stride: int) -> nn.Module:
    return nn.AvgPool2d(kernel, stride, ceil_mode=True)


def norm() -> nn.Module:
    return nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75)


class Classifier(nn.Module):  # type: ignore[misc]
    """A body that scores classes, and its loss or its probabilities."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, data: Tensor, label: Tensor | None = None) -> Tensor:
        scores = self.body(data)
        return scores.softmax(1) if label is None else functional.cross_entropy(scores, label)


def lenet() -> nn.Module:
    return Classifier(
        *(nn.Conv2d(1, 20, 5), max_pool(2, 2), nn.Conv2d(20, 50, 5), max_pool(2, 2)),
        *(nn.Flatten(), nn.Linear(800, 500), relu(), nn.Linear(500, 10)),
    )


def cifar10_quick() -> nn.Module:
    return Classifier(
        *(nn.Conv2d(3, 32, 5, padding=2), max_pool(3, 2), relu()),
        *(nn.Conv2d(32, 32, 5, padding=2), relu(), average_pool(3, 2)),
        *(nn.Conv2d(32, 64, 5, padding=2), relu(), average_pool(3, 2)),
        *(nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, 10)),
    )


def dense(inputs: int, outputs: int, drop: float) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), relu(), nn.Dropout(drop)]


def caffenet() -> nn.Module:
    return Classifier(
        *(nn.Conv2d(3, 96, 11, 4), relu(), max_pool(3, 2), norm()),
        *(nn.Conv2d(96, 256, 5, padding=2, groups=2), relu(), max_pool(3, 2), norm()),
        *(nn.Conv2d(256, 384, 3, padding=1), relu()),
        *(nn.Conv2d(384, 384, 3, padding=1, groups=2), relu()),
        *(nn.Conv2d(384, 256, 3, padding=1, groups=2), relu(), max_pool(3, 2)),
        *(nn.Flatten(), *dense(9216, 4096, 0.5), *dense(4096, 4096, 0.5), nn.Linear(4096, 1000)),
    )


def vgg16() -> nn.Module:
    body: list[nn.Module] = []
    channels = 3
    for filters, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            body += [nn.Conv2d(channels, filters, 3, padding=1), relu()]
            channels = filters
        body.append(max_pool(2, 2))
    head = (*dense(25088, 4096, 0.5), *dense(4096, 4096, 0.5), nn.Linear(4096, 1000))
    return Classifier(*body, nn.Flatten(), *head)


def mlp_tabular() -> nn.Module:
    return Classifier(*dense(1000, 512, 0.2), *dense(512, 256, 0.2), nn.Linear(256, 2))


def conv_relu(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2), relu())


class Inception(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, widths: Sequence[int]) -> None:
        super().__init__()
        one, reduce3, three, reduce5, five, projected = widths
        self.one = conv_relu(inputs, one, 1)
        self.three = nn.Sequential(conv_relu(inputs, reduce3, 1), conv_relu(reduce3, three, 3))
        self.five = nn.Sequential(conv_relu(inputs, reduce5, 1), conv_relu(reduce5, five, 5))
        self.pool = nn.Sequential(max_pool(3, 1, 1), conv_relu(inputs, projected, 1))
        self.outputs = one + three + five + projected

    def forward(self, data: Tensor) -> Tensor:
        return torch.cat([self.one(data), self.three(data), self.five(data), self.pool(data)], 1)


INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


class GoogLeNet(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        stem = (conv_relu(3, 64, 7, 2), max_pool(3, 2), norm(), conv_relu(64, 64, 1))
        self.stem = nn.Sequential(*stem, conv_relu(64, 192, 3), norm(), max_pool(3, 2))
        self.inceptions = nn.ModuleDict()
        self.heads = nn.ModuleDict()
        channels = 192
        for name, widths in INCEPTIONS.items():
            made = Inception(channels, widths)
            self.inceptions[name], channels = made, made.outputs
            if name in ("4a", "4d"):
                self.heads[name] = self._side_head(channels)
        self.pool = max_pool(3, 2)
        last = (nn.AvgPool2d(7, 1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(1024, 1000))
        self.last = nn.Sequential(*last)

    @staticmethod
    def _side_head(channels: int) -> nn.Module:
        return nn.Sequential(
            *(average_pool(5, 3), conv_relu(channels, 128, 1), nn.Flatten()),
            *(*dense(2048, 1024, 0.7), nn.Linear(1024, 1000)),
        )

    def forward(self, data: Tensor, label: Tensor | None = None) -> Tensor:
        now = self.stem(data)
        losses = []
        for name, inception in self.inceptions.items():
            now = inception(now)
            if name in ("3b", "4e"):
                now = self.pool(now)
            if label is not None and name in self.heads:
                losses.append(0.3 * functional.cross_entropy(self.heads[name](now), label))
        scores = self.last(now)
        if label is None:
            return scores.softmax(1)
        return functional.cross_entropy(scores, label) + losses[0] + losses[1]


def normalised(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, bias: bool = False
) -> list[nn.Module]:
    pad = kernel // 2
    made = nn.Conv2d(inputs, outputs, kernel, stride, pad, groups=groups, bias=bias)
    return [made, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):  # type: ignore[misc]
    """The stride is in the first convolution, as in the authors' Caffe files."""

    def __init__(self, inputs: int, width: int, stride: int, project: bool) -> None:
        super().__init__()
        short = normalised(inputs, 4 * width, 1, stride) if project else []
        self.short = nn.Sequential(*short)
        self.body = nn.Sequential(
            *(*normalised(inputs, width, 1, stride), relu()),
            *(*normalised(width, width, 3), relu()),
            *normalised(width, 4 * width, 1),
        )

    def forward(self, data: Tensor) -> Tensor:
        return functional.relu_(self.body(data) + self.short(data))


class Basic(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        is_same = stride == 1 and inputs == width
        self.short = nn.Sequential(*([] if is_same else normalised(inputs, width, 1, stride)))
        self.body = nn.Sequential(
            *(*normalised(inputs, width, 3, stride), relu()), *normalised(width, width, 3)
        )

    def forward(self, data: Tensor) -> Tensor:
        return functional.relu_(self.body(data) + self.short(data))


def resnet18() -> nn.Module:
    body = [*normalised(3, 64, 7, 2), relu(), nn.MaxPool2d(3, 2, 1)]
    for inputs, width in ((64, 64), (64, 128), (128, 256), (256, 512)):
        body += [Basic(inputs, width, width // inputs), Basic(width, width, 1)]
    return Classifier(*body, nn.AvgPool2d(7, 1), nn.Flatten(), nn.Linear(512, 1000))


def resnet50() -> nn.Module:
    body = [*normalised(3, 64, 7, 2, bias=True), relu(), max_pool(3, 2)]
    channels = 64
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for step in range(count):
            stride = 2 if step == 0 and stage else 1
            body.append(Bottleneck(channels, width, stride, step == 0))
            channels = 4 * width
    return Classifier(*body, nn.AvgPool2d(7, 1), nn.Flatten(), nn.Linear(2048, 1000))


def mobilenet() -> nn.Module:
    blocks = ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2))
    blocks += ((512, 512, 1),) * 5 + ((512, 1024, 2), (1024, 1024, 1))  # type: ignore[assignment]
    body = [*normalised(3, 32, 3, 2), relu()]
    for inputs, outputs, stride in blocks:
        body += [*normalised(inputs, inputs, 3, stride, inputs), relu()]
        body += [*normalised(inputs, outputs, 1), relu()]
    return Classifier(*body, nn.AdaptiveAvgPool2d(1), nn.Conv2d(1024, 1000, 1), nn.Flatten())


class Text(nn.Module):  # type: ignore[misc]
    """Time first; every stream is one sentence.  PyTorch's LSTM has a second bias."""

    def __init__(self, words: int = 8801, units: int = 1000) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, units)
        self.lstm = nn.LSTM(units, units)
        self.predict = nn.Linear(units, words)

    def forward(self, data: Tensor, label: Tensor | None = None) -> Tensor:
        scores = self.predict(self.lstm(self.embedding(data))[0])
        if label is None:
            return scores.softmax(2)
        return 20 * functional.cross_entropy(scores.flatten(0, 1), label.flatten(), ignore_index=-1)


NETS: dict[str, Any] = {
    "lenet": lenet,
    "cifar10_quick": cifar10_quick,
    "caffenet": caffenet,
    "googlenet": GoogLeNet,
    "resnet50": resnet50,
    "mobilenet": mobilenet,
    "vgg16": vgg16,
    "lstm_text": Text,
    "mlp_tabular": mlp_tabular,
}

EXTRA_PARAMETERS = {"lstm_text": 4 * 1000}
"""What PyTorch has beyond ours: the second bias of its LSTM."""
