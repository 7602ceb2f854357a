"""Shares memory between NDArrays and other libraries, without copies.

numpy speaks every exchange protocol already, so each of ours goes through a numpy view.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from sparknet.errors import ArrayError
from sparknet.native.core import ffi, lib

DTYPES: dict[int, np.dtype[Any]] = {
    lib.SN_FLOAT32: np.dtype(np.float32),
    lib.SN_FLOAT64: np.dtype(np.float64),
    lib.SN_INT32: np.dtype(np.int32),
    lib.SN_UINT8: np.dtype(np.uint8),
    lib.SN_INT8: np.dtype(np.int8),
}
NUMBERS: dict[np.dtype[Any], int] = {dtype: number for number, dtype in DTYPES.items()}


def number_of(dtype: Any) -> int:
    """Return the native core's number for a dtype, in any form that numpy accepts."""
    try:
        return NUMBERS[np.dtype(dtype)]
    except (KeyError, TypeError):
        names = ", ".join(str(dtype) for dtype in NUMBERS)
        raise ArrayError(f"an NDArray holds {names}, not {dtype}") from None


def supported(dtype: np.dtype[Any]) -> bool:
    """Return whether an NDArray can hold elements of this type and byte order as they are."""
    return dtype in NUMBERS


Array = np.ndarray[Any, np.dtype[Any]]

CPU = (1, 0)
"""The CPU, as DLPack names devices."""

_NEW_DLPACK = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)


class Exported:
    """Offers memory to numpy and keeps its owner alive for as long as numpy uses it."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


class Owners:
    """The owners of memory lent to the native core, until it is given back."""

    def __init__(self) -> None:
        self._lent: dict[Any, object] = {}
        self._tickets = count(1)
        self.give_back = self._lent.__delitem__
        """Lets the owner of a ticket go."""

    def lend(self, owner: object) -> Any:
        """Keeps `owner` alive; returns its ticket, a pointer to nowhere."""
        ticket = ffi.cast("void *", next(self._tickets))
        self._lent[ticket] = owner
        return ticket

    def __len__(self) -> int:
        return len(self._lent)


OWNERS = Owners()


# Called by the native core, from any thread.  It is no function in Python: there a signal's handler
# could run, and what that raises would be lost.
ffi.def_extern("sn_release_owner")(OWNERS.give_back)


def borrow(array: Array, dtype_number: int) -> Any:
    """Return a native array over numpy's memory."""
    ticket = OWNERS.lend(array)
    out = ffi.new("sn_array **")
    status = lib.sn_array_borrow(
        out,
        ffi.cast("void *", array.ctypes.data),
        dtype_number,
        array.ndim,
        array.shape,
        array.strides,
        not array.flags.writeable,
        lib.sn_release_owner,
        ticket,
    )
    if status != lib.SN_OK:
        OWNERS.give_back(ticket)
    return status, out


def as_view(data: object, dtype: Any = None) -> Array:
    """numpy's view of somebody's memory; refuses what would have to be copied."""
    array = _view_of(data, dtype)
    if not supported(array.dtype) or not array.flags.aligned:
        aligned = "" if array.flags.aligned else "unaligned "
        raise ArrayError(f"{aligned}{array.dtype} memory cannot be viewed: copy it first")
    return array


def _view_of(data: object, dtype: Any) -> Array:
    if isinstance(data, np.ndarray):
        array: Array = data
    elif hasattr(type(data), "__array_interface__"):
        array = np.asarray(data)
    else:
        try:
            array = np.asarray(memoryview(data))  # type: ignore[arg-type]
        except (TypeError, ValueError, BufferError):
            kind = type(data).__name__
            raise ArrayError(f"a {kind} has no memory that can be viewed") from None
    if dtype is None or array.dtype == dtype:
        return array
    try:
        return array.view(dtype)
    except (TypeError, ValueError) as error:
        raise ArrayError(f"{array.dtype} memory cannot be viewed as {dtype}: {error}") from None


def as_array(data: object, default: Any) -> Array:
    """Anything that numpy reads as numbers, as an array of a type that NDArray has."""
    try:
        array: Array = np.asarray(data)
    except (TypeError, ValueError) as error:
        raise ArrayError(f"cannot make an array: {error}") from None
    if not hasattr(data, "dtype") and array.size == 0:
        array = array.astype(default)
    if array.dtype.kind not in "fiub":
        raise ArrayError(f"cannot make numbers of {array.dtype}")
    if not supported(array.dtype):
        array = array.astype(np.float64)
    return np.require(array, requirements="A")


def dlpack(
    array: Array,
    stream: object,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Return the capsule for __dlpack__, also with a numpy that lacks some of its options."""
    if stream is not None:
        raise BufferError("memory of the CPU has no stream")
    if dl_device is not None and tuple(dl_device) != CPU:
        raise BufferError(f"an NDArray lies in the memory of the CPU, not of device {dl_device}")
    if _NEW_DLPACK:
        return array.__dlpack__(max_version=max_version, copy=copy)
    return (array.copy() if copy else array).__dlpack__()


def from_dlpack(source: Any, copy: bool | None) -> Array:
    """numpy's view of (or, with `copy`, its copy from) any DLPack exporter on the CPU."""
    device = source.__dlpack_device__() if hasattr(source, "__dlpack_device__") else CPU
    if int(device[0]) != CPU[0]:
        raise ArrayError(f"memory of DLPack device {tuple(device)} is not the CPU's")
    try:
        array: Array = np.from_dlpack(source)
    except (AttributeError, BufferError, RuntimeError, TypeError) as error:
        raise ArrayError(f"cannot import through DLPack: {error}") from None
    return array.copy() if copy else array


def numpy_array(view: Array, dtype: Any, copy: bool | None) -> Array:
    """Return what __array__ returns, in numpy 1 and 2."""
    new_dtype = view.dtype if dtype is None else np.dtype(dtype)
    if new_dtype == view.dtype and not copy:
        return view
    if copy is False:
        raise ValueError(f"{view.dtype} does not become {new_dtype} without copying")
    return view.astype(new_dtype, copy=True)
