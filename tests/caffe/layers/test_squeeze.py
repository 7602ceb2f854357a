"""Squeeze-and-excitation at the sizes of mobile nets, in the test phase, against sums in float64,
under each of oneDNN's instruction sets: images of one pixel, and a factor for each channel that
takes the place of what it multiplies."""

import os
import subprocess
import sys
from typing import Any, Literal

import numpy as np
import pytest

from sparknet import caffe
from sparknet.native import has_bf16, set_threads
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer
from tests.fuzz.kernels.case import draw_params
from tests.fuzz.kernels.sizes import text
from tests.goldens import ROOT

Precision = Literal["float32", "bf16"]
SIZES = [
    # channels before, within, squeezed; height and width
    (24, 72, 24, 28),
    (40, 120, 32, 28),
    (80, 480, 120, 14),
    (112, 672, 168, 14),
    (160, 960, 240, 7),
    (192, 1152, 48, 7),
    (5, 21, 3, 6),
]
ISAS = ("SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_BF16")
NEAR = {"float32": 1e-5, "bf16": 0.02}
"""The largest errors, as shares of the largest value."""


def block(sizes: tuple[int, ...], again: bool) -> str:
    before, within, squeezed, side = sizes

    def points(name: str, bottom: str, outputs: int) -> str:
        options = f"convolution_param {{ num_output: {outputs} kernel_size: 1 }}"
        return text(name, "Convolution", bottom, name, options)

    mean = "pooling_param { pool: AVE global_pooling: true }"
    layers = input_layer("x", (2, before, side, side)) + points("wide", "x", within)
    layers += text("mean", "Pooling", "wide", "mean", mean)
    layers += points("fewer", "mean", squeezed) + text("relu", "ReLU", "fewer", "fewer")
    layers += points("more", "fewer", within)
    layers += text("line", "Power", "more", "line", "power_param { scale: 0.2 shift: 0.5 }")
    layers += text("gate", "Clip", "line", "gate", "clip_param { min: 0 max: 1 }")
    layers += text("flat", "Flatten", "gate", "flat")
    layers += text("by", "Scale", "wide flat", "by", "scale_param { axis: 0 num_axes: 2 }")
    if again:
        layers += text("sum", "Eltwise", "by wide", "sum")
    return layers + points("end", "sum" if again else "by", 40)


def wanted(net: Any, data: Any, again: bool) -> Any:
    def points(name: str, values: Any) -> Any:
        weights, bias = (np.array(blob.data, np.float64) for blob in net.params[name])
        sums = np.einsum("nchw,oc->nohw", values, weights[:, :, 0, 0])
        return sums + bias[:, None, None]

    wide = points("wide", data.astype(np.float64))
    fewer = np.maximum(points("fewer", wide.mean((2, 3), keepdims=True)), 0)
    by = wide * np.clip(0.2 * points("more", fewer) + 0.5, 0, 1)
    return points("end", by + wide if again else by)


def worst(sizes: tuple[int, ...], precision: Precision, again: bool, kept: bool) -> float:
    """The largest error of any value, with one thread and two, in two passes."""
    made = parse_net(block(sizes, again))
    net = caffe.Net.from_proto(made, caffe.TEST, precision=precision, keep_blobs=kept)
    draw_params(net, 3)
    rng = np.random.default_rng(sum(sizes))
    found = []
    for threads in (1, 2, 2):
        set_threads(threads)
        data = rng.standard_normal(net.blobs["x"].data.shape, np.float32)
        values, want = net.forward(x=data)["end"], wanted(net, data, again)
        found.append(np.abs(values - want).max() / np.abs(want).max())
    return float(max(found))


def all_of_them(precision: Precision) -> list[str]:
    """What is too far off, one line each."""
    return [
        f"{sizes}, again {again}, kept {kept}: {error}"
        for sizes in SIZES
        for again in (False, True)
        for kept in (False, True)
        if not (error := worst(sizes, precision, again, kept)) < NEAR[precision]
    ]


@pytest.mark.parametrize(
    ("isa", "precision"), [*((isa, "float32") for isa in ISAS), ("AVX512_CORE_BF16", "bf16")]
)
def test_squeeze_and_excitation(isa, precision):
    if precision == "bf16" and not has_bf16():
        pytest.skip("this processor has no bfloat16")
    program = f"from {__name__} import all_of_them; print(*all_of_them({precision!r}), sep='\\n')"
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
