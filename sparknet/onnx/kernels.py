"""Kernels of convolutions as Caffe has them: with as much padding before as after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.onnx.limits import bounded
from sparknet.onnx.source import Array


def even_window(
    weights: Array,
    before: Sequence[int],
    after: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> tuple[Array, dict[str, Any]]:
    """Weights and options with as much padding before as after: Caffe knows no other.

    A kernel that grows by zeros on one side gives the same results.
    """
    zeros, pads = [(0, 0), (0, 0)], []
    for low, high, gap in zip(before, after, dilation, strict=True):
        taps, rest = divmod(abs(high - low), gap)
        if rest:
            raise ValueError(
                f"pads {low} and {high} are uneven, and dilation {gap} does not divide it"
            )
        zeros.append((taps, 0) if high > low else (0, taps))
        pads.append(max(low, high))
    bounded([size + sum(more) for size, more in zip(weights.shape, zeros, strict=True)], [weights])
    kernel = np.pad(weights, zeros)
    options: dict[str, Any] = {
        **_sizes("kernel_size", ("kernel_h", "kernel_w"), kernel.shape[2:]),
        **_sizes("stride", ("stride_h", "stride_w"), stride, 1),
        **_sizes("pad", ("pad_h", "pad_w"), pads, 0),
    }
    if any(gap != 1 for gap in dilation):
        options["dilation"] = list(dilation) if len(set(dilation)) > 1 else [dilation[0]]
    return kernel, options


def _sizes(
    name: str, apart: tuple[str, str], sizes: Sequence[int], default: int | None = None
) -> dict[str, Any]:
    if all(size == default for size in sizes):
        return {}
    if len(set(sizes)) == 1:
        return {name: [int(sizes[0])]}
    if len(sizes) == 2:
        return {apart[0]: int(sizes[0]), apart[1]: int(sizes[1])}
    return {name: [int(size) for size in sizes]}
