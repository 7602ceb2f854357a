"""FedNet: a net together with its data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from sparknet.errors import DataError, LayerError, SpecError
from sparknet.graph.records import Outline
from sparknet.layers import LAYERS, TRAIN, Shape
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.native.alone import cached_property
from sparknet.net.backend import Backend
from sparknet.net.entries import (
    Entry,
    NetMessage,
    UnknownShape,
    adapted,
    data_tops,
    dependent,
    find_entries,
    last_blobs,
    only_layers,
    with_inputs,
)
from sparknet.net.feed import ENCODED, Array, BatchPass, Feed, Preparation, decoded, misfit, reshape
from sparknet.net.input_warnings import warn_of_pictures, warn_of_range
from sparknet.net.rows import (
    Block,
    Rows,
    Stream,
    columns_of,
    default_columns,
    is_batch,
    is_frame,
    open_rows,
)
from sparknet.net.scores import Summary
from sparknet.proto.suggest import did_you_mean, one_of

_MOST_SOUND = 1 << 12


class FedNet:
    """One net of a description; it is built at its first use, because the data may decide shapes.

    `what` names its data in messages; `others` are nets that are fed from the same records;
    `given` says what happens to images."""

    def __init__(
        self,
        described: NetMessage,
        phase: int,
        make: Callable[[NetMessage], Any],
        backend: Backend,
        seed: int,
        what: str,
        others: Sequence[NetMessage] = (),
        given: Preprocessing | None = None,
    ) -> None:
        self._given = given
        self.knows_pictures = given is not None
        """Whether it is known what happens to pictures; else a warning says what is assumed."""
        self.described, self.phase, self.what = described, phase, what
        self._make, self._backend, self._seed = make, backend, seed
        self.places = data_tops(described, others)
        """The places for records; those that are read become entries once shapes are known."""
        self._filling = {place.name for place in self.places if place.kind.fills_itself}
        self.records: dict[str, Shape] = {}
        """The shapes of records that are known from data."""
        self._sound: set[tuple[Shape, ...]] = set()
        """Shapes of records, other than the described ones, that every layer takes."""
        self.is_shared = False
        """Whether it shares another net's weights already."""
        self.taken = 0
        """The number of records so far; a record's number decides its random crop and mirror."""
        self.rows: Rows | None = None
        self._stream: Stream | None = None
        self._skip = 0  # records, at the beginning of the next stream
        self._transformed = False
        self._net: Any = None
        self._own: Any = None
        self._own_tops: Sequence[str] = ()
        self._entries: list[Entry] | None = None
        self._losses: list[tuple[str, float]] = []
        self._looked_at: set[str] = set()
        self._last_pass: tuple[Any, Any] = (None, None)
        self.needs_labels = True
        """Whether data must have labels; a calibration computes without them."""

    # -- what it is ----------------------------------------------------------------------

    @property
    def entries(self) -> list[Entry]:
        if self._entries is None:
            self._entries = find_entries(
                self.described, self.places, self.phase, self.records, self._given
            )
        return self._entries

    @property
    def known_entries(self) -> list[Entry] | None:
        """The entries, or None while shapes are not known."""
        try:
            return self.entries
        except UnknownShape:
            return None

    def layout(self) -> tuple[dict[str, Shape], dict[str, int]]:
        """Return the shapes of all blobs for the described batch size, and their record axes."""
        inputs = {entry.name: entry.shape for entry in self.entries}
        axes = {entry.name: entry.axis for entry in self.entries}
        shapes, batch_axes = Outline(self.described.layer, self.phase).axes(
            inputs, axes, follows=True
        )
        unknown = [name for name in self.net.blobs if name not in shapes]
        if unknown:
            reshape(self.net, inputs)
        for name in unknown:  # from a user's own code, or for a fixed number of records
            shapes[name] = tuple(self.net.blobs[name].shape)
            if shapes[name]:
                batch_axes[name] = 0
        return shapes, batch_axes

    @property
    def net(self) -> Any:
        """The pycaffe net, with inputs instead of data layers."""
        if self._net is None:
            self._net = self._make(with_inputs(self.described, self.entries))
            weights = self._net.blob_loss_weights.items()
            self._losses = [(name, weight) for name, weight in weights if weight]
        return self._net

    @property
    def batch(self) -> int:
        """The records in a whole batch; blobs that fill themselves do not count."""
        fed = [entry for entry in self.entries if entry.name not in self._filling]
        sizes = {entry.name: entry.batch for entry in fed or self.entries}
        if not sizes:
            raise DataError("the net has no inputs")
        if len(set(sizes.values())) > 1:
            listing = ", ".join(f"'{name}' {size}" for name, size in sizes.items())
            raise DataError(f"the inputs differ in their batch size ({listing}): use forward")
        return next(iter(sizes.values()))

    @property
    def loss(self) -> float:
        """The loss of the last pass."""
        blobs = self.net.blobs
        return sum(weight * float(np.sum(blobs[name].data)) for name, weight in self._losses)

    @property
    def measures(self) -> set[str]:
        """Tops without an axis of records, whatever their shapes: Accuracy's per class."""
        return {
            top
            for layer in self.described.layer
            if (kind := LAYERS[layer.type]).compares_labels and not kind.is_loss
            for top in layer.top
        }

    @property
    def evaluated(self) -> dict[str, Summary]:
        """Tops with counts, and what makes metrics of them."""
        kinds = ((layer, LAYERS[layer.type]) for layer in self.described.layer)
        return {top: kind.summary for layer, kind in kinds if kind.summary for top in layer.top}

    def measured(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the computed outputs, without those that are records themselves."""
        entry_names = {place.name for place in self.places}
        return {name: values for name, values in outputs.items() if name not in entry_names}

    # -- data ----------------------------------------------------------------------------

    def set_data(self, data: Any, transformed: bool) -> Mapping[str, Shape]:
        """Set the source of records; returns the shapes of its records where they were needed."""
        if is_frame(data):
            self.check_columns([str(name) for name in data.columns])
        rows = open_rows(
            data, lambda: self.known_entries, default_columns(self.places), self._given
        )
        shapes: Mapping[str, Shape] = {}
        if rows.again or self.known_entries is None:
            shapes = rows.shapes()
            self.check_columns(shapes)
        self.rows, self._transformed = rows, transformed
        self._stream, self._skip = None, 0
        return shapes

    def check_columns(self, columns: Collection[str]) -> None:
        labels = {entry.name for entry in self.known_entries or () if entry.is_label}
        spared = set() if self.needs_labels else labels
        for place in self.places:
            if place.name not in {*columns, *spared} and not place.is_optional:
                listing = ", ".join(f"'{column}'" for column in columns) or "none"
                raise DataError(f"the {self.what} has no column '{place.name}'; it has {listing}")

    def fill(self, endless: bool = True) -> int:
        """Put the next batch into the net; returns its number of records, 0 at the end."""
        if self.rows is None:
            rows = self._fill_by_itself()
        else:
            if self._stream is None:
                self._stream = Stream(self.rows, endless, self.what, self._skip)
            block = self._stream.take(self.batch)
            if block is None:
                return 0
            self.check_columns(block)
            if self.phase == TRAIN and not self._transformed:
                self._look(block)
            rows = self.feed(block, transformed=self._transformed)(block, self.taken)
        self.taken += rows
        return rows

    def rewind(self) -> None:
        """Restart the data from the beginning, where it can be read again."""
        if self.rows is not None and self.rows.again:
            self._stream, self._skip = None, 0

    def _look(self, block: Block) -> None:
        """Warn of a column's values, the first time."""
        for entry in self.entries:
            if entry.name in block and entry.name not in self._looked_at:
                self._looked_at.add(entry.name)
                warn_of_range(entry, block[entry.name])

    def _decoded(self, block: Mapping[str, Array]) -> Block:
        """Return the block with arrays in place of encoded images."""
        entries = {entry.name: entry for entry in self.known_entries or ()}
        warn_of_pictures(self, [name for name in block if block[name].dtype.kind in ENCODED])
        return {
            name: decoded(entries[name], values, self.phase == TRAIN) if name in entries else values
            for name, values in block.items()
        }

    def feed(
        self, columns: Collection[str], transformed: bool = False
    ) -> Callable[[Block, int], int]:
        """Return what puts blocks into the net and returns the number of records."""
        return self._feed(columns, None, transformed)[0]

    def _feed(
        self, columns: Collection[str], entries: Sequence[Entry] | None, transformed: bool
    ) -> tuple[Callable[[Block, int], int], Feed | None]:
        """Return the same, and the `Feed` that does all of it, if one does."""
        counts = {entry.batch for entry in self.entries if entry.name in columns}
        followers = [
            entry
            for entry in entries or self.entries
            if entry.name in columns or entry.name not in self._filling or entry.batch in counts
        ]
        absent = self._filling.difference(columns)
        fillers = [entry.name for entry in self.entries if entry.name in absent]
        feed = Feed(followers, self.phase, self._seed, transformed)
        write = partial(feed.write, self.net)
        return (partial(self._write_with_own, write, fillers), None) if fillers else (write, feed)

    def _write_with_own(
        self, write: Callable[[Block, int], int], tops: Sequence[str], block: Block, first: int
    ) -> int:
        rows = write(block, first)
        for name, values in self._own_batch(tops).items():
            data = self.net.blobs[name].data
            data[...] = values[tuple(map(slice, data.shape))]
        return rows

    def preparations(self, on_device: bool) -> dict[str, Preparation]:
        """Return what batches columns; with ``on_device`` the net's device converts bytes."""
        blobs: Any = self.net.blobs if on_device else {}
        return {
            entry.name: Preparation(
                entry, self.phase, self._seed, getattr(blobs.get(entry.name), "device_rows", None)
            )
            for entry in self.entries
            if entry.preprocessing is not None
        }

    # -- a net's own data ----------------------------------------------------------------

    def _fill_by_itself(self) -> int:
        """Fill the net by its own data layers, which read their files as in Caffe."""
        for place in self.places:
            if not (place.kind.reads_files or place.kind.fills_itself):
                raise DataError(f"no {self.what} is set, and '{place.name}' has none of its own")
        if self._given is not None:
            raise DataError(
                f"no {self.what} is set, and {self._given!r} is not for the net's own data layers"
            )
        if not self.places:  # for example Python layers that make their own data
            return int(next(iter(self.net.blobs.values())).shape[0])
        batch = self._own_batch([place.name for place in self.places if place.is_read])
        reshape(self.net, {name: values.shape for name, values in batch.items()})
        for name, values in batch.items():
            self.net.blobs[name].data[...] = values
        return self.batch

    def _own_batch(self, tops: Sequence[str]) -> Block:
        if self._own_tops != tops:
            alone = only_layers(self.described, tops)
            self._own, self._own_tops = self._backend.net(alone, self.phase, self._seed), tops
        blobs = self._own.forward()
        return {name: np.asarray(blobs[name]) for name in tops}

    # -- one batch -----------------------------------------------------------------------

    def forward(self, batch: Any, outputs: Sequence[str] | None) -> dict[str, Array]:
        """Run a batch of any size; columns that the outputs do not need may be missing."""
        batch_pass, columns = self.batch_pass(batch, outputs)
        views = batch_pass.run(columns, self.taken)
        return {name: np.array(view) for name, view in views.items()}

    def batch_pass(self, batch: Any, outputs: Sequence[str] | None) -> tuple[BatchPass, Block]:
        """Return a pass for such batches, and the columns of this one."""
        if batch is None:
            raise DataError(
                "there is no batch: forward takes a dict of arrays, a tuple or an array"
            )
        names, kinds = outputs and tuple(outputs), BatchPass.kinds(batch)
        if kinds and self._last_pass[0] == (names, kinds, self._entries, self._net):
            return self._last_pass[1], batch
        columns = columns_of(batch, default_columns(self.places))
        empty = [name for name, values in columns.items() if values.shape == (0,)]
        if empty:
            raise DataError(f"column '{empty[0]}' has no records")
        if not is_batch(columns, self.known_entries):
            columns = {name: values[None] for name, values in columns.items()}
        columns = self._decoded(columns)
        for name, values in columns.items() if self._entries is None else ():
            self.records.setdefault(name, values.shape[1:])
        kinds = BatchPass.kinds(columns)
        if kinds and self._last_pass[0] == (names, kinds, self._entries, self._net):
            return self._last_pass[1], columns
        blobs = self._outputs(columns, outputs)
        entries = [adapted(entry, columns.get(entry.name)) for entry in self.entries]
        self._check_sizes(entries)
        self._look(columns)
        write, feed = self._feed(columns, entries, transformed=False)
        batch_pass = BatchPass(self.net, write, blobs, self._missing(columns), feed)
        self._last_pass = (names, kinds, self._entries, self._net), batch_pass
        return batch_pass, columns

    def _missing(self, columns: Mapping[str, Any]) -> list[str]:
        """Return the inputs that need a column and have none."""
        places = (place for place in self.places if not place.is_optional)
        return [place.name for place in places if place.name not in columns]

    def _check_sizes(self, entries: Sequence[Entry]) -> None:
        """Refuse records of another shape that a layer would accept for their number of values."""
        pairs = list(zip(self.entries, entries, strict=True))
        sizes = tuple(entry.record for entry in entries)
        odd = next((pair for pair in pairs if pair[0].record != pair[1].record), None)
        if odd is None or sizes in self._sound:
            return
        expected, record = odd[0].record, odd[1].record
        if len(record) == 3 and record[2] == expected[0] != record[0]:  # channels last
            raise DataError(misfit(odd[0].name, record, expected))
        try:  # both of as many records, so that their numbers of values can be compared
            outline, before = self._usual
            after = outline.vectors({new.name: new.batch_shape(old.batch) for old, new in pairs})
        except LayerError:  # the net reports it itself
            return
        for layer, shapes in before.items():
            for old, new in zip(shapes, after.get(layer, shapes), strict=True):
                if old != new and prod(old) == prod(new):
                    raise DataError(misfit(odd[0].name, record, expected))
        if len(self._sound) == _MOST_SOUND:
            self._sound.clear()
        self._sound.add(sizes)

    @cached_property
    def _usual(self) -> tuple[Outline, dict[str, tuple[Shape, ...]]]:
        """The layers, and what they read as one vector of the described shapes."""
        outline = Outline(self.described.layer, self.phase)
        return outline, outline.vectors({entry.name: entry.shape for entry in self.entries})

    def _outputs(self, given: Mapping[str, Any], outputs: Sequence[str] | None) -> list[str]:
        missing = self._missing(given)
        if missing and not any(place.name in given for place in self.places):
            there = ", ".join(f"'{name}'" for name in given)
            near = did_you_mean(next(iter(given), ""), missing)
            raise DataError(
                f"the batch has none of the net's inputs {', '.join(missing)}: it has "
                f"{there or 'nothing'}{near}"
            )
        causes = dependent(self.described, missing)
        if outputs is None:
            return last_blobs(self.described, causes) if causes else list(self.net.outputs)
        for name in outputs:
            if name not in self.net.blobs:
                raise SpecError(f"the net has no blob '{name}'{one_of(name, self.net.blobs)}")
            if name in causes:
                raise DataError(f"'{name}' needs the column '{causes[name]}', which is not given")
        return list(outputs)
