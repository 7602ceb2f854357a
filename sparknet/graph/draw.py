"""A net as a picture: DOT text, and its rendering by Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sparknet.errors import FileError, SpecError
from sparknet.graph.graph import Graph, Node
from sparknet.layers.layer import shape_text

DIRECTIONS = ("TB", "BT", "LR", "RL")
FORMATS = ("svg", "png", "pdf")
TIMEOUT_S = 120

_SOURCE, _LOSS, _LEARNS, _PLAIN = "#dcebdc", "#f4d9d6", "#d9e4f4", "#f4f4f0"


def to_dot(graph: Graph, rankdir: str = "TB") -> str:
    """DOT text: layers as boxes, blobs as edges, outputs as ovals.  Splits are left out."""
    if rankdir not in DIRECTIONS:
        raise SpecError(f"rankdir {rankdir!r} is none of {', '.join(DIRECTIONS)}")
    lines = [
        f"digraph {quote(graph.name or 'net')} {{",
        f"  rankdir={rankdir};",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    lines += [f"  {line}" for line in _statements(graph)]
    return "\n".join([*lines, "}", ""])


def render(dot: str, path: str | Path) -> None:
    """Write a drawing as SVG, PNG or PDF, by the suffix of ``path``; ``.dot`` keeps the text."""
    target = Path(path)
    suffix = target.suffix.lower().lstrip(".")
    if suffix in ("dot", "gv"):
        _write(target, dot.encode())
    elif suffix in FORMATS:
        _write(target, _run_graphviz(dot, suffix, target))
    else:
        suffixes = ", ".join(f".{name}" for name in ("dot", *FORMATS))
        raise FileError(target, f"a drawing's name must end in one of {suffixes}")


def _statements(graph: Graph) -> Iterator[str]:
    makers: dict[int, tuple[int, str]] = {}
    for number, node in enumerate(graph.nodes):
        if node.layer.is_split:
            makers.update((top, makers[node.bottom_ids[0]]) for top in node.top_ids)
            continue
        yield f"n{number} [label={_label(node)}, fillcolor={quote(_colour(node))}];"
        for blob in node.bottom_ids:
            maker, name = makers[blob]
            label = quote(f"{name}\n{shape_text(graph.blob_shapes[blob])}")
            yield f"n{maker} -> n{number} [label={label}];"
        makers.update(
            (top, (number, name)) for top, name in zip(node.top_ids, node.tops, strict=True)
        )
    yield from _outputs(graph, makers)


def _outputs(graph: Graph, makers: dict[int, tuple[int, str]]) -> Iterator[str]:
    ids = {name: blob for blob, name in enumerate(graph.blob_names)}
    for number, output in enumerate(graph.outputs):
        blob = ids[output]
        maker, name = makers[blob]
        label = quote(f"{name}\n{shape_text(graph.blob_shapes[blob])}")
        yield f'o{number} [label={label}, shape=ellipse, style=""];'
        yield f"n{maker} -> o{number};"


def _label(node: Node) -> str:
    lines = [node.name, node.type]
    if node.param_count:
        lines.append(f"{node.param_count:,} parameters")
    return quote("\n".join(lines))


def _colour(node: Node) -> str:
    if not node.bottom_ids:
        return _SOURCE
    if any(node.loss_weights):
        return _LOSS
    return _LEARNS if node.params else _PLAIN


def quote(text: str) -> str:
    """Return a DOT string; names are untrusted, and backslashes would start escapes."""
    safe = "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _run_graphviz(dot: str, kind: str, target: Path) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise FileError(
            target,
            f"drawing {kind.upper()} needs Graphviz, whose program 'dot' is not on the PATH: "
            "install Graphviz, or write a .dot file",
        )
    command = [program, f"-T{kind}"]
    try:
        done = subprocess.run(command, input=dot.encode(), capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise FileError(target, f"Graphviz took longer than {TIMEOUT_S} seconds") from None
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise FileError(target, f"Graphviz failed: {reason[0] if reason else 'no reason given'}")
    return done.stdout


def _write(target: Path, content: bytes) -> None:
    try:
        target.write_bytes(content)
    except OSError as error:
        raise FileError(target, error.strerror or str(error)) from error
