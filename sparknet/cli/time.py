"""`sparknet time`: measures the layers of a net."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sparknet.atomic_files import atomic_file
from sparknet.caffe.timing import Timing
from sparknet.cli import caffe_flags, flags, net_file
from sparknet.cli.verb import Verb, WrongUse
from sparknet.graph import Node, work
from sparknet.graph.summary import aligned, cell
from sparknet.native.core import Machine

if TYPE_CHECKING:
    from sparknet.caffe import Net
    from sparknet.proto import Model
    from sparknet.proto.caffe_pb2 import NetParameter

Row = dict[str, Any]

PASSES = ("forward", "backward", "update")
HEAD = (
    *("Layer", "Type", "Forward ms", "Backward ms", "Share"),
    *("GFLOP/s", "of peak", "GB/s", "of memory", "Over limit ms"),
)
WIDEST = 40


def report(
    timing: Timing, machine: Machine, phase: str, precision: str = "float32"
) -> dict[str, Any]:
    """Return all figures: medians in ms, rates in 10^9 a second, shares of 1."""
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
    """Return the arithmetic rate that the layer is compared with."""
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
    """Return the sums of the layers of each type, the slowest type first."""
    sums: dict[str, Row] = {}
    for row in layers:
        kind = sums.setdefault(row["type"], {"type": row["type"], "layers": 0})
        kind["layers"] += 1
        for key in ("forward_ms", "backward_ms", "share", "limit_ms"):
            kind[key] = kind.get(key, 0.0) + row[key]
    return sorted(sums.values(), key=lambda kind: -float(kind["share"]))


def caffe_lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that `caffe time` logs (Caffe: tools/caffe.cpp)."""
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
    """Return the layers, the types, and the sums."""
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
    """Return what computes the layers that can be computed in several ways."""
    rows = [("Layer", "Computes", "Kernel")]
    for row in found["layers"]:
        rows += [(cell(row["name"], WIDEST), part, text) for part, text in row["kernels"].items()]
    return "\n".join(_table(rows, 3))


def _cells(row: Row) -> tuple[str, ...]:
    computed, moved = bool(row["flops"]), bool(row["gbs"])
    return (
        *(cell(row["name"], WIDEST), row["type"], _ms(row["forward_ms"]), _ms(row["backward_ms"])),
        f"{row['share']:.1%}",
        *((f"{row['gflops']:.1f}", f"{row['of_peak']:.0%}") if computed else ("", "")),
        *((f"{row['gbs']:.1f}", f"{row['of_memory']:.0%}") if moved else ("", "")),
        _over(row),
    )


def _kind_cells(kind: Row) -> tuple[str, ...]:
    passes = (_ms(kind["forward_ms"]), _ms(kind["backward_ms"]))
    return (kind["type"], str(kind["layers"]), *passes, f"{kind['share']:.1%}", _over(kind))


def _over(row: Row) -> str:
    return _ms(max(row["forward_ms"] + row["backward_ms"] - row["limit_ms"], 0.0))


def _ms(value: float) -> str:
    return f"{value:.3f}" if value else ""


def _table(rows: Sequence[Sequence[str]], words: int) -> Iterator[str]:
    """Yields the rows, with a line under the header."""
    head, *lines = aligned(rows, words)
    yield from (head.rstrip(), "-" * len(head), *(line.rstrip() for line in lines))


def trace(timing: Timing) -> str:
    """Return the measured iterations in Chrome's trace event format, without gaps."""
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
    """Return a trace event; times are in microseconds."""
    times = {"ts": start / 1e3, "dur": span / 1e3}
    return {"name": name, "cat": kind, "ph": "X", **times, "pid": 1, "tid": 1, "args": args}


