"""Sealed records: what was changed, left out, repeated or moved on the way is refused."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sparknet.comm.handshake import Keys
from sparknet.comm.wire import AES_GCM, GMAC, HMAC, RECORD, TAG, Wire, choose_seal
from sparknet.errors import CommError, SettingError
from tests.comm.groups import in_threads

SEALS = [HMAC, GMAC, AES_GCM]
ONE, OTHER = bytes(range(32)), bytes(range(32, 64))


@contextmanager
def wires(seal: str) -> Iterator[tuple[Wire, Wire, Callable[[], bytes], socket.socket]]:
    """Two ends, what the first one has sent, and where the second one reads."""
    first, here = socket.socketpair()
    there, second = socket.socketpair()
    with first, here, there, second:
        yield (
            Wire(first, Keys(ONE, OTHER), seal),
            Wire(second, Keys(OTHER, ONE), seal),
            lambda: here.recv(1 << 16),
            there,
        )


def received(wire: Wire, size: int) -> bytes:
    into = bytearray(size)
    wire.receive(memoryview(into))
    return bytes(into)


@pytest.mark.parametrize("seal", SEALS)
@pytest.mark.parametrize("size", [0, 1, 100, RECORD, RECORD + 1, 3 * RECORD + 5])
def test_what_is_sent_arrives(seal, size):
    data = os.urandom(size)
    first, second = socket.socketpair()
    with first, second:
        one, other = Wire(first, Keys(ONE, OTHER), seal), Wire(second, Keys(OTHER, ONE), seal)
        _, found = in_threads([lambda: one.send(data), lambda: received(other, size)])
        assert found == data
        _, found = in_threads([lambda: other.send(data), lambda: received(one, size)])
        assert found == data


@pytest.mark.parametrize("seal", SEALS)
def test_a_piece_may_be_received_record_by_record(seal):
    data = os.urandom(2 * RECORD + 7)
    first, second = socket.socketpair()
    with first, second:
        one, other = Wire(first, Keys(ONE, OTHER), seal), Wire(second, Keys(OTHER, ONE), seal)
        sizes = [RECORD, RECORD, 7]
        _, found = in_threads(
            [lambda: one.send(data), lambda: [received(other, size) for size in sizes]]
        )
        assert b"".join(found) == data


@pytest.mark.parametrize("seal", SEALS)
def test_every_flipped_bit_is_noticed(seal):
    for bit in range(8 * (5 + TAG)):
        with wires(seal) as (one, other, sent, there):
            one.send(b"12345")
            travelling = bytearray(sent())
            travelling[bit // 8] ^= 1 << bit % 8
            there.sendall(travelling)
            with pytest.raises(CommError, match="changed on the way"):
                received(other, 5)


@pytest.mark.parametrize("seal", SEALS)
def test_a_record_that_comes_twice_is_refused(seal):
    with wires(seal) as (one, other, sent, there):
        one.send(b"12345")
        record = sent()
        there.sendall(record + record)
        assert received(other, 5) == b"12345"
        with pytest.raises(CommError, match="changed on the way"):
            received(other, 5)


@pytest.mark.parametrize("seal", SEALS)
def test_a_record_that_was_left_out_is_noticed(seal):
    with wires(seal) as (one, other, sent, there):
        one.send(b"12345")
        sent()
        one.send(b"67890")
        there.sendall(sent())
        with pytest.raises(CommError, match="changed on the way"):
            received(other, 5)


@pytest.mark.parametrize("seal", SEALS)
def test_a_record_that_is_sent_back_is_refused(seal):
    with wires(seal) as (one, _, _, _there):
        one.send(b"12345")
        echo, sender = socket.socketpair()
        with echo, sender:
            other = Wire(echo, Keys(OTHER, ONE), seal)
            other.send(b"12345")
            mirror = Wire(sender, Keys(OTHER, ONE), seal)
            with pytest.raises(CommError, match="changed on the way"):
                received(mirror, 5)


def test_what_is_encrypted_cannot_be_read():
    with wires(AES_GCM) as (one, _, sent, _):
        one.send(b"a weight, a weight, a weight")
        assert b"weight" not in sent()


def test_messages_that_are_sent_otherwise():
    for seal in SEALS:
        with wires(seal) as (one, other, _, _):
            assert other.unseal(one.sealed(b"beat")) == b"beat"
            assert len(one.sealed(b"beat")) == 4 + TAG


def test_hanging_up_is_an_end_and_not_a_forgery():
    with wires(HMAC) as (_, other, _, there):
        there.close()
        with pytest.raises(EOFError):
            received(other, 5)


def test_the_seal_of_a_run():
    assert choose_seal("encrypted") == AES_GCM
    assert choose_seal("sealed") == GMAC
    with pytest.raises(SettingError, match=r"protection must be .* not 'rot13'"):
        choose_seal("rot13")
    with pytest.raises(SettingError, match="no seal 'rot13'"):
        Wire(socket.socket(), Keys(ONE, OTHER), "rot13")
