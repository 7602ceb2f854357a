"""docs/pycaffe.md and docs/compatibility.md are true."""

import re

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError, SpecError
from sparknet.native import set_threads, threads
from sparknet.proto import parse_net
from tests.goldens import ROOT
from tests.guides import guide

PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")


def make(text: str, phase: int = caffe.TRAIN, **shapes: str) -> caffe.Net:
    inputs = "".join(
        f'layer {{ name: "in_{name}" type: "Input" top: "{name}" '
        f"input_param {{ shape {{ {' '.join(f'dim: {n}' for n in sizes.split())} }} }} }}\n"
        for name, sizes in shapes.items()
    )
    return caffe.Net.from_proto(parse_net("force_backward: true\n" + inputs + text), phase, seed=1)


def layer(kind: str, bottoms: str, top: str, more: str = "") -> str:
    blobs = " ".join(f'bottom: "{name}"' for name in bottoms.split())
    return f'layer {{ name: "l_{kind}" type: "{kind}" {blobs} top: "{top}" {more} }}\n'


COPY = layer("Power", "x", "c").replace("l_Power", "copy")


@pytest.mark.parametrize(
    ("kind", "more", "bottoms"),
    [
        ("Power", "power_param { power: 3 scale: 2 shift: 1 }", "c"),
        ("Log", "log_param { scale: 2 shift: 1 }", "c"),
        ("Exp", "exp_param { base: 2 }", "c"),
        ("Eltwise", "eltwise_param { operation: SUM coeff: 2 coeff: -1 }", "c x"),
        ("Eltwise", "eltwise_param { operation: PROD }", "c x"),
        ("Eltwise", "eltwise_param { operation: MAX }", "c x"),
    ],
)
def test_in_place_gives_what_it_gives_elsewhere(kind, more, bottoms):
    x = np.random.default_rng(0).uniform(0.5, 2, (3, 4)).astype(np.float32)
    found = []
    for top in ("c", "y"):
        net = make(COPY + layer(kind, bottoms, top, more), x="3 4")
        out = net.forward(x=x)[top].copy()
        found.append((out, net.backward(None, None, None, **{top: x})["x"].copy()))
    for here, there in zip(*found, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-6)


LABELLED = [
    ("SoftmaxWithLoss", ""),
    ("HingeLoss", ""),
    ("MultinomialLogisticLoss", ""),
    ("Accuracy", ""),
]


@pytest.mark.parametrize(("kind", "more"), LABELLED)
@pytest.mark.parametrize("label", [5, -1, np.nan])
def test_labels_out_of_range(kind, more, label):
    net = make(layer(kind, "x y", "l", more), x="2 5", y="2")
    x = np.full((2, 5), 0.2)
    net.forward(x=x, y=[0, 4])
    with pytest.raises(LayerError, match=f"layer 'l_{kind}'"):
        net.forward(x=x, y=[0, label])
    net.forward(x=x, y=[0, 4])


@pytest.mark.parametrize("index", [4, -1])
def test_indices_out_of_range(index):
    net = make(layer("Embed", "x", "e", "embed_param { num_output: 2 input_dim: 4 }"), x="2")
    with pytest.raises(LayerError, match=rf"layer 'l_Embed'.*{index}.*out of range"):
        caffe.Net.forward(net, x=[0, index])


@pytest.mark.parametrize("option", ["dilation: 0", "group: 0", "kernel_size: 5000000000"])
def test_convolutions_that_are_refused(option):
    more = f"convolution_param {{ num_output: 2 {option} "
    more += "}" if "kernel" in option else "kernel_size: 1 }"
    with pytest.raises(SpecError, match=option.partition(":")[0].replace("_size", "")):
        make(layer("Convolution", "x", "y", more), x="1 2 4 4")


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("Dropout", "dropout_param { dropout_ratio: 1 }", "dropout_ratio 1"),
        ("AbsVal", "", "cannot work in place"),
        ("Data", "transform_param { noise_param { } }", "."),
    ],
)
def test_options_that_are_refused(kind, more, message):
    bottoms = "" if kind == "Data" else "x"
    with pytest.raises(SpecError, match=message):
        make(layer(kind, bottoms, "x" if kind == "AbsVal" else "y", more), x="2 3")


def test_contrastive_labels():
    net = make(layer("ContrastiveLoss", "a b y", "l"), a="2 3", b="2 3", y="2")
    with pytest.raises(LayerError, match="label nan is neither 0 nor 1"):
        net.forward(a=np.ones((2, 3)), b=np.ones((2, 3)), y=[1, np.nan])


def test_gradients_that_do_not_exist():
    net = make(layer("ArgMax", "x", "y"), x="2 3")
    net.forward()
    with pytest.raises(LayerError, match=r"'l_ArgMax'.*leave force_backward out"):
        net.backward()


