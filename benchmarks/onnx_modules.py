"""Small PyTorch modules of many styles by way of ONNX: python -m benchmarks.onnx_modules [NAME …]

Each goes through both of PyTorch's exporters with an open batch, is converted, run on two records,
and compared with onnxruntime.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.onnx_zoo import compared, export

IMAGE, WORDS, ROW = (2, 8, 8, 8), (2, 7, 16), (2, 5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    worst = 0.0
    for name in options.names or modules():
        found = [difference(name, dynamo) for dynamo in (False, True)]
        print(f"{name:24} {found[0]:.0e} {found[1]:.0e}", flush=True)
        worst = max(worst, *found)
    return int(worst > 1e-4)


def difference(name: str, dynamo: bool) -> float:
    """The largest difference to onnxruntime, as a share of the largest value."""
    import torch

    torch.manual_seed(0)
    module, shape = modules()[name]
    module.eval()
    for part in module.modules():
        if getattr(part, "running_mean", None) is not None:
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            export(module, path, dynamo, torch.randn(shape))
        return compared(path)[0]


def modules() -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Modules by name, with the shape of their input."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Does(nn.Module):  # type: ignore[misc, unused-ignore]
        """What a function does with a module's parts."""

        def __init__(self, does: Callable[..., Any], **parts: Any) -> None:
            super().__init__()
            self.does = does
            for name, part in parts.items():
                setattr(self, name, part)

        def forward(self, x: Any) -> Any:
            return self.does(self, x)

    def block(inputs: int, outputs: int, norm: Any) -> Any:
        conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        return nn.Sequential(conv, norm(outputs), nn.LeakyReLU(0.1))

    def unet(up: Any, norm: Any = nn.BatchNorm2d) -> Any:
        def does(net: Any, x: Any) -> Any:
            first = net.first(x)
            deep = net.deep(functional.max_pool2d(first, 2))
            return net.last(torch.cat([net.up(deep), first], 1))

        return Does(
            does,
            first=block(8, 8, norm),
            deep=block(8, 16, norm),
            up=up,
            last=block(16, 4, norm),
        )

    def attention(net: Any, x: Any) -> Any:
        q, k, v = net.part(x).view(x.shape[0], x.shape[1], 3, 4, 4).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=net.causal)
        return mixed.transpose(1, 2).reshape(x.shape[0], x.shape[1], 16)

    def recurrent(kind: Any, layers: int, both: bool) -> Any:
        part = kind(16, 6, layers, batch_first=True, bidirectional=both)
        return Does(lambda net, x: net.part(x)[0][:, -1], part=part)

    def scores(_: Any, x: Any) -> Any:
        mixed = torch.einsum("bid,bjd->bij", x, x) / 4
        return torch.einsum("bij,bjd->bid", torch.softmax(mixed, -1), x)

    bilinear = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(16, 8, 1))
    shuffled = nn.Sequential(nn.Conv2d(16, 32, 1), nn.PixelShuffle(2))
    images = {
        "unet, transposed": unet(nn.ConvTranspose2d(16, 8, 2, 2)),
        "unet, bilinear": unet(bilinear),
        "unet, pixel shuffle": unet(shuffled),
        "unet, instance norm": unet(bilinear, lambda c: nn.InstanceNorm2d(c, affine=True)),
        "unet, group norm": unet(shuffled, lambda c: nn.GroupNorm(2, c)),
        "transposed, grouped": nn.ConvTranspose2d(8, 6, 3, 2, 1, 1, groups=2),
        "grouped, dilated": nn.Conv2d(8, 16, 3, padding=2, dilation=2, groups=4),
        "reflected": nn.Conv2d(8, 4, 3, padding=1, padding_mode="reflect"),
        "circular": nn.Conv2d(8, 4, 3, padding=1, padding_mode="circular"),
        "same, even": nn.Conv2d(8, 4, 4, padding="same"),
        "pooled to 2 x 2": nn.AdaptiveAvgPool2d(2),
        "pooled to 4 x 4": nn.AdaptiveMaxPool2d(4),
        "average, ceil": nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        "hard": nn.Sequential(nn.Hardsigmoid(), nn.Hardtanh(-0.3, 0.4), nn.Hardswish()),
        "bent": nn.Sequential(nn.Mish(), nn.SiLU(), nn.CELU(0.7), nn.SELU(), nn.PReLU(8)),
        "shrunk": nn.Sequential(nn.Hardshrink(), nn.Softshrink(), nn.GLU(1)),
        "top": Does(lambda _, x: torch.topk(x, 3, dim=1)[0]),
        "best": Does(lambda _, x: torch.argmax(x.relu(), 1).float()),
        "where": Does(lambda _, x: torch.where(x > 0.2, x, -2 * x)),
        "normalised": Does(lambda _, x: functional.normalize(x, dim=1)),
        "spread": Does(lambda _, x: x.std(dim=(2, 3))),
        "rolled": Does(lambda _, x: torch.roll(x, (1, 2), (2, 3)).flip(3)),
        "unfolded": nn.Unfold(3, padding=1),
        "strided": Does(lambda _, x: x[:, ::2, 1:-1:2, [3, 0, 1]]),
        "resized": Does(lambda _, x: functional.interpolate(x, (13, 5), mode="bicubic")),
        "windows": Does(
            lambda _, x: (
                x.view(x.shape[0], 8, 2, 4, 2, 4)
                .permute(0, 2, 4, 3, 5, 1)
                .reshape(-1, 16, 8)
                .mean(1)
            )
        ),
    }
    words = {
        "attention": Does(attention, part=nn.Linear(16, 48), causal=False),
        "causal attention": Does(attention, part=nn.Linear(16, 48), causal=True),
        "einsum attention": Does(scores),
        "feed forward": nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU("tanh")),
        "root mean square": Does(
            lambda net, x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * net.w,
            w=nn.Parameter(torch.rand(16)),
        ),
        "class token": Does(
            lambda net, x: torch.cat([net.token.expand(x.shape[0], -1, -1), x], 1),
            token=nn.Parameter(torch.randn(1, 1, 16)),
        ),
        "lstm": recurrent(nn.LSTM, 1, False),
        "lstm, both ways": recurrent(nn.LSTM, 2, True),
        "gru, both ways": recurrent(nn.GRU, 1, True),
        "lines": nn.Sequential(nn.Conv1d(7, 6, 3), nn.BatchNorm1d(6), nn.MaxPool1d(2)),
    }
    rows = {
        "rows": nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Sigmoid(), nn.LogSoftmax(1)),
        "outer": Does(lambda _, x: torch.einsum("bi,bj->bij", x, 2 * x)),
    }
    volumes = nn.Sequential(nn.Conv3d(3, 4, 3), nn.BatchNorm3d(4), nn.MaxPool3d(2))
    found: dict[str, tuple[Any, tuple[int, ...]]] = {"volumes": (volumes, (2, 3, 6, 8, 8))}
    for shape, kinds in ((IMAGE, images), (WORDS, words), (ROW, rows)):
        found |= {name: (module, shape) for name, module in kinds.items()}
    return found


if __name__ == "__main__":
    raise SystemExit(main())
