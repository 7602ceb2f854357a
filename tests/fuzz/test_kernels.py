"""A little of python -m tests.fuzz.kernels, the same in every run; and what it has found."""

import os
import random
import subprocess
import sys

import pytest

from sparknet import caffe
from sparknet.native import has_bf16, has_int8
from tests.fuzz.kernels.case import CLOSE, Case, check, message
from tests.fuzz.kernels.draw import KINDS, draw
from tests.fuzz.kernels.guard import guard
from tests.fuzz.kernels.oracle import LAYERS
from tests.fuzz.kernels.sizes import text
from tests.goldens import ROOT


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_layers(kind):
    rng = random.Random(5)
    precisions = ("float32", "float32", *(["bf16"] if has_bf16() else []))
    for _ in range(4):
        case = draw(rng, precisions, kind)
        assert not check(case), case


@pytest.mark.skipif(not has_int8(), reason="this processor has no int8")
def test_drawn_layers_of_eight_bits():
    rng = random.Random(6)
    for _ in range(8):
        case = draw(rng, ("int8",))
        assert not check(case), case


@pytest.mark.parametrize(
    ("precision", "error"),
    [
        ("float32", 0.01),
        pytest.param("bf16", 0.06, marks=pytest.mark.skipif(not has_bf16(), reason="no bfloat16")),
    ],
)
def test_a_wrong_value_is_told(monkeypatch, precision, error):
    layer = 'layer { name: "l" type: "Softmax" bottom: "x" top: "y" }'
    case = Case("Softmax", layer, {"x": (2, 3)}, precision, phase="TEST", backward=False)
    assert Case.read(str(case)) == case
    assert not check(case)

    def otherwise(*given):
        (y,), pull = softmax(*given)
        y[1, 2] += error
        return [y], pull

    softmax = LAYERS["Softmax"]
    monkeypatch.setitem(LAYERS, "Softmax", otherwise)
    assert check(case).startswith("l: y: 1 of 6 wrong; ")
    assert "at (1, 2)" in check(case)


@pytest.mark.skipif(not has_int8(), reason="this processor has no int8")
@pytest.mark.parametrize("error", [0.0, 0.1])
def test_a_sum_is_as_exact_as_its_terms(monkeypatch, error):
    """Terms of about 0.3 in eight bits, of which 0.06 is left."""
    layer = (
        'layer { name: "l" type: "InnerProduct" bottom: "x" top: "y" '
        "inner_product_param { num_output: 1 bias_term: false } }"
    )
    case = Case("inner product", layer, {"x": (1, 3)}, precision="int8", seed=236).but(**FORWARD)
    product = LAYERS["InnerProduct"]

    def otherwise(*given):
        (y,), pull = product(*given)
        return [y + error], pull

    monkeypatch.setitem(LAYERS, "InnerProduct", otherwise)
    assert bool(check(case)) == bool(error)


def up(inputs, outputs, options, **rest):
    fields = f"num_output: {outputs} {options}"
    layer = (
        f'layer {{ name: "l" type: "Deconvolution" bottom: "x" top: "y" '
        f"convolution_param {{ {fields} }} }}"
    )
    return Case("deconvolution", layer, {"x": inputs}).but(**rest)


def pool(kernel: int, size: tuple[int, int], kind: str = "MAX", stride: int = 1) -> Case:
    """The gradient of large windows, in bfloat16, behind a convolution."""
    fields = f"pool: {kind} kernel_size: {kernel} stride: {stride} pad: {kernel // 2}"
    layers = (
        'layer { name: "f" type: "Convolution" bottom: "x" top: "x0" '
        "convolution_param { num_output: 3 kernel_size: 1 } } "
        'layer { name: "l" type: "Pooling" bottom: "x0" top: "y" '
        f"pooling_param {{ {fields} }} }}"
    )
    return Case("pooling", layers, {"x": (2, 3, *size)}, precision="bf16")


