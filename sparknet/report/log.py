"""Logs of a training: JsonLines, and RunFolder, a folder with all that `sparknet report` shows."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from sparknet.errors import FileError
from sparknet.graph.summary import outline
from sparknet.proto import caffe_pb2, format_text, solver_nets
from sparknet.training.history import Event


class JsonLines:
    """A listener that writes to a file or a stream.

    Lines are appended to a file, so that a resumed training has one log.  Each line is written
    completely before the listener returns, and has a ``time``, in seconds since 1970.
    """

    def __init__(
        self, out: str | os.PathLike[str] | TextIO, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._own = isinstance(out, (str, os.PathLike))
        self._stream = _open(out) if isinstance(out, (str, os.PathLike)) else out

    def __call__(self, event: Event) -> None:
        self._stream.write(as_json({"time": round(self._clock(), 3)} | dict(event)) + "\n")
        self._stream.flush()

    def close(self) -> None:
        if self._own:
            self._stream.close()


def _open(path: str | os.PathLike[str]) -> TextIO:
    try:
        return Path(path).open("a", encoding="utf-8")
    except OSError as error:
        raise FileError(os.fspath(path), f"cannot be written: {error.strerror}") from error


def as_json(value: Any) -> str:
    """Return a line of strict JSON, with numpy's numbers as numbers and null for NaN and
    infinity.
    """
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


EVENTS, ABOUT = "events.jsonl", "run.json"
_PACKAGES = ("sparknet", "numpy", "protobuf", "pyspark", "pyarrow")


class RunFolder:
    """A listener that writes the events of a run, and says what ran where.

    ``solver`` is what `sparknet.train` is given.  A run that is resumed with the same folder
    continues its log.
    """

    def __init__(self, folder: str | os.PathLike[str], solver: Any = None, **more: Any) -> None:
        self.folder = Path(folder)
        about = {
            "begun": time.time(),
            **described(solver),
            **machine(),
            "settings": {name: str(value) for name, value in more.items()},
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")
        except OSError as error:
            raise FileError(folder, f"cannot be written: {error.strerror}") from error
        self._lines = JsonLines(self.folder / EVENTS)

    def __call__(self, event: Event) -> None:
        self._lines(event)

    def close(self) -> None:
        self._lines.close()


def described(solver: Any) -> dict[str, Any]:
    """Return a solver's settings and the layers of its training net."""
    if solver is None:
        return {}
    from sparknet.net import Net

    message = solver.settings if isinstance(solver, Net) else _settings(solver)
    if message is None:  # a net alone
        return {"layers": outline(solver.described)}
    plain = caffe_pb2.SolverParameter()
    plain.CopyFrom(message)
    for field in ("net_param", "train_net_param", "test_net_param"):
        plain.ClearField(field)
    return {"solver": format_text(plain), "layers": outline(solver_nets(message).train)}


def _settings(solver: Any) -> Any:
    from sparknet.caffe.solvers.nets import settings

    return settings(solver)


def machine() -> dict[str, Any]:
    """Versions, and the machine."""
    return {
        "versions": {"python": platform.python_version(), **_versions()},
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory": _memory(),
        },
        "command": sys.argv,
    }


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _memory() -> int | None:
    """Return the bytes of the machine's memory."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
