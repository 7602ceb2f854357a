import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparknet.loaders.leveldb_table import MOST_GROWTH, decompress


def test_literals_and_copies():
    assert decompress(b"\x00") == b""
    assert decompress(b"\x03\x08abc") == b"abc"
    assert decompress(b"\x08\x04ab\x09\x02") == b"abababab"[:8]
    # a copy of 20 bytes from 1 back, two bytes of offset
    assert decompress(b"\x15\x00x" + bytes([19 << 2 | 2, 1, 0])) == b"x" * 21
    # four bytes of offset
    assert decompress(b"\x06\x08abc" + bytes([2 << 2 | 3, 3, 0, 0, 0])) == b"abcabc"
    # a literal with its length in one byte
    assert decompress(bytes([61, 60 << 2, 60]) + b"y" * 61) == b"y" * 61


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no length"),
        (b"\xff\xff\xff\xff\xff\xff", "no length"),
        (b"\xff\xff\xff\xff\x0f\x00x", "cannot hold 4294967295"),
        (b"\x05\x08ab", "literal is cut short"),
        (b"\x05\xf4", "literal is cut short"),
        (b"\x05\x08abc", "3 bytes instead of 5"),
        (b"\x01\x08abc", "more than the 1 bytes"),
        (b"\x09\x00a\x11\x02", "copy from 2 bytes back"),
        (b"\x09\x00a\x11\x00", "copy from 0 bytes back"),
        (b"\x09\x00a\x02\x00", "copy is cut short"),
    ],
)
def test_damage_is_refused(data, says):
    with pytest.raises(ValueError, match=says):
        decompress(data)


@given(st.binary(max_size=200))
def test_nothing_crashes_or_swells(data):
    with contextlib.suppress(ValueError):
        assert len(decompress(data)) <= MOST_GROWTH * len(data)
