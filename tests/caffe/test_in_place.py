"""A layer that works in place leaves all gradients as they are where each layer has its own blob.

The matrix: every layer type with a gradient, and every type in place behind it.
"""

import random
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import SparkNetError
from sparknet.graph import build
from sparknet.layers import LAYERS
from sparknet.proto import parse_net
from tests.caffe.gradient import biased, input_layer
from tests.fuzz.layer_cases import CASES, Case

Shape = tuple[int, ...]
ROOM = 'filler { type: "uniform" min: 0.5 max: 2 }'
USER = 'type: "Python" python_param { module: "tests.caffe.user_layers" layer: "Square" }'
IN_PLACE = {
    "BN": 'type: "BN" bn_param { bn_mode: LEARN }',
    "BNLL": 'type: "BNLL"',
    "BatchNorm": 'type: "BatchNorm"',
    "Bias": f'type: "Bias" bias_param {{ axis: 0 num_axes: -1 {ROOM} }}',
    "Clip": 'type: "Clip" clip_param { min: -0.5 max: 0.5 }',
    "Dropout": 'type: "Dropout"',
    "ELU": 'type: "ELU"',
    "Eltwise": 'type: "Eltwise"',
    "Exp": 'type: "Exp" exp_param { scale: 0.1 }',
    "GELU": 'type: "GELU"',
    "HardSwish": 'type: "HardSwish"',
    "LabelSpecificAdd": 'type: "LabelSpecificAdd" label_specific_add_param { bias: 0.5 }',
    "Log": 'type: "Log" log_param { scale: 0.01 shift: 9 }',
    "LogSoftmax": 'type: "LogSoftmax" softmax_param { axis: -1 }',
    "MVN": 'type: "MVN"',
    "Math": 'type: "Math" math_param { function: SIN }',
    "Mish": 'type: "Mish"',
    "PReLU": 'type: "PReLU"',
    "Power": 'type: "Power" power_param { power: 2 shift: 0.5 }',
    "Python": USER,
    "ReLU": 'type: "ReLU"',
    "ReLU6": 'type: "ReLU6"',
    "Scale": f'type: "Scale" scale_param {{ axis: 0 num_axes: -1 bias_term: true {ROOM} }}',
    "Sigmoid": 'type: "Sigmoid"',
    "Softmax": 'type: "Softmax" softmax_param { axis: -1 }',
    "SpatialDropout": 'type: "SpatialDropout"',
    "Swish": 'type: "Swish"',
    "TanH": 'type: "TanH"',
    "leak": 'type: "ReLU" relu_param { negative_slope: 0.25 }',
    "fold": 'type: "ReLU" relu_param { negative_slope: -0.5 }',
    "line": 'type: "Power" power_param { scale: -0.5 shift: 0.25 }',
    "product": 'type: "Eltwise" eltwise_param { operation: PROD }',
    "quotient": 'type: "Eltwise" eltwise_param { operation: PROD stable_prod_grad: false }',
    "maximum": 'type: "Eltwise" eltwise_param { operation: MAX }',
    "view": 'type: "Reshape" reshape_param { shape { dim: 0 dim: -1 } }',
}
"""Layers that work in place, and a view, on whose blob the next one does."""
UNFORCED = {"BatchReindex": (0,), "Embed": (), "Filter": (0, 1), "InfogainLoss": (0,)}
"""Types that refuse a gradient which force_backward asks for, and the bottoms that have one."""
TWO_BOTTOMS = {"Eltwise", "LabelSpecificAdd", "maximum", "product", "quotient"}
FRONT = {
    name: cases for name, cases in CASES.items() if LAYERS[name].has_gradient and cases[0].shapes
} | {
    "Python": (Case(USER.removeprefix('type: "Python" ').replace("Square", "Root"), ((2, 3, 4),)),)
}
BEHIND = [("view", "Scale"), ("view", "ReLU"), *((name,) for name in IN_PLACE if name != "view")]
TOLERANCE = {"float32": 1e-3, "bf16": 4e-2}


