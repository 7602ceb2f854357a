"""The results of `sparknet time`, as a table, as JSON or as a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sparknet.caffe.timing import Timing
from sparknet.graph import Node, work
from sparknet.graph.table import aligned, cell
from sparknet.native.machine import Machine

Row = dict[str, Any]

PASSES = ("forward", "backward", "update")
HEAD = (
    "Layer",
    "Type",
    "Forward ms",
    "Backward ms",
    "Share",
    "GFLOP/s",
    "of peak",
    "GB/s",
    "of memory",
    "Over limit ms",
)
WIDEST = 40


def report(
    timing: Timing, machine: Machine, phase: str, precision: str = "float32"
) -> dict[str, Any]:
    """All figures: times are medians in ms, rates are in 10^9 per second, shares are 0 … 1.

    ``limit_ms`` is the least time of the layer on this machine, by its arithmetic or its memory,
    whichever is slower.  Layers that multiply in bfloat16 are compared with bfloat16 arithmetic,
    all others with float32.
    """
    layers = [
        _layer(timing, number, machine, _peak(node, machine, precision))
        for number, node in enumerate(timing.graph.nodes)
    ]
    spans = {f"{name}_ms": timing.span_ms(which) for which, name in enumerate(PASSES)}
    total = sum(row["forward_ms"] + row["backward_ms"] for row in layers)
    for row in layers:
        row["share"] = (row["forward_ms"] + row["backward_ms"]) / total if total else 0.0
    return {
        "net": timing.graph.name,
        "phase": phase,
        "precision": precision,
        "iterations": len(timing.iterations),
        "threads": machine.threads,
        "peak_gflops": machine.operations / 1e9,
        "peak_bf16_gflops": machine.bf16_operations / 1e9,
        "memory_gbs": machine.bytes / 1e9,
        **spans,
        "step_ms": timing.step_ms,
        "between_layers_ms": max(spans["forward_ms"] + spans["backward_ms"] - total, 0.0),
        "layers": layers,
        "types": _types(layers, total),
    }


def _peak(node: Node, machine: Machine, precision: str) -> float:
    """The arithmetic rate that the layer is compared with."""
    narrow = precision == "bf16" and node.layer.multiplies_narrow(node.plan)
    return machine.bf16_operations if narrow else machine.operations


def _layer(timing: Timing, number: int, machine: Machine, peak: float) -> Row:
    node = timing.graph.nodes[number]
    least = work(timing.graph, node)
    row: Row = {
        "name": node.name,
        "type": node.type,
        "forward_ms": timing.forward_ms(number),
        "backward_ms": timing.backward_ms(number),
        "kernels": timing.methods[number],
    }
    flops = (least.forward_flops, least.backward_flops if row["backward_ms"] else 0)
    moved = (least.forward_bytes, least.backward_bytes if row["backward_ms"] else 0)
    row["flops"], row["bytes"] = sum(flops), sum(moved)
    row["limit_ms"] = 1e3 * sum(
        max(operations / peak, size / machine.bytes)
        for operations, size in zip(flops, moved, strict=True)
    )
    return row | _rates(row, peak, machine.bytes)


def _rates(row: Row, operations: float, memory: float) -> Row:
    seconds = (row["forward_ms"] + row["backward_ms"]) / 1e3
    flops = row["flops"] / seconds if seconds else 0.0
    moved = row["bytes"] / seconds if seconds else 0.0
    return {
        "gflops": flops / 1e9,
        "of_peak": flops / operations,
        "gbs": moved / 1e9,
        "of_memory": moved / memory,
    }


def _types(layers: Sequence[Row], total: float) -> list[Row]:
    """The sums of the layers of each type, the slowest type first."""
    sums: dict[str, Row] = {}
    for row in layers:
        kind = sums.setdefault(row["type"], {"type": row["type"], "layers": 0})
        kind["layers"] += 1
        for key in ("forward_ms", "backward_ms", "share", "limit_ms"):
            kind[key] = kind.get(key, 0.0) + row[key]
    return sorted(sums.values(), key=lambda kind: -float(kind["share"]))


def as_json(found: dict[str, Any]) -> str:
    return json.dumps(found, indent=1)


def caffe_lines(found: dict[str, Any]) -> Iterator[str]:
    """The lines that `caffe time` logs, for programs that parse them.  Caffe: tools/caffe.cpp."""
    yield "*** Benchmark begins ***"
    yield f"Testing for {found['iterations']} iterations."
    yield "Average time per layer: "
    for row in found["layers"]:
        for name in PASSES[:2]:
            yield f"{row['name']:>10}\t{name}: {row[f'{name}_ms']:g} ms."
    yield f"Average Forward pass: {found['forward_ms']:g} ms."
    yield f"Average Backward pass: {found['backward_ms']:g} ms."
    yield f"Average Forward-Backward: {found['step_ms']:g} ms."
    yield f"Total Time: {found['step_ms'] * found['iterations']:g} ms."
    yield "*** Benchmark ends ***"


def as_table(found: dict[str, Any]) -> str:
    """The layers, the types, and the sums."""
    rows = [HEAD, *(_cells(row) for row in found["layers"])]
    kinds = [
        ("Type", "Layers", "Forward ms", "Backward ms", "Share", "Over limit ms"),
        *(_kind_cells(kind) for kind in found["types"]),
    ]
    step = f"{found['step_ms']:.3f} ms a step"
    narrow = f", {found['peak_bf16_gflops']:.0f} (bfloat16)" if found["peak_bf16_gflops"] else ""
    parts = [f"{name} {found[f'{name}_ms']:.3f}" for name in PASSES if found[f"{name}_ms"]]
    return "\n".join(
        [
            *_table(rows, 2),
            "",
            *_table(kinds, 1),
            "",
            f"{found['net']}, {found['phase']}, {found['precision']}: "
            f"{step} ({', '.join(parts)} ms; "
            f"{found['between_layers_ms']:.3f} ms of it between layers), "
            f"median of {found['iterations']}",
            f"This machine, {found['threads']} threads: {found['peak_gflops']:.0f} GFLOP/s "
            f"(float32 matrix product){narrow}, {found['memory_gbs']:.1f} GB/s (a = b + s c). "
            "More than 100% of memory: the values came from a cache.",
        ]
    )


def kernels_table(found: dict[str, Any]) -> str:
    """What computes the layers that can be computed in several ways."""
    rows = [("Layer", "Computes", "Kernel")]
    for row in found["layers"]:
        rows += [(cell(row["name"], WIDEST), part, text) for part, text in row["kernels"].items()]
    return "\n".join(_table(rows, 3))


def _cells(row: Row) -> tuple[str, ...]:
    computed = bool(row["flops"])
    return (
        cell(row["name"], WIDEST),
        row["type"],
        _ms(row["forward_ms"]),
        _ms(row["backward_ms"]),
        f"{row['share']:.1%}",
        f"{row['gflops']:.1f}" if computed else "",
        f"{row['of_peak']:.0%}" if computed else "",
        f"{row['gbs']:.1f}" if row["gbs"] else "",
        f"{row['of_memory']:.0%}" if row["gbs"] else "",
        _over(row),
    )


def _kind_cells(kind: Row) -> tuple[str, ...]:
    return (
        kind["type"],
        str(kind["layers"]),
        _ms(kind["forward_ms"]),
        _ms(kind["backward_ms"]),
        f"{kind['share']:.1%}",
        _over(kind),
    )


def _over(row: Row) -> str:
    return _ms(max(row["forward_ms"] + row["backward_ms"] - row["limit_ms"], 0.0))


def _ms(value: float) -> str:
    return f"{value:.3f}" if value else ""


def _table(rows: Sequence[Sequence[str]], words: int) -> Iterator[str]:
    """Yields the rows, with a line under the header."""
    head, *lines = aligned(rows, words)
    yield from (head.rstrip(), "-" * len(head), *(line.rstrip() for line in lines))


def trace(timing: Timing) -> str:
    """The measured iterations in Chrome's trace event format, without gaps between layers."""
    events: list[dict[str, Any]] = []
    nodes = timing.graph.nodes
    for number, one in enumerate(timing.iterations):
        for which, name in enumerate(PASSES):
            if one.spans[which]:
                args: dict[str, Any] = {"iteration": number}
                events.append(_event(name, "pass", one.starts[which], one.spans[which], args))
        orders = (range(len(nodes)), range(len(nodes) - 1, -1, -1))
        for which, (order, spent) in enumerate(
            zip(orders, (one.forward, one.backward), strict=True)
        ):
            start = float(one.starts[which])
            for layer in order:
                if spent[layer]:
                    args = {"type": nodes[layer].type}
                    events.append(
                        _event(nodes[layer].name, PASSES[which], start, spent[layer], args)
                    )
                    start += spent[layer]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def _event(name: str, kind: str, start: float, span: float, args: dict[str, Any]) -> dict[str, Any]:
    """A trace event; times are in microseconds."""
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": start / 1e3,
        "dur": span / 1e3,
        "pid": 1,
        "tid": 1,
        "args": args,
    }