def depthwise_sum(channels: int) -> Case:
    """A window for each channel, and the sum with another blob: channels fill no vector."""
    layers = (
        'layer { name: "l" type: "Convolution" bottom: "x" top: "y" convolution_param { '
        f"num_output: {channels} group: {channels} kernel_size: 3 stride: 2 pad: 1 }} }} "
        'layer { name: "sum" type: "Eltwise" bottom: "z" bottom: "y" top: "s" }'
    )
    inputs = {"x": (10, channels, 3, 3), "z": (10, channels, 2, 2)}
    return Case("chain", layers, inputs).but(keep_blobs=False, **FORWARD)


def eight_taps(rows: int, columns: int) -> Case:
    """Eight weights a channel, of eight bits."""
    layer = (
        'layer { name: "l" type: "Convolution" bottom: "x" top: "y" convolution_param { '
        f"num_output: 48 group: 48 kernel_h: {rows} kernel_w: {columns} }} }}"
    )
    return Case("convolution", layer, {"x": (2, 48, 20, 20)}, precision="int8").but(**FORWARD)


def strided(channels: int, stride: tuple[int, int], outputs: int = 16) -> Case:
    layer = (
        'layer { name: "l" type: "Convolution" bottom: "x" top: "y" convolution_param { '
        f"num_output: {outputs} kernel_size: 1 stride_h: {stride[0]} stride_w: {stride[1]} }} }}"
    )
    return Case("convolution", layer, {"x": (3, channels, 58, 58)}, threads=2)


FORWARD = {"phase": "TEST", "backward": False}


def one_head(batch: int, rows: int, keys: int, depth: int) -> Case:
    """An attention whose matrices end where memory does."""
    layers = (
        'layer { name: "s" type: "MatMul" bottom: "q" bottom: "k" top: "s" '
        "matmul_param { transpose_b: true } }"
        'layer { name: "p" type: "Softmax" bottom: "s" top: "p" softmax_param { axis: -1 } }'
        'layer { name: "y" type: "MatMul" bottom: "p" bottom: "v" top: "y" }'
    )
    inputs = {"q": (batch, rows, depth), "k": (batch, keys, depth), "v": (batch, keys, depth)}
    return Case("attention", layers, inputs, phase="TEST", keep_blobs=False, backward=False)


def line(inputs: int, outputs: int, side: int, then: tuple[str, ...], precision: str) -> Case:
    """Points, or a window for each channel, whose values are multiplied and shifted."""
    group = inputs if inputs == outputs else 1
    options = f"num_output: {outputs} kernel_size: 1 group: {group}"
    layers = text("y", "Convolution", "x", "y", f"convolution_param {{ {options} }}")
    layers += text("line", "Power", "y", "line", "power_param { scale: -0.3 shift: 0.5 }")
    layers += text("f", *then) if then else ""
    case = Case("chain", layers, {"x": (2, inputs, side, side)}, precision)
    return case.but(keep_blobs=False, **FORWARD)


def squeezed(before, within, few, side, precision, **rest):
    """Squeeze-and-excitation: a factor for each channel, which takes the place of its values."""

    def points(name: str, bottom: str, outputs: int) -> str:
        options = f"convolution_param {{ num_output: {outputs} kernel_size: 1 }}"
        return text(name, "Convolution", bottom, name, options)

    layers = points("wide", "x", within)
    layers += text(
        "mean", "Pooling", "wide", "mean", "pooling_param { pool: AVE global_pooling: true }"
    )
    layers += points("few", "mean", few) + text("relu", "ReLU", "few", "few")
    layers += points("more", "few", within)
    layers += text("line", "Power", "more", "line", "power_param { scale: 0.2 shift: 0.5 }")
    layers += text("gate", "Clip", "line", "gate", "clip_param { min: 0 max: 1 }")
    layers += text("flat", "Flatten", "gate", "flat")
    layers += text("by", "Scale", "wide flat", "by", "scale_param { axis: 0 num_axes: 2 }")
    layers += text("sum", "Eltwise", "by wide", "sum") + points("end", "sum", 40)
    case = Case("gated", layers, {"x": (2, before, side, side)}, precision, keep_blobs=False)
    return case.but(**FORWARD, **rest)


CLIP = ("Clip", "line", "f", "clip_param { min: 0.25 max: 1.5 }")
SELDOM = ("AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_AMX")
"""Instruction sets whose kernels are those of their neighbours but for few."""

