"""The handshake over real sockets: both ends prove that they know the secret, in bounded time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sparknet.dist.auth import MAGIC, NONCE, PROOF, WHO, answer, ask, make_secret
from sparknet.errors import CommError
from tests.dist.groups import in_threads


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    listener, caller = socket.socketpair()
    with listener, caller:
        yield listener, caller


Ends = tuple[socket.socket, socket.socket]


def test_both_are_taken_for_what_they_are(ends: Ends) -> None:
    secret = make_secret()
    found = in_threads(
        [lambda: ask(ends[0], secret, 5), lambda: answer(ends[1], secret, b"worker 3", 5)]
    )
    assert found == [b"worker 3".ljust(WHO, b"\0"), None]
    assert [end.gettimeout() for end in ends] == [None, None]


def test_secrets_are_long_and_never_the_same() -> None:
    assert len(make_secret()) == 32
    assert make_secret() != make_secret()


def test_a_caller_without_the_secret_is_refused(ends: Ends) -> None:
    def listen() -> bytes:
        try:
            return ask(ends[0], b"one", 5)
        finally:
            ends[0].close()

    refused, told = in_threads([listen, lambda: answer(ends[1], b"two", b"me", 5)])
    assert "does not know the secret" in str(refused)
    assert "does not take this worker" in str(told)


def test_a_listener_without_the_secret_is_refused(ends: Ends) -> None:
    """One that answers with any proof, also with the caller's own."""

    def listen(echo: bool) -> None:
        ends[0].sendall(MAGIC + b"n" * NONCE)
        said = ends[0].recv(NONCE + WHO + PROOF, socket.MSG_WAITALL)
        ends[0].sendall(said[-PROOF:] if echo else b"p" * PROOF)

    for echo in (False, True):
        _, refused = in_threads(
            [lambda echo=echo: listen(echo), lambda: answer(ends[1], b"two", b"me", 5)]
        )
        assert str(refused) == "the listener does not know the secret of this run"


def test_proof_of_another_conversation_is_refused(ends: Ends) -> None:
    """What was overheard once is of no use: the challenge is another."""
    overheard = b""

    first, second = socket.socketpair()
    with first, second:

        def relay() -> None:
            nonlocal overheard
            second.sendall(ends[1].recv(len(MAGIC) + NONCE, socket.MSG_WAITALL))
            overheard = second.recv(NONCE + WHO + PROOF, socket.MSG_WAITALL)

        def listen() -> None:
            with suppress(CommError):
                ask(ends[0], b"secret", 0.1)

        def call() -> None:
            with suppress(CommError):
                answer(first, b"secret", b"me", 0.1)

        in_threads([listen, relay, call])
    again, stranger = socket.socketpair()
    with again, stranger:
        stranger.sendall(overheard)
        with pytest.raises(CommError, match="does not know the secret"):
            ask(again, b"secret", 5)


def test_another_service_is_told_from_a_listener(ends: Ends) -> None:
    ends[0].sendall(b"220 mail.example ESMTP ready, and some more words to fill the line\r\n")
    with pytest.raises(CommError, match="no port of sparknet"):
        answer(ends[1], b"secret", b"me", 5)


def test_silence_and_a_slow_drip_end_with_the_deadline(ends: Ends) -> None:
    with pytest.raises(CommError, match="took too long"):
        ask(ends[0], b"secret", 0.1)
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.02):
            with suppress(OSError):
                ends[1].sendall(b"x")

    def listen() -> None:
        try:
            ask(ends[0], b"secret", 0.3)
        finally:
            stop.set()

    _, refused = in_threads([drip, listen])
    assert str(refused) == "a handshake took too long"
