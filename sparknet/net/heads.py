"""Heads: a net's predictions, and what their numbers are: classes, yes or no, or values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from sparknet.layers import LAYERS, Layer
from sparknet.layers.activations import Power, Sigmoid, Softmax
from sparknet.layers.concat import Concat
from sparknet.layers.layer import BoxRows
from sparknet.layers.reduction import ArgMax
from sparknet.net.entries import LayerMessage, NetMessage, predictions, unused_name
from sparknet.net.net import Net

Kind = Literal["classes", "labels", "numbers"]


@dataclass(frozen=True)
class Head:
    """One of a net's predictions."""

    blob: str
    kind: Kind
    """One of several classes; any of several labels, or one that is or is not; or numbers."""
    target: str | None = None
    """The input that the losses compare it with."""
    scores: str | None = None
    """The blob before it became probabilities."""
    probabilities: str | None = None
    """The blob of probabilities, where the net has one."""
    squashed_by: Literal["softmax", "sigmoid"] | None = None
    """What turns scores into probabilities."""
    axis: int = 1
    """The axis of classes."""
    record: tuple[int, ...] = (1,)
    """The shape of a record of the blob."""
    place: int = 0
    """The axis of classes in a record."""
    values: int = 1
    """The numbers of a record."""
    choices: int = 1
    """The classes, or the labels."""
    ignored: int | None = None
    """The class number of what no loss counts."""

    @property
    def is_single(self) -> bool:
        """Whether a record has one class, one label or one number."""
        return self.values == (self.choices if self.kind == "classes" else 1)

    @classmethod
    def of(cls, said: dict[str, Any]) -> Head:
        """Return the head in what `asdict` made of it, as JSON."""
        return cls(**{**said, "record": tuple(said["record"])})


@dataclass(frozen=True)
class HeadBlobs:
    """The blobs in which a head's numbers can be read."""

    raw: str | None
    probability: str | None
    place: str | None
    """The classes of the places of a record, where there are several."""


def find_heads(net: Net, blobs: Sequence[str] | None = None) -> list[Head]:
    """Return the heads of a net, or those of these blobs, which lie along an axis of records."""
    tested = net.tested
    shapes, axes = tested.layout()
    if blobs is None:
        last = predictions(tested.described, set(tested.net.params))
        features = _copies(tested.described.layer)
        blobs = [name for name in last if name not in features] or last
    numbered = {top for layer in tested.described.layer if _is_numbered(layer) for top in layer.top}
    losses = [one for one in (*tested.described.layer, *net.described.layer) if _is_loss(one)]
    return [
        _head(name, tested.described.layer, losses, shapes[name], axes[name])
        for name in blobs
        if name in axes and name not in numbered
    ]


def _copies(layers: Sequence[LayerMessage]) -> set[str]:
    """Return the outputs that copy what other layers read: features without labels."""
    readers = Counter(name for layer in layers for name in layer.bottom)
    return {
        layer.top[0]
        for layer in layers
        if layer.type == Power.type
        and not layer.HasField("power_param")
        and readers[layer.bottom[0]] > 1
    }


def _is_numbered(layer: LayerMessage) -> bool:
    return layer.type in LAYERS and issubclass(LAYERS[layer.type], BoxRows)


def _is_loss(layer: LayerMessage) -> bool:
    return layer.type in LAYERS and LAYERS[layer.type].is_loss


