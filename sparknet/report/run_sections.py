"""The sections of a report about one run or two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from sparknet.graph.boxes import drawing
from sparknet.report.charts import (
    Curve,
    Points,
    confusion,
    layer_charts,
    lines,
    short,
    stacks,
    table,
)
from sparknet.report.runs import AXES, Json, ReportedRun
from sparknet.training.history import single, standstill, unsaved
from sparknet.training.progress import ENDS, clock_time

PARTS = ("loading", "computing", "waiting", "communicating")
_UNITS = {"samples": "samples", "time": "seconds", "epochs": "epochs"}
_COLUMNS = 60
"""The most bars of a chart over rounds."""
_CLASSES = 40
"""The most classes whose confusions are shown."""
_HAPPENINGS = "Restarts, stragglers and failures"
_WORKERS = 4
"""The most workers of a run that have a chart of their own."""

Runs = Sequence[ReportedRun]


def sections(runs: Runs) -> Iterator[str]:
    """Yield the parts of the page, from the verdict to the small print."""
    yield _tiles(runs)
    yield _curves(runs)
    yield _classes(runs)
    yield _times(runs)
    yield _others(runs)
    yield _layers(runs)
    yield _happenings(runs)
    yield _nets(runs)
    yield _settings(runs)


# -- the verdict -----------------------------------------------------------------------------


def _tiles(runs: Runs) -> str:
    columns = [_facts(run) for run in runs]
    names = list(dict.fromkeys(name for facts in columns for name in facts))
    tiles = []
    for name in names:
        html = "".join(
            f"<b>{_whose(runs, shade)}{escape(facts.get(name, '–'))}</b>"
            for shade, facts in enumerate(columns)
        )
        tiles.append(f'<div class="tile"><small>{escape(name)}</small>{html}</div>')
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _whose(runs: Runs, shade: int) -> str:
    """Return the name and the colour of a run that stands beside another."""
    if len(runs) == 1:
        return ""
    return f'<span class="of"><i class="f{shade % 8}"></i>{escape(runs[shade].name)}</span> '


def _facts(run: ReportedRun) -> dict[str, str]:
    facts = {}
    if run.rounds:
        facts["training loss"] = f"{_float(run.rounds[-1].get('loss')):.4g}"
    validations = run.of_kind("validation")
    if validations:
        for name, value in single(validations[-1]["metrics"]).items():
            facts[name] = f"{value:.4g}"
    points = run.points()
    if points:
        last = points[-1][0]
        facts["samples"] = f"{last.samples:,.0f}"
        facts["time"] = clock_time(last.time) if last.time >= 10 else f"{last.time:.2g} s"
        if last.time:
            facts["samples per second"] = f"{last.samples / last.time:,.0f}"
    spent = _spent(run)
    if sum(spent) and not run.is_alone:
        facts["communicating"] = f"{(spent[2] + spent[3]) / sum(spent):.0%}"
    if not run.is_alone:
        facts["sent"] = size(sum(_float(event.get("bytes_sent")) for event in run.rounds))
    if "reason" in run.stop:
        facts["ended because"] = ENDS.get(run.stop["reason"], str(run.stop["reason"]))
    return facts


# -- curves ----------------------------------------------------------------------------------


def _curves(runs: Runs) -> str:
    """Loss and metrics on each axis; a radio button chooses, without a script."""
    panels = {axis: _over(runs, axis) for axis in AXES}
    axes = [axis for axis in AXES if panels[axis]]
    if not axes:
        return ""
    radios = "".join(
        f'<input type="radio" name="axis" id="by-{axis}"{" checked" if axis == axes[0] else ""}>'
        f'<label for="by-{axis}">{axis}</label>'
        for axis in axes
    )
    bodies = "".join(f'<div class="charts on {axis}">{panels[axis]}</div>' for axis in axes)
    return f'<h2>Loss and accuracy</h2><div class="axes" role="radiogroup">{radios}{bodies}</div>'


def _over(runs: Runs, axis: str) -> str:
    names = dict.fromkeys(
        name
        for run in runs
        for event in run.of_kind("validation")
        for name in single(event["metrics"])
        if "loss" not in name
    )
    losses = []
    for shade, run in enumerate(runs):
        losses.append(Curve(_of(run, runs, "training"), _series(run, axis, "round", "loss"), shade))
        validation = _series(run, axis, "validation", "loss")
        losses.append(Curve(_of(run, runs, "validation"), validation, shade, dashed=True))
    charts = [lines("Loss", losses, _UNITS[axis])]
    for name in list(names)[:6]:
        curves = [
            Curve(_of(run, runs, ""), _series(run, axis, "validation", name), shade)
            for shade, run in enumerate(runs)
        ]
        charts.append(lines(name.capitalize(), curves, _UNITS[axis]))
    return "".join(charts)


def _of(run: ReportedRun, runs: Runs, what: str) -> str:
    """Return how a curve is called."""
    if len(runs) == 1:
        return what
    return f"{run.name}: {what}" if what else run.name


def _series(run: ReportedRun, axis: str, kind: str, name: str) -> Points:
    series = []
    for point, event in run.points():
        values = event if kind == "round" else event.get("metrics", {})
        at, value = point.on(axis), values.get(name)
        if event["event"] == kind and at is not None and isinstance(value, (int, float)):
            series.append((at, float(value)))
    return series


def _classes(runs: Runs) -> str:
    """Return the last confusion matrix of each run, and what follows from it for each class."""
    sections = []
    for run in runs:
        metrics: Json = next((one["metrics"] for one in reversed(run.of_kind("validation"))), {})
        counts = [v for name, v in metrics.items() if name.startswith("confusion[")]
        side = round(len(counts) ** 0.5)
        if not 0 < side <= _CLASSES:
            continue
        name = f"<h3>{escape(run.name)}</h3>" if len(runs) > 1 else ""
        rows = [counts[label * side : (label + 1) * side] for label in range(side)]
        sections.append(name + confusion(rows))
    if sections:
        sections.append("<p>The darker a cell, the larger its share of its true class.</p>")
    return _section("Classes", "".join(sections))


# -- time ------------------------------------------------------------------------------------


def _times(runs: Runs) -> str:
    """Show where each worker's time went: in all, and round by round."""
    times = [(run, "".join(_times_of(run))) for run in runs]
    body = "".join(
        (f"<h3>{escape(run.name)}</h3>" if len(runs) > 1 else "")
        + f'<div class="charts">{charts}</div>'
        for run, charts in times
        if charts
    )
    return _section("Where the time went", body)


