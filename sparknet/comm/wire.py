"""Pipe: bytes between two workers; Wire: a connection on which they travel as sealed records.

A piece is sent as records of `RECORD` bytes each, the last one shorter.  It is received as one
piece, or as several that begin and end at records.

No thread waits in the system for longer than a slice of the deadline, so that it can count what
it waited for in vain: slices in which this process itself was paused do not count.

Every record carries a seal, which proves that it came from the other end, unchanged and in order.
All seals are standard: HMAC-SHA256 of Python itself; GMAC, which is ten times as fast, where the
package ``cryptography`` is installed; and AES-GCM, which hides the bytes as well.  The number of
the record is part of its seal, so that no record can be left out, repeated or moved.
"""

from __future__ import annotations

import fcntl
import hmac
import socket
import struct
import termios
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

from sparknet.comm.handshake import Keys
from sparknet.errors import CommError, PeerLost, SettingError, extra

RECORD = 1 << 21
"""The bytes of a record."""
_SMALL = 1 << 14
"""Records up to this size are copied next to their seal, and sent by one system call."""

_SLICES = 8
"""The slices of a deadline."""
_GRACE = 2
"""Further slices, in which who else watches the other end names it first."""

Buffer = bytes | bytearray | memoryview


class Pipe(ABC):
    """Both directions between two workers.  One thread may send while another one receives."""

    sent, received = 0, 0
    """The bytes that were given to the network so far, seals included, and that came from it."""
    awaits = False
    """Whether a thread waits for bytes."""

    @abstractmethod
    def send(self, data: Buffer) -> None:
        """Send a buffer; OSError if the other end is gone."""

    @abstractmethod
    def receive(self, into: memoryview) -> None:
        """Fill a buffer; EOFError if the other end hung up, OSError if the connection breaks."""

    @abstractmethod
    def end(self, how: int = socket.SHUT_RDWR) -> None:
        """End one direction or both, which wakes all that wait for it at both ends."""

    @abstractmethod
    def close(self) -> None:
        """End both directions for good."""


class Silent(TimeoutError):
    """The other end was silent for the deadline."""


class Wire(Pipe):
    """A sealed connection.

    Both directions raise Silent when nothing moved for ``deadline`` seconds, unless somebody
    else watches `sent` and `received` (`sparknet.comm.heartbeat`).
    """

    def __init__(
        self,
        connection: socket.socket,
        keys: Keys,
        seal: str,
        deadline: float = 60.0,
        is_watched: bool = True,
    ) -> None:
        self.connection = connection
        self._seal = make_seal(seal, keys)
        self._tag = memoryview(bytearray(self._seal.size))
        self._deadline, self._is_watched = deadline, is_watched
        self._failed = ""
        _set_slice(connection, deadline / _SLICES)

    def send(self, data: Buffer) -> None:
        for record in _records(data):
            self._send(record)

    def receive(self, into: memoryview) -> None:
        for record in _records(into):
            self._fill(record)
            self._fill(self._tag)
            clear = self._seal.open(record, self._tag)
            if clear is not None:
                record[:] = clear

    def sealed(self, message: bytes) -> bytes:
        """Return a short message with its seal, for a caller that sends it itself."""
        sealed = self._seal.seal(message)
        return sealed if self._seal.hides else message + sealed

    def unseal(self, sealed: bytes) -> bytes:
        """Return the message that `sealed` sealed."""
        end = len(sealed) - self._seal.size
        message, tag = sealed[:end], sealed[end:]
        clear = self._seal.open(message, tag)
        return message if clear is None else clear

    def sealed_size(self, size: int) -> int:
        """Return the sealed length of a message of ``size`` bytes."""
        return size + self._seal.size

    def end(self, how: int = socket.SHUT_RDWR) -> None:
        with suppress(OSError):
            self.connection.shutdown(how)

    def close(self) -> None:
        self.connection.close()

    def _send(self, record: Buffer) -> None:
        sealed = self._seal.seal(record)
        if self._seal.hides:
            pieces: tuple[Buffer, ...] = (sealed,)
        elif len(record) <= _SMALL:
            pieces = (b"".join((record, sealed)),)
        else:
            pieces = (record, sealed) if sealed else (record,)
        # First, so that the other end learns of bytes that are on their way for too long.
        self.sent += sum(map(len, pieces))
        for piece in pieces:
            self._push(memoryview(piece))

    def _push(self, view: memoryview) -> None:
        done, vain, unread = 0, 0, 0
        while done < view.nbytes:
            try:
                done += self.connection.send(view[done:])
                vain = 0
            except BlockingIOError:
                before, unread = unread, _unread(self.connection)
                vain = vain + 1 if unread == before else 0  # one that talks is only busy
                self._check(vain, "it has taken no bytes")

    def _fill(self, view: memoryview) -> None:
        got, vain = 0, 0
        self.awaits = True
        try:
            while got < view.nbytes:
                try:
                    count = self.connection.recv_into(view[got:], 0, socket.MSG_WAITALL)
                except BlockingIOError:
                    vain += 1
                    self._check(vain, "nothing has come from it")
                    continue
                if not count:
                    raise EOFError("it closed the connection")
                got, vain = got + count, 0
                self.received += count
        finally:
            self.awaits = False

    def _check(self, vain: int, what: str) -> None:
        """Silent after a deadline in vain, and from then on after each slice."""
        if vain >= _SLICES + _GRACE and not self._is_watched:
            self._failed = f"{what} for {self._deadline:g} s"
        if self._failed:
            raise Silent(self._failed)


