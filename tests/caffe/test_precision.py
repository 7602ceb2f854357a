"""Nets that multiply in bfloat16 stay close to those that do so in float32."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparknet.caffe as caffe
from benchmarks.digits import TRAINED
from sparknet.caffe.solvers import SGDSolver, get_solver, solver_from_text
from sparknet.errors import SpecError
from sparknet.native import has_bf16, onednn_isa
from sparknet.proto import caffe_pb2, parse_net, read_net, read_solver
from tests.caffe.gradient import input_layer
from tests.goldens import ROOT
from tests.scripts.test_mnist import convert

needs_bf16 = pytest.mark.skipif(not has_bf16(), reason="this processor has no bfloat16")

CLOSE = 0.02
"""How far from float32, as a share of all values' norm: bfloat16 keeps eight bits."""


def layer(name: str, kind: str, bottoms: str, rest: str = "", top: str = "") -> str:
    below = " ".join(f'bottom: "{bottom}"' for bottom in bottoms.split())
    above = " ".join(f'top: "{one}"' for one in (top or name).split())
    return f'layer {{ name: "{name}" type: "{kind}" {below} {above} {rest} }}\n'


def convolution(name: str, bottom: str, options: str, kind: str = "Convolution") -> str:
    filler = 'weight_filler { type: "xavier" } bias_filler { type: "uniform" min: -1 max: 1 }'
    return layer(name, kind, bottom, f"convolution_param {{ {options} {filler} }}")


def product(name: str, bottom: str, options: str) -> str:
    filler = 'weight_filler { type: "xavier" } bias_filler { type: "uniform" min: -1 max: 1 }'
    return layer(name, "InnerProduct", bottom, f"inner_product_param {{ {options} {filler} }}")


FIRST = convolution("conv", "data", "num_output: 16 kernel_size: 3 pad: 1")
SECOND = convolution("last", "middle", "num_output: 8 kernel_size: 3")


def between(
    kind: str, rest: str = "", bottoms: str = "conv", more: str = "", first: str = FIRST
) -> str:
    """A layer in the middle of two convolutions, where blobs hold bfloat16."""
    return first + more + layer("middle", kind, bottoms, rest) + SECOND


IMAGES = (4, 8, 11, 9)
CASES = {
    "convolution": (IMAGES, FIRST),
    "one axis": ((4, 3, 20), convolution("c", "data", "num_output: 5 kernel_size: 3")),
    "one column": (
        (4, 8, 20, 1),
        convolution("c", "data", "num_output: 5 kernel_h: 3 kernel_w: 1"),
    ),
    "three axes": (
        (2, 3, 6, 5, 7),
        convolution("c", "data", "num_output: 5 kernel_size: 3"),
    ),
    "a product behind": (IMAGES, FIRST + product("ip", "conv", "num_output: 20")),
    "ReLU in place": (
        IMAGES,
        between("Power", more=layer("relu", "ReLU", "conv", "", "conv")),
    ),
    "Sigmoid": (IMAGES, between("Sigmoid")),
    "Dropout": (IMAGES, between("Dropout", "dropout_param { dropout_ratio: 0 }")),
    "sum with itself": (
        IMAGES,
        between("Eltwise", bottoms="conv relu", more=layer("relu", "ReLU", "conv")),
    ),
    "joined": (
        IMAGES,
        between(
            "Concat",
            bottoms="conv other",
            more=convolution("other", "conv", "num_output: 24 kernel_size: 1"),
        ),
    ),
    "joined with float32": (IMAGES, between("Concat", bottoms="conv data")),
    "cut": (
        IMAGES,
        FIRST
        + layer("cut", "Slice", "conv", "", "one two")
        + layer("middle", "Eltwise", "one two")
        + SECOND,
    ),
}


def build(shape, text, precision, phase=0):
    whole = "force_backward: true\n" + input_layer("data", shape) + text
    return caffe.Net.from_proto(parse_net(whole), phase, seed=1, precision=precision)


def run(net):
    """A pass each way over noise: every blob and gradient, copied."""
    rng = np.random.default_rng(3)
    net.blobs["data"].data[...] = rng.standard_normal(net.blobs["data"].shape)
    net.forward()
    for name, blob in net.blobs.items():
        yield name, blob.data.copy()
    net.clear_param_diffs()
    for name in net.outputs:
        net.blobs[name].diff[...] = rng.standard_normal(net.blobs[name].shape)
    net.backward()
    for name, blob in net.blobs.items():
        yield f"gradient of {name}", blob.diff.copy()
    for name, blobs in net.params.items():
        for number, blob in enumerate(blobs):
            yield f"gradient of {name}, parameter {number}", blob.diff.copy()


