"""The handshake over real sockets: both ends prove that they know the secret, in bounded time."""

import socket
import threading
from contextlib import suppress

import pytest

from sparknet.comm.handshake import (
    DRIVER,
    MAGIC,
    MESH,
    NONCE,
    PREFLIGHT,
    PROOF,
    SAID,
    Caller,
    Greeting,
    Keys,
    call,
    make_secret,
)
from sparknet.errors import CommError
from tests.comm.groups import in_threads

ME = Caller(MESH, "run", 1, 0, 2)


@pytest.fixture
def ends():
    listener, caller = socket.socketpair()
    with listener, caller:
        yield listener, caller


Ends = tuple[socket.socket, socket.socket]


def listen(end: socket.socket, secret: bytes) -> tuple[bytes, Keys]:
    """The listener's side, for one caller."""
    greeting = Greeting(secret)
    end.sendall(greeting.challenge)
    try:
        who, proof, keys = greeting.check(end.recv(SAID, socket.MSG_WAITALL))
    except CommError:
        end.close()
        raise
    end.sendall(proof)
    return who, keys


def test_both_are_taken_for_what_they_are(ends):
    secret = make_secret()
    (who, theirs), mine = in_threads(
        [lambda: listen(ends[0], secret), lambda: call(ends[1], secret, ME, 5)]
    )
    assert who == ME.packed()
    assert (mine.sending, mine.receiving) == (theirs.receiving, theirs.sending)
    assert mine.sending != mine.receiving
    assert ends[1].gettimeout() is None


def test_keys_are_new_for_each_connection():
    def keys() -> bytes:
        listener, caller = socket.socketpair()
        with listener, caller:
            _, mine = in_threads([lambda: listen(listener, b"s"), lambda: call(caller, b"s", ME)])
        return mine.sending

    assert keys() != keys()


def test_who_is_called_for_what_is_told_apart():
    callers = [
        ME,
        Caller(DRIVER, "run", 1, 0, 2),
        Caller(PREFLIGHT, "run", 1, 0, 2),
        Caller(MESH, "run/2", 1, 0, 2),
        Caller(MESH, "run", 2, 0, 2),
        Caller(MESH, "run", 1, 2, 2),
        Caller(MESH, "run", 1, 0, 3),
    ]
    assert len({caller.packed() for caller in callers}) == len(callers)
    assert Caller.unpacked(ME.packed(), "run") == ME
    assert Caller.unpacked(ME.packed(), "other").packed() != ME.packed()


def test_secrets_are_long_and_never_the_same():
    assert len(make_secret()) == 32
    assert make_secret() != make_secret()


def test_a_caller_without_the_secret_is_refused(ends):
    refused, told = in_threads(
        [lambda: listen(ends[0], b"one"), lambda: call(ends[1], b"two", ME, 5)]
    )
    assert "does not know the secret" in str(refused)
    assert "does not take this worker" in str(told)


@pytest.mark.parametrize("echo", [False, True])
def test_a_listener_without_the_secret_is_refused(ends, echo):
    """One that answers with any proof, also with the caller's own."""

    def pretend():
        ends[0].sendall(MAGIC + b"n" * NONCE)
        said = ends[0].recv(SAID, socket.MSG_WAITALL)
        ends[0].sendall(said[-PROOF:] if echo else b"p" * PROOF)

    _, refused = in_threads([pretend, lambda: call(ends[1], b"two", ME, 5)])
    assert str(refused) == "the listener does not know the secret of this run"


def test_a_proof_for_one_purpose_is_none_for_another():
    """A relay that only changes what the caller calls for: each purpose has a key of its own."""
    greeting = Greeting(b"secret")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(greeting.challenge)

        def relayed():
            said = bytearray(ours.recv(SAID, socket.MSG_WAITALL))
            said[NONCE] = DRIVER
            with pytest.raises(CommError, match="does not know the secret"):
                greeting.check(bytes(said))
            ours.close()

        refused, _ = in_threads([lambda: call(theirs, b"secret", ME, 5), relayed])
    assert "does not take this worker" in str(refused)


def test_proof_of_another_conversation_is_refused(ends):
    """What was overheard once is of no use: the challenge is another."""
    overheard = b""

    def overhear():
        nonlocal overheard
        ends[0].sendall(Greeting(b"secret").challenge)
        overheard = ends[0].recv(SAID, socket.MSG_WAITALL)
        ends[0].close()

    def called():
        with suppress(CommError):
            call(ends[1], b"secret", ME, 5)

    in_threads([overhear, called])
    assert len(overheard) == SAID
    with pytest.raises(CommError, match="does not know the secret"):
        Greeting(b"secret").check(overheard)


def test_another_service_is_told_from_a_listener(ends):
    ends[0].sendall(b"220 mail.example ESMTP ready, and some more words to fill the line\r\n")
    with pytest.raises(CommError, match="no port of sparknet"):
        call(ends[1], b"secret", ME, 5)


def test_silence_and_a_slow_drip_end_with_the_deadline(ends):
    with pytest.raises(CommError, match="took too long"):
        call(ends[1], b"secret", ME, 0.1)
    stop = threading.Event()

    def drip():
        while not stop.wait(0.02):
            with suppress(OSError):
                ends[0].sendall(b"x")

    def called():
        try:
            call(ends[1], b"secret", ME, 0.3)
        finally:
            stop.set()

    _, refused = in_threads([drip, called])
    assert str(refused) == "a handshake took too long"