def test_stochastic_pooling():
    net = make(
        layer("Pooling", "x", "y", "pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }"),
        x="1 1 4 4",
    )
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    picked = net.forward(x=x)["y"]
    assert np.isin(picked, x).all()
    assert (net.backward(y=np.ones((1, 1, 2, 2)))["x"] == np.isin(x, picked)).all()


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_convolution_over_axes(axes):
    shape = "2 3" + " 4" * axes
    more = "convolution_param { num_output: 2 kernel_size: 3 pad: 1 }"
    net = make(layer("Convolution", "x", "y", more), x=shape)
    net.params["l_Convolution"][0].data[...] = 1
    x = np.ones((2, 3) + (4,) * axes)
    out = net.forward(x=x)["y"]
    assert out.shape == (2, 2) + (4,) * axes
    assert (out.min(), out.max()) == (3 * 2**axes, 3 * 3**axes)


def test_engines_mean_nothing():
    for engine in ("CUDNN", "CAFFE"):
        more = f"relu_param {{ engine: {engine} }}"
        assert (make(layer("ReLU", "x", "y", more), x="2").forward(x=[-1, 1])["y"] == [0, 1]).all()


def test_an_old_view_stays_readable():
    net = make(layer("Power", "x", "y", "power_param { scale: 2 }"), x="4 3")
    view = net.blobs["y"].data
    net.forward(x=np.ones((4, 3)))
    for rows in (2, 1000):
        net.blobs["x"].reshape(rows, 3)
        net.forward(x=np.full((rows, 3), 7))
    assert view.shape == (4, 3)
    assert np.isfinite(view).all()


def test_random_numbers_do_not_depend_on_the_other_layers():
    drop = layer("Dropout", "x", "y")
    alone = make(drop, x="100").forward(x=np.ones(100))["y"].copy()
    again = make(drop, x="100").forward(x=np.ones(100))["y"]
    np.testing.assert_array_equal(alone, again)


def test_the_page_is_a_set_of_tables():
    for line in PAGE.splitlines():
        if line.startswith("|"):
            assert line.count("|") - line.count("\\|") in (4, 5), line
    for kind in ("Permute", "MultiBoxLoss", "Axpy"):
        assert kind in PAGE
        assert kind in caffe.layer_type_list()


def test_layers_of_forks():
    section = PAGE.split("## Layers of forks")[1].split("\n## ")[0]
    types = set(caffe.layer_type_list())
    for row in section.splitlines():
        if row.startswith("| ") and not row.startswith("| fork"):
            named = row.split("|")[2].replace(" in its three senses", "")
            assert set(re.findall(r"\w+", named)) <= types
    absent = section.split("Not there, among others:")[1].split(". ")[0]
    kinds = re.findall(r"\w+", re.sub(r"\(.*?\)| and ", " ", absent))
    assert len(kinds) == 10
    for kind in kinds:
        with pytest.raises(SpecError, match=f"unknown type '{kind}'"):
            make(layer(kind, "", "y"))


@pytest.mark.parametrize("page", ["pycaffe.md", "compatibility.md", "scripts.md"])
def test_every_name_exists(page):
    made = {"net": caffe.Net, "solver": caffe.SGDSolver, "blob": caffe.Blob, "caffe": caffe}
    for owner, name in re.findall(r"`(net|solver|blob|caffe)\.(\w+)", guide(page)):
        instance = owner == "net" and name in vars(caffe.Net.from_proto(parse_net(""), caffe.TEST))
        instance |= (owner, name) == ("solver", "param")
        assert instance or hasattr(made[owner], name), f"{page}: {owner}.{name}"


CONV = """
force_backward: true
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 16 dim: 3 dim: 12 dim: 12 } } }
layer { name: "conv" type: "Convolution" bottom: "x" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 } }
layer { name: "norm" type: "LRN" bottom: "pool" top: "norm" }
layer { name: "drop" type: "Dropout" bottom: "norm" top: "norm" }
"""


def run(count):
    before = threads()
    set_threads(count)
    try:
        net = caffe.Net.from_proto(parse_net(CONV), caffe.TRAIN, seed=2)
        net.blobs["x"].data[...] = np.random.default_rng(0).normal(size=(16, 3, 12, 12))
        out = net.forward()["norm"].copy()
        grads = net.backward(norm=np.ones_like(out))
        return {"out": out, "x": grads["x"].copy(), "w": np.array(net.flat_diffs)}
    finally:
        set_threads(before)


def test_what_varies_with_the_number_of_threads():
    once, again, more = run(2), run(2), run(1)
    for name in once:
        np.testing.assert_array_equal(once[name], again[name])
    np.testing.assert_array_equal(once["out"] != 0, more["out"] != 0)
    for name in once:
        np.testing.assert_allclose(once[name], more[name], rtol=1e-4, atol=1e-4)