def distance(one, other):
    """Of one from the other, as a share of the other's norm."""
    return float(np.linalg.norm(one - other) / max(float(np.linalg.norm(other)), 1e-6))


@needs_bf16
@pytest.mark.parametrize("case", CASES)
def test_each_layer_is_close_to_float32(case):
    shape, text = CASES[case]
    wide, narrow = (build(shape, text, precision) for precision in ("float32", "bf16"))
    apart = {}
    for (name, expected), (_, found) in zip(run(wide), run(narrow), strict=True):
        apart[name] = distance(found, expected)
        assert apart[name] < CLOSE, (name, apart)
    assert max(apart.values()) > 1e-4, "bfloat16 leaves its traces"


@needs_bf16
def test_depthwise_deconvolutions_stay_in_float32():
    options = "num_output: 8 kernel_size: 3 group: 8"
    text = convolution("c", "data", options, "Deconvolution")
    wide, narrow = (build(IMAGES, text, precision) for precision in ("float32", "bf16"))
    for (name, expected), (_, found) in zip(run(wide), run(narrow), strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=name)


@needs_bf16
@pytest.mark.parametrize("case", CASES)
def test_the_test_phase_is_close_to_float32(case):
    shape, text = CASES[case]
    wide, narrow = (build(shape, text, precision, caffe.TEST) for precision in ("float32", "bf16"))
    noise = np.random.default_rng(3).standard_normal(shape)
    expected, found = wide.forward(data=noise), narrow.forward(data=noise)
    for name in expected:
        assert distance(found[name], expected[name]) < CLOSE


def folded(name: str, bottom: str, options: str) -> str:
    """A convolution, then layers in place that become part of its weights."""
    made = convolution(name, bottom, f"bias_term: false {options}")
    made += layer(f"{name}/bn", "BatchNorm", name, "", name)
    return made + layer(f"{name}/scale", "Scale", name, "scale_param { bias_term: true }", name)


def residual(channels: int, deep: str) -> str:
    """A block whose sum and ReLU a convolution takes in, behind a short cut of its own."""
    wide = f"num_output: {channels} kernel_size: 1"
    made = folded("first", "data", wide) + folded("short", "first", wide)
    made += folded("deep", "first", f"num_output: {channels} {deep}")
    made += layer("deep/relu", "ReLU", "deep", "", "deep") + folded("long", "deep", wide)
    made += layer("sum", "Eltwise", "short long") + layer("sum/relu", "ReLU", "sum", "", "sum")
    made += folded("next", "sum", wide) + layer("again", "Eltwise", "sum next")
    return made + layer("pool", "Pooling", "again", "pooling_param { kernel_size: 2 }")


@needs_bf16
@pytest.mark.parametrize("channels", [3, 16, 24, 33])
@pytest.mark.parametrize(
    "deep",
    ["kernel_size: 3 pad: 1", "group: {0} kernel_size: 3 pad: 1", "group: {0} kernel_size: 1"],
)
@pytest.mark.parametrize("size", [(1, 4), (3, 7)])
def test_chains_are_fused_and_close_to_float32(channels, deep, size):
    images, edge = size
    shape = (images, 5, edge, edge + 1)
    text = input_layer("data", shape) + residual(channels, deep.format(channels))
    expected = caffe.Net.from_proto(parse_net(text), caffe.TEST, seed=1)
    net = caffe.Net.from_proto(
        parse_net(text), caffe.TEST, seed=1, precision="bf16", keep_blobs=False
    )
    rng = np.random.default_rng(5)
    for name, blobs in expected.params.items():
        for number, blob in enumerate(blobs):
            blob.data[...] += rng.uniform(0.1, 0.5, blob.data.shape)
            net.params[name][number].data[...] = blob.data
    data = rng.standard_normal(shape)
    want = expected.forward(data=data)["pool"].copy()
    net.time_layers(True)
    actual = net.forward(data=data)["pool"].copy()
    # Five convolutions, one behind the other.
    assert 1e-4 < distance(actual, want) < 2 * CLOSE
    np.testing.assert_array_equal(net.forward(data=data)["pool"], actual)
    times = dict(zip(net._layer_names, net.layer_times()[0], strict=True))
    alone = {name for name, spent in times.items() if spent > 0}
    assert not alone & {"sum", "sum/relu", "again", "deep/relu", "long/bn", "long/scale"}


