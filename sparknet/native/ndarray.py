"""NDArray: SparkNet's array, over memory that numpy, other libraries and files share."""

from __future__ import annotations

import math
import operator
import os
import pickle
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from sparknet import renamed
from sparknet.errors import ArrayError, IndexOutOfRange
from sparknet.native import exchange
from sparknet.native.arithmetic import Arithmetic, ArrayLike
from sparknet.native.core import check, ffi, lib
from sparknet.native.exchange import number_of
from sparknet.native.indexing import Selection, position, select

Shape = int | Sequence[int]

MODES = {"r": 0, "r+": 1, "c": 2, "w+": 3}


def _sizes(shape: Shape) -> tuple[int, ...]:
    try:
        sizes = (operator.index(shape),) if isinstance(shape, int) else tuple(shape)
        sizes = tuple(operator.index(size) for size in sizes)
    except TypeError:
        raise ArrayError(f"{shape!r} is not a shape") from None
    if len(sizes) > lib.SN_MAX_DIMS:
        raise ArrayError(f"{len(sizes)} axes are more than {lib.SN_MAX_DIMS}")
    if any(abs(size) >= 1 << 62 for size in sizes):
        raise ArrayError(f"shape {sizes} is larger than any memory")
    return sizes


class NDArray(Arithmetic):
    """A strided array of float32 (or float64, int32, uint8, int8) elements.

    `NDArray(data)` copies, into elements of `dtype` and another `shape` if one is given;
    `NDArray.view(data)` shares. Slices, transpositions and (where strides allow) reshapes
    share the memory of what they were made from, and keep it alive; so do numpy arrays made
    from an NDArray. Methods that compute in place return the array itself; operators make a
    new one. Arithmetic is for float32 and equal shapes (or a number). NDArrays compare by
    identity: see `equals`.

    >>> a = NDArray([[1, 2, 3], [4, 5, 6]])
    >>> a[:, 1].add(10).numpy()  # in place, through a view
    array([12., 15.], dtype=float32)
    >>> (a * 2).sum()
    82.0
    """

    __slots__ = ()

    __array_priority__ = 100.0

    def __init__(
        self, data: ArrayLike, shape: Shape | None = None, dtype: DTypeLike = np.float32
    ) -> None:
        source = exchange.as_array(data, dtype)
        if shape is not None:
            sizes = _sizes(shape)
            if math.prod(sizes) != source.size or any(size < 0 for size in sizes):
                raise ArrayError(f"{source.size} elements do not fit the shape {sizes}")
            source = source.reshape(sizes)
        self._adopt(_create(source.shape, dtype, zeroed=False))
        self.copy_from(_borrowed(source))

    # ---- Making

    @classmethod
    def _new(cls, handle: Any) -> NDArray:
        array = cls.__new__(cls)
        array._adopt(handle)
        return array

    @classmethod
    def zeros(cls, shape: Shape, dtype: DTypeLike = np.float32) -> NDArray:
        """Zeros in memory of its own, aligned to 64 bytes."""
        return cls._new(_create(_sizes(shape), dtype, zeroed=True))

    @classmethod
    def empty(cls, shape: Shape, dtype: DTypeLike = np.float32) -> NDArray:
        """Memory of its own with arbitrary contents."""
        return cls._new(_create(_sizes(shape), dtype, zeroed=False))

    @classmethod
    def full(cls, shape: Shape, value: float, dtype: DTypeLike = np.float32) -> NDArray:
        """Return one value everywhere."""
        return cls.empty(shape, dtype).fill(value)

    @classmethod
    def view(
        cls, data: object, shape: Shape | None = None, dtype: DTypeLike | None = None
    ) -> NDArray:
        """Return the memory of a numpy array or any buffer, not copied; read-only if that is.

        Bytes may be given the `dtype` that they hold.
        """
        array = _borrowed(exchange.as_view(data, dtype))
        return array if shape is None else array._reshaped(_sizes(shape), view_only=True)

    @classmethod
    def map(
        cls,
        path: str | os.PathLike[str],
        shape: Shape,
        dtype: DTypeLike = np.float32,
        mode: str = "r",
        offset: int = 0,
    ) -> NDArray:
        """Return a part of a file as memory; pages are read when they are touched.

        Modes are those of numpy.memmap: "r" read-only, "r+" shared and writable, "c"
        copy on write, "w+" a new file of the size needed. A mapped file must
        never be cut short: touching what is lost kills the process.
        """
        if mode not in MODES:
            raise ArrayError(f"mode {mode!r} is none of {', '.join(MODES)}")
        name = os.fspath(path)
        raw = os.fsencode(name)
        if b"\0" in raw:
            raise ArrayError(f"{name!r} is not a file name")
        if not 0 <= offset < 1 << 62:
            raise ArrayError(f"offset {offset} lies in no file")
        out, sizes = ffi.new("sn_array **"), _sizes(shape)
        number = number_of(dtype)
        check(lib.sn_array_map(out, raw, number, len(sizes), sizes, MODES[mode], offset), path=name)
        return cls._new(out)

    @classmethod
    def from_dlpack(cls, source: Any, copy: bool | None = None) -> NDArray:
        """Return the memory of any DLPack exporter; copied only if `copy` is true."""
        return cls.view(exchange.from_dlpack(source, copy))

    # ---- Views

    @renamed.start_and_stop
    def subarray(self, offsets: Sequence[int], shape: Sequence[int]) -> NDArray:
        """Return the part of a `shape` whose first element lies at `offsets`.

        This is the paper's subArray.  ``a[1:3, 2:4]`` is the part between positions.
        """
        starts, sizes = list(offsets), list(shape)
        if len(starts) != self.ndim or len(sizes) != self.ndim:
            raise ArrayError(f"{starts} and {sizes} are no offsets and sizes of {self.ndim} axes")
        return self._sliced(starts, sizes, None)

    def slice(self, axis: int, index: int) -> NDArray:
        """Return the array at one position of an axis; it has an axis less."""
        axis = self._axis(axis)
        out = ffi.new("sn_array **")
        where = position(index, axis, self._shape[axis])
        check(lib.sn_array_index(out, self._handle, axis, where))
        return NDArray._new(out)

    def reshape(self, *shape: int | Sequence[int]) -> NDArray:
        """Return the same elements in another shape: a view where strides allow, else a copy.

        One size may be -1.
        """
        first, *more = shape or ((),)
        sizes = _sizes(cast("Shape", shape if more else first))
        unknown = [axis for axis, size in enumerate(sizes) if size == -1]
        if len(unknown) == 1:
            product = -math.prod(sizes)
            if product == 0 or self.size % product:
                raise ArrayError(f"{self.size} elements do not fit the shape {sizes}")
            sizes = tuple(self.size // product if size == -1 else size for size in sizes)
        return self._reshaped(sizes, view_only=False)

    def transpose(self, *axes: int | Sequence[int]) -> NDArray:
        """Axes in another order; reversed if none is given."""
        new_axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else cast("Any", axes)
        order = [self._axis(axis) for axis in new_axes] or list(range(self.ndim))[::-1]
        if len(order) != self.ndim:
            raise ArrayError(f"{len(order)} axes are named where there are {self.ndim}")
        out = ffi.new("sn_array **")
        check(lib.sn_array_transpose(out, self._handle, order))
        return NDArray._new(out)

    @property
    def T(self) -> NDArray:  # noqa: N802
        """The axes reversed."""
        return self.transpose()

    def squeeze(self, *axes: int) -> NDArray:
        """Without the axes named, or without every axis of size 1."""
        squeezed = [self._axis(axis) for axis in axes]
        if not axes:
            squeezed = [axis for axis, size in enumerate(self._shape) if size == 1]
        return self._squeezed(squeezed)

    def frozen(self) -> NDArray:
        """Return a view that cannot be written through."""
        out = ffi.new("sn_array **")
        check(lib.sn_array_freeze(out, self._handle))
        return NDArray._new(out)

    def __getitem__(self, key: Any) -> Any:
        selection = select(key, self._shape)
        if self._names_element(key, selection):
            return self._get(selection.starts)
        view = self._sliced(selection.starts, selection.sizes, selection.steps)
        if selection.dropped:
            view = view._squeezed(selection.dropped)
        return view._reshaped(selection.shape, view_only=True) if selection.reshaped else view

    def __setitem__(self, key: Any, value: ArrayLike) -> None:
        selection = select(key, self._shape)
        view = self._sliced(selection.starts, selection.sizes, selection.steps)
        if isinstance(value, int | float | np.number):
            view.fill(float(value))
        else:
            shape = selection.shape
            view._reshaped(shape, view_only=True).copy_from(value)

    # ---- Elements

    def get(self, *index: int | Sequence[int]) -> float | int:
        """Return one element: get(i, j, …) or get((i, j, …))."""
        listed = index[0] if len(index) == 1 and isinstance(index[0], tuple | list) else index
        return self._get(self._positions(cast("Sequence[int]", listed)))

    def set(self, *index_and_value: float | Sequence[int]) -> NDArray:
        """set(i, j, …, value) or set((i, j, …), value): writes one element."""
        index: list[Any]
        *index, value = cast("tuple[Any, ...]", index_and_value)
        if len(index) == 1 and isinstance(index[0], tuple | list):
            index = list(index[0])
        check(lib.sn_array_set(self._handle, self._positions(index), float(value)))
        return self

    def item(self) -> float | int:
        """Return the only element."""
        if self.size != 1:
            raise ArrayError(f"an array of {self.size} elements is not one number")
        return self._get([0] * self.ndim)

    def fill(self, value: float) -> NDArray:
        """Writes one value everywhere."""
        check(lib.sn_array_fill(self._handle, float(value)))
        return self

    def copy_from(self, other: ArrayLike) -> NDArray:
        """Writes the elements of an array of the same shape, whatever its type and layout.

        Integers take the nearest value in their range; NaN becomes 0.
        """
        check(lib.sn_array_copy(self._handle, self._operand(other, plain=False)._handle))
        return self

    def copy(self) -> NDArray:
        """Return the same elements in memory of their own."""
        return self.astype(self._dtype)

    def astype(self, dtype: DTypeLike) -> NDArray:
        """Return a copy with elements of another type; see `copy_from` for what does not fit."""
        return NDArray.empty(self._shape, dtype).copy_from(self)

    def flat(self) -> NDArray:
        """Return a copy with one axis, row-major."""
        return self.copy()._reshaped((self.size,), view_only=True)

    def to_flat(self) -> exchange.Array:
        """Return a one-dimensional numpy copy, row-major."""
        return self.flat().numpy()

    def flush(self) -> NDArray:
        """Waits until a mapped file holds what was written."""
        check(lib.sn_array_flush(self._handle), path="mapped file")
        return self

    @staticmethod
    def weighted_mean(
        arrays: Sequence[ArrayLike],
        weights: Sequence[float] | None = None,
        out: NDArray | None = None,
    ) -> NDArray:
        """sum(weight * array) / sum(weight) in one pass; without weights the plain mean."""
        operands = [NDArray._operand(array) for array in arrays]
        if not operands:
            raise ArrayError("there is no mean of 0 arrays")
        if weights is not None and len(weights) != len(operands):
            raise ArrayError(f"{len(weights)} weights do not fit {len(operands)} arrays")
        target = NDArray.empty(operands[0].shape) if out is None else out
        handles = [operand._handle for operand in operands]
        numbers = ffi.NULL if weights is None else [float(weight) for weight in weights]
        check(lib.sn_weighted_mean(target._handle, len(handles), handles, numbers))
        return target

    # ---- As Python has it

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __reduce_ex__(self, protocol: Any) -> Any:
        plain = self if self._contiguous else self.copy()
        flat = plain._reshaped((plain.size,), view_only=True)
        data = pickle.PickleBuffer(flat) if protocol >= 5 else flat.numpy().tobytes()
        return _restored, (data, self._shape, self._dtype.str)

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: object) -> NDArray:
        return self.copy()

    # ---- Inside

    def _alike(self) -> NDArray:
        return NDArray.empty(self._shape)

    @classmethod
    def _operand(cls, other: ArrayLike, plain: bool = True) -> NDArray:
        if isinstance(other, NDArray):
            return other
        if plain and not hasattr(other, "dtype"):
            return cls(other)
        return _borrowed(exchange.as_array(other, np.float32))

    def _names_element(self, key: Any, wanted: Selection) -> bool:
        """Return whether an integer stands for every axis; `array[...]` is always a view."""
        integers = len(wanted.dropped) == self.ndim and not wanted.reshaped
        return integers and (self.ndim > 0 or key == ())

    def _axis(self, axis: int) -> int:
        if not -self.ndim <= axis < self.ndim:
            raise IndexOutOfRange(f"there is no axis {axis} in an array of {self.ndim}")
        return axis % self.ndim

    def _positions(self, index: Sequence[int]) -> list[int]:
        if len(index) != self.ndim:
            raise IndexOutOfRange(f"{len(index)} indices do not name one of {self.ndim} axes")
        pairs = zip(index, self._shape, strict=True)
        return [position(entry, axis, size) for axis, (entry, size) in enumerate(pairs)]

    def _get(self, index: list[int]) -> float | int:
        out = ffi.new("double *")
        check(lib.sn_array_get(out, self._handle, index))
        value: float = out[0]
        return value if self._dtype.kind == "f" else int(value)

    def _sliced(self, starts: Any, sizes: Any, steps: Any) -> NDArray:
        out = ffi.new("sn_array **")
        steps = ffi.NULL if steps is None else steps
        try:
            status = lib.sn_array_slice(out, self._handle, starts, sizes, steps)
        except OverflowError:
            raise IndexOutOfRange(f"{starts} lies outside shape {self._shape}") from None
        check(status)
        return NDArray._new(out)

    def _squeezed(self, axes: list[int]) -> NDArray:
        out = ffi.new("sn_array **")
        check(lib.sn_array_squeeze(out, self._handle, len(axes), axes))
        return NDArray._new(out)

    def _reshaped(self, sizes: tuple[int, ...], view_only: bool) -> NDArray:
        out = ffi.new("sn_array **")
        check(lib.sn_array_reshape(out, self._handle, len(sizes), sizes, view_only))
        return NDArray._new(out)


def _create(shape: tuple[int, ...], dtype: Any, zeroed: bool) -> Any:
    out = ffi.new("sn_array **")
    check(lib.sn_array_create(out, number_of(dtype), len(shape), shape, zeroed))
    return out


def _borrowed(array: exchange.Array) -> NDArray:
    status, out = exchange.borrow(array, number_of(array.dtype))
    check(status)
    return NDArray._new(out)


def _restored(data: Any, shape: tuple[int, ...], dtype: str) -> NDArray:
    """Unpickles: over a writable buffer without copying, else in memory of its own."""
    source = np.frombuffer(data, np.dtype(dtype)).reshape(shape)
    return _borrowed(source) if source.flags.writeable else NDArray(source, dtype=dtype)
