"""Databases that Caffe wrote, and what went into them."""

import numpy as np

from sparknet.loaders.datums import parse_datum
from tests.goldens import GOLDENS


def check_against_sources(records, name):
    """All records of data/NAME in their order; the name begins with that of their sources."""
    with np.load(GOLDENS / "data/sources.npz") as sources:
        data, labels = (sources[f"{name.split('_')[0]}/{part}"] for part in ("data", "label"))
    assert len(records) == len(data)
    assert records.first() == next(iter(records))
    for i, (key, value) in enumerate(records):
        datum = parse_datum(value, name, key)
        assert datum.label == labels[i]
        got = np.frombuffer(datum.data, np.uint8) if datum.data else datum.float_data
        assert (np.reshape(got, data[i].shape) == data[i]).all()