@needs_bf16
def test_blobs_and_parameters_are_float32_from_python_and_what_is_written_counts():
    net = build(IMAGES, between("ReLU"), "bf16", caffe.TEST)
    assert net.precision == "bf16"
    net.forward(data=np.ones(IMAGES))
    before = net.blobs["last"].data.copy()
    assert {blob.data.dtype for blob in net.blobs.values()} == {np.dtype(np.float32)}
    net.params["last"][0].data[...] *= 2
    net.params["last"][1].data[...] *= 2
    net.forward()
    np.testing.assert_array_equal(net.blobs["last"].data, 2 * before)
    assert net.flat_params.dtype == "float32"


@needs_bf16
def test_a_blob_that_python_writes_is_read_by_the_next_layer():
    net = build(IMAGES, between("ReLU"), "bf16", caffe.TEST)
    net.forward(data=np.ones(IMAGES))
    net.blobs["conv"].data[...] = -1
    net.forward(start="middle")
    assert not net.blobs["middle"].data.any()


@needs_bf16
def test_weights_are_saved_and_loaded_in_float32(tmp_path):
    narrow = build(IMAGES, between("ReLU"), "bf16")
    path = str(tmp_path / "net.caffemodel")
    narrow.save(path)
    wide = build(IMAGES, between("ReLU"), "float32")
    for blobs in wide.params.values():
        for blob in blobs:
            blob.data[...] = 0
    wide.copy_from(path)
    for name, blobs in narrow.params.items():
        for one, other in zip(blobs, wide.params[name], strict=True):
            np.testing.assert_array_equal(one.data, other.data)


@needs_bf16
def test_other_shapes_follow():
    wide, narrow = (build(IMAGES, between("ReLU"), one) for one in ("float32", "bf16"))
    noise = np.random.default_rng(3).standard_normal((2, 8, 7, 14))
    for net in (wide, narrow):
        net.forward(data=np.ones(IMAGES))
        net.blobs["data"].reshape(*noise.shape)
        net.forward(data=noise)
    assert distance(narrow.blobs["last"].data, wide.blobs["last"].data) < CLOSE


SOLVER = """
base_lr: 0.05 momentum: 0.9 lr_policy: "fixed" random_seed: 7 max_iter: 60
net_param {
  layer { name: "data" type: "Input" top: "data" top: "label"
          input_param { shape { dim: 32 dim: 1 dim: 12 dim: 12 } shape { dim: 32 } } }
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
          convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
  layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
          pooling_param { kernel_size: 2 stride: 2 } }
  layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
          inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
}
"""


def train(precision):
    """Which quarter of a noisy image is bright: the loss at the end, and the weights."""
    solver = solver_from_text(SOLVER, precision=precision)
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 32)
    images = rng.standard_normal((32, 1, 12, 12)) * 0.5
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 2)
        image[0, 6 * row : 6 * row + 6, 6 * column : 6 * column + 6] += 1
    solver.net.blobs["data"].data[...] = images
    solver.net.blobs["label"].data[...] = labels
    solver.step(60)
    return float(solver.net.blobs["loss"].data), np.array(solver.net.flat_params)


@needs_bf16
def test_training_comes_as_far_and_is_the_same_each_time():
    loss, weights = train("bf16")
    again, same = train("bf16")
    expected, _ = train("float32")
    assert loss == again
    np.testing.assert_array_equal(weights, same)
    assert expected < 0.05
    assert loss == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("make", [caffe.Net.from_proto, SGDSolver, caffe.Net])
def test_other_precisions_are_refused(make, tmp_path):
    net = tmp_path / "net.prototxt"
    net.write_text(input_layer("data", (1, 2)))
    solver = tmp_path / "solver.prototxt"
    solver.write_text(f'net: "{net}" base_lr: 1 lr_policy: "fixed"')
    words = {caffe.Net.from_proto: (parse_net(net.read_text()),), SGDSolver: (str(solver),)}
    with pytest.raises(
        SpecError, match="precision must be 'float32', 'tf32', 'bf16' or 'int8'; it is 'half'"
    ):
        make(*words.get(make, (str(net), caffe.TEST)), precision="half")


ELSEWHERE = """
import warnings
from sparknet.caffe import Net
from sparknet.proto import caffe_pb2, parse_net, read_net, read_solver
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    net = Net.from_proto(parse_net(''), precision="bf16")
print(net.precision, *(str(one.message) for one in said), sep="|")
"""


