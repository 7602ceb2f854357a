"""Stream: cuts rows into batches of the size that a net needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparknet.errors import DataError
from sparknet.layers.layer import shape_text
from sparknet.net.rows import Block, Rows, rows_of


class Stream:
    """Reads rows from where the last batch ended; first it passes over ``skip`` records.

    An endless stream starts again after the last record, so that every batch is full.  Rows that
    cannot be read again end with a shorter batch, and then an error.
    """

    def __init__(self, rows: Rows, endless: bool, what: str, skip: int = 0) -> None:
        self._rows, self._endless, self._what = rows, endless, what
        self.position = skip
        """The number of records since the data began, or began again."""
        self._blocks: Iterator[Block] | None = None
        self._rest: Block = {}
        self.taken = 0

    def take(self, count: int) -> Block | None:
        """The next `count` records, fewer where the data ends, None after its end."""
        parts: list[Block] = []
        missing = count
        while missing:
            block = self._next(missing, count)
            if block is None:
                break
            length = rows_of(block)
            if length > missing:
                self._rest = {name: values[missing:] for name, values in block.items()}
                block = {name: values[:missing] for name, values in block.items()}
            parts.append(block)
            self.position += min(length, missing)
            missing -= min(length, missing)
        if not parts and self._endless:
            raise DataError(f"the {self._what} ended after {self.taken} records")
        self.taken += count - missing
        return _joined(parts) if parts else None

    def _next(self, missing: int, size: int) -> Block | None:
        """The next rows; None at the end.  Rows after a restart fill the batch up, so that later
        batches need not be joined."""
        if self._rest:
            rest, self._rest = self._rest, {}
            return rest
        for _ in range(2):
            if self._blocks is None:
                self._blocks = self._rows.blocks(missing, size, self.position)
            for block in self._blocks:
                if rows_of(block):
                    return block
            if not (self._endless and self._rows.again):
                return None
            self._blocks, self.position = None, 0
        raise DataError(f"the {self._what} is empty")


def _joined(parts: list[Block]) -> Block:
    if len(parts) == 1:
        return parts[0]
    for part in parts[1:]:
        missing = set(parts[0]) - set(part)
        if missing:
            raise DataError(f"a batch has no column '{min(missing)}'")
        for name, values in parts[0].items():
            shape, before = part[name].shape[1:], values.shape[1:]
            if shape != before:
                raise DataError(
                    f"column '{name}': a record is {shape_text(shape)}, one before it is "
                    f"{shape_text(before)}"
                )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
