"""One ring in memory of one process: what is written comes out, around its end, too."""

from threading import Event, Thread

import numpy as np
import pytest

from sparknet.errors import ArrayError
from sparknet.native import NDArray
from sparknet.native.ring import Ring, ring_bytes


def ring(capacity: int) -> tuple[Ring, Ring]:
    """Who writes and who reads."""
    memory = NDArray.zeros((ring_bytes(capacity),), dtype=np.uint8)
    return Ring(memory, 0, capacity), Ring(memory, 0, capacity)


def test_bytes_come_out_as_they_went_in_around_the_end():
    writer, reader = ring(7)
    sent = bytes(range(250))
    for begin in range(0, 250, 5):
        writer.write(sent[begin : begin + 5])
        got = bytearray(5)
        reader.read_into(memoryview(got))
        assert bytes(got) == sent[begin : begin + 5]


def test_more_than_the_ring_holds_is_written_while_it_is_read():
    writer, reader = ring(64)
    sent = np.random.default_rng(1).bytes(1000)
    thread = Thread(target=writer.write, args=(sent,))
    thread.start()
    got = bytearray(1000)
    reader.read_into(memoryview(got))
    thread.join()
    assert bytes(got) == sent


def test_a_slow_reader_gets_what_was_written_and_no_more(monkeypatch):
    """The writer goes on from where it stopped; so does a reader that waited."""
    waited, ended = Event(), Ring._ended

    def asked(self: Ring) -> bool:
        waited.set()
        return ended(self)

    monkeypatch.setattr("sparknet.native.ring._SLICE", 1)
    monkeypatch.setattr(Ring, "_ended", asked)
    writer, reader = ring(8)
    sent = bytes(range(20))
    thread = Thread(target=writer.write, args=(sent,))
    thread.start()
    assert waited.wait(60)
    got = bytearray(20)
    reader.read_into(memoryview(got))
    thread.join()
    assert bytes(got) == sent
    thread = Thread(target=reader.read_into, args=(memoryview(got),))
    writer.write(sent[::-1][:5])
    waited.clear()
    thread.start()
    assert waited.wait(60)
    for begin in (5, 10, 15):
        writer.write(sent[::-1][begin : begin + 5])
    thread.join()
    assert bytes(got) == sent[::-1]
    writer.end()
    with pytest.raises(EOFError):
        reader.read_into(memoryview(got))


def test_after_its_end_the_rest_is_read_and_nothing_written():
    writer, reader = ring(8)
    writer.write(b"abc")
    writer.end()
    with pytest.raises(BrokenPipeError, match="takes no more bytes"):
        writer.write(b"d")
    got = bytearray(3)
    reader.read_into(memoryview(got))
    assert got == b"abc"
    with pytest.raises(EOFError, match="closed the connection"):
        reader.read_into(memoryview(got))


def test_a_ring_fills_its_memory_to_the_last_byte():
    memory = NDArray.zeros((64 + ring_bytes(8),), dtype=np.uint8)
    writer, reader = Ring(memory, 64, 8), Ring(memory, 64, 8)
    writer.write(b"abcdefgh")
    got = bytearray(8)
    reader.read_into(memoryview(got))
    assert got == b"abcdefgh"
    assert not memory.numpy()[:64].any()
    for begin in (-64, 65, 128):
        with pytest.raises(ArrayError, match=f"no room for a ring at {begin}"):
            Ring(memory, begin, 8)
