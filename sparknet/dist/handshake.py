"""Who may connect: both ends of a connection show that they know the run's secret.

The listener sends a challenge; the caller sends its own, who it is, and a proof; the listener
sends its proof.  A proof is HMAC-SHA256 over both challenges, whose side it is, and who calls whom
for what (`Caller`).  All messages have fixed lengths, so that nothing a stranger says is taken for a
size.

The secret itself proves nothing: each purpose has a key of its own, derived from it, so that what is
said at one port is of no use at another.  From both challenges come the keys that seal what travels
afterwards (`sparknet.dist.seal`).
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
"""Seconds until what the system had no room for is tried again."""
_TRIES = 3
"""Calls of a listener that hangs up: it may have had too many callers for a moment."""
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

MESH, DRIVER, PREFLIGHT = range(3)
"""What a connection is for."""
DRIVERS_RANK = (1 << 32) - 1
"""The driver's, as a listener."""

_CALLER = struct.Struct("!BxHII16s")
WHO = _CALLER.size
SAID = NONCE + WHO + PROOF
"""Bytes of a caller's only message."""


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
        """Who says so, if it speaks of this run: then `packed` gives the same again."""
        purpose, channel, rank, listener, _ = _CALLER.unpack(who)
        return cls(purpose, run, rank, listener, channel)


@dataclass(frozen=True)
class Keys:
    """What seals the bytes of one connection, each way with a key of its own."""

    sending: bytes
    receiving: bytes


class Greeting:
    """The listener's side of one handshake, as bytes that come and go."""

    def __init__(self, secret: bytes) -> None:
        self._secret, self._nonce = secret, secrets.token_bytes(NONCE)

    @property
    def challenge(self) -> bytes:
        return MAGIC + self._nonce

    def check(self, said: bytes) -> tuple[bytes, bytes, Keys]:
        """Who the caller is (`Caller.packed`), the proof that it waits for, and the keys."""
        theirs, who, proof = said[:NONCE], said[NONCE : NONCE + WHO], said[NONCE + WHO :]
        conversation = _Conversation(self._secret, self._nonce, theirs, who)
        if not hmac.compare_digest(proof, conversation.proof(b"caller")):
            raise CommError("a caller does not know the secret of this run")
        to_caller, to_listener = conversation.keys()
        return who, conversation.proof(b"listener"), Keys(to_caller, to_listener)


def is_short(error: OSError) -> bool:
    """Whether the system lacks something for a connection that it may have in a moment."""
    return error.errno in _SHORT


def dial(
    address: tuple[str, int], secret: bytes, who: Caller, deadline: float = TIME
) -> tuple[socket.socket, Keys]:
    """Call a listener, again where one or the other end has no room for a moment."""
    until, tries = time.monotonic() + deadline, 0
    while True:
        left = max(until - time.monotonic(), 0.001)
        try:
            return _dialled(address, secret, who, left)
        except HungUp:
            tries += 1
            if tries == _TRIES or left < PAUSE:
                raise
        except OSError as error:
            if not is_short(error) or left < PAUSE:
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
    """The caller's side; CommError within ``deadline`` seconds if the other end is a stranger."""
    until = time.monotonic() + deadline
    said = _exactly(connection, len(MAGIC) + NONCE, until)
    if said[: len(MAGIC)] != MAGIC:
        raise CommError("this is no port of sparknet, or one of another version")
    mine = secrets.token_bytes(NONCE)
    conversation = _Conversation(secret, said[len(MAGIC) :], mine, who.packed())
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
    """For one run."""
    return secrets.token_bytes(32)


class _Conversation:
    """What both ends know when both have spoken."""

    def __init__(self, secret: bytes, listeners: bytes, callers: bytes, who: bytes) -> None:
        self._key = hmac.digest(secret, MAGIC + b" purpose " + who[:1], "sha256")
        self._said = listeners + callers + who

    def proof(self, side: bytes) -> bytes:
        return hmac.digest(self._key, b"proof of the " + side + self._said, "sha256")

    def keys(self) -> tuple[bytes, bytes]:
        """To the caller, to the listener."""
        to_caller, to_listener = (
            hmac.digest(self._key, b"key to the " + side + self._said, "sha256")
            for side in (b"caller", b"listener")
        )
        return to_caller, to_listener


def _exactly(connection: socket.socket, size: int, until: float) -> bytes:
    """So many bytes, however slowly they drip in, but not after ``until``."""
    found = bytearray()
    while len(found) < size:
        left = until - time.monotonic()
        if left <= 0:
            raise CommError("a handshake took too long")
        connection.settimeout(left)
        try:
            piece = connection.recv(size - len(found))
        except TimeoutError:
            raise CommError("a handshake took too long") from None
        if not piece:
            raise HungUp("a connection ended within the handshake")
        found += piece
    return bytes(found)