def fill(pipe: Pipe, into: memoryview, rank: int, where: str) -> None:
    """Fill a buffer from a connection."""
    try:
        pipe.receive(into)
    except (OSError, EOFError) as error:
        raise PeerLost(rank, where, _reason(error)) from None


def drain(pipe: Pipe, data: bytes | memoryview, rank: int, where: str) -> None:
    """Send all of a buffer."""
    try:
        pipe.send(data)
    except OSError as error:
        raise PeerLost(rank, where, _reason(error)) from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _set_slice(connection: socket.socket, seconds: float) -> None:
    """Let a system call that waits return after so many seconds; bytes that came stay."""
    connection.settimeout(None)
    micro = max(int(1e6 * seconds), 1000)
    time = struct.pack("ll", *divmod(micro, 1_000_000))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        connection.setsockopt(socket.SOL_SOCKET, option, time)


def _unread(connection: socket.socket) -> int:
    """Return the bytes that came and were not read yet."""
    count: int = struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]
    return count


def _records(data: Buffer) -> Iterator[memoryview]:
    view = memoryview(data).cast("B")
    for begin in range(0, view.nbytes, RECORD):
        yield view[begin : begin + RECORD]


# -- seals ------------------------------------------------------------------------------

TAG = 16
"""The length of a seal in bytes."""
HMAC, GMAC, AES_GCM, NONE = "hmac", "gmac", "aes-gcm", "none"

_NUMBER = struct.Struct("!4xQ")
_FORGED = "what came over the connection was changed on the way"


def choose_seal(protection: str) -> str:
    """Return the seal of a run: "sealed" (the fastest that is installed), "encrypted" or "none"."""
    if protection == "encrypted":
        _aead()
        return AES_GCM
    if protection == "sealed":
        return GMAC if find_spec("cryptography") else HMAC
    if protection != "none":
        raise SettingError(
            f"protection must be 'sealed', 'encrypted' or 'none', not {protection!r}"
        )
    return NONE


def make_seal(name: str, keys: Keys) -> Seal:
    """Return the seal of one connection."""
    if name not in _SEALS:
        raise SettingError(f"there is no seal '{name}': there are {', '.join(_SEALS)}")
    return _SEALS[name](keys)


class Seal(ABC):
    """Both directions of a connection; one thread may send while another one receives."""

    hides = False
    """Whether the bytes are encrypted."""
    size = TAG
    """Bytes that the seal adds after a record."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._sent = self._received = 0

    def seal(self, data: Buffer) -> bytes:
        """Return the bytes to send after the next record; if the seal hides, also in its place."""
        number = _NUMBER.pack(self._sent)
        self._sent += 1
        return self._sealed(number, data)

    def open(self, data: Buffer, tag: Buffer) -> bytes | None:
        """Check the next record, CommError if it differs; returns its text if the seal hides."""
        number = _NUMBER.pack(self._received)
        self._received += 1
        return self._open(number, data, tag)

    @abstractmethod
    def _sealed(self, number: bytes, data: Buffer) -> bytes: ...

    @abstractmethod
    def _open(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None: ...


class HmacSeal(Seal):
    """HMAC-SHA256, cut to 16 bytes."""

    def _sealed(self, number: bytes, data: Buffer) -> bytes:
        return _hmac(self._keys.sending, number, data)

    def _open(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
        if not hmac.compare_digest(_hmac(self._keys.receiving, number, data), tag):
            raise CommError(_FORGED)
        return None


class GmacSeal(Seal):
    """AES-GCM over data that stays readable."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys)
        aead, self._forged = _aead()
        self._sending, self._receiving = aead(keys.sending), aead(keys.receiving)

    def _sealed(self, number: bytes, data: Buffer) -> bytes:
        tag: bytes = self._sending.encrypt(number, b"", data)
        return tag

    def _open(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
        self._decrypted(number, tag, data)
        return None

    def _decrypted(self, number: bytes, data: Buffer, beside: Buffer | None) -> bytes:
        try:
            clear: bytes = self._receiving.decrypt(number, data, beside)
        except self._forged:
            raise CommError(_FORGED) from None
        return clear


class AesGcmSeal(GmacSeal):
    """AES-GCM: nobody between the two ends can read the data."""

    hides = True

    def _sealed(self, number: bytes, data: Buffer) -> bytes:
        sealed: bytes = self._sending.encrypt(number, data, None)
        return sealed

    def _open(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
        return self._decrypted(number, b"".join((data, tag)), None)


class NoSeal(Seal):
    """No seal: for networks that nobody else can reach."""

    size = 0

    def _sealed(self, number: bytes, data: Buffer) -> bytes:
        return b""

    def _open(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
        return None


_SEALS: dict[str, type[Seal]] = {
    HMAC: HmacSeal,
    GMAC: GmacSeal,
    AES_GCM: AesGcmSeal,
    NONE: NoSeal,
}


def _hmac(key: bytes, number: bytes, data: Buffer) -> bytes:
    digest = hmac.new(key, number, sha256)
    digest.update(data)
    return digest.digest()[:TAG]


def _aead() -> tuple[Any, type[Exception]]:
    with extra("cryptography", "encryption", "encryption between workers"):
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    return AESGCM, InvalidTag
