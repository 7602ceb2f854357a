"""Conditional random fields: DeepLab's DenseCRF, and MultiStageMeanfield of crfasrnn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.errors import LayerError
from sparknet.layers.host import Blobs, Host, HostNode, rows_of
from sparknet.layers.layer import (
    INTERPRETED,
    Layer,
    Param,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.native.transform import NativeLattice
from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]

MAX_LATTICE = 1 << 62
FAR = 1e12
"""Features beyond this have no place on a lattice of whole numbers."""


class Lattice:
    """A filter for points of d features each; their deviation is 1 in every feature.

    Each point lies in a simplex of d + 1 lattice points, among which its value is shared; these are
    blurred along the lattice's d + 1 axes, and the point's result is read where it lies."""

    def __init__(self, features: Array) -> None:
        """`features` is points x d."""
        many, d = features.shape
        if not (np.abs(features) < FAR).all():
            raise ValueError("the deviations are too small for the extent of the features")
        nearest, rank, shares = _simplex(features)
        keys = np.empty((d + 1, many, d), np.int64)
        for corner in range(d + 1):
            step = np.where(np.arange(d + 1) <= d - corner, corner, corner - d - 1)
            keys[corner] = (nearest + step[rank])[:, :d]
        codes, base = _codes(keys.reshape(-1, d), d)
        distinct, places = np.unique(codes, return_inverse=True)
        if (d + 1) * max(many, len(distinct)) >= 1 << 31:
            raise ValueError("there are too many points")
        self.native = NativeLattice(
            places.reshape(d + 1, many),
            shares,
            np.array([_neighbours(distinct, axis, d, base) for axis in range(d + 1)], np.int32),
            1 / (1 + 2.0**-d),
        )

    def filter(self, values: Array, transposed: bool = False) -> Array:
        """Values (rows x points) blurred; `transposed` is the adjoint, for gradients."""
        return self.native.filter(values, transposed)


def _simplex(features: Array) -> tuple[Array, Array, Array]:
    """Return each point's nearest lattice point, the order of its distances, and the shares."""
    many, d = features.shape
    axes = np.arange(d)
    scaled = features * (np.sqrt(2 / 3) * (d + 1) / np.sqrt((axes + 1.0) * (axes + 2)))
    elevated = np.zeros((many, d + 1))
    total = np.zeros(many)
    for axis in range(d, 0, -1):
        elevated[:, axis] = total - axis * scaled[:, axis - 1]
        total += scaled[:, axis - 1]
    elevated[:, 0] = total
    low, high = (side(elevated / (d + 1)) * (d + 1) for side in (np.floor, np.ceil))
    nearest = np.where(high - elevated < elevated - low, high, low)
    off = np.rint(nearest.sum(1) / (d + 1)).astype(np.int64)[:, None]
    order = np.argsort(nearest - elevated, axis=1, kind="stable")
    rank = np.empty((many, d + 1), np.int64)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(d + 1), rank.shape), 1)
    rank += off
    under, over = rank < 0, rank > d
    nearest = nearest + (d + 1) * (under.astype(np.int64) - over)
    rank += (d + 1) * (under.astype(np.int64) - over)
    away = (elevated - nearest) / (d + 1)
    shares = np.zeros((many, d + 2))
    rows = np.arange(many)
    for axis in range(d + 1):
        shares[rows, d - rank[:, axis]] += away[:, axis]
        shares[rows, d + 1 - rank[:, axis]] -= away[:, axis]
    shares[:, 0] += 1 + shares[:, d + 1]
    return nearest.astype(np.int64), rank, np.ascontiguousarray(shares[:, : d + 1].T)


def _codes(keys: Array, d: int) -> tuple[Array, list[int]]:
    """Return a number for each key, and what a step along each of its axes adds to it."""
    low, high = keys.min(0) - d - 1, keys.max(0) + d + 1
    base, length = [], 1
    for span in (high - low + 1).tolist():
        base.append(length)
        length *= span
    if length > MAX_LATTICE:
        raise ValueError("the deviations are too small for the extent of the features")
    return (keys - low) @ np.array(base, np.int64), base


