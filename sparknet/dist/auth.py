"""Who may connect: both ends of a connection show that they know the run's secret.

The listener sends a challenge, the caller its own, who it is and a proof, the listener its
proof: HMAC-SHA256 over both challenges, whose side it is, and who the caller is.  All messages
have fixed lengths, so that nothing a stranger says is taken for a size.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import time
from hashlib import sha256

from sparknet.errors import CommError

MAGIC = b"sparknet-comm-01"
NONCE = 32
WHO = 32
PROOF = sha256().digest_size


def make_secret() -> bytes:
    """For one run."""
    return secrets.token_bytes(32)


def ask(connection: socket.socket, secret: bytes, deadline: float) -> bytes:
    """The listener's side; who the caller is, or CommError within ``deadline`` seconds."""
    until = time.monotonic() + deadline
    mine = secrets.token_bytes(NONCE)
    connection.settimeout(deadline)
    connection.sendall(MAGIC + mine)
    said = exactly(connection, NONCE + WHO + PROOF, until)
    theirs, who, proof = said[:NONCE], said[NONCE : NONCE + WHO], said[NONCE + WHO :]
    if not hmac.compare_digest(proof, _proof(secret, b"caller", mine, theirs, who)):
        raise CommError("a caller does not know the secret of this run")
    connection.sendall(_proof(secret, b"listener", mine, theirs, who))
    connection.settimeout(None)
    return who


def answer(connection: socket.socket, secret: bytes, who: bytes, deadline: float) -> None:
    """The caller's side; ``who`` is 32 bytes at most."""
    until = time.monotonic() + deadline
    who = who.ljust(WHO, b"\0")
    said = exactly(connection, len(MAGIC) + NONCE, until)
    if said[: len(MAGIC)] != MAGIC:
        raise CommError("this is no port of sparknet, or one of another version")
    theirs, mine = said[len(MAGIC) :], secrets.token_bytes(NONCE)
    connection.sendall(mine + who + _proof(secret, b"caller", theirs, mine, who))
    try:
        proof = exactly(connection, PROOF, until)
    except CommError:
        raise CommError("the listener does not take this worker for one of its run") from None
    if not hmac.compare_digest(proof, _proof(secret, b"listener", theirs, mine, who)):
        raise CommError("the listener does not know the secret of this run")
    connection.settimeout(None)


def exactly(connection: socket.socket, size: int, until: float) -> bytes:
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
            raise CommError("a connection ended within the handshake")
        found += piece
    return bytes(found)


def _proof(secret: bytes, side: bytes, listener: bytes, caller: bytes, who: bytes) -> bytes:
    return hmac.new(secret, MAGIC + side + listener + caller + who, sha256).digest()
