"""Flow: which blobs a net can compute without some inputs, and which are predictions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sparknet.layers import LAYERS
from sparknet.net.entries import DataTop, LayerMessage, NetMessage, data_tops


def dependent(net: NetMessage, missing: Sequence[str]) -> dict[str, str]:
    """The blobs that depend on missing blobs, each with one that it needs."""
    lost = {name: name for name in missing}
    for layer in net.layer:
        lacking = next((lost[name] for name in layer.bottom if name in lost), None)
        for top in layer.top if layer.bottom else ():
            lost.pop(top, None)
            if lacking is not None:
                lost[top] = lacking
    return lost


def last_blobs(net: NetMessage, lost: Mapping[str, str]) -> list[str]:
    """The blobs that no layer reads, if the blobs of `lost` are not computed."""
    return _last(net.layer, lost, data_tops(net))


def predictions(net: NetMessage, learned: Collection[str]) -> list[str]:
    """The last blobs of a net without its losses and accuracies.

    `learned` names the layers with parameters.  In a net for training, a blob that does not depend
    on one of them is a target and no prediction.
    """
    flow = from_learned(net, learned)
    judging = _judging(net, learned, flow)
    layers = [layer for number, layer in enumerate(net.layer) if number not in judging]
    places = data_tops(net)
    last = _last(layers, {}, places)
    if not judging:
        return last
    fed = {place.name for place in places}
    computed = [name for name in last if name not in fed]
    return [name for name in computed if name in flow] or computed or last


def _last(
    layers: Iterable[LayerMessage], lost: Mapping[str, str], places: Iterable[DataTop]
) -> list[str]:
    idle = {place.name for place in places if not place.is_read}
    last: dict[str, None] = {}
    for layer in layers:
        if any(name in lost for name in layer.bottom):
            continue
        for name in layer.bottom:
            last.pop(name, None)
        last.update(dict.fromkeys(top for top in layer.top if top not in lost))
    return [name for name in last if name not in idle]


def from_learned(net: NetMessage, learned: Collection[str]) -> set[str]:
    """The blobs that depend on layers with parameters."""
    found: set[str] = set()
    for layer in net.layer:
        if layer.name in learned or not found.isdisjoint(layer.bottom):
            found.update(layer.top)
    return found


def _judging(net: NetMessage, learned: Collection[str], flow: Collection[str]) -> set[int]:
    """The numbers of the layers that compare predictions with targets.

    A loss may consist of several layers: it includes all layers between the one with a
    loss_weight and those where predictions and targets meet.
    """
    judging: set[int] = set()
    inside: dict[str, bool] = {}
    """Blobs that are read, and whether only the layers of a loss read them."""
    for number, layer in reversed(list(enumerate(net.layer))):
        judges = layer.type in LAYERS and LAYERS[layer.type].judges
        part = any(layer.loss_weight) or (
            bool(layer.top)
            and layer.name not in learned
            and all(inside.get(name, False) for name in layer.top)
        )
        if judges or (part and layer.bottom):
            judging.add(number)
        meets = len({name in flow for name in layer.bottom}) > 1
        for name in layer.top:
            inside.pop(name, None)
        for name in layer.bottom:
            inside[name] = inside.get(name, True) and part and not judges and not meets
    return judging
