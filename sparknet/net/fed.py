"""A net and the data that goes into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.errors import DataError, SpecError
from sparknet.layers import Shape
from sparknet.net.backend import Backend
from sparknet.net.entries import (
    DUMMY,
    INPUT,
    Entry,
    NetMessage,
    UnknownShape,
    adapted,
    dependent,
    find_entries,
    last_blobs,
    only_layers,
    source_layers,
    with_inputs,
)
from sparknet.net.feed import Feed, reshape
from sparknet.net.rows import Array, Block, Rows, columns_of, default_columns, is_batch, open_rows
from sparknet.net.stream import Stream


class FedNet:
    """One net of a description, made when it is first needed: shapes may come with the data."""

    def __init__(
        self,
        described: NetMessage,
        phase: int,
        make: Callable[[NetMessage], Any],
        backend: Backend,
        seed: int,
        what: str,
    ) -> None:
        self.described, self.phase, self.what = described, phase, what
        self._make, self._backend, self._seed = make, backend, seed
        self.records: dict[str, Shape] = {}
        """Shapes of records that are known from data."""
        self._net: Any = None
        self._entries: list[Entry] | None = None
        self._feed: Feed | None = None
        self.rows: Rows | None = None
        self._stream: Stream | None = None
        self._own: Any = None
        self.is_shared = False
        """Whether it looks at another net's weights already."""
        self.taken = 0
        """How many records have gone in; their numbers decide about random crops and mirrors."""

    @property
    def entries(self) -> list[Entry]:
        if self._entries is None:
            self._entries = find_entries(self.described, self.phase, self.records)
        return self._entries

    @property
    def net(self) -> Any:
        """The pycaffe net; its data layers have become inputs."""
        if self._net is None:
            self._net = self._make(with_inputs(self.described, self.entries))
        return self._net

    @property
    def is_built(self) -> bool:
        return self._net is not None

    @property
    def feed(self) -> Feed:
        if self._feed is None:
            self._feed = Feed(self.entries, self.phase, self._seed)
        return self._feed

    @property
    def batch(self) -> int:
        """Records in a whole batch."""
        sizes = {entry.name: entry.batch for entry in self.entries}
        if not sizes:
            raise DataError("the net has no inputs")
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"'{name}' {size}" for name, size in sizes.items())
            raise DataError(f"the inputs differ in their batch size ({told}): use forward")
        return next(iter(sizes.values()))

    # -- data ----------------------------------------------------------------------------

    @property
    def tops(self) -> list[tuple[str, str]]:
        """Names of the entries and the types of their layers."""
        return [(top, layer.type) for layer in source_layers(self.described) for top in layer.top]

    def set_data(self, data: Any) -> dict[str, Shape]:
        """Take records from here; the shapes that its records turn out to have."""
        rows = open_rows(data, self._known_entries, default_columns(self.tops))
        for name, kind in self.tops:
            if name not in rows.shapes and kind != DUMMY:
                raise DataError(
                    f"the {self.what} data has no column '{name}'; it has "
                    + ", ".join(f"'{column}'" for column in rows.shapes)
                )
        self.rows, self._stream = rows, None
        return dict(rows.shapes)

    def _known_entries(self) -> list[Entry] | None:
        try:
            return self.entries
        except UnknownShape:
            return None

    def fill(self, endless: bool = True) -> int:
        """The next batch into the net; the number of its records, 0 behind the last."""
        block: Block = {}
        if self.rows is not None:
            if self._stream is None:
                self._stream = Stream(self.rows, endless, self.what)
            taken = self._stream.take(self.batch)
            if taken is None:
                return 0
            block = {name: taken[name] for name in taken if name in dict(self.tops)}
        rows = self._write(block)
        self.taken += rows
        return rows

    def rewind(self) -> None:
        """Begin again, where the data can be had again."""
        if self.rows is not None and self.rows.again:
            self._stream = None

    def _write(self, block: Block) -> int:
        own = self._own_layers(block)
        if not block:
            made = self._own_batch(own)
            reshape(self.net, {name: values.shape for name, values in made.items()})
            for name, values in made.items():
                self.net.blobs[name].data[...] = values
            return self.batch
        rows = self.feed.write(self.net, block, self.taken)
        for name, values in (self._own_batch(own) if own else {}).items():
            data = self.net.blobs[name].data
            data[...] = values[tuple(map(slice, data.shape))]
        return rows

    # -- one batch -----------------------------------------------------------------------

    def forward(self, batch: Any, outputs: Sequence[str] | None) -> dict[str, Array]:
        """Run a batch of any size; columns that the outputs do not depend on may be missing."""
        columns = columns_of(batch, default_columns(self.tops))
        if not is_batch(columns, self._known_entries()):
            columns = {name: values[None] for name, values in columns.items()}
        if self._known_entries() is None:
            self.records.update({name: values.shape[1:] for name, values in columns.items()})
        wanted = self._outputs(columns, outputs)
        entries = [adapted(entry, columns.get(entry.name)) for entry in self.entries]
        Feed(entries, self.phase, self._seed).write(self.net, columns, 0)
        for entry in entries:
            if entry.name not in columns:
                self.net.blobs[entry.name].data[...] = 0
        made = self.net.forward(blobs=wanted)
        return {name: np.array(made[name]) for name in wanted}

    def _outputs(self, given: Mapping[str, Any], outputs: Sequence[str] | None) -> list[str]:
        missing = [name for name, kind in self.tops if name not in given]
        if len(missing) == len(self.tops):
            raise DataError(f"the batch has none of the net's inputs: {', '.join(missing)}")
        lost = dependent(self.described, missing)
        if outputs is None:
            return last_blobs(self.described, lost) if lost else list(self.net.outputs)
        for name in outputs:
            if name not in self.net.blobs:
                raise SpecError(f"the net has no blob '{name}'")
            if name in lost:
                raise DataError(f"'{name}' needs the column '{lost[name]}', which is not given")
        return list(outputs)

    # -- a net's own data ----------------------------------------------------------------

    def _own_layers(self, given: Mapping[str, Any]) -> list[str]:
        """The data layers that bring their own records."""
        missing = [layer for layer in source_layers(self.described) if layer.top[0] not in given]
        for layer in missing:
            if layer.type == INPUT or layer.type == "MemoryData":
                raise DataError(f"no {self.what} data is set for '{layer.top[0]}'")
        return [layer.name for layer in missing]

    def _own_batch(self, layers: Sequence[str]) -> Block:
        if self._own is None:
            alone = only_layers(self.described, layers)
            self._own = self._backend.net(alone, self.phase, self._seed)
        return {name: np.asarray(values) for name, values in self._own.forward().items()}
