"""Handshake: both ends of a connection prove that they know the run's secret.

The listener sends a challenge; the caller sends its own, who it is, and a proof; the listener
sends its proof.  A proof is HMAC-SHA256 over both challenges, the side, and who calls whom for
what (`Caller`).  All messages have fixed lengths, so that no byte of a stranger is read as a size.

Each purpose has a key of its own, derived from the secret, so that a proof made for one port is of
no use at another.  The keys that seal the connection afterwards (`sparknet.comm.wire`) are
derived from both challenges.
"""

from __future__ import annotations

import errno
import hmac
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from hashlib import sha256

from sparknet.errors import CommError

MAGIC = b"sparknet-comm-02"
NONCE = 32
PROOF = sha256().digest_size
TIME = 10.0
"""Seconds that a handshake may take."""
PAUSE = 0.1
"""Seconds before another attempt when the system had no room for a connection."""
_TRIES = 3
"""Attempts at a listener that hangs up: it may have too many callers for a moment."""
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

MESH, DRIVER, PREFLIGHT = range(3)
"""What a connection is for."""
DRIVERS_RANK = (1 << 32) - 1
"""The driver's rank, as a listener."""

_CALLER = struct.Struct("!BxHII16s")
WHO = _CALLER.size
SAID = NONCE + WHO + PROOF
"""The length of a caller's only message, in bytes."""


@dataclass(frozen=True)
class Caller:
    """Who calls whom, for what, in which run."""

    purpose: int
    run: str
    rank: int
    listener: int = DRIVERS_RANK
    channel: int = 0

    def packed(self) -> bytes:
        run = sha256(self.run.encode()).digest()[:16]
        return _CALLER.pack(self.purpose, self.channel, self.rank, self.listener, run)

    @classmethod
    def unpacked(cls, who: bytes, run: str) -> Caller:
        """Return the caller of packed bytes, if they name this run: then `packed` returns them
        again.
        """
        purpose, channel, rank, listener, _ = _CALLER.unpack(who)
        return cls(purpose, run, rank, listener, channel)


@dataclass(frozen=True)
class Keys:
    """The keys that seal one connection, one for each direction."""

    sending: bytes
    receiving: bytes


class Greeting:
    """The listener's side of one handshake, as bytes in and out."""

    def __init__(self, secret: bytes) -> None:
        self._secret, self._nonce = secret, secrets.token_bytes(NONCE)

    @property
    def challenge(self) -> bytes:
        return MAGIC + self._nonce

    def check(self, said: bytes) -> tuple[bytes, bytes, Keys]:
        """Return the caller (`Caller.packed`), the proof that it waits for, and the keys."""
        theirs, who, proof = said[:NONCE], said[NONCE : NONCE + WHO], said[NONCE + WHO :]
        conversation = _Conversation(self._secret, self._nonce, theirs, who)
        if not hmac.compare_digest(proof, conversation.proof(b"caller")):
            raise CommError("a caller does not know the secret of this run")
        to_caller, to_listener = conversation.keys()
        return who, conversation.proof(b"listener"), Keys(to_caller, to_listener)


def is_short(error: OSError) -> bool:
    """Return whether the system lacks resources for a connection only for the moment."""
    return error.errno in _SHORT


def dial(
    address: tuple[str, int], secret: bytes, who: Caller, deadline: float = TIME
) -> tuple[socket.socket, Keys]:
    """Call a listener; tries again while either end has no room for the moment."""
    until, tries = time.monotonic() + deadline, 0
    while True:
        remaining = max(until - time.monotonic(), 0.001)
        try:
            return _dialled(address, secret, who, remaining)
        except HungUp:
            tries += 1
            if tries == _TRIES or remaining < PAUSE:
                raise
        except OSError as error:
            if not is_short(error) or remaining < PAUSE:
                raise
        time.sleep(PAUSE)


def _dialled(
    address: tuple[str, int], secret: bytes, who: Caller, left: float
) -> tuple[socket.socket, Keys]:
    connection = socket.create_connection(address, left)
    try:
        keys = call(connection, secret, who, left)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection, keys


class HungUp(CommError):
    """The other end ended the connection within the handshake."""


def call(connection: socket.socket, secret: bytes, who: Caller, deadline: float = TIME) -> Keys:
    """Run the caller's side; CommError in ``deadline`` seconds if the other end is a stranger."""
    until = time.monotonic() + deadline
    greeting = _exactly(connection, len(MAGIC) + NONCE, until)
    if greeting[: len(MAGIC)] != MAGIC:
        raise CommError("this is no port of sparknet, or one of another version")
    mine = secrets.token_bytes(NONCE)
    conversation = _Conversation(secret, greeting[len(MAGIC) :], mine, who.packed())
    connection.sendall(mine + who.packed() + conversation.proof(b"caller"))
    try:
        proof = _exactly(connection, PROOF, until)
    except (HungUp, ConnectionResetError):
        raise HungUp("the listener does not take this worker for one of its run") from None
    if not hmac.compare_digest(proof, conversation.proof(b"listener")):
        raise CommError("the listener does not know the secret of this run")
    connection.settimeout(None)
    to_caller, to_listener = conversation.keys()
    return Keys(to_listener, to_caller)


def make_secret() -> bytes:
    """Return a new secret, for one run."""
    return secrets.token_bytes(32)


class _Conversation:
    """The proofs and keys that follow from both ends' challenges."""

    def __init__(self, secret: bytes, listeners: bytes, callers: bytes, who: bytes) -> None:
        self._key = hmac.digest(secret, MAGIC + b" purpose " + who[:1], "sha256")
        self._said = listeners + callers + who

    def proof(self, side: bytes) -> bytes:
        return hmac.digest(self._key, b"proof of the " + side + self._said, "sha256")

    def keys(self) -> tuple[bytes, bytes]:
        """Return the keys towards the caller and towards the listener."""
        to_caller, to_listener = (
            hmac.digest(self._key, b"key to the " + side + self._said, "sha256")
            for side in (b"caller", b"listener")
        )
        return to_caller, to_listener


def _exactly(connection: socket.socket, size: int, until: float) -> bytes:
    """Receive ``size`` bytes, however slowly they come in, but not after ``until``."""
    buffer = bytearray()
    while len(buffer) < size:
        remaining = until - time.monotonic()
        if remaining <= 0:
            raise CommError("a handshake took too long")
        connection.settimeout(remaining)
        try:
            piece = connection.recv(size - len(buffer))
        except TimeoutError:
            raise CommError("a handshake took too long") from None
        if not piece:
            raise HungUp("a connection ended within the handshake")
        buffer += piece
    return bytes(buffer)