def _arguments(parser: ArgumentParser) -> None:
    add = partial(flags.add, parser)

    net_file.add_file(parser)
    add("solver", metavar="FILE", help="a solver, whose update is timed too; it may name the net")
    add(
        "weights", metavar="FILE", help="parameters, a .caffemodel, .h5 or .onnx; else the fillers'"
    )
    net_file.add_phase(parser, "train: forward and backward; test: forward only")
    flags.add_state(parser)
    flags.add_trust(parser)
    net_file.add_axes(parser)
    add("iterations", type=flags.positive, default=50, help="50 by default, after 2 to warm up")
    add("batch", type=flags.positive, metavar="N", help="a batch size in place of the file's")
    flags.add_precision(parser)
    flags.add_threads(parser)
    flags.add_gpu(parser)
    caffe_flags.add_unused(parser)
    flags.add_json(parser)
    add("forward_only", action="store_true", help="leave the backward pass out")
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="also print which kernel computes each convolution, and why",
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="also write a trace for chrome://tracing or Perfetto"
    )


def _execute(chosen: Namespace) -> int:
    from sparknet.caffe.solvers.report import say as report_line
    from sparknet.caffe.timing import fill_inputs, measure
    from sparknet.native.core import measure_machine
    from sparknet.weights import check_layers, copy_weights, open_weights

    net_file.take_words(chosen)
    if not (chosen.model or chosen.solver):
        raise WrongUse("give NET or -model, or a -solver that names its net")
    if chosen.solver and chosen.phase == "test":
        raise WrongUse("a solver updates in the train phase only")
    if chosen.solver and chosen.forward_only:
        raise WrongUse("a solver updates after a backward pass only: leave -forward_only out")
    flags.use_threads(chosen)
    own = net_file.open_model_file(chosen.model, chosen) if chosen.model else None
    models = {} if own is None else {chosen.model: own}
    files = open_weights([chosen.weights] if chosen.weights else models, models)
    if chosen.solver:
        net, update = _solver(chosen, own)
        copy_weights(net, files)
    else:
        described, phase = _net_of_file(chosen, own), net_file.phase_number(chosen)
        net, update = net_file.caffe_net(chosen, described, phase, files), None
    if chosen.weights:
        check_layers(net, files)
    _say("measuring the machine")
    machine = measure_machine()
    fill_inputs(net)
    _say(f"measuring {chosen.iterations} iterations of {net.name or 'the net'}")
    backward = chosen.phase == "train" and not chosen.forward_only
    timing = measure(net, chosen.iterations, backward, update)
    if chosen.trace:
        with atomic_file(chosen.trace) as draft:
            draft.write_text(trace(timing), encoding="utf-8")
        _say(f"wrote {chosen.trace}")
    figures = report(timing, machine, chosen.phase, net.precision)
    if chosen.program == "caffe":
        for line in caffe_lines(figures):
            report_line(line)
    print(json.dumps(figures, indent=1) if chosen.json else as_table(figures))
    if chosen.kernels and not chosen.json:
        print("", kernels_table(figures), sep="\n")
    return 0


def _say(message: str) -> None:
    print(f"sparknet time: {message}", file=sys.stderr)


def _net_of_file(chosen: Namespace, model: Model | None) -> NetParameter:
    """Return the net of the file, with the batch size of -batch."""
    net = net_file.read_text(chosen.model, chosen.trusted, dialect=chosen.dialect, model=model)
    if chosen.batch:
        from sparknet.graph.records import set_batch

        set_batch(net, chosen.batch)
    return net


def _solver(chosen: Namespace, model: Model | None) -> tuple[Net, Any]:
    """Return the solver's net without test nets, and the solver's update."""
    from sparknet.caffe.solvers import get_solver
    from sparknet.caffe.solvers.nets import settings
    from sparknet.proto import solver_nets

    source = settings(chosen.solver, _net_of_file(chosen, model) if chosen.model else None)
    net = solver_nets(source).train
    if chosen.batch and not chosen.model:
        from sparknet.graph.records import set_batch

        set_batch(net, chosen.batch)
    for field in ("test_iter", "test_interval", "test_net", "test_net_param", "test_state"):
        source.ClearField(field)
    source.display = 0
    solver = get_solver(settings(source, net), precision=chosen.precision, keep_blobs=False)
    return solver.net, solver.apply_update


VERB = Verb(
    "time",
    "Measure how long each layer takes forward and backward, as caffe time does, and what share "
    "that is of what this machine can do.",
    _arguments,
    _execute,
)
