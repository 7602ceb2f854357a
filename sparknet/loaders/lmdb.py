"""LMDB databases, read in key order."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from sparknet.errors import FileError, MissingExtra

MAGIC = 0xBEEFC0DE
META = struct.Struct("<16xII8x8xI92xQQ")
"""Of a meta page: magic, version, page size, last page, transaction."""
META_AT_MOST = 1 << 16


class LMDB:
    """A database open for reading; works on folders that nobody may write to."""

    def __init__(self, path: str) -> None:
        self.path = path
        file = Path(path) / "data.mdb" if Path(path).is_dir() else Path(path)
        if not file.is_file():
            missing = not Path(path).exists()
            raise FileError(path, "does not exist" if missing else "holds no data.mdb")
        check_meta(file)
        self._library = _library()
        try:
            self._environment = self._library.open(
                str(path),
                subdir=Path(path).is_dir(),
                readonly=True,
                lock=False,
                readahead=False,
                max_readers=1,
            )
        except self._library.Error as error:
            raise FileError(path, f"is no LMDB that can be read: {error}") from error

    def __enter__(self) -> LMDB:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._environment.close()

    def __len__(self) -> int:
        return int(self._environment.stat()["entries"])

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        try:
            with self._environment.begin() as transaction:
                yield from transaction.cursor()
        except self._library.Error as error:
            raise FileError(self.path, f"is damaged: {error}") from error

    def first(self) -> tuple[bytes, bytes]:
        """The record with the smallest key."""
        records = iter(self)
        try:
            return next(records)
        except StopIteration:
            raise FileError(self.path, "is empty") from None
        finally:
            records.close()  # type: ignore[attr-defined]


def check_meta(file: Path) -> None:
    """Refuse a file that is cut short: LMDB maps it, and would fault behind its end."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        pages = [_meta(stream.read(META.size))]
        if pages[0] is not None and pages[0][0] <= META_AT_MOST:
            stream.seek(pages[0][0])
            pages.append(_meta(stream.read(META.size)))
    metas = [page for page in pages if page is not None]
    if not metas:
        raise FileError(file, "is no LMDB: it does not begin with a meta page")
    page_size, last_page, _ = max(metas, key=lambda meta: meta[2])
    if (last_page + 1) * page_size > size:
        raise FileError(
            file, f"is cut short: {(last_page + 1) * page_size} bytes needed, {size} there"
        )


def _meta(page: bytes) -> tuple[int, int, int] | None:
    """Page size, last page and transaction number of a meta page."""
    if len(page) < META.size:
        return None
    magic, version, page_size, last_page, transaction = META.unpack(page)
    if magic != MAGIC or version & 0xFF != 1 or not page_size:
        return None
    return page_size, last_page, transaction


def _library() -> Any:
    try:
        import lmdb  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingExtra("lmdb", "lmdb", "reading an LMDB") from error
    return lmdb
