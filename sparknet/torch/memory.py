"""The values of a blob on a device and on the host, synchronised as by Caffe's syncedmem.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import torch
from torch import Tensor

from sparknet.native import NDArray


@dataclass(frozen=True)
class DevicePlace:
    """Where an engine computes."""

    device: torch.device
    apart: bool
    """Whether values on the host are copies."""

    @staticmethod
    def of(name: str, apart: bool = False) -> DevicePlace:
        device = torch.device(name)
        return DevicePlace(device, apart or device.type != "cpu")

    def zeros(self, count: int) -> Tensor:
        return torch.zeros(count, dtype=torch.float32, device=self.device)

    def host(self, count: int) -> Tensor:
        """Memory of the host, which a GPU reads and writes by itself."""
        return torch.empty(count, dtype=torch.float32, pin_memory=self.device.type == "cuda")

    def copy_of(self, values: Tensor) -> Tensor:
        """Values of the host, on the device."""
        return values.to(self.device, copy=True)

    @staticmethod
    def copy_to(target: Tensor, values: Tensor) -> None:
        """From the host to the device, or back."""
        target.copy_(values)


class Newest(Enum):
    HOST = auto()
    DEVICE = auto()
    BOTH = auto()


class Memory:
    """The values of one blob, or of several that share them."""

    def __init__(self, place: DevicePlace, count: int) -> None:
        self._place = place
        self._values: Tensor | None = None
        """On the device, in any shape; at least as many as the blob has.  None: zeros."""
        self._host: Tensor | None = None
        self._newest = Newest.DEVICE
        self._capacity = count
        self._looked_at = False
        self.is_overwritten = False
        """Whether a layer works in place here: layers before it may need what it overwrites."""
        self.gone = False
        """Whether the values were given back, as nobody reads them again."""

    def resize(self, count: int, keep: bool) -> None:
        """Room for so many values; ``keep`` leaves those that there are in their places."""
        if count != self._capacity:
            self.gone = False
        if count <= self._capacity:
            return
        before = (
            self._flat() if keep and (self._values is not None or self._host is not None) else None
        )
        self._values = self._host = None
        self._newest, self._looked_at = Newest.DEVICE, False
        self._capacity = count
        if before is not None:
            self._values = self._place.zeros(count)
            self._values[: before.numel()] = before

    def read(self, shape: Sequence[int]) -> Tensor:
        """Return the newest values, on the device."""
        if self._newest is Newest.HOST:
            assert self._host is not None
            self._values = self._place.copy_of(self._host)
            self._newest = Newest.BOTH
        if self._values is None:
            self._values = self._place.zeros(self._capacity)
        values = self._values
        if values.shape == tuple(shape):
            return values
        flat = values.reshape(-1)
        count = int(np.prod(shape, dtype=np.int64))
        return (flat if flat.numel() == count else flat[:count]).view(tuple(shape))

    @property
    def is_fixed(self) -> bool:
        """Whether a program holds a view of the very memory that layers compute with."""
        return self._looked_at and not self._place.apart

    def write(self, values: Tensor) -> None:
        """New values, which this may keep."""
        values, self.gone = values.detach(), False
        if self.is_fixed:
            assert self._values is not None
            flat = self._values.view(-1)[: values.numel()]
            flat.copy_(values.reshape(-1))
            return
        self._values = values if self._place.apart else values.contiguous()
        self._capacity = values.numel()
        self._newest = Newest.DEVICE

    def _flat(self) -> Tensor:
        """Return all values on the device, in a row of float32."""
        self.read((self._capacity,))
        assert self._values is not None
        flat = self._values.reshape(-1)
        if not self._place.apart:
            flat = self._values = flat.float()
        return flat

    @property
    def values(self) -> Tensor | None:
        """What lies on the device, if anything does."""
        return self._values

    def bring(self, place: Tensor) -> None:
        """Put the newest values in this place on the device, unseen by autograd."""
        if self._newest is Newest.HOST and place.numel() == self._capacity:
            assert self._host is not None
            self._place.copy_to(place.data, self._host.view(place.shape))
            self._values, self._newest = place, Newest.BOTH
            return
        values = self.read(place.shape)
        if values.data_ptr() != place.data_ptr():
            place.data.copy_(values)
            if place.numel() == self._capacity:
                self._values = place

    def is_now(self, values: Tensor | None, gone: bool) -> None:
        """Note that a pass has computed these values in place, or has given them back."""
        self._values, self.gone, self._newest = values, gone, Newest.DEVICE
        if values is not None:
            self._capacity = values.numel()

    def drop(self) -> None:
        """Forget values that nobody reads again."""
        if not self.is_fixed:
            self._values = self._host = None
            self._newest = Newest.DEVICE
            self.gone = True

    def on_host(self, shape: Sequence[int]) -> NDArray:
        """Return the newest values as an array, which a program may write to."""
        flat = self._flat() if self._newest is not Newest.HOST else None
        if flat is not None and self.is_overwritten and not (self._looked_at or self._place.apart):
            flat = self._values = flat.clone()  # torch's notes keep the other
        self._looked_at = True
        if self._place.apart:
            if flat is not None:
                if self._host is None or self._host.numel() != flat.numel():
                    self._host = self._place.host(flat.numel())
                    self._newest = Newest.DEVICE
                if self._newest is Newest.DEVICE:
                    self._place.copy_to(self._host, flat)
            self._newest = Newest.HOST
            flat = self._host
        assert flat is not None
        count = int(np.prod(shape, dtype=np.int64))
        return NDArray.view(flat.numpy()[:count].reshape(tuple(shape)))

    def fill(self, value: float, shape: Sequence[int]) -> None:
        self.write(torch.full(tuple(shape), value, device=self._place.device))

    def bytes(self) -> int:
        sides = (self._values, self._host)
        return sum(side.element_size() * side.numel() for side in sides if side is not None)


class Buffer:
    """A net's parameters or gradients in a buffer of the host, and their copy on the device."""

    def __init__(self, place: DevicePlace, values: NDArray) -> None:
        self._array = values  # keeps the memory, and so the address
        self._place = place
        self._host = torch.from_numpy(np.asarray(values).reshape(-1))
        self._values = place.zeros(self._host.numel()) if place.apart else self._host
        self._newest = Newest.HOST if place.apart else Newest.BOTH
        self.begin = values.address
        self.end = self.begin + max(values.nbytes, 1)

    @property
    def place(self) -> DevicePlace:
        return self._place

    @property
    def is_on_host(self) -> bool:
        """Whether the device's values are older than those of the array."""
        return self._newest is Newest.HOST

    @property
    def is_on_device(self) -> bool:
        """Whether the array's values are older than those of the device."""
        return self._newest is Newest.DEVICE

    def settle(self) -> None:
        """Count both sides as equal, until the device writes."""
        if self._place.apart:
            self._newest = Newest.BOTH

    def part(self, array: NDArray) -> Tensor:
        """Return the same values as the array, on the device."""
        first = (array.address - self.begin) // 4
        return self._values[first : first + array.size].view(tuple(array.shape))

    def to_device(self) -> None:
        if self._newest is Newest.HOST:
            self._place.copy_to(self._values, self._host)
            self._newest = Newest.BOTH

    def changed(self) -> None:
        """Note that the device has written to it."""
        if self._place.apart:
            self._newest = Newest.DEVICE

    def to_host(self) -> None:
        """Copy the newest values to the array, where writes count from now on."""
        if self._newest is Newest.DEVICE:
            self._place.copy_to(self._host, self._values)
        if self._place.apart:
            self._newest = Newest.HOST

    def clear(self) -> None:
        self._values.zero_()
        self.changed()