FOUND = (
    one_head(2, 17, 33, 20),
    one_head(1, 1, 7, 64),
    one_head(3, 49, 49, 32),
    up((1, 256, 6, 6), 32, "kernel_size: 4 stride: 2 pad: 1", **FORWARD),
    up((2, 64, 7, 10), 20, "kernel_size: 16 stride: 2 pad_h: 3 pad_w: 0", threads=2, **FORWARD),
    up((1, 16, 5, 5), 16, "kernel_size: 32 stride: 16", **FORWARD),
    up((1, 128, 4, 3), 64, "kernel_size: 4 stride: 4", threads=2),
    up((3, 64, 4, 4), 1, "kernel_size: 16 stride: 2 pad: 3"),
    depthwise_sum(21),
    pool(16, (27, 9)),
    eight_taps(1, 8),
    eight_taps(2, 4),
    strided(8, (2, 1)),
    strided(5, (4, 4), outputs=523),
    *(
        line(*sizes, then, precision)
        for sizes in ((120, 480, 1), (48, 40, 13), (36, 36, 9))
        for then in (CLIP, ("ReLU", "line", "f"), ())
        for precision in ("float32", "bf16", "int8")
    ),
    *(
        squeezed(*sizes, precision, threads=threads)
        for sizes, threads in (((24, 72, 24, 28), 2), ((160, 960, 240, 7), 1), ((5, 21, 3, 6), 2))
        for precision in ("float32", "bf16")
    ),
    squeezed(80, 480, 120, 14, "float32", threads=2, keep_blobs=True),
)


@pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")
@pytest.mark.parametrize("error", [0.0, 0.1])
def test_rounding_may_grow_in_time(monkeypatch, error):
    """A gradient through 17 steps of a recurrent weight of -2.4: rounding the weights alone changes
    it by 4 % of the largest."""
    layer = (
        'layer { name: "l" type: "RNN" bottom: "x" bottom: "cont" top: "y" '
        "recurrent_param { num_output: 1 } }"
    )
    case = Case("RNN", layer, {"x": (17, 41, 16), "cont": (17, 41)}, precision="bf16", seed=6)
    recurrent = LAYERS["RNN"]

    def otherwise(*given):
        ys, pull = recurrent(*given)
        return ys, lambda dys: ([dx + error for dx in pull(dys)[0]], pull(dys)[1])

    monkeypatch.setitem(LAYERS, "RNN", otherwise)
    assert bool(check(case)) == bool(error)


@pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")
@pytest.mark.parametrize("kind", ["AVE", "MAX"])
@pytest.mark.parametrize(("kernel", "stride"), [(5, 1), (12, 1), (16, 2), (32, 1)])
def test_gradients_of_many_windows_add_up_in_float32(monkeypatch, kind, kernel, stride):
    """As exact as one rounding of a result: four times closer than what the fuzzer lets pass."""
    monkeypatch.setitem(CLOSE, "bf16", CLOSE["bf16"] / 4)
    case = pool(kernel, (40, 40), kind, stride)
    assert not check(case)


@pytest.mark.parametrize("channels", [7, 8, 12, 15])
def test_pixels_are_gathered_where_there_is_room(channels):
    """oneDNN's jit_1x1 wrote behind its memory, which a test of values sees by luck only."""
    case = strided(channels, (2, 1))
    net = caffe.Net.from_proto(message(case, {}), caffe.TRAIN, seed=1)
    net.forward()
    found = [net._runtime.engine.methods(layer) for layer in range(len(net.layers))]
    said = [name for methods in found for name in methods.values()]
    assert len(said) >= 3
    assert not any("jit_1x1" in name for name in said), said


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    return guard(tmp_path_factory.mktemp("guard"))


@pytest.mark.parametrize(
    "isa",
    [
        *("SSE41", "AVX2", "AVX512_CORE_BF16"),
        *(pytest.param(isa, marks=pytest.mark.slow) for isa in SELDOM),
    ],
)
def test_what_was_found(isa, guarded):
    words = [word for case in FOUND for word in ("--case", str(case))]
    said = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.kernels", *words],
        env={**os.environ, **guarded, "ONEDNN_MAX_CPU_ISA": isa, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout.split("\n") == [*["right"] * len(FOUND), ""], said.stderr
