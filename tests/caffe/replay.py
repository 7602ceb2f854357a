"""Replays a recorded case through a net, as tests/goldens/README.md describes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.goldens import agrees

Arrays = Mapping[str, Any]


def keys(arrays, prefix):
    for key in arrays:
        if key.startswith(prefix):
            yield key[len(prefix) :], arrays[key]


def set_params(net, arrays, prefix="param/"):
    for key, value in keys(arrays, prefix):
        param(net, key).data[...] = value


def set_inputs(net, arrays, prefix):
    """Put the inputs in, reshaping the net where they are of another size."""
    inputs = dict(keys(arrays, prefix))
    changed = False
    for blob, value in inputs.items():
        if tuple(net.blobs[blob].data.shape) != value.shape:
            net.blobs[blob].reshape(*value.shape)
            changed = True
    if changed:
        net.reshape()
    for blob, value in inputs.items():
        net.blobs[blob].data[...] = value


def close(case, got, want, what):
    if not agrees(got, want, case["rtol"], case["atol"], case["floor"]):
        got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
        if got.shape != want.shape:
            raise AssertionError(f"{what}: shape {got.shape}, expected {want.shape}")
        worst = np.nanargmax(np.abs(got - want)) if got.size else 0
        raise AssertionError(
            f"{what}: {got.flat[worst]!r} at {worst}, expected {want.flat[worst]!r}; "
            f"largest difference {np.nanmax(np.abs(got - want)):g}"
        )


def check_structure(case, net):
    assert list(net._layer_names) == case["layers"]
    assert list(net.inputs) == case["inputs"]
    assert list(net.outputs) == case["outputs"]
    shapes = [[name, list(blob.data.shape)] for name, blob in net.blobs.items()]
    assert shapes == case["blobs"]


def param(net, key):
    """The parameter that a key such as ``conv1/0`` names; layer names may hold slashes."""
    layer, _, number = key.rpartition("/")
    return net.params[layer][int(number)]


def check_stats(case, net, arrays):
    """The first blob, in order, whose mean, deviation, least, most or norm is another one."""
    recorded = dict(keys(arrays, "stat/"))
    for name, blob in net.blobs.items():
        if name in recorded:
            values = np.asarray(blob.data, np.float64)
            norm = np.sqrt(np.sum(values**2))
            found = [values.mean(), values.std(), values.min(), values.max(), norm]
            close(case, found, recorded[name], f"stat/{name}")


def play(case, net, arrays):
    """Run a case's passes and compare all that was recorded."""
    set_params(net, arrays)
    for number in range(case["passes"]):
        play_pass(case, net, arrays, number)


def play_pass(case, net, arrays, number):
    prefix = f"pass{number}/" if number else ""
    set_inputs(net, arrays, f"{prefix}in/")
    net.forward()
    if not number:
        check_stats(case, net, arrays)
    check = case.get("check", "values")
    if check.startswith("dropout"):
        check_dropout(case, net, arrays, float(check.split()[1]))
        return
    if f"{prefix}loss" in arrays:
        close(case, total_loss(net), arrays[f"{prefix}loss"], "loss")
    for blob, want in keys(arrays, f"{prefix}out/"):
        close(case, net.blobs[blob].data, want, f"out/{blob}")
    for key, want in keys(arrays, f"{prefix}param_after/"):
        close(case, param(net, key).data, want, f"param_after/{key}")
    if case["backward"]:
        play_backward(case, net, arrays, prefix, number)


def total_loss(net):
    return float(
        sum(
            np.sum(net.blobs[name].data, dtype=np.float64) * weight
            for name, weight in net.blob_loss_weights.items()
            if weight
        )
    )


def play_backward(case, net, arrays, prefix, number):
    if number not in case.get("accumulate", ()):
        net.clear_param_diffs()
    for blob, value in keys(arrays, f"{prefix}topdiff/"):
        net.blobs[blob].diff[...] = value
    net.backward()
    skipped = set(case.get("no_gradient", ()))
    for blob, want in keys(arrays, f"{prefix}diff/"):
        if blob not in skipped:
            close(case, net.blobs[blob].diff, want, f"diff/{blob}")
    for key, want in keys(arrays, f"{prefix}pdiff/"):
        close(case, param(net, key).diff, want, f"pdiff/{key}")


def check_dropout(case, net, arrays, ratio):
    """One sample cannot be compared; what must hold of any sample can."""
    (name, x), *_ = keys(arrays, "in/")
    out = next(iter(keys(arrays, "out/")))[0] if name not in dict(keys(arrays, "out/")) else name
    y = np.array(net.blobs[out].data)
    kept = y != 0
    scale = 1 / (1 - ratio)
    np.testing.assert_allclose(y[kept], (x * scale)[kept], rtol=1e-5)
    share, spread = kept[x != 0].mean(), 6 * np.sqrt(ratio * (1 - ratio) / y.size)
    assert abs(share - (1 - ratio)) <= spread
    top = next((value for key, value in keys(arrays, "topdiff/")), None)
    if case["backward"] and top is not None:
        net.blobs[out].diff[...] = top
        net.backward()
        np.testing.assert_allclose(net.blobs[name].diff, top * scale * kept, rtol=1e-5)