def _neighbours(keys: Array, axis: int, d: int, base: list[int]) -> tuple[Array, Array]:
    """Return the places of both neighbours along an axis; past the end where there is none."""
    step = sum(base) - (d + 1) * base[axis] if axis < d else sum(base)
    rows = []
    for move in (-step, step):
        target = keys + move
        places = np.minimum(np.searchsorted(keys, target), len(keys) - 1)
        rows.append(np.where(keys[places] == target, places, len(keys)))
    return rows[0], rows[1]


def grid(high: int, wide: int, deviation: float) -> Array:
    """Columns and rows of all pixels, in deviations: points x 2."""
    rows, columns = np.mgrid[:high, :wide]
    return np.stack([columns.ravel(), rows.ravel()], 1) / deviation


def coloured(image: Array, place: float, colour: float) -> Array:
    """Columns, rows and channels of all pixels (of channels x height x width), in deviations."""
    pixels = image.reshape(len(image), -1).T.astype(np.float64) / colour
    return np.concatenate([grid(image.shape[1], image.shape[2], place), pixels], 1)


TINY = float(np.finfo(np.float32).tiny)


class DenseCRFHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values, out = self.node.plan.values, tops[0].data
        sizes = rows_of(bottoms[1].data)[:, :2].astype(np.int64)
        out[...] = 0
        for number, (scores, size) in enumerate(zip(bottoms[0].data, sizes, strict=True)):
            high, wide = scores.shape[1:]
            if not (high <= size[0] and wide <= size[1]):
                high, wide = min(int(size[0]), high), min(int(size[1]), wide)
            if min(high, wide) < 1:
                raise LayerError(self.node.name, f"DenseCRF: picture {number} has no pixel")
            image = bottoms[2].data[number, :, :high, :wide] if len(bottoms) > 2 else None
            logs = self._inferred(scores[:, :high, :wide], image)
            if not values["probability"]:
                logs = np.log(np.maximum(logs, TINY))
            out[number, :, :high, :wide] = logs.reshape(len(scores), high, wide)

    def _inferred(self, scores: Array, image: Array | None) -> Array:
        values = self.node.plan.values
        high, wide = scores.shape[1:]
        try:
            potentials = [(w, Lattice(grid(high, wide, std))) for w, std in values["places"]]
            if image is not None:
                for weight, place, colour in values["colours"]:
                    potentials.append((weight, Lattice(coloured(image, place, colour))))
        except ValueError as error:
            raise LayerError(self.node.name, f"DenseCRF: {error}") from error
        norms = [lattice.filter(np.ones((1, high * wide))) for _, lattice in potentials]
        first = scores.reshape(len(scores), -1).astype(np.float64)
        chances = softmax(first)
        for _ in range(values["iterations"]):
            total = first.copy()
            for (weight, lattice), norm in zip(potentials, norms, strict=True):
                total += weight * lattice.filter(chances) / norm
            chances = softmax(total)
        return chances


def softmax(scores: Array) -> Array:
    """Over the first axis."""
    powers = np.exp(scores - scores.max(0))
    return np.asarray(powers / powers.sum(0))


