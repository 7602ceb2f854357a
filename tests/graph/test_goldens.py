"""Every net of the reference vectors, against what real Caffe made of it."""

from pathlib import Path

import numpy as np
import pytest

from sparknet.errors import SparkNetError
from sparknet.graph import build
from sparknet.layers.layer import TEST, TRAIN
from sparknet.proto import read_net
from tests.goldens import GOLDENS, index

REFUSED = [
    entry
    for entry in index("errors")
    if entry["action"] in ("net", "reshape") and "optional" not in entry
]
GRADIENTS = [entry for entry in index("layers") if entry.get("backward")]


def cases(entries):
    return pytest.mark.parametrize("entry", entries, ids=[entry["name"] for entry in entries])


def load(folder, file, entry, monkeypatch):
    """Paths inside a file are relative to its folder."""
    monkeypatch.chdir(GOLDENS / folder)
    monkeypatch.syspath_prepend(str(GOLDENS / folder))
    return build(read_net(Path(file)), TRAIN if entry["phase"] == "TRAIN" else TEST)


def check_structure(graph, entry):
    blobs = zip(graph.blob_names, map(list, graph.blob_shapes), strict=True)
    assert graph.layers == entry["layers"]
    assert [list(blob) for blob in blobs] == entry["blobs"]
    assert list(graph.inputs) == entry["inputs"]
    assert list(graph.outputs) == entry["outputs"]


def check_params(graph, arrays):
    stored = {key[6:]: arrays[key].shape for key in arrays.files if key.startswith("param/")}
    assert stored == {
        f"{node.name}/{number}": ref.shape
        for node in graph.nodes
        for number, ref in enumerate(node.params)
    }


@cases(index("nets"))
def test_nets(entry, monkeypatch):
    graph = load("nets", f"{entry['name']}.prototxt", entry, monkeypatch)
    check_structure(graph, entry)
    with np.load(GOLDENS / "nets" / f"{entry['name']}.npz") as arrays:
        check_params(graph, arrays)


@cases(index("layers"))
def test_layers(entry, monkeypatch):
    graph = load("layers", f"{entry['name']}.prototxt", entry, monkeypatch)
    check_structure(graph, entry)
    assert graph.loss_weights == entry["loss_weights"]
    with np.load(GOLDENS / "layers" / f"{entry['name']}.npz") as arrays:
        check_params(graph, arrays)


@cases(GRADIENTS)
def test_gradients_reach_the_same_blobs(entry, monkeypatch):
    """A stored input gradient was computed by a layer; one under ``no_gradient`` by none.

    Crop is asked for its reference's gradient too, and leaves it at zero.
    """
    graph = load("layers", f"{entry['name']}.prototxt", entry, monkeypatch)
    given = {
        blob
        for node in graph.nodes
        if node.needs_backward
        for blob, expected in zip(node.bottoms, node.propagate_down, strict=True)
        if expected
    }
    for key in entry.get("no_gradient", ()):
        assert key.rpartition("diff/")[2] not in given or entry["type"] == "Crop"
    with np.load(GOLDENS / "layers" / f"{entry['name']}.npz") as arrays:
        for name in graph.inputs:
            if f"diff/{name}" in arrays.files:
                assert name in given


@cases([entry for entry in index("layers") if entry["passes"] > 1])
def test_later_passes_reshape(entry, monkeypatch):
    graph = load("layers", f"{entry['name']}.prototxt", entry, monkeypatch)
    dynamic = any(node.type == "Filter" for node in graph.nodes)
    with np.load(GOLDENS / "layers" / f"{entry['name']}.npz") as arrays:
        for number in range(entry["passes"]):
            prefix = f"pass{number}/" if number else ""
            held = {
                key[len(prefix) :]: arrays[key].shape
                for key in arrays.files
                if key.startswith((f"{prefix}in/", f"{prefix}out/"))
            }
            inputs = {key[3:]: shape for key, shape in held.items() if key.startswith("in/")}
            graph = graph.reshape(inputs)
            outputs = {key[4:]: shape for key, shape in held.items() if key.startswith("out/")}
            if not dynamic:
                assert {name: graph.blobs[name] for name in outputs} == outputs


@cases(REFUSED)
def test_refused(entry, monkeypatch):
    def attempt():
        graph = load("errors", entry["file"], entry, monkeypatch)
        graph.reshape(entry.get("new_shapes", {}))

    with pytest.raises((SparkNetError, ModuleNotFoundError)) as caught:
        attempt()
    message = str(caught.value)
    assert entry.get("layer", "") in message
    assert entry.get("blob", "") in message
    assert "\n" not in message
