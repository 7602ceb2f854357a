"""Every shape of the reference nets, and every description that must be refused."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Shape, make
from tests.goldens import GOLDENS, index
from tests.layers.nets import PHASES, read_net, walk

NEEDS_GRAPH = {
    "bottom_later",
    "unknown_bottom",
    "top_twice",
    "inplace_after_fanout",
    "inplace_absval",
    "include_and_exclude",
    "propagate_down_count",
    "loss_weight_count",
    "too_many_params",
    "share_shape",
    "share_count",
    "share_lr",
}
"""Entries about the net, not about one layer."""


def _cases():
    return index("layers")


def _refusals():
    return [
        entry
        for entry in index("errors")
        if entry["action"] == "net" and entry.get("layer") and entry["name"] not in NEEDS_GRAPH
    ]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["name"]))
def test_shapes_are_caffes(case, monkeypatch):
    net = read_net(GOLDENS / "layers" / f"{case['name']}.prototxt")
    monkeypatch.chdir(GOLDENS / "layers")
    monkeypatch.syspath_prepend(str(GOLDENS / "layers"))
    blobs, plans = walk(net, case["phase"])
    want = {name: tuple(shape) for name, shape in case["blobs"]}
    by_graph = {name for name in want if "_split_" in name or name == "(automatic)"}
    assert blobs == {name: shape for name, shape in want.items() if name not in by_graph}
    with np.load(GOLDENS / "layers" / f"{case['name']}.npz") as arrays:
        params = {key: arrays[key].shape for key in arrays.files if key.startswith("param/")}
    found = {
        f"param/{name}/{i}": param.shape
        for name, plan in plans.items()
        for i, param in enumerate(plan.params)
    }
    assert found == params


@pytest.mark.parametrize(
    "case",
    [case for case in _cases() if case["passes"] > 1 and case["type"] != "Filter"],
    ids=lambda case: str(case["name"]),
)
def test_shapes_after_reshape_are_caffes(case):
    net = read_net(GOLDENS / "layers" / f"{case['name']}.prototxt")
    with np.load(GOLDENS / "layers" / f"{case['name']}.npz") as arrays:
        shapes = {key: arrays[key].shape for key in arrays.files}
    inputs: dict[str, Shape] = {}
    params = None
    for number in range(case["passes"]):
        prefix = f"pass{number}/" if number else ""
        inputs |= _below(shapes, f"{prefix}in/")
        blobs, plans = walk(net, case["phase"], inputs)
        outputs = _below(shapes, f"{prefix}out/")
        assert outputs
        assert {name: blobs[name] for name in outputs} == outputs
        found = [[param.shape for param in plan.params] for plan in plans.values()]
        assert params in (None, found)
        params = found


def _below(shapes: dict[str, Shape], prefix: str) -> dict[str, Shape]:
    return {key[len(prefix) :]: shapes[key] for key in shapes if key.startswith(prefix)}


@pytest.mark.parametrize("entry", _refusals(), ids=lambda entry: str(entry["name"]))
def test_refused_with_the_layers_name(entry, monkeypatch):
    net = read_net(GOLDENS / "errors" / entry["file"])
    monkeypatch.chdir(GOLDENS / "errors")
    with pytest.raises(LayerError) as caught:
        _build(net, entry["phase"])
    assert caught.value.layer == entry["layer"]
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) > len(f"layer '{entry['layer']}': ") + 15


def _build(net, phase):
    """What a graph does with a layer: make it, plan it, show it its param entries."""
    walk(net, phase)
    for parameter in net.layer:
        make(parameter, PHASES[phase]).check_params(parameter.param)


def test_no_case_is_missing():
    assert len(_cases()) == 475
    assert {case["type"] for case in _cases()} - set(LAYERS) == {"graph"}