def layer(name: str, options: str, bottoms: Sequence[str], tops: Sequence[str]) -> str:
    names = [f'bottom: "{one}"' for one in bottoms] + [f'top: "{one}"' for one in tops]
    return f'layer {{ name: "{name}" {" ".join(names)} {options} }}\n'


@cache
def shapes_of(options, shapes, tops, phase):
    """The shapes of a layer's tops; None where it does not take these bottoms."""
    names = [f"b{i}" for i in range(len(shapes))], [f"t{i}" for i in range(tops)]
    net = parse_net("".join(map(input_layer, names[0], shapes)) + layer("l", options, *names))
    try:
        graph = build(net, phase)
        return [graph.blob_shapes[graph.blob_names.index(top)] for top in names[1]]
    except SparkNetError:
        return None


def chain(names: Sequence[str], key: str, blob: str, shape: Shape, phase: int, own: bool) -> str:
    """Layers behind a blob, each with its own blob or in place; "" where the shape suits none."""
    text = ""
    for place, name in enumerate(names):
        other = (shape[:1],) if name == "LabelSpecificAdd" else (shape,)
        more = other if name in TWO_BOTTOMS else ()
        if name == "LabelSpecificAdd" and (len(shape) < 2 or shape[1] < 2):
            return ""
        made = shapes_of(IN_PLACE[name], (shape, *more), 1, phase)
        if made is None or (name != "view" and made[0] != shape) or not shape:
            return ""
        at = f"{name}_{key}_{place}"
        text += "".join(input_layer(f"other_{at}", one) for one in more)
        top = at if own or name == "view" else blob
        text += layer(at, IN_PLACE[name], [blob, *(f"other_{at}" for _ in more)], [top])
        blob, shape = top, made[0]
    return text


def net_text(kind: str, case: Case, chains: Sequence[Sequence[str]], phase: int, own: bool) -> str:
    """For each chain inputs and a layer that reads them, with the chain behind each top."""
    text = "" if kind in UNFORCED else "force_backward: true\n"
    options = f'type: "{kind}" {case.options} ' + (
        "loss_weight: 0 " * case.tops if LAYERS[kind].is_loss else ""
    )
    tops = shapes_of(options, case.shapes, case.tops, phase)
    for number, names in enumerate(chains):
        made = [f"y{number}_{t}" for t in range(case.tops)]
        # The copies of a Split are one blob, as in Caffe: what is written to one is read from all.
        written = made[:1] if kind == "Split" else made
        behind = [
            chain(names, f"{number}_{t}", top, shape, phase, own)
            for t, (top, shape) in enumerate(zip(written, tops, strict=False))
        ]
        if any(behind):
            inputs = [f"x{i}_{number}" for i in range(len(case.shapes))]
            text += "".join(map(input_layer, inputs, case.shapes))
            for i in UNFORCED.get(kind, ()):
                text += biased(inputs[i])
                inputs[i] += "b"
            text += layer(f"{kind}_{number}", options, inputs, made) + "".join(behind)
    return text


def built(text, phase, **settings):
    net = caffe.Net.from_proto(parse_net(text), phase, seed=3, trusted=True, **settings)
    rng = np.random.default_rng(1)
    for name, blobs in net.params.items():
        if net.layer_dict[name].type in ("BatchNorm", "BN"):
            for blob in blobs:
                blob.data[...] = rng.uniform(0.5, 2, blob.shape)
    return net


FILLS = ("x0 other", "x other", "other")
"""The inputs of any numbers, where the layer takes them so; the others are labels."""


def fill(net, names):
    rng = np.random.default_rng(2)
    for name in net.inputs:
        values = net.blobs[name].data
        if name.startswith(tuple(names.split())) and not (name[0] == "o" and values.ndim == 1):
            values[...] = rng.normal(size=values.shape)
        else:
            values[...] = rng.integers(0, 2, values.shape)


