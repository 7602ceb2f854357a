"""Portable: a solver or a net as text, together with the driver's files that it names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparknet.errors import FileError, clean
from sparknet.net.scratch import scratch_folder
from sparknet.proto import caffe_pb2, format_text, parse_net, parse_solver
from sparknet.proto.byte_source import exists
from sparknet.proto.solver import put_nets_inside
from sparknet.proto.untrusted import check_trusted

NetMessage = caffe_pb2.NetParameter
SolverMessage = caffe_pb2.SolverParameter

_LARGEST_FILE = 64 << 20


@dataclass(frozen=True)
class Portable:
    """Text, and the files that it names, under unique names."""

    text: str
    files: dict[str, bytes]

    def unpacked(self, folder: Path) -> str:
        """Write the files into a folder; returns the text with their paths."""
        text = self.text
        for name, data in self.files.items():
            path = folder / name
            path.write_bytes(data)
            text = text.replace(name, str(path))
        return text


def portable_solver(solver: SolverMessage) -> Portable:
    """Return a solver with its nets inside, without weights and snapshots."""
    whole = SolverMessage()
    whole.CopyFrom(solver)
    for field in ("weights", "snapshot_prefix", "snapshot"):
        whole.ClearField(field)
    files = {name: data for net in put_nets_inside(whole) for name, data in _packed(net)}
    text = format_text(whole)
    parse_solver(text)
    return Portable(text, files)


def portable_net(net: NetMessage) -> Portable:
    whole = NetMessage()
    whole.CopyFrom(net)
    files = dict(_packed(whole))
    text = format_text(whole)
    parse_net(text)
    return Portable(text, files)


def _packed(net: NetMessage) -> Iterator[tuple[str, bytes]]:
    """Yields the files that layers read when they are built, and renames them in the net."""
    for layer in net.layer:
        for part, field in (("transform_param", "mean_file"), ("infogain_loss_param", "source")):
            if layer.HasField(part) and getattr(getattr(layer, part), field):
                holder: Any = getattr(layer, part)
                path = getattr(holder, field)
                if part == "transform_param" and not layer.untrusted and not exists(path):
                    holder.ClearField(field)  # as Net does, which says so
                    continue
                check_trusted(layer, f"to read '{clean(path)}'")
                data = _read(path)
                name = f"sparknet-file-{blake2b(data, digest_size=16).hexdigest()}"
                setattr(holder, field, name)
                yield name, data


def _read(path: str) -> bytes:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(path, error.strerror or str(error)) from error
    if len(data) > _LARGEST_FILE:
        raise FileError(path, f"has {len(data)} bytes: too many to send to workers")
    return data


def process_folder() -> Path:
    """Return a folder for files that nets name, which stays until the process ends."""
    return Path(_folder_of(os.getpid()).name)


@cache
def _folder_of(process: int) -> TemporaryDirectory[str]:
    return scratch_folder("nets")
