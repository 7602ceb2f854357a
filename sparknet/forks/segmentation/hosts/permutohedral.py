"""Gaussian filters over many axes, on a permutohedral lattice.

Adams, Baek and Davis, Fast High-Dimensional Filtering Using the Permutohedral Lattice (2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.native.lattice import NativeLattice

Array = np.ndarray[Any, Any]

MOST = 1 << 62
FAR = 1e12
"""Features beyond this have no place on a lattice of whole numbers."""


class Lattice:
    """A filter for points of d features each; their deviation is 1 in every feature.

    Each point lies in a simplex of d + 1 lattice points, among which its value is shared; these are
    blurred along the lattice's d + 1 axes, and the point's result is read where it lies.
    """

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
        known, places = np.unique(codes, return_inverse=True)
        if (d + 1) * max(many, len(known)) >= 1 << 31:
            raise ValueError("there are too many points")
        self.native = NativeLattice(
            places.reshape(d + 1, many),
            shares,
            np.array([_neighbours(known, axis, d, base) for axis in range(d + 1)], np.int32),
            1 / (1 + 2.0**-d),
        )

    def filter(self, values: Array, transposed: bool = False) -> Array:
        """Values (rows x points) blurred; `transposed` is the adjoint, for gradients."""
        return self.native.filter(values, transposed)


def _simplex(features: Array) -> tuple[Array, Array, Array]:
    """Of each point the nearest lattice point, the order of its distances, and the shares."""
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
    """A number for each key, and what a step along each of its axes adds to it."""
    low, high = keys.min(0) - d - 1, keys.max(0) + d + 1
    base, length = [], 1
    for span in (high - low + 1).tolist():
        base.append(length)
        length *= span
    if length > MOST:
        raise ValueError("the deviations are too small for the extent of the features")
    return (keys - low) @ np.array(base, np.int64), base


def _neighbours(known: Array, axis: int, d: int, base: list[int]) -> tuple[Array, Array]:
    """The places of both neighbours along an axis; past the end where there is none."""
    step = sum(base) - (d + 1) * base[axis] if axis < d else sum(base)
    found = []
    for move in (-step, step):
        wanted = known + move
        places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        found.append(np.where(known[places] == wanted, places, len(known)))
    return found[0], found[1]


def grid(high: int, wide: int, deviation: float) -> Array:
    """Columns and rows of all pixels, in deviations: points x 2."""
    rows, columns = np.mgrid[:high, :wide]
    return np.stack([columns.ravel(), rows.ravel()], 1) / deviation


def coloured(image: Array, place: float, colour: float) -> Array:
    """Columns, rows and channels of all pixels (of channels x height x width), in deviations."""
    pixels = image.reshape(len(image), -1).T.astype(np.float64) / colour
    return np.concatenate([grid(image.shape[1], image.shape[2], place), pixels], 1)