def _head(
    name: str,
    layers: Sequence[LayerMessage],
    losses: Sequence[LayerMessage],
    shape: tuple[int, ...],
    record_axis: int,
) -> Head:
    loss = next((layer for layer in losses if name in layer.bottom), None)
    judge = None if loss is None else LAYERS[loss.type]
    squash = None if judge is None else judge.score_function
    maker = None
    if squash is None and (judge is None or judge.other_bottoms == "classes"):
        maker = _squasher(name, layers)
    if maker is not None:
        squash = LAYERS[maker.type].score_function
    record = (*shape[:record_axis], *shape[record_axis + 1 :])
    axis = _axis(loss if maker is None else maker, shape)
    if squash != "softmax" or axis == record_axis:
        # Such losses take all numbers of a record for classes.
        record, axis = (prod(record),), 1
        place = 0
    else:
        place = axis - (record_axis < axis)
    options = None if loss is None else loss.loss_param
    return Head(
        blob=name,
        kind=_kind(judge, squash, prod(record)),
        target=None if loss is None else _target(loss, name),
        scores=name if maker is None else maker.bottom[0],
        probabilities=None if maker is None else name,
        squashed_by=squash,  # type: ignore[arg-type]
        axis=axis,
        record=record,
        place=place,
        values=prod(record),
        choices=record[place],
        ignored=int(options.ignore_label) if options and options.HasField("ignore_label") else None,
    )


def _squasher(name: str, layers: Sequence[LayerMessage]) -> LayerMessage | None:
    """Return the layer that makes probabilities of another blob, if it makes this blob."""
    maker = next((layer for layer in reversed(layers) if name in layer.top), None)
    if maker is None or maker.type not in LAYERS or name in maker.bottom:
        return None
    return maker if LAYERS[maker.type].score_function and not _is_loss(maker) else None


def _kind(judge: type[Layer] | None, squash: str | None, values: int) -> Kind:
    if squash == "sigmoid":
        return "labels"
    if squash == "softmax" or (judge is not None and judge.other_bottoms == "classes"):
        return "classes"
    return "numbers" if judge is not None or values == 1 else "classes"


def _target(loss: LayerMessage, name: str) -> str | None:
    likeliest_first = [*loss.bottom[1:2], *loss.bottom]
    return next((blob for blob in likeliest_first if blob != name), None)  # a target may come first


def _axis(layer: LayerMessage | None, shape: Sequence[int]) -> int:
    axis = 1 if layer is None else int(layer.softmax_param.axis)
    if layer is not None and layer.HasField("infogain_loss_param"):
        axis = int(layer.infogain_loss_param.axis)
    return min(axis % max(len(shape), 1), max(len(shape) - 1, 0))


def served(net: NetMessage, heads: Sequence[Head]) -> tuple[NetMessage, dict[str, HeadBlobs]]:
    """Return the net with the layers that it lacks, and the blobs of each head's numbers."""
    net_with_tops = NetMessage()
    net_with_tops.CopyFrom(net)
    return net_with_tops, {head.blob: _add_tail(net_with_tops, head) for head in heads}


def _add_tail(net: NetMessage, head: Head) -> HeadBlobs:
    """Add the layers behind one head."""

    def add(kind: str, bottoms: Sequence[str], what: str) -> LayerMessage:
        name = unused_name(net, f"{head.blob}/{what}")
        return net.layer.add(name=name, type=kind, bottom=list(bottoms), top=[name])

    raw, probability, place = head.scores, head.probabilities, None
    if head.kind == "labels" and head.is_single:
        # Two classes, no and yes, as pyspark.ml has them.
        opposite = add(Power.type, [raw or head.blob], "no")
        opposite.power_param.scale = -1
        pair = add(Concat.type, [opposite.top[0], raw or head.blob], "scores")
        pair.concat_param.axis = 1
        raw = pair.top[0]
        probability = add(Sigmoid.type, [raw], "probabilities").top[0]
    elif probability is None and head.squashed_by is not None and raw is not None:
        kind = Softmax.type if head.squashed_by == "softmax" else Sigmoid.type
        layer = add(kind, [raw], "probabilities")
        if head.squashed_by == "softmax":
            layer.softmax_param.axis = head.axis
        probability = layer.top[0]
    if head.kind == "classes" and not head.is_single:
        layer = add(ArgMax.type, [raw or head.blob], "classes")
        layer.argmax_param.axis = head.axis
        place = layer.top[0]
    return HeadBlobs(raw, probability, place)
