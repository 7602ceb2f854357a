"""Weighting: records that count for more or less in training, whatever a net's losses are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

import numpy as np

from sparknet.errors import DataError, SettingError, SpecError, warn
from sparknet.graph.records import Outline
from sparknet.layers import LAYERS, TRAIN
from sparknet.layers.inputs import Input, RecordWeights
from sparknet.layers.layer import shape_text
from sparknet.loaders.records import (
    Batch,
    ClassesWarning,
    Column,
    Counted,
    Indices,
    Records,
    class_names,
)
from sparknet.net.description import NetMessage, SolverMessage
from sparknet.net.entries import from_learned, unused_name
from sparknet.net.feed import check_numbers
from sparknet.net.heads import find_heads
from sparknet.net.net import Net
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean

LayerMessage = caffe_pb2.LayerParameter
_LISTED = 8
"""The most labels that a message lists."""
_BLOCK = 4096
"""Records that are read at once for their labels."""
_WEIGHT = "record_weight"
"""How the names of the inputs for weights begin."""


@dataclass(frozen=True)
class RowWeights:
    """A column of weights, weights of classes, or both, which are multiplied."""

    column: str | None = None
    classes: Any = None
    """Label → weight, 1 for other labels; or "balanced"."""

    def __post_init__(self) -> None:
        if self.classes is not None and self.classes != "balanced":
            _check_classes(self.classes)

    @property
    def is_given(self) -> bool:
        return self.column is not None or self.classes is not None

    def by_label(self, counts: Mapping[float, int]) -> dict[float, float]:
        """Return the weights of labels, of which each occurs so often."""
        if self.classes is None:
            return {}
        if self.classes == "balanced":
            rows = sum(counts.values())
            return {label: rows / (len(counts) * count) for label, count in counts.items()}
        weights = {float(label): float(weight) for label, weight in self.classes.items()}
        if missing := [label for label in weights if label not in counts]:
            listed = ", ".join(f"{label:g}" for label in sorted(counts)[:_LISTED])
            raise DataError(
                f"class_weights has label {missing[0]:g}, which no training record has: their "
                f"labels are {listed}{' …' if len(counts) > _LISTED else ''}"
            )
        learned = [label for label in counts if weights.get(label, 1.0) > 0]
        if len(learned) == 1 < len(counts):
            warn(
                f"class_weights leaves label {learned[0]:g} alone, and the weight of all others is "
                "0: the net learns to answer it always",
                ClassesWarning,
            )
        return weights

    def added(self, records: Records, names: Sequence[str], label: str | None) -> Records:
        """Return records with columns of these names, their weights, whose mean is 1."""
        if self.classes is not None and label is None:
            raise SettingError("class_weights needs a loss that reads class numbers")
        if label is not None and prod(records.columns[label].shape) != 1:
            shape = shape_text(records.columns[label].shape)
            raise SettingError(f"class_weights needs one label a record, and '{label}' is {shape}")
        column, counts, sums = self.column, Counter[float](), defaultdict[float, float](float)
        if column is not None and column not in records.columns:
            near = did_you_mean(column, records.columns)
            raise DataError(f"the training data has no column '{column}' for weights{near}")
        blocks = range(0, len(records), _BLOCK)
        blocks_of_rows = (records.take(slice(begin, begin + _BLOCK)) for begin in blocks)
        for rows in blocks_of_rows:
            weight = _weights(rows, column)
            labels = np.zeros(len(weight)) if label is None else np.asarray(rows[label], np.float64)
            for one in map(float, np.unique(labels)):
                here = labels.ravel() == one
                counts[one] += int(here.sum())
                sums[one] += float(weight[here].sum())
        weights = self.by_label(counts)
        total = sum(weights.get(one, 1.0) * part for one, part in sums.items())
        if not total > 0 or not isfinite(total):
            raise DataError(f"the weights of the {len(records)} training rows add up to {total:g}")
        return WeightedRecords(records, names, column, label, weights, len(records) / total)


class WeightedRecords(Counted):
    """Records with their weights in further columns."""

    def __init__(
        self,
        records: Records,
        names: Sequence[str],
        column: str | None,
        label: str | None,
        weights: Mapping[float, float],
        factor: float,
    ) -> None:
        self.records, self.names, self._column, self._label = records, names, column, label
        self._weights, self._factor = weights, factor

    @property
    def columns(self) -> Mapping[str, Column]:
        return {**self.records.columns, **dict.fromkeys(self.names, Column(np.dtype("f4"), ()))}

    @property
    def classes(self) -> Sequence[str]:
        return class_names(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def take(self, indices: Indices) -> Batch:
        rows = self.records.take(indices)
        weight = _weights(rows, self._column) * self._factor
        marks = None if self._label is None else np.asarray(rows[self._label]).ravel()
        for label, factor in self._weights.items():
            weight[marks == label] *= factor
        return {**rows, **dict.fromkeys(self.names, weight.astype(np.float32))}


def _weights(rows: Batch, column: str | None) -> np.ndarray[Any, Any]:
    """Return the weights in a column; DataError for one that is no weight."""
    if column is None:
        return np.ones(len(next(iter(rows.values()), ())))
    check_numbers(column, rows[column])
    weights = np.array(rows[column], np.float64)
    if weights.ndim != 1:
        raise DataError(f"column '{column}' has several numbers a record: a weight is one number")
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if wrong.size:
        raise DataError(
            f"column '{column}' is {wrong[0]:g} in a row: a weight must be finite and at least 0"
        )
    return weights


def _check_classes(classes: Any) -> None:
    if not isinstance(classes, Mapping) or not classes:
        raise SettingError(
            f"class_weights is {classes!r}: a dict of labels and weights, or 'balanced'"
        )
    for label, weight in classes.items():
        try:
            fits = float(weight) >= 0 and isfinite(float(weight)) and isfinite(float(label))
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise SettingError(
                f"class_weights has {label!r}: {weight!r}, which is not a label with its weight"
            )


def label_input(net: Net) -> str | None:
    """Return the first input that holds class numbers, or else one target a record."""
    entries = net.inputs
    for name, entry in entries.items():
        if entry.is_label:
            return name
    return next(
        (head.target for head in find_heads(net) if head.is_single and head.target in entries), None
    )


class WeighedNets:
    """The user's net, and the one that is trained: another one where records have weights."""

    def __init__(self, make: Callable[[int | None], Net], is_weighted: bool) -> None:
        self._make, self._is_weighted = make, is_weighted
        self.plain: Net
        self.weights: list[str] = []
        """The inputs for the weights of records."""

    def make(self, seed: int | None) -> Net:
        self.plain = self._make(seed)
        if not self._is_weighted:
            return self.plain
        trained, self.weights = weighted(self.plain)
        return trained


