"""Embed, BatchReindex and Filter: rows and items picked by numbers in a blob."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import biased, check_gradients
from tests.caffe.layers.passing import backward, build, draw, same, set_params

EMBED = (
    'layer {{ name: "emb" type: "Embed" bottom: "x" top: "y" embed_param {{ '
    "input_dim: 5 num_output: 3 bias_term: {} }} }}"
)
LOSS = 'layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }'
REINDEX = biased("x") + (
    'layer { name: "pick" type: "BatchReindex" bottom: "xb" bottom: "i" top: "y" loss_weight: 1 }'
)
FILTER = biased("x", "z") + (
    'layer { name: "keep" type: "Filter" bottom: "xb" bottom: "zb" bottom: "s" '
    'top: "y" top: "w" loss_weight: 1 loss_weight: 1 }'
)
BAD = [5, 7, -1, 1e30, float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize("bias", ["true", "false"])
@pytest.mark.parametrize("indices", [[1, 0, 4, 1], [[2, 2], [2, 3]], [1.9, -0.5]])
def test_embed(indices: list[float], bias: str) -> None:
    x = np.array(indices, np.float32)
    table, shift = draw(5, 3), draw(3, seed=2)
    net = build(EMBED.format(bias) + LOSS, {"x": x, "t": draw(*x.shape, 3)}, force=False)
    set_params(net, {"emb": [table, shift] if bias == "true" else [table]})
    net.forward()
    rows = np.trunc(x).astype(int)
    same(net.blobs["y"].data, table[rows] + (shift if bias == "true" else 0))
    net.backward()
    given, want = net.blobs["y"].diff, np.zeros_like(table)
    assert given.any()
    np.add.at(want, rows, given)
    same(net.params["emb"][0].diff, want)
    if bias == "true":
        same(net.params["emb"][1].diff, given.reshape(-1, 3).sum(0))


@pytest.mark.parametrize("value", BAD)
def test_embed_refuses(value: float) -> None:
    net = build(EMBED.format("true"), {"x": np.array([1, value], np.float32)}, force=False)
    with pytest.raises(LayerError, match=r"'emb'.*index .* 5 rows"):
        net.forward()
    net.backward()


def test_embed_refuses_a_gradient() -> None:
    net = build(EMBED.format("true"), {"x": np.zeros(2)})
    net.forward()
    with pytest.raises(LayerError, match=r"'emb'.*no gradient"):
        net.backward()


@pytest.mark.parametrize("indices", [[4, 3, 2, 1, 0], [1, 1, 1, 4, 0, 1], [2], []])
def test_batch_reindex(indices: list[int]) -> None:
    x = draw(5, 2, 3)
    inputs = {"x": x, "i": np.array(indices, np.float32)}
    net = build(REINDEX, inputs, force=False)
    net.forward()
    same(net.blobs["y"].data, x[indices], 0, 0)
    given, want = backward(net)["y"], np.zeros_like(x)
    np.add.at(want, np.array(indices, int), given)
    same(net.blobs["xb"].diff, want)
    check_gradients(REINDEX, inputs, of=[], force=False)


@pytest.mark.parametrize("value", BAD)
def test_batch_reindex_refuses(value: float) -> None:
    net = build(REINDEX, {"x": draw(5, 2), "i": np.array([1, value], np.float32)}, force=False)
    with pytest.raises(LayerError, match=r"'pick'.*index .*5 items"):
        net.forward()
    net.backward()


def test_filter_follows_its_selector() -> None:
    x, z = draw(4, 2, 3), draw(4, seed=3)
    net = build(
        FILTER.replace("loss_weight: 1", "loss_weight: 0", 1)
        + 'layer { name: "sum" type: "Reduction" bottom: "y" top: "t" '
        "loss_weight: 1 reduction_param { axis: 1 } }",
        {"x": x, "z": z, "s": np.zeros(4)},
        force=False,
    )
    for marks in (
        [1, 0, -2, 0],
        [1, 1, 1, 1],
        [0, 0, 0, 0],
        [0, 0, 0, 0.5],
        [float("nan"), 0, 1, 0],
    ):
        net.blobs["s"].data[...] = marks
        net.forward()
        kept = np.flatnonzero(np.array(marks))
        same(net.blobs["y"].data, x[kept], 0, 0)
        same(net.blobs["w"].data, z[kept], 0, 0)
        same(net.blobs["t"].data, x[kept].reshape(len(kept), 6).sum(1))
        given = backward(net)
        for blob, diff in (("xb", np.repeat(given["t"], 6)), ("zb", given["w"])):
            want = np.zeros_like(net.blobs[blob].data)
            want[kept] = diff.reshape(want[kept].shape)
            same(net.blobs[blob].diff, want, 0, 0)


def test_filter_gradient() -> None:
    inputs = {"x": draw(4, 2), "z": draw(4, 1, 2), "s": np.array([[1], [0], [1], [1]])}
    check_gradients(FILTER, inputs, of=[], force=False)


@pytest.mark.parametrize(
    ("text", "inputs", "message"),
    [
        (REINDEX, {"x": (3, 2), "i": (2,)}, "'pick': BatchReindex: .* the indices, bottom 'i'"),
        (
            FILTER,
            {"x": (3, 2), "z": (3,), "s": (3,)},
            "'keep': Filter: .* the selector, bottom 's'",
        ),
    ],
)
def test_what_selects_has_no_gradient(
    text: str, inputs: dict[str, tuple[int, ...]], message: str
) -> None:
    """Caffe ends: batch_reindex_layer.cpp and filter_layer.cpp, Backward_cpu."""
    net = build(text, {name: np.ones(shape, np.float32) for name, shape in inputs.items()})
    net.forward()
    with pytest.raises(LayerError, match=f"layer {message}; leave force_backward out"):
        net.backward()
