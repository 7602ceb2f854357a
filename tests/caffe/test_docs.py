"""docs/pycaffe.md and docs/compatibility.md are true."""

import re

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import SpecError
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
