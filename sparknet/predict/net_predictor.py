"""NetPredictor: a net that predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sparknet.errors import SparkError, SpecError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.caffe_model import CaffeModel, PortableNet
from sparknet.net.entries import dependent, predictions
from sparknet.net.heads import Head, Kind, find_heads
from sparknet.net.input_warnings import warn_of_pictures
from sparknet.net.model_inputs import ModelInputs
from sparknet.predict.detections import BoxFrames
from sparknet.predict.input_columns import InputSpec, column_map, holds_bytes, input_specs
from sparknet.predict.output_columns import Output
from sparknet.predict.prediction import Prediction
from sparknet.predict.predictor import Predictor, Sizes, TableSchema
from sparknet.predict.request import Request, batch_for, find_outputs, largest_results
from sparknet.predict.texts import EMBEDDINGS, POOLED, TokenizerFile, pooled
from sparknet.proto.byte_source import StrPath
from sparknet.proto.suggest import did_you_mean, one_of

if TYPE_CHECKING:
    import pyarrow as pa


FEWEST = 32
"""Texts that go through a net at a time, unless more or `batch=` are asked for."""


class NetPredictor(Predictor):
    """A net in phase TEST, with the columns of its inputs."""

    model: CaffeModel

    def __init__(
        self,
        net: Net,
        columns: Mapping[str, str] | None = None,
        labels: Sequence[str] = (),
        tokens: TokenizerFile | None = None,
        features: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.net = net
        self.columns = dict(columns or {})
        self.labels = tuple(labels) or net.labels
        self.tokens = tokens
        self.features = {name: tuple(parts) for name, parts in (features or net.features).items()}

    @property
    def net(self) -> Net:
        """The net, with the weights for prediction."""
        return self.model.net

    @net.setter
    def net(self, net: Net) -> None:
        self.model = CaffeModel(net)

    @property
    def name(self) -> str:
        return self.net.tested.described.name

    def outputs(self, request: Request, table: TableSchema | None = None) -> list[Output]:
        tested = self.net.tested
        entries = [entry.name for entry in tested.entries]
        for name in column_map(request.columns):
            if name not in entries:
                near = did_you_mean(name, entries)
                if (column := column_map(request.columns)[name]) in entries:
                    near = f": say columns={{'{column}': '{name}'}}"
                raise SparkError(
                    f"columns names '{name}', but the net's inputs are {entries}{near}"
                )
        columns = {name: request.prefix + name for name in self.blobs(request.outputs)}
        return find_outputs(tested, columns, request, self.labels)

    def blobs(self, names: Sequence[str] | None) -> list[str]:
        """Return the blobs that are asked for; the net's own predictions where none are named."""
        tested = self.net.tested
        if names is None and self.tokens is not None and POOLED in tested.net.blobs:
            return [POOLED]
        if names is None:
            return predictions(tested.described, set(tested.net.params))
        for name in names:
            if name not in tested.net.blobs:
                raise SpecError(f"the net has no blob '{name}'{one_of(name, tested.net.blobs)}")
        return list(dict.fromkeys(names))

    def mapping(self, request: Request, table: TableSchema | None = None) -> dict[str, str]:
        """Return input → column, for the inputs that the outputs depend on.

        A DummyData layer fills its own blobs unless a column is named for it.
        """
        tested, outputs = self.net.tested, self.blobs(request.outputs)
        columns = self.columns | column_map(request.columns)
        optional = {place.name for place in tested.places if place.is_optional} - columns.keys()
        needed = [
            entry.name
            for entry in tested.entries
            if entry.name not in optional
            and not dependent(tested.described, [entry.name]).keys().isdisjoint(outputs)
        ]
        mapping = {name: columns.get(name, name) for name in needed}
        if self.tokens is not None:
            ids = self.tokens.ids(tested)
            mapping = {ids: columns.get(ids, ids)}
        if table is None:
            return mapping
        mapping = table.names(mapping)
        for name, column in mapping.items():
            if column not in table.columns:
                raise SparkError(
                    f"the data has no column '{column}' for the net's input '{name}': it has "
                    f"{table.columns}; say which with columns={{'{name}': …}}"
                    f"{did_you_mean(column, table.columns)}"
                )
        return mapping

    def plan(self, request: Request, table: TableSchema | None = None) -> Prediction:
        tested, outputs = self.net.tested, self.outputs(request)
        blobs = list(dict.fromkeys(output.blob for output in outputs))
        mapping, raw_shapes = self.mapping(request, table), dict[str, Sizes]()
        if table is not None:
            table.check(mapping.values(), self.tokens is not None)
            raw_shapes = table.record_shapes(mapping)
            pictures = {name for name, column in mapping.items() if table.is_picture(column)}
            warn_of_pictures(tested, pictures - raw_shapes.keys())
        batch = request.batch or batch_for(tested, blobs)
        if self.tokens is not None:
            batch = batch if request.batch else max(batch, FEWEST)
        shapes = input_specs(tested.entries, told=raw_shapes, features=self.features)
        return Prediction(
            mapping=mapping,
            shapes=shapes,
            outputs=outputs,
            batch=batch,
            most=largest_results(tested, blobs, batch),
            invalid=request.invalid,
            reason=request.reason,
            key=None if table is None else table.key(request),
            pictures=self._pictures(mapping, outputs, table, shapes),
            texts=None if self.tokens is None else self.tokens.here(tested),
        )

    def record_shapes(self, outputs: Sequence[Output]) -> dict[str, Sizes]:
        shapes, _ = self.net.tested.layout()
        return {
            one.blob: tuple(size for axis, size in enumerate(shapes[one.blob]) if axis != one.axis)
            for one in outputs
            if not one.is_list
        }

    def heads(
        self, request: Request, table: TableSchema | None = None, kind: Kind | None = None
    ) -> list[Head]:
        return [one for one in find_heads(self.net) if one.blob not in EMBEDDINGS]

    def truth_shapes(self) -> Mapping[str, tuple[int | None, ...]]:
        net = self.net
        return {one.name: one.stored for one in (*net.tested.entries, *net.inputs.values())}

    def portable(self) -> PortableNet:
        return PortableNet.of(self.net)

    def save(self, path: StrPath) -> None:
        tokenizer = None if self.tokens is None else self.tokens.text
        features = dict(self.features)
        self.model.save(path, ModelInputs(self.columns, None, self.labels, features, tokenizer))

    def warn_of_batch(self, batch: pa.RecordBatch, mapping: Mapping[str, str]) -> None:
        pictures = [name for name, column in mapping.items() if holds_bytes(batch, column)]
        warn_of_pictures(self.net.tested, pictures)

    def pool(self, kind: str, of: str | None) -> None:
        """Add the vector of each text to the net, made of its tokens' vectors."""
        if self.tokens is None:
            raise SpecError("pooling is of a net that takes texts: give tokenizer")
        self.tokens.check_pooling(kind)
        net = self.net
        described = pooled(net.tested, kind, of, self.tokens.mask(net.tested))
        self.net = Net(described, self.model.weights, precision=net.precision)

    def _pictures(
        self,
        mapping: Mapping[str, str],
        outputs: Sequence[Output],
        table: TableSchema | None,
        shapes: Mapping[str, InputSpec],
    ) -> BoxFrames | None:
        """Return the pictures in whose pixels boxes lie; None where boxes go from 0 to 1.

        They are those of the net's only input of channels x height x width, if its column holds
        pictures or bytes.
        """
        if not any(output.is_list for output in outputs):
            return None
        entries = self.net.tested.entries
        images = [one for one in entries if one.name in mapping and len(one.record) == 3]
        if len(images) != 1:
            return None
        name = images[0].name
        if table is not None and not table.is_picture(mapping[name]):
            return None
        how = images[0].pictures or Preprocessing()
        return BoxFrames(mapping[name], images[0].record, how, shapes[name].kinds)
