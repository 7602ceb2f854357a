"""A Split layer for each blob with more than one reader (Caffe: util/insert_splits.cpp)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice

from sparknet.errors import LayerError
from sparknet.layers.concat import Split
from sparknet.proto import Model, caffe_pb2
from sparknet.proto.suggest import did_you_mean

NAMES_LIMIT = 1 << 28
"""Characters that the names of all copies may take: each repeats a layer's and a blob's name."""

Top = tuple[int, int]
"""A blob as it leaves a layer: layer number, top number."""


@dataclass
class Readers:
    """The readers of each top, and the tops that count as a loss."""

    sources: list[list[Top]] = field(default_factory=list)
    """For each layer, the top that each bottom reads."""
    count: Counter[Top] = field(default_factory=Counter)
    """Readers of a top; its use as a loss is one of them."""
    weight: dict[Top, float] = field(default_factory=dict)
    """Loss weights other than zero that the layers spell out."""


def split_blob_name(blob: str, layer: str, top: int, copy: int) -> str:
    return f"{blob}_{layer}_{top}_split_{copy}"


def insert_splits(net: caffe_pb2.NetParameter) -> caffe_pb2.NetParameter:
    """Return a copy of a net in which every blob has at most one reader.

    A loss weight on a blob that is also read moves to its first copy; Caffe loses the others of its
    layer, and counts a loss layer twice."""
    readers = find_readers(net)
    _check_names(net, readers)
    split = caffe_pb2.NetParameter()
    split.CopyFrom(net)
    del split.layer[:]
    uses: Counter[Top] = Counter()
    for number, original in enumerate(net.layer):
        layer = split.layer.add()
        layer.CopyFrom(original)
        for j, source in enumerate(readers.sources[number]):
            if readers.count[source] > 1:
                owner = net.layer[source[0]].name
                name = split_blob_name(original.bottom[j], owner, source[1], uses[source])
                layer.bottom[j] = name
                uses[source] += 1
        for j in range(len(original.top)):
            if readers.count[number, j] > 1:
                weight = readers.weight.get((number, j), 0.0)
                _add_split(split.layer.add(), original, j, readers.count[number, j], weight)
                if weight:
                    layer.loss_weight[j] = 0
                    uses[number, j] += 1
    return split


def without_splits(model: Model) -> Model:
    """Return a caffemodel whose net is as it was before `insert_splits`; others as they are."""
    sources: dict[str, str] = {}
    places = []
    bare = caffe_pb2.NetParameter()
    bare.CopyFrom(model.net)
    del bare.layer[:]
    for place, layer in enumerate(model.net.layer):
        if layer.type == Split.type and len(layer.bottom) == 1:
            sources.update(dict.fromkeys(layer.top, layer.bottom[0]))
            continue
        places.append(place)
        bare.layer.add().CopyFrom(layer)
        bare.layer[-1].bottom[:] = [sources.get(blob, blob) for blob in layer.bottom]
    if not sources or not _same_layers(bare, model.net):
        return model
    arrays = [model.arrays[place] for place in places]
    diffs = None if model.diffs is None else [model.diffs[place] for place in places]
    return replace(model, net=bare, arrays=arrays, diffs=diffs)


def _same_layers(bare: caffe_pb2.NetParameter, net: caffe_pb2.NetParameter) -> bool:
    """Return whether a net with its Splits inserted has the layers and blobs of another one."""
    try:
        again = insert_splits(bare)
    except LayerError:
        return False
    before, after = (
        [(layer.name, *layer.bottom, *layer.top) for layer in one.layer] for one in (net, again)
    )
    return before == after


def find_readers(net: caffe_pb2.NetParameter) -> Readers:
    """Follow every bottom to the last layer before it that produced it."""
    readers = Readers()
    latest: dict[str, Top] = {}
    for number, layer in enumerate(net.layer):
        for blob in layer.bottom:
            if blob not in latest:
                raise LayerError(layer.name, _unknown(net, number, blob, latest))
        if len(set(layer.top)) < len(layer.top):
            blob = next(blob for blob, times in Counter(layer.top).items() if times > 1)
            raise LayerError(layer.name, f"it names top '{blob}' more than once")
        readers.sources.append([latest[blob] for blob in layer.bottom])
        readers.count.update(readers.sources[-1])
        latest.update((blob, (number, j)) for j, blob in enumerate(layer.top))
        for blob, weight in zip(layer.top, layer.loss_weight, strict=False):
            if weight:
                readers.weight[latest[blob]] = weight
                readers.count[latest[blob]] += 1
    return readers


def _add_split(
    split: caffe_pb2.LayerParameter,
    source: caffe_pb2.LayerParameter,
    top: int,
    copies: int,
    weight: float,
) -> None:
    blob = source.top[top]
    split.name = f"{blob}_{source.name}_{top}_split"
    split.type = Split.type
    split.bottom.append(blob)
    split.top.extend(split_blob_name(blob, source.name, top, k) for k in range(copies))
    if weight:
        split.loss_weight.extend([weight] + [0.0] * (copies - 1))


def _check_names(net: caffe_pb2.NetParameter, readers: Readers) -> None:
    """Long layer names times many readers must not become memory without bounds."""
    total = 0
    for (number, j), copies in readers.count.items():
        layer = net.layer[number]
        total += 2 * copies * (len(layer.name) + len(layer.top[j])) if copies > 1 else 0
        if total > NAMES_LIMIT:
            raise LayerError(
                layer.name[:80],
                f"blob '{layer.top[j][:80]}' has {copies} readers, and the names of "
                "the copies would take too much memory; use a shorter layer name",
            )


def _unknown(net: caffe_pb2.NetParameter, number: int, blob: str, blobs: dict[str, Top]) -> str:
    if blob in net.layer[number].top:
        return f"bottom '{blob}' is produced by no layer before this one"
    for later in net.layer[number + 1 :]:
        if blob in later.top:
            return f"bottom '{blob}' is produced only later, by layer '{later.name}'"
    near = did_you_mean(blob, islice(blobs, 1000))
    return f"bottom '{blob}' is produced by no layer{near}"