def gradients(net):
    """Of the inputs and the parameters, by name."""
    for name in net.outputs:
        blob = net.blobs[name]
        blob.diff[...] = np.random.default_rng(4).uniform(-1, 1, blob.shape)
    net.backward()
    found = {name: blob.diff.copy() for name, blob in net.blobs.items() if name[0] in "xo"}
    for name, blobs in net.params.items():
        found |= {f"{name}[{i}]": blob.diff.copy() for i, blob in enumerate(blobs)}
    return found


def differences(got, want, tolerance):
    """What differs by more than a share of its largest value; the bias before a normalisation,
    whose gradient is 0 but for rounding, of a hundredth of the chain's largest."""
    lines, largest, chain_of = [], dict[str, float](), {}
    assert got.keys() == want.keys()
    for name, right in want.items():
        chain_of[name] = number = name.split("_")[1].split("[")[0]
        size = float(np.abs(right[np.isfinite(right)]).max(initial=1e-6))
        largest[name] = size
        largest[number] = max(largest.get(number, 0.0), size / 100)
    for name, right in want.items():
        with np.errstate(invalid="ignore"):
            away = np.abs(got[name] - right) / max(largest[name], largest[chain_of[name]])
        worst = np.nanmax(away, initial=0)
        if worst > tolerance or (np.isnan(got[name]) != np.isnan(right)).any():
            lines.append(f"{name}: off by {worst:.2g} of its largest value")
    return lines


def compare(kind, case, chains, phase, precision, keep_blobs=True):
    """What differs between the net whose layers work in place and the one whose do not."""
    texts = [net_text(kind, case, chains, phase, own) for own in (False, True)]
    nets = [
        built(text, phase, precision=precision, keep_blobs=keeps)
        for text, keeps in zip(texts, (keep_blobs, True), strict=True)
    ]
    nets[0].flat_params.copy_from(nets[1].flat_params)
    found = []
    for net in nets:
        for names in FILLS:
            fill(net, names)
            try:
                net.forward()
                break
            except SparkNetError:
                if names == FILLS[-1]:
                    raise
        found.append(gradients(net))
    return differences(*found, TOLERANCE[precision])


@pytest.mark.parametrize("kind", FRONT)
def test_a_layer_in_place_behind(kind):
    """A third of the matrix; the nightly test has all of it."""
    some = random.Random(kind).sample(BEHIND, len(BEHIND) // 3)
    assert compare(kind, FRONT[kind][0], some, caffe.TRAIN, "float32", keep_blobs=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST], ids=["TRAIN", "TEST"])
@pytest.mark.parametrize("kind", FRONT)
def test_a_layer_in_place_behind_every_case(kind, phase, precision):
    for case in FRONT[kind]:
        for keep_blobs in {True, phase == caffe.TEST}:
            assert compare(kind, case, BEHIND, phase, precision, keep_blobs) == []


def test_phases_and_precisions_of_some():
    rng = random.Random(1)
    for kind in rng.sample(sorted(FRONT), 12):
        case, phase = rng.choice(FRONT[kind]), rng.choice([caffe.TRAIN, caffe.TEST])
        assert compare(kind, case, BEHIND, phase, rng.choice(["float32", "bf16"])) == []


LONG = [Case("inner_product_param { num_output: 6 }", ((4, 5),)), FRONT["Convolution"][0]]


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST], ids=["TRAIN", "TEST"])
@pytest.mark.parametrize("kind", ["InnerProduct", "Convolution"])
def test_long_chains(kind, phase):
    """Three to five layers in place, one behind the other; some of them are computed together."""
    rng = random.Random(kind + str(phase))
    chains = [rng.choices(sorted(IN_PLACE), k=rng.choice((3, 3, 4, 5))) for _ in range(60)]
    assert compare(kind, LONG[kind == "Convolution"], chains, phase, "float32") == []


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST], ids=["TRAIN", "TEST"])
@pytest.mark.parametrize("first", IN_PLACE)
def test_three_in_place(first, phase, precision):
    chains = [(first, second, "Scale") for second in IN_PLACE]
    for kind, case in zip(["InnerProduct", "Convolution"], LONG, strict=True):
        assert compare(kind, case, chains, phase, precision, phase == caffe.TEST) == []
