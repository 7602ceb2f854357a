"""Arithmetic of arrays: in place, by operators, and reductions to one number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union

import numpy as np

from sparknet.native import exchange
from sparknet.native.core import check, ffi, lib
from sparknet.native.strided import Strided

if TYPE_CHECKING:
    from sparknet.native.ndarray import NDArray

ArrayLike = Union["NDArray", exchange.Array, Sequence[Any], float]
T = TypeVar("T", bound="Arithmetic")


class Arithmetic(Strided, ABC):
    """What an NDArray computes; NDArray makes results and operands."""

    __slots__ = ()

    @abstractmethod
    def _alike(self: T) -> T:
        """Return an array of the same shape, for a result."""

    @classmethod
    @abstractmethod
    def _operand(cls: type[T], other: ArrayLike, plain: bool = True) -> T:
        """Return the other operand: shared if it has memory of its own, else copied.

        With ``plain``, numbers in a list become float32.
        """

    # ---- In place

    def add(self: T, other: ArrayLike) -> T:
        """self += other"""
        return _add(self, self, other)

    def subtract(self: T, other: ArrayLike) -> T:
        """self -= other"""
        return _subtract(self, self, other)

    def multiply(self: T, other: ArrayLike) -> T:
        """self *= other, element by element."""
        return _multiply(self, self, other)

    def scale(self: T, factor: float) -> T:
        """self *= factor"""
        return _multiply(self, self, float(factor))

    def axpy(self: T, a: float, x: ArrayLike) -> T:
        """self += a * x"""
        check(lib.sn_axpy(self._handle, a, self._operand(x)._handle))
        return self

    def axpby(self: T, a: float, x: ArrayLike, b: float) -> T:
        """self = a * x + b * self; with b = 0 the old contents do not matter."""
        check(lib.sn_axpby(self._handle, a, self._operand(x)._handle, b))
        return self

    # ---- Operators

    def __add__(self: T, other: ArrayLike) -> T:
        return _add(self._alike(), self, other)

    def __sub__(self: T, other: ArrayLike) -> T:
        return _subtract(self._alike(), self, other)

    def __mul__(self: T, other: ArrayLike) -> T:
        return _multiply(self._alike(), self, other)

    __radd__ = __add__
    __rmul__ = __mul__
    __iadd__ = add
    __isub__ = subtract
    __imul__ = multiply

    def __rsub__(self: T, other: ArrayLike) -> T:
        return (-self).add(other)

    def __neg__(self: T) -> T:
        return _multiply(self._alike(), self, -1.0)

    # ---- Reductions

    def sum(self) -> float:
        """Return the sum, in double; like all of these the same for any number of threads."""
        return self._reduced(lib.sn_sum)

    def dot(self, other: ArrayLike) -> float:
        """Return the sum of products, in double."""
        return self._reduced(lib.sn_dot, other)

    def norm2(self) -> float:
        """Return the Euclidean length."""
        return self._reduced(lib.sn_norm2)

    def distance1(self, other: ArrayLike) -> float:
        """Return the sum of absolute differences."""
        return self._reduced(lib.sn_distance1, other)

    def distance2(self, other: ArrayLike) -> float:
        """Return the Euclidean distance."""
        return self._reduced(lib.sn_distance2, other)

    def min(self) -> float:
        """Return the smallest element; NaN if there is one."""
        return self._reduced(lib.sn_min)

    def max(self) -> float:
        """Return the largest element; NaN if there is one."""
        return self._reduced(lib.sn_max)

    def is_finite(self) -> bool:
        """Return whether no element is NaN or infinite."""
        count = ffi.new("int64_t *")
        check(lib.sn_count_not_finite(count, self._handle))
        return bool(count[0] == 0)

    def allclose(self, other: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Return whether every |self - other| <= atol + rtol * |other|; NaN is close to nothing."""
        return self._is_close(self._operand(other, plain=False), rtol, atol)

    def equals(self, other: ArrayLike, tolerance: float = 0.0) -> bool:
        """Return whether the shapes are equal and no element differs by more than `tolerance`."""
        operand = self._operand(other, plain=False)
        return operand.shape == self._shape and self._is_close(operand, 0.0, tolerance)

    # ---- Inside

    def _is_close(self, other: Arithmetic, rtol: float, atol: float) -> bool:
        count = ffi.new("int64_t *")
        check(lib.sn_count_far(count, self._handle, other._handle, rtol, atol))
        return bool(count[0] == 0)

    def _reduced(self, function: Any, *others: ArrayLike) -> float:
        out = ffi.new("double *")
        check(function(out, self._handle, *(self._operand(other)._handle for other in others)))
        value: float = out[0]
        return value


def _add(out: T, a: T, b: ArrayLike) -> T:
    if isinstance(b, int | float | np.number):
        check(lib.sn_scale(out._handle, a._handle, 1.0, float(b)))
    else:
        check(lib.sn_add(out._handle, a._handle, a._operand(b)._handle))
    return out


def _subtract(out: T, a: T, b: ArrayLike) -> T:
    if isinstance(b, int | float | np.number):
        check(lib.sn_scale(out._handle, a._handle, 1.0, -float(b)))
    else:
        check(lib.sn_subtract(out._handle, a._handle, a._operand(b)._handle))
    return out


def _multiply(out: T, a: T, b: ArrayLike) -> T:
    if isinstance(b, int | float | np.number):
        check(lib.sn_scale(out._handle, a._handle, float(b), 0.0))
    else:
        check(lib.sn_multiply(out._handle, a._handle, a._operand(b)._handle))
    return out
