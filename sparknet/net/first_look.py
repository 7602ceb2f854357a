"""first_look: what is wrong with the first records, told before anything is trained."""

from __future__ import annotations

import numpy as np

from sparknet.errors import DataError
from sparknet.layers import TEST, TRAIN
from sparknet.loaders.records import Records
from sparknet.net.class_numbers import class_numbers
from sparknet.net.feed import ENCODED, Feed
from sparknet.net.net import Net
from sparknet.net.ranges import warn_of_range


def look_at_first(net: Net, records: Records, what: str, training: bool = True) -> None:
    """Refuse records of the wrong shape, labels that are no class, and NaN and infinity; warn of
    values that the preprocessing is not for.

    It looks at a batch, or at one record where images are to be decoded; workers check the rest as
    they read it.
    """
    if not training:
        net.tested.check_columns(records.columns)
    fed = net.inputs.values() if training else net.tested.entries
    entries = [entry for entry in fed if entry.name in records.columns]
    encoded = any(records.columns[entry.name].dtype.kind in ENCODED for entry in entries)
    count = min(len(records), 1 if encoded else max((one.batch for one in entries), default=1))
    block = records.take(slice(0, count))
    values = Feed(entries, TRAIN if training else TEST, 0).checked(block)
    classes = class_numbers(net)
    for name, rows in values.items():
        if rows.dtype.kind == "f":
            odd = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
            if odd.size:
                value = next(one for one in rows[odd[0]].flat if not np.isfinite(one))
                raise DataError(
                    f"column '{name}' of the {what} holds {value} in record {odd[0]}: fill or "
                    "leave out such records"
                )
        warn_of_range(next(entry for entry in entries if entry.name == name), rows)
        if name in classes:
            classes[name].check(rows, name)
