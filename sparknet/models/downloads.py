"""Prototxts and caffemodels of published models: fetched once, by size and checksum.

downloads.tsv has a line for each mirror of a file: model, kind, bytes, SHA-256 (SHA-1 where only
that is published) and URL.  A URL that ends in ``#name`` is an archive's, whose bytes and checksum
these are; the file is the one of that name in it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path

from sparknet.errors import FileError, SpecError
from sparknet.proto.suggest import did_you_mean

FOLDER = "SPARKNET_MODELS"
TIMEOUT = 30.0
"""Seconds for which a server may be silent."""
CHUNK = 1 << 20
MAX_BYTES = 2 << 30
"""Of a file whose size is not published."""


@dataclass(frozen=True)
class Download:
    """A file of a model: what it must be, and where it can be had."""

    model: str
    kind: str
    size: int | None
    checksum: str
    urls: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.model}.{self.kind}"

    @property
    def member(self) -> str:
        """The file's name in an archive; "" for a file that is fetched as it is."""
        return next(iter(self.urls), "").partition("#")[2]


@cache
def downloads() -> Mapping[str, tuple[Download, ...]]:
    """Return the files of each model."""
    files: dict[tuple[str, str], Download] = {}
    for line in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines():
        model, kind, size, checksum, url = line.split("\t")
        bytes_ = int(size) if size != "-" else None
        download = files.get((model, kind)) or Download(model, kind, bytes_, checksum, ())
        files[model, kind] = replace(download, urls=(*download.urls, url))
    models: dict[str, list[Download]] = {}
    for file in files.values():
        models.setdefault(file.model, []).append(file)
    return {name: tuple(own) for name, own in sorted(models.items())}


def cache_folder() -> Path:
    """Return where fetched files lie: SPARKNET_MODELS, or a folder of the user's cache."""
    if folder := os.environ.get(FOLDER):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparknet" / "models"


def weights(name: str, mirror: str | None = None) -> dict[str, Path]:
    """Return the files of a published model by kind, fetched from ``mirror`` first, then cached."""
    if name not in downloads():
        hint = did_you_mean(name, downloads())
        raise SpecError(f"no weights are known for '{name}'{hint}; 'sparknet models --weights'")
    return {file.kind: fetch(file, mirror) for file in downloads()[name]}


def fetch(file: Download, mirror: str | None = None) -> Path:
    """Return a file of the cache, which is fetched where it is missing or wrong."""
    from http.client import HTTPException

    target = cache_folder() / file.name
    if file.member:
        urls = tuple(url.partition("#")[0] for url in file.urls)
        return _extract(fetch(replace(file, kind="tar.gz", urls=urls), mirror), file.member, target)
    if target.is_file() and _problem(file, target) is None:
        return target
    first = [f"{mirror.rstrip('/')}/{file.name}"] if mirror else []
    reasons = []
    for url in (*first, *file.urls):
        try:
            _download(file, url, target)
        except (OSError, HTTPException, ValueError) as error:
            reasons.append(f"{url}: {error}")
        else:
            return target
    raise FileError(
        target,
        "could not be fetched; get the file of "
        f"{_description(file)} elsewhere and put it there. " + "; ".join(reasons),
    )


def _extract(archive: Path, member: str, target: Path) -> Path:
    """Write one regular file of a tar archive, whatever else is in there."""
    import tarfile

    with tarfile.open(archive) as tar:
        names = {info.name: info for info in tar}
        info = names.get(member)
        if info is None or not info.isfile() or not 0 < info.size <= MAX_BYTES:
            raise FileError(archive, f"it has no file '{member}' of at most {MAX_BYTES:,} bytes")
        if not target.is_file() or target.stat().st_size != info.size:
            part = target.with_name(f"{target.name}.part")
            with tar.extractfile(info) as source, part.open("wb") as copy:  # type: ignore[union-attr]
                shutil.copyfileobj(source, copy)
            part.replace(target)
    return target


def _description(file: Download) -> str:
    size = "" if file.size is None else f"{file.size:,} bytes and "
    return f"{size}{_algorithm(file)} {file.checksum}"


def _algorithm(file: Download) -> str:
    return "sha256" if len(file.checksum) == 64 else "sha1"


def _problem(file: Download, path: Path) -> str | None:
    """Return what is wrong with a file; None if it is the one."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"it has {size:,} bytes, not {file.size:,}"
    digest = hashlib.new(_algorithm(file), usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    checksum = digest.hexdigest()
    if checksum != file.checksum:
        return f"its {_algorithm(file)} is {checksum}, not {file.checksum}"
    return None


def _download(file: Download, url: str, target: Path) -> None:
    """Fetch what is missing of a file, behind the part that an earlier try has left."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    start = part.stat().st_size if part.is_file() else 0
    if file.size is None or not start < file.size:
        part.unlink(missing_ok=True)
        start = 0
    limit = MAX_BYTES if file.size is None else file.size
    chunks = _chunks(url, start)
    first = next(chunks)
    with part.open("ab") as stream:
        for chunk in chain([first], chunks):
            if chunk is None:  # the server begins at the beginning
                stream.truncate(0)
                start = 0
                continue
            start += len(chunk)
            if start > limit:
                part.unlink()
                raise ValueError(f"it has more than {limit:,} bytes")
            stream.write(chunk)
    if file.size is not None and start < file.size:
        raise ValueError(f"it ended after {start:,} of {file.size:,} bytes")
    if problem := _problem(file, part):
        part.unlink()
        raise ValueError(problem)
    part.replace(target)


def _chunks(url: str, start: int) -> Iterator[bytes | None]:
    """Yield nothing or, where the server sends all of them, None; then the bytes from there on."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    if not url.startswith(("http://", "https://")):
        raise ValueError("only http and https are fetched")
    request = Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urlopen(request, timeout=TIMEOUT)
    except HTTPError as error:
        if error.code != 416 or not start:
            raise
        response = urlopen(Request(url), timeout=TIMEOUT)
    with response:
        if start and response.status != 206:
            yield None
        else:
            yield b""
        while chunk := response.read(CHUNK):
            yield chunk


def table() -> Sequence[str]:
    """Return a line for each model: name, megabytes of weights, hosts."""
    lines = [f"{'name':<26} {'megabytes':>9}  from"]
    for name, files in downloads().items():
        model = next(file for file in files if file.kind == "caffemodel")
        size = "" if model.size is None else f"{model.size / 1e6:.1f}"
        hosts = dict.fromkeys(url.split("/")[2] for url in model.urls)
        lines.append(f"{name:<26} {size:>9}  {', '.join(hosts)}")
    return lines
