"""What can be computed of a net where some of its inputs are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparknet.net.entries import NetMessage


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
    last: dict[str, None] = {}
    for layer in net.layer:
        if any(name in lost for name in layer.bottom):
            continue
        for name in layer.bottom:
            last.pop(name, None)
        last.update(dict.fromkeys(top for top in layer.top if top not in lost))
    return list(last)