def test_a_processor_without_bfloat16_computes_in_float32_and_one_sentence_says_so():
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert said == (
        "float32|precision='bf16' needs a processor with AVX512_BF16 or AMX; "
        "this one computes in float32"
    )


DIGITS_LAYER = """
layer {{ name: "digits" type: "Data" top: "data" top: "label" include {{ phase: {1} }}
        data_param {{ source: "{0}" backend: LMDB batch_size: {2} }}
        transform_param {{ scale: 0.00390625 }} }}
"""


def accuracy(folder: Path, precision: str, seed: int) -> float:
    """LeNet after 1,500 iterations on 8,500 digits: what share of 1,500 others it recognises."""
    net = read_net(ROOT / "models" / "lenet" / "net.prototxt")
    layers = [one for one in net.layer if one.type != "Input"]
    data = "".join(
        DIGITS_LAYER.format(folder / name, name.upper(), size)
        for name, size in (("train", 64), ("test", 100))
    )
    net = caffe_pb2.NetParameter(layer=[*parse_net(data).layer, *layers])
    solver = read_solver(ROOT / "models" / "lenet" / "solver.prototxt")
    solver.random_seed, solver.test_iter[0], solver.display = seed, 15, 0
    solver.test_interval, solver.test_initialization = 1500, False
    trained = get_solver(solver, net, precision=precision)
    trained.step(1500)
    (outputs,) = trained.test_all()
    return float(outputs["accuracy"])


@needs_bf16
@pytest.mark.slow
@pytest.mark.usefixtures("mnist")
def test_lenet_recognises_digits_as_well_as_in_float32(tmp_path):
    convert(tmp_path / "train", "--take", str(TRAINED))
    convert(tmp_path / "test", "--skip", str(TRAINED))
    means = {
        precision: np.mean([accuracy(tmp_path, precision, seed) for seed in (1, 2)])
        for precision in ("float32", "bf16")
    }
    print(means)
    assert means["float32"] > 0.975
    assert means["bf16"] == pytest.approx(means["float32"], abs=0.003)


@needs_bf16
@pytest.mark.skipif("AMX" in onednn_isa(), reason="AMX computes all of them in bfloat16")
@pytest.mark.parametrize(
    ("channels", "window", "wide"),
    [(1, 5, True), (1, 11, True), (2, 5, True), (3, 3, True), (3, 5, False), (4, 3, False)],
)
def test_narrow_products_that_lose_time_are_those_of_float32(channels, window, wide):
    """Of a first layer that learns; in the test phase they gain."""
    text = input_layer("x", (4, channels, 16, 16))
    text += convolution("y", "x", f"num_output: 16 kernel_size: {window}")
    found = []
    for precision, phase in (("float32", caffe.TRAIN), ("bf16", caffe.TRAIN), ("bf16", caffe.TEST)):
        net = caffe.Net.from_proto(parse_net(text), phase, seed=1, precision=precision)
        net.blobs["x"].data[...] = np.random.default_rng(0).standard_normal(
            (4, channels, 16, 16), np.float32
        )
        net.forward()
        found.append(np.array(net.blobs["y"].data))
    assert np.array_equal(found[0], found[1]) == wide
    assert not np.array_equal(found[0], found[2])


@needs_bf16
@pytest.mark.skipif("AMX" in onednn_isa(), reason="AMX computes all of them in bfloat16")
@pytest.mark.parametrize(("channels", "outputs", "wide"), [(20, 50, True), (32, 64, False)])
def test_fewer_products_of_float32_stay_where_channels_fill_no_vectors(channels, outputs, wide):
    """As LeNet's second convolution when it learns, forward and backward."""
    text = "force_backward: true " + input_layer("x", (64, channels, 12, 12))
    text += convolution("y", "x", f"num_output: {outputs} kernel_size: 5")
    found = []
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, channels, 12, 12), np.float32)
    slopes = rng.standard_normal((64, outputs, 8, 8), np.float32)
    for precision in ("float32", "bf16"):
        net = caffe.Net.from_proto(parse_net(text), caffe.TRAIN, seed=1, precision=precision)
        net.blobs["x"].data[...] = x
        net.forward()
        net.blobs["y"].diff[...] = slopes
        net.backward()
        values = net.blobs["y"].data, net.blobs["x"].diff, net.params["y"][0].diff
        found.append([np.array(one) for one in values])
    for exact, narrow in zip(*found, strict=True):
        assert np.array_equal(exact, narrow) == wide
        np.testing.assert_allclose(narrow, exact, atol=0.02 * np.abs(exact).max())
