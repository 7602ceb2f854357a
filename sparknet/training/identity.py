"""Identity: what must be the same for a run to continue from a snapshot."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.layers import LAYERS
from sparknet.loaders.records import Records
from sparknet.net import Net
from sparknet.net.description import LEFT_TO_THE_CALLER
from sparknet.proto.solver import TO_THE_END
from sparknet.training.training_net import settings

Json = dict[str, Any]

LOOKED_AT = 64
"""The number of records in the check sum of a data set that must be read for it."""

_FREE = (
    *LEFT_TO_THE_CALLER,
    "test_compute_loss",
    "average_loss",
    "snapshot_prefix",
    "snapshot_diff",
    "snapshot_format",
    "solver_mode",
    "device_id",
    "further_device_id",
    "richness",
    "solver_data_type",
    "store_blobs_in_old_format",
    "test_offset",
    "max_iter",
)
"""Settings of a solver that do not change how it updates weights."""
_PLACES = ("source", "root_folder", "mean_file")


def identity(net: Net) -> Json:
    """What of a net is known before training begins."""
    how = net.preprocessing
    return {
        **({} if how is None else {"preprocessing": how.to_json()}),
        "net": _digest_of(net),
        "solver": _solver(settings(net)),
    }


def check_sum(batch: Mapping[str, Any]) -> int:
    """A check sum of records, whatever their order."""
    rows = [np.ascontiguousarray(batch[name]) for name in sorted(batch)]
    flat = [column.reshape(len(column), -1).view(np.uint8) for column in rows if column.size]
    total = 0
    for record in zip(*flat, strict=True):
        check = 0
        for part in record:
            check = zlib.crc32(part, check)
        total += check
    return total


def sampled(records: Records) -> int:
    """The check sum of evenly spaced records."""
    count = len(records)
    places = np.linspace(0, count - 1, min(count, LOOKED_AT)).astype(np.int64)
    return check_sum(records.take(places)) if count else 0


def _solver(solver: Any) -> Json:
    """All settings that change the weights, defaults included."""
    free = set(_FREE)
    policies = (solver.lr_policy, solver.momentum_policy, solver.weight_decay_policy)
    if not set(TO_THE_END).isdisjoint(policies):  # what they give depends on max_iter
        free.remove("max_iter")
    names = (field.name for field in solver.DESCRIPTOR.fields)
    return {name: _plain(getattr(solver, name)) for name in names if name not in free}


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, str)):
        return value
    return float(f"{value:.7g}") if isinstance(value, float) else [_plain(one) for one in value]


def _digest_of(net: Net) -> str:
    """A digest of the layers; files that they name count by content, not by path."""
    message = type(net.described)()
    message.CopyFrom(net.described)
    total = blake2b(digest_size=16)
    for layer in message.layer:
        for field, value in layer.ListFields():
            for name in _PLACES if field.name.endswith("_param") else ():
                if getattr(value, name, "") and field.name != "python_param":
                    if name == "mean_file" or not LAYERS[layer.type].holds_records:
                        total.update(_contents(getattr(value, name)))
                    value.ClearField(name)
    total.update(message.SerializeToString(deterministic=True))
    return total.hexdigest()


def _contents(path: str) -> bytes:
    return Path(path).read_bytes() if Path(path).is_file() else b""
