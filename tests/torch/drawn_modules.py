"""Sequences of torch modules, drawn: their gradients through ONNX, beside torch in float64.

python -m tests.torch.drawn_modules --seconds 60; a finding is one line that `--case SEED` repeats.
"""

import argparse
import copy
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random, randrange

import numpy as np
import torch
from torch import Tensor, nn

import sparknet.caffe as caffe
from sparknet.errors import SparkNetError
from sparknet.onnx import OnnxWarning, read_model

ENGINES = (None, "cpu")
"""The native engine, and PyTorch's."""
TOLERANCE = 1e-3
"""Of the largest value of a gradient: float32 loses up to 5e-4 behind norms of close values."""
Maker = Callable[[], nn.Module]
VECTOR, SEQUENCE, IMAGE = (4, 6), (3, 5, 6), (2, 6, 5, 4)


class Formula(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, name: str, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.name, self.function = name, function

    def extra_repr(self) -> str:
        return self.name

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Affine(nn.Module):
    """A learned factor and shift for each value of the last axis."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.factor, self.shift = (nn.Parameter(torch.rand(size) + 0.5) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor + self.shift


class Residual(nn.Module):
    """What modules make, added to their input or multiplied by it."""

    def __init__(self, inner: nn.Module, adds: bool) -> None:
        super().__init__()
        self.inner, self.adds = inner, adds

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x) if self.adds else x * self.inner(x)


class Attention(nn.Module):
    """Self-attention of one head, written out."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(-1, -2) / x.shape[-1] ** 0.5
        made: Tensor = scores.softmax(-1) @ self.v(x)
        return made


def formulas() -> dict[str, Callable[[Tensor], Tensor]]:
    return {
        "x²": lambda x: x * x,
        "√": lambda x: (x.abs() + 1).sqrt(),
        "exp": lambda x: (0.1 * x).exp(),
        "log": lambda x: (x * x + 2).log(),
        "negative": lambda x: 0.5 - x,
        "power": lambda x: (x * x + 1) ** -0.5,
        "mean": lambda x: x - x.mean(-1, keepdim=True),
        "clamp": lambda x: x.clamp(-0.7, 0.9),
        "swish": lambda x: x * torch.sigmoid(x),
    }


def everywhere() -> dict[str, Maker]:
    kinds: dict[str, Maker] = {
        kind.__name__: kind
        for kind in (nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.ELU, nn.ReLU6, nn.Mish)
    }
    kinds |= {kind.__name__: kind for kind in (nn.Softplus, nn.Hardswish, nn.Softsign, nn.Dropout)}
    kinds |= {
        "PReLU": nn.PReLU,
        "LeakyReLU": lambda: nn.LeakyReLU(0.2),
        "Softmax": lambda: nn.Softmax(-1),
        "LogSoftmax": lambda: nn.LogSoftmax(-1),
    }
    for name, function in formulas().items():
        kinds[name] = partial(Formula, name, function)
    return kinds


def of_rows(size: int) -> dict[str, Maker]:
    return {
        "Linear": lambda: nn.Linear(size, size),
        "LayerNorm": lambda: nn.LayerNorm(size),
        "LayerNorm again": lambda: nn.LayerNorm(size),
        "LayerNorm of no weight": lambda: nn.LayerNorm(size, elementwise_affine=False),
        "Affine": lambda: Affine(size),
    }


def of_images(channels: int) -> dict[str, Maker]:
    return {
        "Conv2d": lambda: nn.Conv2d(channels, channels, 3, padding=1),
        "1x1": lambda: nn.Conv2d(channels, channels, 1),
        "depthwise": lambda: nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
        "BatchNorm2d": lambda: nn.BatchNorm2d(channels),
        "GroupNorm": lambda: nn.GroupNorm(2, channels),
        "InstanceNorm2d": lambda: nn.InstanceNorm2d(channels, affine=True),
        "MaxPool2d": lambda: nn.MaxPool2d(3, 1, 1),
        "AvgPool2d": lambda: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
        "LRN": lambda: nn.LocalResponseNorm(3),
        "Softmax of channels": lambda: nn.Softmax(1),
        "last axis of channels": lambda: nn.Sequential(
            Formula("last", lambda x: x.permute(0, 2, 3, 1)),
            nn.LayerNorm(channels),
            Formula("first", lambda x: x.permute(0, 3, 1, 2)),
        ),
    }


def pool(shape: tuple[int, ...]) -> dict[str, Maker]:
    if shape == IMAGE:
        return everywhere() | of_images(shape[1])
    kinds = everywhere() | of_rows(shape[-1])
    if shape == SEQUENCE:
        kinds["Attention"] = lambda: Attention(shape[-1])
    else:
        kinds["BatchNorm1d"] = lambda: nn.BatchNorm1d(shape[-1])
    return kinds


def sequence(rng: Random, kinds: dict[str, Maker], length: int, depth: int = 0) -> nn.Sequential:
    modules: list[nn.Module] = []
    for _ in range(length):
        if depth == 0 and rng.random() < 0.15:
            inner = sequence(rng, kinds, rng.randint(1, 3), 1)
            modules.append(Residual(inner, rng.random() < 0.7))
        else:
            modules.append(kinds[rng.choice(sorted(kinds))]())
    return nn.Sequential(*modules)


def draw_module(seed: int) -> tuple[nn.Sequential, Tensor]:
    """A module that learns something at its beginning, in the test phase, and its input."""
    rng = Random(seed)
    torch.manual_seed(seed)
    shape = rng.choice((VECTOR, SEQUENCE, IMAGE))
    kinds = pool(shape)
    first = kinds["Conv2d" if shape == IMAGE else "Linear"]()
    modules = nn.Sequential(first, *sequence(rng, kinds, rng.randint(2, 8))).eval()
    for parameter in modules.parameters():
        if parameter.min() == parameter.max():  # a factor of 1 is found by its values, too
            nn.init.uniform_(parameter, 0.5, 1.5)
    for module in modules.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    return modules, torch.randn(shape)


def gradients(modules, x, dy, numbers):
    """By torch, in these numbers: of the input, and of the parameters."""
    ours, at = copy.deepcopy(modules).to(numbers), x.to(numbers, copy=True).requires_grad_()
    ours(at).backward(dy.to(numbers))
    return [None if one.grad is None else one.grad.numpy() for one in (at, *ours.parameters())]


def net_of(path, batch, device, trains):
    model = read_model(path, batch=batch)
    model.net.force_backward = True
    phase = caffe.TRAIN if trains else caffe.TEST
    net = caffe.Net.from_proto(model.net, phase, device=device, keep_blobs=not trains)
    for layer, arrays in zip(model.net.layer, model.arrays, strict=True):
        for blob, array in zip(net.params.get(layer.name, ()), arrays, strict=True):
            blob.data[...] = array
    return net


def away(got, want, size=1e-6):
    """The largest difference, as a share of the largest value, or of a size if that is more."""
    return float(np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), size))


