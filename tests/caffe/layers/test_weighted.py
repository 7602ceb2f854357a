"""Gradients of the layers that multiply by weights, by finite differences, for every option."""

import numpy as np
import pytest

from tests.caffe.gradient import build
from tests.caffe.layers.passing import backward


def values(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
@pytest.mark.filterwarnings("ignore:.*bfloat16")
def test_taps_that_see_nothing_learn_nothing(kind, precision):
    """Another layer's gradients of the same size have just been in the memory that they take."""
    options = "num_output: 16 kernel_size: 5 pad: 2 stride: 2 weight_filler { type: 'xavier' }"
    layers = "".join(
        f"layer {{ name: 'l{bottom}' type: '{kind}' bottom: '{bottom}' top: 'y{bottom}' "
        f"convolution_param {{ {options} }} }}"
        for bottom in ("narrow", "square")
    )
    net = build(
        layers,
        {"narrow": values((2, 16, 8, 1)), "square": values((2, 16, 8, 8))},
        precision=precision,
    )
    for _ in range(2):
        net.forward()
        backward(net)
        actual = net.params["lnarrow"][0].diff
        assert actual[..., 2].any()
        assert not actual[..., [0, 1, 3, 4]].any()


def test_an_empty_result_asks_nothing_of_its_input():
    window = "kernel_size: 3 pad: 1 dilation: 2 stride: 2"
    net = build(
        f"layer {{ name: 'l' type: 'Convolution' bottom: 'x' top: 'y' "
        f"convolution_param {{ num_output: 2 {window} }} }}",
        {"x": values((2, 3, 9, 1))},
    )
    assert net.forward()["y"].shape == (2, 2, 4, 0)
    net.blobs["x"].diff[...] = 3
    backward(net)
    assert not net.blobs["x"].diff.any()


def line_net(x, sizes, group, stride, **options):
    """A convolution and a ReLU over lines, whatever axes these have."""
    axes = [("kernel_size", 5, 1), ("pad", 2, 0), ("stride", stride, 1)]
    fields = " ".join(f"{name}: {a if n > 1 else b}" for n in sizes for name, a, b in axes)
    return build(
        "layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a' convolution_param "
        f"{{ num_output: 32 group: {group} weight_filler {{ type: 'xavier' }} {fields} }} }} "
        "layer { name: 'f' type: 'ReLU' bottom: 'a' top: 'f' }",
        {"x": x.reshape(2, 32, *sizes)},
        seed=1,
        **options,
    )


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("group", [1, 32])
def test_lines_are_images_of_one_row(group, stride):
    """In each phase, by the same loops."""
    x, methods, grads = values((2, 32, 37)), set(), []
    rows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (2, 2))), 5, 2)
    rows = rows[:, :, ::stride].reshape(2, group, 32 // group, -1, 5)
    for sizes in ((37,), (37, 1), (1, 37)):
        net = line_net(x, sizes, group, stride, phase=1, force=False, keep_blobs=False)
        net.forward()
        weights = net.params["a"][0].data.reshape(group, 32 // group, 32 // group, 5)
        want = np.einsum("ngclk,gock->ngol", rows, weights).reshape(2, 32, -1)
        same = net.blobs["f"].data.reshape(want.shape)
        np.testing.assert_allclose(same, np.maximum(want, 0), atol=1e-5)
        methods.add(net._runtime.engine.methods(1)["forward"])
        trained = line_net(x, sizes, group, stride)
        trained.forward()
        backward(trained)
        diffs = (trained.blobs["x"].diff, *(blob.diff for blob in trained.params["a"]))
        grads.append(np.concatenate([one.ravel() for one in diffs]))
    assert len(methods) == 1, methods
    for one in grads[:2]:
        np.testing.assert_allclose(one, grads[2], atol=1e-4)
