"""What an NDArray is and how others see its memory, before any computing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sparknet.native import exchange
from sparknet.native._buffer import Buffer
from sparknet.native.core import check, ffi, lib
from sparknet.native.exchange import DTYPES


class Strided(Buffer):
    """A native array's description, and the protocols that share its memory. Abstract."""

    __slots__ = (
        "__weakref__",
        "_address",
        "_contiguous",
        "_dtype",
        "_handle",
        "_loan",
        "_readonly",
        "_shape",
        "_strides",
    )

    def _adopt(self, handle: Any) -> None:
        layout = ffi.new("sn_layout *")
        self._handle = ffi.gc(handle[0], lib.sn_array_free)
        self._loan: Any = None
        lib.sn_array_describe(layout, self._handle)
        self._address = int(ffi.cast("uintptr_t", layout.data))
        self._dtype = DTYPES[layout.dtype]
        self._shape: tuple[int, ...] = tuple(layout.shape[0 : layout.ndim])
        self._strides: tuple[int, ...] = tuple(layout.strides[0 : layout.ndim])
        self._readonly = bool(layout.readonly)
        self._contiguous = bool(layout.contiguous)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._strides

    @property
    def dtype(self) -> np.dtype[Any]:
        """The elements' type."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take."""
        return self.size * self._dtype.itemsize

    @property
    def address(self) -> int:
        """Where the first element lies."""
        return self._address

    @property
    def readonly(self) -> bool:
        """Whether writing raises."""
        return self._readonly

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie side by side in row-major order."""
        return self._contiguous

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("an NDArray without axes has no length")
        return self._shape[0]

    def __repr__(self) -> str:
        edge = 2 if self.ndim < 3 else 1
        text = np.array2string(self.numpy(), separator=", ", threshold=24, edgeitems=edge)
        lines = text.replace("\n", "\n" + " " * len("NDArray("))
        return f"NDArray({lines}, shape={self._shape}, dtype={self._dtype})"

    def numpy(self) -> exchange.Array:
        """numpy's view of the same memory, which it keeps alive."""
        return np.asarray(exchange.Exported(self._lend(), self._interface()))

    def _lend(self) -> Any:
        """Return an owner of the memory for somebody who may write there; while it exists the
        storage has no version (`version`).
        """
        if self._readonly:
            return self
        out = ffi.new("sn_array **")
        check(lib.sn_array_lend(out, self._handle))
        return ffi.gc(out[0], lib.sn_array_free)

    @property
    def version(self) -> int:
        """A number that changes with every write to this memory, through any array.

        It is 0 where writes cannot be noticed: a numpy array, a memoryview or the like over the
        memory exists, or the memory is not our own. Writes through `address` are never noticed.
        """
        return int(lib.sn_array_version(self._handle))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        # An address is never given back, so the loan lasts as long as the array.
        self._loan = self._loan or self._lend()
        return self._interface()

    def _interface(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self._shape,
            "typestr": self._dtype.str,
            "data": (self._address, self._readonly),
            "strides": self._strides,
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> exchange.Array:
        return exchange.numpy_array(self.numpy(), dtype, copy)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return exchange.dlpack(self.numpy(), stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return exchange.CPU

    def _exporter(self) -> exchange.Array:
        return self.numpy()
