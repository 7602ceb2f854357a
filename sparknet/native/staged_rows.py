"""StagedRows: rows of bytes on their way to a device, which transforms them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from sparknet.native.transform import Bytes, Transformation

Shape = tuple[int, ...]


@dataclass(frozen=True)
class StagedRows:
    """Rows as they are stored: rows x channels x height x width; `first` is the first's number."""

    rows: Bytes
    how: Transformation
    first: int
    pinned: Any = None
    """The same in memory that a GPU fetches from itself, where there is one."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> Shape:
        """That of the batch."""
        channels, height, width = self.rows.shape[1:]
        return (len(self.rows), *self.how.shape((channels, height, width)))

    @property
    def is_sound(self) -> bool:
        """Whether the transformation fits the rows; else the native one says why."""
        stored, target = self.rows.shape[1:], self.shape[1:]
        how = self.how
        if any(small > large for small, large in zip(target, stored, strict=True)):
            return False
        if how.mean is not None and how.mean.shape not in (stored, target):
            return False
        return all(len(one) in (0, 1, stored[0]) for one in (how.mean_values, how.std))


class DeviceRows(Protocol):
    """What an engine has that transforms rows of bytes where it computes."""

    def pin(self, rows: Bytes) -> Any:
        """Return a copy that a GPU fetches while the processor goes on; None where there is
        none.  Any thread may call it.
        """

    def put(self, blob: int, rows: StagedRows) -> None:
        """Rows become a blob's values."""