def _times_of(run: ReportedRun) -> Iterator[str]:
    rounds = [event for event in run.rounds if event.get("workers")]
    if not rounds:
        return
    count = max(len(event["workers"]) for event in rounds)
    totals = [_sum([_parts(_worker(event, rank)) for event in rounds]) for rank in range(count)]
    bars = [(str(rank), values) for rank, values in enumerate(totals)]
    yield stacks("Seconds in all rounds", PARTS, bars, "worker", "seconds")
    longest = sorted(range(count), key=lambda rank: -totals[rank][1])[:_WORKERS]
    for rank in sorted(longest):
        over = [
            (label, _sum([_parts(_worker(event, rank)) for event in group]))
            for label, group in _grouped(rounds)
        ]
        yield stacks(f"Seconds of worker {rank}", PARTS, over, "round", "seconds")


def _grouped(rounds: Sequence[Json]) -> Iterator[tuple[str, Sequence[Json]]]:
    """Rounds, several in a group where there are many."""
    step = -(-len(rounds) // _COLUMNS)
    for begin in range(0, len(rounds), step):
        yield str(rounds[begin].get("round", begin)), rounds[begin : begin + step]


def _worker(event: Json, rank: int) -> Json:
    workers = event["workers"]
    worker: Json = workers[rank] if rank < len(workers) else {}
    return worker


def _parts(worker: Json) -> list[float]:
    """Return the seconds of each of `PARTS`, which do not overlap."""
    loading, computing, waiting, communicating = (
        _float(worker.get(f"seconds_{part}")) for part in PARTS
    )
    return [loading, max(computing - loading, 0), waiting, max(communicating - waiting, 0)]


def _spent(run: ReportedRun) -> list[float]:
    return _sum([_parts(one) for event in run.rounds for one in event.get("workers", [event])])


def _sum(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(values) for values in zip(*rows, strict=True)] if rows else [0.0] * len(PARTS)


# -- the other curves ------------------------------------------------------------------------


def _others(runs: Runs) -> str:
    def curves(
        value: Callable[[Json], float | None], running: bool = False, among: bool = False
    ) -> list[Curve]:
        """``among`` workers there is nothing to draw of a run with one."""
        return [
            Curve(_of(run, runs, ""), _by_round(run, value, running), shade)
            for shade, run in enumerate(runs)
            if not (among and run.is_alone)
        ]

    def of(name: str) -> Callable[[Json], float | None]:
        return lambda event: event.get(name)

    phases = [
        lines("Samples per second", curves(_speed), "iteration"),
        lines("Learning rate", curves(of("rate")), "iteration"),
        lines("Bytes sent by all workers", curves(of("bytes_sent"), True, among=True), "iteration"),
        lines("Divergence of the workers", curves(of("divergence"), among=True), "iteration"),
    ]
    return _section("Speed, rate and traffic", "".join(phases), "charts")


def _by_round(run: ReportedRun, value: Callable[[Json], float | None], running: bool) -> Points:
    totals, total = [], 0.0
    for event in run.rounds:
        one = value(event)
        if one is None:
            continue
        total += one
        totals.append((float(event.get("iteration", 0)), total if running else float(one)))
    return totals


def _speed(event: Json) -> float | None:
    seconds = _float(event.get("seconds_computing")) + _float(event.get("seconds_communicating"))
    return _float(event.get("samples")) / seconds if seconds else None


def _layers(runs: Runs) -> str:
    charts = [(run, "".join(layer_charts(run))) for run in runs]
    body = "".join(
        (f"<h3>{escape(run.name)}</h3>" if len(runs) > 1 else "") + charts
        for run, charts in charts
        if charts
    )
    return _section("Weights and gradients", body)


# -- what happened ---------------------------------------------------------------------------


def _happenings(runs: Runs) -> str:
    rows = [
        [*([run.name] if len(runs) > 1 else []), *row] for run in runs for row in _happened(run)
    ]
    if not rows:
        return _section(_HAPPENINGS, "<p>There were none.</p>")
    head = [*(["run"] if len(runs) > 1 else []), "iteration", "what", "details"]
    return _section(_HAPPENINGS, table(head, rows))


def _happened(run: ReportedRun) -> Iterator[list[str]]:
    at = 0
    for event in run.events:
        at = int(event.get("iteration") or at)
        kind, text = event["event"], ""
        if kind == "slow":
            text = (
                f"worker {event['worker']} on {event['where']}: {event['seconds']:.3g} s a step, "
            )
            text += f"others {event['median']:.3g} s"
        elif kind == "failure":
            text = f"worker {event['worker']}: {event['type']}: {event['message']}"
        elif kind == "start" and event.get("resumed"):
            kind, text = "resumed", f"from {event['resumed']}"
        elif kind == "workers" and event.get("attempt", 1) > 1:
            kind, text = "restart", f"attempt {event['attempt']}"
        elif kind == "unsaved":
            text = unsaved(event)
        elif kind == "waiting":
            text = f"for {event['needed']} slots, for {event['seconds']:.0f} s"
        elif kind == "standstill":
            text = standstill(event)
        elif kind == "note":
            text = str(event["text"])
        if text:
            yield [str(at), kind, text]


# -- the small print -------------------------------------------------------------------------


def _nets(runs: Runs) -> str:
    graphs: dict[str, str] = {}
    for run in runs:
        picture = drawing(run.about.get("layers", ()))
        if picture and picture not in graphs.values():
            graphs[str(run.start.get("net") or run.name)] = picture
    body = "".join(
        (f"<p>{escape(name)}</p>" if len(graphs) > 1 else "")
        + f'<div class="scroll net">{svg}</div>'
        for name, svg in graphs.items()
    )
    return _section("The net", body)


def _settings(runs: Runs) -> str:
    columns = [dict(_small_print(run)) for run in runs]
    names = list(dict.fromkeys(name for column in columns for name in column))
    rows = [[name, *(column.get(name, "–") for column in columns)] for name in names]
    differing = {n: "differs" for n, row in enumerate(rows) if len(set(row[1:])) > 1}
    head = ["", *(run.name for run in runs)]
    solvers = "".join(
        f"<details><summary>{escape(_of(run, runs, 'the solver'))}</summary>"
        f"<pre>{escape(str(run.about['solver']))}</pre></details>"
        for run in runs
        if run.about.get("solver")
    )
    return _section("Settings, versions and machine", table(head, rows, differing) + solvers)


def _small_print(run: ReportedRun) -> Iterator[tuple[str, str]]:
    for name in ("net", "workers", "strategy", "steps", "seconds", "records", "batch_size"):
        if run.last_start.get(name) is not None:
            yield name.replace("_", " "), str(run.last_start[name])
    for name, value in run.last_start.get("settings", {}).items():
        if name != "name":
            yield f"strategy: {name}", str(value)
    for name, value in run.about.get("settings", {}).items():
        yield name, str(value)
    for name, value in run.about.get("versions", {}).items():
        yield name, str(value)
    for name, value in run.about.get("machine", {}).items():
        yield name, size(value) if name == "memory" and value else str(value)
    if run.about.get("command"):
        yield "command", " ".join(map(str, run.about["command"]))
    hosts = [one for event in run.of_kind("workers")[-1:] for one in event["workers"]]
    for rank, one in enumerate(hosts[:16]):
        yield f"worker {rank}", f"{one['host']}, process {one['process']}, {one['records']} records"


def _section(title: str, body: str, kind: str = "") -> str:
    if not body:
        return ""
    inner = f'<div class="{kind}">{body}</div>' if kind else body
    return f"<h2>{escape(title)}</h2>{inner}"


def _float(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def size(count: float) -> str:
    """Return bytes in the largest unit that fits."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{short(count)} bytes"
