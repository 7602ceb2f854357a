"""Seals: prove that bytes came from the other end, unchanged and in order.

Every record of a connection carries a seal.  All are standard: HMAC-SHA256 of Python itself; GMAC,
which is ten times as fast, where the package ``cryptography`` is installed; and AES-GCM, which
hides the bytes as well.  The number of the record is part of its seal, so that no record can be
left out, repeated or moved.
"""

from __future__ import annotations

import hmac
import struct
from abc import ABC, abstractmethod
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

from sparknet.errors import CommError, MissingExtra, SettingError
from sparknet.training.handshake import Keys

TAG = 16
"""The length of a seal in bytes."""
HMAC, GMAC, AES_GCM, NONE = "hmac", "gmac", "aes-gcm", "none"

Buffer = bytes | bytearray | memoryview

_NUMBER = struct.Struct("!4xQ")
_FORGED = "what came over the connection was changed on the way"


def choose_seal(protection: str) -> str:
    """The seal of a run: "sealed" (the fastest that is installed), "encrypted" or "none"."""
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
    """The seal of one connection."""
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
        """The bytes to send after the next record; if the seal hides, also in its place."""
        number = _NUMBER.pack(self._sent)
        self._sent += 1
        return self._sealed(number, data)

    def open(self, data: Buffer, tag: Buffer) -> bytes | None:
        """Check the next record, CommError if it differs; returns its text if the seal hides."""
        number = _NUMBER.pack(self._received)
        self._received += 1
        return self._opened(number, data, tag)

    @abstractmethod
    def _sealed(self, number: bytes, data: Buffer) -> bytes: ...

    @abstractmethod
    def _opened(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None: ...


class HmacSeal(Seal):
    """HMAC-SHA256, cut to 16 bytes."""

    def _sealed(self, number: bytes, data: Buffer) -> bytes:
        return _hmac(self._keys.sending, number, data)

    def _opened(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
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

    def _opened(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
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

    def _opened(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
        return self._decrypted(number, b"".join((data, tag)), None)


class NoSeal(Seal):
    """No seal: for networks that nobody else can reach."""

    size = 0

    def _sealed(self, number: bytes, data: Buffer) -> bytes:
        return b""

    def _opened(self, number: bytes, data: Buffer, tag: Buffer) -> bytes | None:
        return None


_SEALS: dict[str, type[Seal]] = {
    HMAC: HmacSeal,
    GMAC: GmacSeal,
    AES_GCM: AesGcmSeal,
    NONE: NoSeal,
}


def _hmac(key: bytes, number: bytes, data: Buffer) -> bytes:
    made = hmac.new(key, number, sha256)
    made.update(data)
    return made.digest()[:TAG]


def _aead() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise MissingExtra("cryptography", "encryption", "encryption between workers") from error
    return AESGCM, InvalidTag
