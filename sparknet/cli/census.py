"""`sparknet census`: counts which nets of a folder parse and build, and what the others need."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sparknet.cli import flags
from sparknet.cli.verb import Verb
from sparknet.errors import FileError, SparkNetError, SpecError, TextError

SUFFIXES = (".prototxt", ".pt")
_LAYERS = re.compile(rb"^\s*(layers?\s*\{|input\s*:)", re.MULTILINE)
_SOLVER = re.compile(rb"\b(base_lr|lr_policy|train_net|net_param)\b")
_COMMENT = re.compile(rb"#[^\n]*")
PARSED, BUILT, MISSING, FAILED, UNREAD = "parsed", "built", "missing", "failed", "unread"


@dataclass(frozen=True)
class Found:
    """One file: its kind ("net" or "solver"), what became of it, and why."""

    path: str
    kind: str
    result: str
    reason: str = ""
    unknown_types: tuple[str, ...] = ()
    unknown_fields: tuple[str, ...] = ()


@dataclass
class Census:
    """What a folder holds."""

    files: list[Found] = field(default_factory=list)

    def of(self, kind: str, *results: str) -> list[Found]:
        return [one for one in self.files if one.kind == kind and one.result in results]

    def figures(self) -> dict[str, int]:
        nets = [one for one in self.files if one.kind == "net"]
        solvers = [one for one in self.files if one.kind == "solver"]
        return {
            "nets": len(nets),
            "nets that parse": len(nets) - len(self.of("net", UNREAD)),
            "nets that need a file": len(self.of("net", MISSING)),
            "nets that build": len(self.of("net", BUILT)),
            "nets that do not build": len(self.of("net", FAILED)),
            "solvers": len(solvers),
            "solvers that parse": len(self.of("solver", PARSED)),
        }

    def counts(self) -> dict[str, Counter[str]]:
        """Return how many files each unknown name, and each reason, concerns."""
        types = Counter(name for one in self.files for name in set(one.unknown_types))
        fields = Counter(name for one in self.files for name in set(one.unknown_fields))
        reasons = Counter(one.reason for one in self.files if one.reason)
        return {"unknown types": types, "unknown fields": fields, "reasons": reasons}


def take(folder: Path, trusted: bool = False) -> Census:
    """Parse every net and solver below a folder once, and build the nets; untrusted unless said."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    texts: dict[bytes, str] = {}
    unread = []
    for path in paths:
        name = str(path.relative_to(folder))
        try:
            if path.is_file():
                texts.setdefault(path.read_bytes(), name)
        except OSError as error:
            unread.append(Found(name, "net", UNREAD, error.strerror or str(error)))
    rows = (_look(text, name, trusted) for text, name in texts.items())
    return Census([*(one for one in rows if one is not None), *unread])


def _look(text: bytes, name: str, trusted: bool) -> Found | None:
    """Examine a file; one bad file ends no census, whatever it makes of sparknet."""
    import warnings

    bare = _COMMENT.sub(b"", text)
    kind = "solver" if _SOLVER.search(bare) else "net"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if kind == "solver":
                return _look_at_solver(text, name)
            return _look_at_net(text, name, trusted) if _LAYERS.search(bare) else None
        except Exception as error:  # the file of a stranger
            return Found(name, kind, UNREAD, f"{type(error).__name__}: {_plain(error)}")


def _look_at_solver(text: bytes, name: str) -> Found:
    from sparknet.proto import caffe_pb2, parse_text

    try:
        parse_text(text, caffe_pb2.SolverParameter, name)
    except TextError as error:
        fields = _unknown_fields(text, caffe_pb2.SolverParameter)
        return Found(name, "solver", UNREAD, _plain(error), unknown_fields=fields)
    return Found(name, "solver", PARSED)


def _unknown_fields(text: bytes, message_class: Any) -> tuple[str, ...]:
    from sparknet.proto import parse_text

    skipped: list[Any] = []
    try:
        parse_text(text, message_class, "", skipped)
    except TextError:
        return ()
    return tuple(f"{one.message} {one.name}" for one in skipped)


def _look_at_net(text: bytes, name: str, trusted: bool) -> Found:
    from sparknet.layers import LAYERS
    from sparknet.proto import caffe_pb2, parse_net

    try:
        net = parse_net(text, name)
    except SpecError as error:
        fields = _unknown_fields(text, caffe_pb2.NetParameter)
        unknown_types = _known_types(text, name) - set(LAYERS) if fields else set[str]()
        return Found(name, "net", UNREAD, _plain(error), tuple(sorted(unknown_types)), fields)
    types = {layer.type for layer in net.layer} - set(LAYERS)
    result, reason = _build(net, trusted, types)
    return Found(name, "net", result, reason, tuple(sorted(types)))


def _known_types(text: bytes, name: str) -> set[str]:
    """Return the types of a net's layers, without the fields that the schema lacks."""
    from sparknet.proto import parse_net

    try:
        return {layer.type for layer in parse_net(text, name, unknown="skip").layer}
    except SpecError:
        return set()


def _build(net: Any, trusted: bool, types: set[str]) -> tuple[str, str]:
    """Return the result in the better phase; unknown types count in both."""
    from sparknet.graph import build
    from sparknet.layers import TEST, TRAIN
    from sparknet.proto.untrusted import with_trust

    if types:
        return FAILED, f"unknown type {', '.join(sorted(types))}"
    failures = []
    for phase in (TRAIN, TEST):
        try:
            build(with_trust(net, trusted), phase)
        except SparkNetError as error:
            failures.append(error)
        else:
            return BUILT, ""
    if any(map(_lacks_file, failures)):
        return MISSING, ""
    # A phase in which the data layers are left out says nothing of the net.
    errors = [error for error in failures if "is produced by no layer" not in str(error)]
    return FAILED, _plain((errors or failures)[0])


def _lacks_file(error: BaseException | None) -> bool:
    from sparknet.proto.untrusted import UNTRUSTED

    while error is not None:
        if UNTRUSTED in str(error) or isinstance(error, (OSError, ImportError, FileError)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _plain(error: Exception) -> str:
    """Return a reason without the names and numbers of one file."""
    text = re.sub(r"^.*?:\d+:\d+: ", "", str(error))
    text = re.sub(r"^(layer) '[^']*': ", "", text)
    return re.sub(r"\d+( x \d+)*", "N", text)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, help="the folder of .prototxt and .pt files"
    )
    parser.add_argument("--list", action="store_true", help="name each file that does not build")
    flags.add_trust(parser)
    flags.add_json(parser)


def _execute(chosen: Namespace) -> int:
    if not chosen.folder.is_dir():
        raise FileError(chosen.folder, "no such folder")
    census = take(chosen.folder, bool(chosen.trusted))
    if chosen.json:
        print(json.dumps({**census.figures(), "files": list(map(asdict, census.files))}, indent=1))
    else:
        print("\n".join(_lines(census, chosen.list)))
    return 0


def _lines(census: Census, files: bool) -> Iterator[str]:
    yield from (f"{number:6,}  {what}" for what, number in census.figures().items())
    yield from _tables(census.counts())
    if files:
        bad = [one for one in census.files if one.result in (FAILED, UNREAD)]
        yield from ("", *(f"{one.path}: {one.reason}" for one in bad))


def _tables(counts: Mapping[str, Counter[str]]) -> Iterator[str]:
    for title, names in counts.items():
        if names:
            yield from ("", f"{title}, and in how many files")
            yield from (f"{number:6,}  {name}" for name, number in names.most_common())


VERB = Verb(
    "census",
    "Count which nets of a folder parse and build, and what the others need.",
    _arguments,
    _execute,
)