def learned(net, parameters, truth):
    """How far the gradients of parameters are away; those that the net has as torch has them."""
    pairs = [pair for pair in zip(parameters, truth, strict=True) if pair[1] is not None]
    # A bias before a normalisation has a gradient of 0, but for rounding.
    noise = max(0.02 * max(np.abs(gradient).max() for _, gradient in pairs), 1e-6)
    for name, blobs in net.params.items():
        for number, blob in enumerate(blobs):
            values, own = np.array(blob.data), np.array(blob.diff)
            same = [
                turned(gradient).ravel()
                for array, gradient in pairs
                for turned in (np.asarray, np.transpose)
                if array.size == values.size > 1
                and np.array_equal(turned(array).ravel(), values.ravel())
            ]
            if same and all(np.array_equal(one, same[0]) for one in same):
                yield f"{name}[{number}]", away(own.ravel(), same[0], noise)


def differences(modules: nn.Module, x: Tensor, path: Path) -> dict[str, float] | None:
    """How far each gradient of each engine is away from torch's in float64.

    None where torch itself is in float32: two values are the largest, say.
    """
    with torch.no_grad():
        y = modules(x)
    dy = torch.randn(y.shape)
    truth, *of_parameters = gradients(modules, x, dy, torch.float64)
    if away(gradients(modules, x, dy, torch.float32)[0], truth) > TOLERANCE / 4:
        return None
    torch.onnx.export(modules, (x,), str(path), opset_version=17, dynamo=False)
    parameters = [one.detach().numpy() for one in modules.parameters()]
    moving = nn.BatchNorm1d | nn.BatchNorm2d | nn.Dropout
    trains = not any(isinstance(module, moving) for module in modules.modules())
    found = {}
    for device in ENGINES:
        net = net_of(path, len(x), device, trains)
        (into,), (out,) = net.inputs, net.outputs
        net.blobs[into].data[...] = x.numpy()
        net.forward()
        found[f"{device} forward"] = away(net.blobs[out].data.reshape(y.shape), y.numpy())
        net.blobs[out].diff[...] = dy.numpy().reshape(net.blobs[out].data.shape)
        net.backward()
        found[f"{device} input"] = away(net.blobs[into].diff, truth)
        learned_here = learned(net, parameters, of_parameters)
        found |= {f"{device} {name}": value for name, value in learned_here}
    return found


def wrong(seed: int, folder: Path) -> list[str] | None:
    """What one case has wrong; None where its net is refused, or nobody can tell."""
    modules, x = draw_module(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = differences(modules, x, folder / "drawn.onnx")
        except (SparkNetError, OnnxWarning):
            return None
    return (
        None
        if found is None
        else [f"{name} {value:.2g}" for name, value in found.items() if not value <= TOLERANCE]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=randrange(1 << 32))
    parser.add_argument("--case", type=int, metavar="SEED")
    options = parser.parse_args()
    rng, counts = Random(options.seed), {"right": 0, "refused": 0, "wrong": 0}
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            seed = rng.randrange(1 << 32) if options.case is None else options.case
            found = wrong(seed, Path(folder))
            counts["refused" if found is None else "wrong" if found else "right"] += 1
            if found or options.case is not None:
                print(
                    f"--case {seed}: {', '.join(found or ['right'])}",
                    draw_module(seed)[0],
                    flush=True,
                )
            if options.case is not None:
                break
    print(f"seed {options.seed}: {counts}")
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