def weighted(net: Net) -> tuple[Net, list[str]]:
    """Return a net with the same weights and solver, and its new inputs, a number for each record.

    Losses are divided by what they were, so that the mean of the numbers should be 1."""
    assert net.settings is not None
    if not net.backend.is_embedded:
        raise SpecError(
            f"backend '{net.backend.name}' has no layer type {RecordWeights.type}: weights of "
            "records need the embedded one"
        )
    described = NetMessage()
    described.CopyFrom(net.described)
    del described.layer[:]
    places = _Places(net)
    inputs: dict[int, str] = {}
    for layer in net.described.layer:
        changed = LayerMessage()
        changed.CopyFrom(layer)
        for index, blob in places.weighed(layer):
            axis = places.axis(layer, blob)
            name = inputs.setdefault(
                axis, unused_name(net.described, f"{_WEIGHT}_{axis}" if axis else _WEIGHT)
            )
            top = unused_name(net.described, f"{layer.name}/{blob}/weighted")
            described.layer.append(
                LayerMessage(name=top, type=RecordWeights.type, bottom=[blob, name], top=[top])
            )
            changed.bottom[index] = top
        described.layer.append(changed)
    if not inputs:
        raise SpecError(f"net '{net.described.name}' has no loss whose records could have weights")
    for axis, name in reversed(inputs.items()):
        entry = LayerMessage(name=name, type=Input.type, top=[name])
        entry.input_param.shape.add().dim.extend([1] * axis + [net.batch_size])
        described.layer.insert(0, entry)
    weighted_net = Net(
        _solver(net, described),
        net.get_weights(),
        precision=net.precision,
        device=net.device,
        preprocessing=net.preprocessing,
    )
    return weighted_net, list(inputs.values())


class _Places:
    """Where the losses of a net read what was learned, and where records lie there."""

    def __init__(self, net: Net) -> None:
        self._net = net
        learned = {name for name, params in net.net.params.items() if len(params)}
        self._flow = from_learned(net.described, learned)
        entries = net.inputs.values()
        outline = Outline(net.described.layer, TRAIN)
        _, self._axes = outline.axes(
            {entry.name: entry.shape for entry in entries},
            {entry.name: entry.axis for entry in entries},
            follows=True,
        )

    def weighed(self, layer: LayerMessage) -> Iterator[tuple[int, str]]:
        """Yield the bottoms of a loss that a gradient goes to."""
        kind = LAYERS.get(layer.type)
        is_loss = any(layer.loss_weight) or (kind is not None and kind.is_loss)
        for index, blob in enumerate(layer.bottom if is_loss else ()):
            if blob in self._flow:
                yield index, blob

    def axis(self, layer: LayerMessage, blob: str) -> int:
        if blob in self._axes:
            return self._axes[blob]
        shape = tuple(self._net.net.blobs[blob].shape)
        if (
            LAYERS.get(layer.type) is None
            or shape[:1] != (self._net.batch_size,)
            or not prod(shape)
        ):
            raise SpecError(
                f"layer '{layer.name}' reads '{blob}' of shape {shape}, in which records have no "
                "axis of their own: they cannot have weights"
            )
        return 0


def _solver(net: Net, train: NetMessage) -> SolverMessage:
    """Return the solver with another net for training and the tests of ``net``."""
    assert net.settings is not None
    changed = SolverMessage()
    changed.CopyFrom(net.settings)
    for field in ("net", "net_param", "train_net", "train_net_param", "train_state", "weights"):
        changed.ClearField(field)
    for field in ("test_net", "test_net_param", "test_state", "test_iter", "test_interval"):
        changed.ClearField(field)
    changed.train_net_param.CopyFrom(train)
    tests = net.described_tests
    changed.test_net_param.extend(tests)
    changed.test_iter.extend([1] * len(tests))
    changed.test_interval = 1
    return changed
