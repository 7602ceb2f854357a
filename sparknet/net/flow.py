"""What can be computed of a net where some of its inputs are missing, and what it predicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from sparknet.layers import LAYERS
from sparknet.net.entries import LayerMessage, NetMessage, Place, find_places


def dependent(net: NetMessage, missing: Sequence[str]) -> dict[str, str]:
    """The blobs that cannot be computed without these, each with one that it lacks."""
    lost = {name: name for name in missing}
    for layer in net.layer:
        lacking = next((lost[name] for name in layer.bottom if name in lost), None)
        for top in layer.top if layer.bottom else ():
            lost.pop(top, None)
            if lacking is not None:
                lost[top] = lacking
    return lost


def last_blobs(net: NetMessage, lost: Mapping[str, str]) -> list[str]:
    """What nothing reads any more where the blobs of `lost` are not to be had."""
    return _last(net.layer, lost, find_places(net))


def predictions(net: NetMessage, learned: Collection[str]) -> list[str]:
    """The last blobs of a net without its losses and accuracies.

    `learned` names the layers with parameters: in a net for training, what does not come from
    them is no prediction but a target, whatever was done to it on its way to the loss.
    """
    flow = _from_learned(net, learned)
    judging = _judging(net, learned, flow)
    layers = [layer for number, layer in enumerate(net.layer) if number not in judging]
    places = find_places(net)
    last = _last(layers, {}, places)
    if not judging:
        return last
    fed = {place.name for place in places}
    computed = [name for name in last if name not in fed]
    return [name for name in computed if name in flow] or computed or last


def _last(
    layers: Iterable[LayerMessage], lost: Mapping[str, str], places: Iterable[Place]
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


def _from_learned(net: NetMessage, learned: Collection[str]) -> set[str]:
    """The blobs that come from layers with parameters."""
    found: set[str] = set()
    for layer in net.layer:
        if layer.name in learned or not found.isdisjoint(layer.bottom):
            found.update(layer.top)
    return found


def _judging(net: NetMessage, learned: Collection[str], flow: Collection[str]) -> set[int]:
    """The layers that compare predictions with what is right, by their numbers.

    A loss may be put together from others: what a layer with a loss_weight sums up is a part of
    it, back to where predictions and targets meet.
    """
    judging: set[int] = set()
    inside: dict[str, bool] = {}
    """Blobs that are read, and whether only by parts of a loss that was put together."""
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