@layer("DenseCRF")
class DenseCRF(Layer):
    """densecrf_layer.cpp of DeepLab (Krahenbuhl and Koltun, Efficient Inference in Fully Connected
    CRFs with Gaussian Edge Potentials); bottoms: scores (N x C x H x W), height and width of each
    picture (N x 2), and the pictures (N x 3 x H x W).

    Potts potentials of each pos_w with pos_xy_std over places and, if there are pictures, of each
    bi_w with bi_xy_std and bi_rgb_std over places and colours.  The top has the probabilities, or
    without output_probability their logarithms, and zeros outside of the picture."""

    host = DenseCRFHost
    field = "dense_crf_param"
    bottoms = between(2, 3)
    has_gradient = False

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options, scores = self.options, bottoms[0]
        sizes = legacy_shape(self, bottoms[1], "the sizes")
        if len(scores) != 4 or not scores[1] or sizes[0] != scores[0] or count(sizes[1:]) != 2:
            self.fail(
                "takes scores of N x C x H x W, and N x 2 sizes; they are "
                f"{shape_text(scores)} and {shape_text(bottoms[1])}"
            )
        if len(bottoms) > 2 and bottoms[2] != (scores[0], 3, *scores[2:]):
            self.fail(
                f"needs pictures of {shape_text((scores[0], 3, *scores[2:]))}; "
                f"they are {shape_text(bottoms[2])}"
            )
        numbers = [
            list(getattr(options, name))
            for name in ("pos_w", "pos_xy_std", "bi_w", "bi_xy_std", "bi_rgb_std")
        ]
        counts = [len(values) for values in numbers]
        if counts[0] != counts[1] or len(set(counts[2:])) > 1 or max(counts) > MAX_ITERATIONS:
            self.fail("needs as many of pos_w and pos_xy_std, and of bi_w, bi_xy_std, bi_rgb_std")
        if min((*numbers[1], *numbers[3], *numbers[4]), default=1) <= 0:
            self.fail("the deviations must be positive")
        if not 0 <= options.max_iter <= MAX_ITERATIONS:
            self.fail(f"max_iter is {options.max_iter}; it must be from 0 to {MAX_ITERATIONS}")
        values = {
            "iterations": options.max_iter,
            "places": tuple(zip(numbers[0], numbers[1], strict=True)),
            "colours": tuple(zip(*numbers[2:], strict=True)) if len(bottoms) > 2 else (),
            "probability": options.output_probability,
        }
        return Plan((scores,), values=values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        turns: int = plan.values["iterations"] + 1
        return turns * (bottoms[0][0] * INTERPRETED + LATTICE * count(bottoms[0]))


class MultiStageMeanfieldHost(Host):
    def __init__(self, node: HostNode, params: Blobs, seed: int) -> None:
        super().__init__(node, params, seed)
        self.passes: list[tuple[list[Blurring], list[Array]]] = []
        self.places: tuple[tuple[int, int], Blurring] | None = None

    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values, self.passes = self.node.plan.values, []
        spatial, bilateral, compare = (matrix(blob.data) for blob in self.params)
        for scores, start, image, out in zip(*(b.data for b in bottoms), tops[0].data, strict=True):
            first = scores.reshape(len(scores), -1).astype(np.float64)
            now = start.reshape(first.shape).astype(np.float64)
            filters = self._filters(image)
            passes = []
            for _ in range(values["iterations"]):
                chances = softmax(now)
                near, alike = (one.filter(chances) for one in filters)
                now = first - compare @ (spatial @ near + bilateral @ alike)
                if self.node.needs_backward:
                    passes.append(chances)
            self.passes.append((filters, passes))
            out[...] = now.reshape(out.shape)

    def backward(self, tops: Blobs, propagate_down: Sequence[bool], bottoms: Blobs) -> None:
        spatial, bilateral, compare = (matrix(blob.data) for blob in self.params)
        slopes = [np.zeros(matrix(blob.data).shape) for blob in self.params]
        for number, (filters, state) in enumerate(self.passes):
            diff = tops[0].diff[number]
            slope = diff.reshape(len(diff), -1).astype(np.float64)
            to_first = np.zeros_like(slope)
            for chances in reversed(state):
                to_first += slope
                near, alike = (one.filter(chances) for one in filters)
                slopes[2] -= slope @ (spatial @ near + bilateral @ alike).T
                message = -compare.T @ slope
                slopes[0] += message @ near.T
                slopes[1] += message @ alike.T
                back = filters[0].back(spatial.T @ message) + filters[1].back(bilateral.T @ message)
                slope = chances * (back - (chances * back).sum(0))
            for bottom, propagate, gradient in zip(
                bottoms, propagate_down, (to_first, slope), strict=False
            ):
                if propagate:
                    bottom.diff[number] = gradient.reshape(diff.shape)
        for blob, gradient in zip(self.params, slopes, strict=True):
            blob.diff[...] += gradient.reshape(blob.shape)

    def _filters(self, image: Array) -> list[Blurring]:
        values = self.node.plan.values
        size = (image.shape[1], image.shape[2])
        try:
            if self.places is None or self.places[0] != size:
                self.places = size, Blurring(grid(*size, values["gamma"]))
            colours = Blurring(coloured(image, values["alpha"], values["beta"]))
        except ValueError as error:
            raise LayerError(self.node.name, f"MultiStageMeanfield: {error}") from error
        return [self.places[1], colours]


class Blurring:
    """A filter whose weights of each point add up to 1."""

    def __init__(self, features: Array) -> None:
        self.lattice = Lattice(features)
        self.norm = self.lattice.filter(np.ones((1, len(features))))

    def filter(self, values: Array) -> Array:
        return np.asarray(self.lattice.filter(values) / self.norm)

    def back(self, slope: Array) -> Array:
        return self.lattice.filter(slope / self.norm, transposed=True)


def matrix(blob: Array) -> Array:
    return np.asarray(blob.reshape(blob.shape[-2:]), np.float64)


MAX_ITERATIONS = 1000
"""Iterations that a layer may have."""
LATTICE = 64
"""Multiplications for each value that goes through a permutohedral lattice."""


@layer("MultiStageMeanfield")
class MultiStageMeanfield(Layer):
    """multi_stage_meanfield.cpp of crfasrnn (Zheng et al., Conditional Random Fields as Recurrent
    Neural Networks); bottoms: scores, the scores to begin with, and the picture (N x 3 x H x W).

    In each iteration the softmax of the scores is blurred twice, over places (theta_gamma) and
    over places and colours (theta_alpha, theta_beta), weighed by the blobs 0 and 1, compared by
    blob 2, and taken from the first scores.  The first two blobs are the filter weights times the
    unit matrix (1, where there are none: files such as spatial.par are not read), the third is
    minus it."""

    host = MultiStageMeanfieldHost
    field = "multi_stage_meanfield_param"
    bottoms = exactly(3)
    bottoms_without_gradient = (2,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        scores = bottoms[0]
        if len(scores) != 4 or bottoms[1] != scores or not scores[1]:
            self.fail(
                "takes scores of N x C x H x W twice; they are "
                f"{shape_text(scores)} and {shape_text(bottoms[1])}"
            )
        if bottoms[2] != (scores[0], 3, *scores[2:]):
            self.fail(
                f"needs pictures of {shape_text((scores[0], 3, *scores[2:]))}; "
                f"they are {shape_text(bottoms[2])}"
            )
        if not 0 < options.num_iterations <= MAX_ITERATIONS:
            self.fail(
                f"num_iterations is {options.num_iterations}; it must be from 1 to {MAX_ITERATIONS}"
            )
        thetas = (options.theta_alpha, options.theta_beta, options.theta_gamma)
        if not min(thetas) > 0 or not max(thetas) < float("inf"):
            self.fail("theta_alpha, theta_beta and theta_gamma must be positive")
        if options.compatibility_mode != caffe_pb2.MultiStageMeanfieldParameter.POTTS:
            self.fail("compatibility_mode must be POTTS")
        shape = (1, 1, scores[1], scores[1])
        params = tuple(Param(shape, _diagonal(value)) for value in (*self._weights(), -1.0))
        names = ("iterations", "alpha", "beta", "gamma")
        values = dict(zip(names, (options.num_iterations, *thetas), strict=True))
        return Plan((scores,), params, values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        turns: int = plan.values["iterations"] + 1
        return turns * (bottoms[0][0] * INTERPRETED + LATTICE * count(bottoms[0]))

    def _weights(self) -> tuple[float, float]:
        options = self.options
        ranges = [
            getattr(options, name) if options.HasField(name) else 1.0
            for name in ("spatial_filter_weight", "bilateral_filter_weight")
        ]
        return ranges[0], ranges[1]


def _diagonal(value: float) -> caffe_pb2.FillerParameter:
    return caffe_pb2.FillerParameter(type="diagonal", value=value)
