"""Dense CRFs: the lattice's filters against Gaussians, and mean fields against plain formulas."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.layers.crf import Lattice, coloured, grid
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.oracle import layer_text
from tests.caffe.layers.passing import draw, same

SIZE = (5, 6)


def gaussian(features, values):
    """Means by Gaussian weights, of all points by all."""
    weights = np.exp(-((features[:, None] - features[None]) ** 2).sum(2) / 2)
    return values @ weights / weights.sum(1)


def picture():
    """Two halves of colour, with some noise."""
    image = draw(3, *SIZE, seed=4) * 2
    image[:, :, 3:] += 40
    return image


@pytest.mark.parametrize("kind", ["places", "colours"])
def test_filters_are_nearly_gaussian(kind):
    size = (16, 20)
    image = np.random.default_rng(0).normal(size=(3, *size)) * 10
    features = grid(*size, 3.0) if kind == "places" else coloured(image, 8, 15)
    values = np.random.default_rng(1).random((2, 320))
    lattice = Lattice(features)
    got = lattice.filter(values) / lattice.filter(np.ones((1, 320)))
    want = gaussian(features, values)
    assert np.corrcoef(got.ravel(), want.ravel())[0, 1] > 0.95
    assert np.abs(got - want).max() < 0.06
    # Shares of the corners of a simplex are shares.
    assert lattice.native.shares.min() > -1e-9
    np.testing.assert_allclose(lattice.native.shares.sum(0), 1)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("rows", [1, 4, 6])
@pytest.mark.parametrize("kind", ["places", "colours"])
def test_the_native_filter(kind, rows, transposed):
    """Sharing, blurring and reading, a loop for each."""
    lattice = Lattice(grid(*SIZE, 1.5) if kind == "places" else coloured(picture(), 2, 5))
    native, values = lattice.native, draw(rows, SIZE[0] * SIZE[1]).astype(np.float64)
    corners, points = native.places.shape
    size = native.neighbours.shape[2]
    for row, got in zip(values, lattice.filter(values, transposed), strict=True):
        held = np.zeros(size + 1)
        for corner in range(corners):
            for point in range(points):
                held[native.places[corner, point]] += native.shares[corner, point] * row[point]
        for axis in reversed(range(corners)) if transposed else range(corners):
            before, after = native.neighbours[axis]
            held[:-1] = [held[i] + (held[before[i]] + held[after[i]]) / 2 for i in range(size)]
        read = (native.shares * held[native.places]).sum(0) / (1 + 2.0 ** (1 - corners))
        np.testing.assert_allclose(got, read, rtol=1e-12, atol=1e-12)


def test_places_outside_a_lattice():
    native = Lattice(grid(4, 4, 2.0)).native
    native.places[0, 0] = 99
    with pytest.raises(IndexError, match="outside the lattice"):
        native.filter(np.ones((1, 16)), False)
    with pytest.raises(ValueError, match="no rows of 16 points"):
        native.filter(np.ones((1, 15)), False)


def test_the_adjoint_of_a_filter():
    lattice = Lattice(coloured(picture(), 2, 5))
    one, two = draw(1, 30), draw(1, 30, seed=1)
    forth, back = lattice.filter(one), lattice.filter(two, transposed=True)
    assert (forth * two).sum() == pytest.approx((one * back).sum(), rel=1e-9)


def test_deviations_that_are_too_small():
    with pytest.raises(ValueError, match="too small for the extent"):
        Lattice(grid(4, 4, 1e-30))


def softmax(x):
    powers = np.exp(x - x.max(0))
    return powers / powers.sum(0)


def blurred(features, values):
    lattice = Lattice(features)
    return lattice.filter(values) / lattice.filter(np.ones((1, values.shape[1])))


CRF = (
    "multi_stage_meanfield_param { num_iterations: 3 theta_alpha: 4 theta_beta: 10 theta_gamma: 2 "
    "compatibility_mode: POTTS threshold: 2 spatial_filter_weight: 3 bilateral_filter_weight: 5 }"
)


def test_mean_fields():
    u, q, image = (
        draw(2, 3, *SIZE),
        draw(2, 3, *SIZE, seed=1),
        np.stack([picture(), draw(3, *SIZE)]),
    )
    net = build(layer_text("MultiStageMeanfield", CRF, "u q i"), {"u": u, "q": q, "i": image})
    weights = [draw(1, 1, 3, 3, seed=seed) for seed in (5, 6, 7)]
    for blob, scale in zip(net.params["l"], (3, 5, -1), strict=True):
        same(blob.data, np.eye(3)[None, None] * scale)
    for blob, value in zip(net.params["l"], weights, strict=True):
        blob.data[...] = value
    net.forward()
    spatial, bilateral, compare = (w[0, 0] for w in weights)
    for n in range(2):
        now = q[n].reshape(3, -1)
        for _ in range(3):
            chances = softmax(now.astype(float))
            near = blurred(grid(*SIZE, 2), chances)
            alike = blurred(coloured(image[n], 4, 10), chances)
            now = u[n].reshape(3, -1) - compare @ (spatial @ near + bilateral @ alike)
        same(net.blobs["y"].data[n].reshape(3, -1), now, 1e-4, 1e-4)


def test_gradients_of_mean_fields():
    u, q = draw(1, 2, 3, 4), draw(1, 2, 3, 4, seed=1)
    inputs = {"u": u, "q": q, "i": draw(1, 3, 3, 4, seed=2) * 5}
    weights = [draw(1, 1, 2, 2, seed=seed) for seed in (5, 6, 7)]
    text = layer_text("MultiStageMeanfield", CRF.replace("iterations: 3", "iterations: 2"), "u q i")
    check_gradients(text, inputs, {"l": weights}, of=["u", "q"])


def test_labels_that_the_picture_pulls():
    """A pixel of the other half's label becomes like its own half."""
    scores = np.zeros((1, 2, *SIZE), np.float32)
    scores[0, 0, :, :3], scores[0, 1, :, 3:] = 2, 2
    scores[0, :, 2, 4] = [1, 0]
    inputs = {"s": scores, "d": [SIZE], "i": picture()[None]}
    options = (
        "dense_crf_param { max_iter: 5 pos_w: 1 pos_xy_std: 1 bi_w: 4 bi_xy_std: 6 bi_rgb_std: 9 }"
    )
    net = run(layer_text("DenseCRF", options, "s d i"), inputs, force=False)
    actual = net.blobs["y"].data[0]
    assert (actual.argmax(0) == (np.arange(6) > 2)).all()
    now = first = scores[0].reshape(2, -1).astype(float)
    for _ in range(5):
        chances = softmax(now)
        now = first + blurred(grid(*SIZE, 1), chances)
        now = now + 4 * blurred(coloured(picture(), 6, 9), chances)
    same(actual.reshape(2, -1), softmax(now), 1e-4, 1e-5)
    net = build(
        layer_text("DenseCRF", options.replace("{", "{ output_probability: false"), "s d i"),
        inputs,
        force=False,
    )
    net.blobs["d"].data[...] = [3, 4]
    net.forward()
    # What lies outside of the picture is 0.
    assert not net.blobs["y"].data[0, :, 3:].any()
    assert not net.blobs["y"].data[0, :, :, 4:].any()
    np.testing.assert_allclose(np.exp(net.blobs["y"].data[0, :, :3, :4]).sum(0), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("MultiStageMeanfield", CRF.replace("POTTS", "CUSTOM"), "compatibility_mode must be POTTS"),
        ("MultiStageMeanfield", CRF.replace("beta: 10", "beta: 0"), "must be positive"),
        ("MultiStageMeanfield", CRF.replace("iterations: 3", "iterations: 0"), "from 1 to 1000"),
        ("DenseCRF", "dense_crf_param { pos_w: 1 }", "needs as many of pos_w and pos_xy_std"),
        ("DenseCRF", "dense_crf_param { pos_w: 1 pos_xy_std: 0 }", "deviations must be positive"),
    ],
)
def test_settings(kind, options, says):
    u, image = draw(1, 2, *SIZE), picture()[None]
    second = u if kind == "MultiStageMeanfield" else [SIZE]
    with pytest.raises(LayerError, match=says):
        build(layer_text(kind, options, "u q i"), {"u": u, "q": second, "i": image})
