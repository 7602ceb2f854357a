"""Which shapes a column's rows may have, and which blobs depend on what is learned."""

import numpy as np
import pytest

from sparknet.errors import DataError
from sparknet.net.entries import from_learned
from sparknet.net.feed import shaped
from sparknet.proto import parse_net
from tests.graph.nets import dense, layer, source, text


@pytest.mark.parametrize(
    ("shape", "record", "wanted"),
    [
        ((4, 4), (4, 4), (4, 4)),
        ((4, 4), (1, 4, 4), (1, 4, 4)),
        ((4, 5), (1, None, None), (1, 4, 5)),
        ((16,), (1, 4, 4), (1, 4, 4)),
        ((4, 4, 1), (1, 4, 4), (1, 4, 4)),
    ],
)
def test_rows_in_a_records_shape(shape, record, wanted):
    values = np.random.default_rng(1).random((2, *shape))
    found = shaped("x", values, record)
    assert found.shape == (2, *wanted)
    np.testing.assert_array_equal(found.ravel(), values.ravel())


@pytest.mark.parametrize(
    ("shape", "record"), [((5, 5), (1, 4, 4)), ((4, 4), (3, 4, 4)), ((15,), (1, 4, 4))]
)
def test_rows_of_another_shape(shape, record):
    with pytest.raises(DataError, match="column 'x': a record is"):
        shaped("x", np.zeros((2, *shape)), record)


def test_what_depends_on_what_is_learned():
    net = parse_net(
        text(
            source("x", 4, 3),
            layer("Power", "before", "x", "scaled"),
            dense("ip", "scaled", "ip"),
            layer("ReLU", "after", "ip", "relu"),
            layer("Eltwise", "sum", "relu scaled", "sum"),
            layer("Power", "aside", "x", "other"),
        )
    )
    assert from_learned(net, {"ip"}) == {"ip", "relu", "sum"}
    assert from_learned(net, ()) == set()
