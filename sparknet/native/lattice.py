"""Blurs values on a permutohedral lattice in the native core."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.native.core import check, ffi, lib

Array = np.ndarray[Any, Any]


class NativeLattice:
    """Places and shares (corners x points), neighbours (corners x 2 x size); transform.h says what
    they are."""

    def __init__(self, places: Array, shares: Array, neighbours: Array, scale: float) -> None:
        self.places = np.ascontiguousarray(places, np.int32)
        self.shares = np.ascontiguousarray(shares, np.float64)
        self.neighbours = np.ascontiguousarray(neighbours, np.int32)
        self._lattice = ffi.new("sn_lattice *")
        self._lattice.corners, self._lattice.points = places.shape
        self._lattice.size = neighbours.shape[2]
        self._lattice.scale = scale
        self._lattice.places = ffi.cast("int32_t *", self.places.ctypes.data)
        self._lattice.shares = ffi.cast("double *", self.shares.ctypes.data)
        self._lattice.neighbours = ffi.cast("int32_t *", self.neighbours.ctypes.data)

    def filter(self, values: Array, transposed: bool) -> Array:
        """Rows of a value for each point."""
        source = np.ascontiguousarray(values, np.float64)
        if source.ndim != 2 or source.shape[1] != self._lattice.points:
            raise ValueError(f"{source.shape} are no rows of {self._lattice.points} points")
        out = np.empty_like(source)
        check(
            lib.sn_lattice_filter(
                ffi.cast("double *", out.ctypes.data),
                ffi.cast("double *", source.ctypes.data),
                len(source),
                self._lattice,
                transposed,
            )
        )
        return out
