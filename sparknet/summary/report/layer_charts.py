"""Charts of a run's layers: norms of weights and gradients, and their histograms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sparknet.summary.events import KINDS, blob_name, edges
from sparknet.summary.report.chart import Curve, Points, lines, short, table
from sparknet.summary.report.reading import Json, ReportedRun

_CURVES = 8
"""The most parameters that have a curve of norms: the largest ones."""
_HISTOGRAMS = 40
"""The most parameters whose histograms are drawn, from the first layer on."""


def layer_charts(run: ReportedRun) -> Iterator[str]:
    """Norms over the iterations, a table, and histograms of the first and the last look."""
    looks = run.of_kind("layers")
    if not looks:
        return
    names = [blob_name(one) for one in looks[-1]["parameters"]]
    if len(looks) > 1:
        charts = "".join(_norms(looks, kind) for kind in KINDS)
        yield f'<div class="charts">{charts}</div>'
    yield _table(looks if len(looks) == 1 else (looks[0], looks[-1]), names)
    drawn = "".join(_histogram(looks, name, kind) for name in names[:_HISTOGRAMS] for kind in KINDS)
    told = "Histograms" if len(names) <= _HISTOGRAMS else f"Histograms of {_HISTOGRAMS} parameters"
    yield f'<details><summary>{told}</summary><div class="charts">{drawn}</div></details>'


def _norms(looks: Sequence[Json], kind: str) -> str:
    largest = sorted(looks[-1]["parameters"], key=lambda one: -int(one["size"]))[:_CURVES]
    chosen = [blob_name(one) for one in largest]
    curves = [Curve(name, _over(looks, name, kind), shade) for shade, name in enumerate(chosen)]
    return lines(f"Norms of {kind}", curves, "iteration")


def _over(looks: Sequence[Json], name: str, kind: str) -> Points:
    found = [(float(look["iteration"]), _named(look, name)) for look in looks]
    return [
        (at, float(one[kind]["norm"]))
        for at, one in found
        if one is not None and one[kind]["norm"] is not None
    ]


def _named(look: Json, name: str) -> Json | None:
    return next((one for one in look["parameters"] if blob_name(one) == name), None)


def _table(looks: Sequence[Json], names: Sequence[str]) -> str:
    rows = []
    for name in names:
        found = [_named(look, name) for look in looks]
        if (last := found[-1]) is not None:
            told = [_norm(one, kind) for kind in KINDS for one in found]
            rows.append([name, f"{last['size']:,}", *told])
    heads = [f"{kind} at {look['iteration']}" for kind in KINDS for look in looks]
    return table(["norms", "size", *heads], rows)


def _norm(one: Json | None, kind: str) -> str:
    norm = None if one is None else one[kind]["norm"]
    return "–" if norm is None else short(float(norm))


def _histogram(looks: Sequence[Json], name: str, kind: str) -> str:
    """The shares of the values in each bin, at the first look and at the last."""
    curves = []
    for shade, look in enumerate(looks[:1] if len(looks) == 1 else (looks[0], looks[-1])):
        one = _named(look, name)
        if one is not None:
            ends, counts = edges(one[kind]), one[kind]["counts"]
            total = sum(counts) or 1
            points = [
                ((begin + end) / 2, count / total)
                for (begin, end), count in zip(pairwise(ends), counts, strict=True)
            ]
            curves.append(Curve(f"iteration {look['iteration']}", points, shade))
    return lines(f"{name}: {kind}", curves, "value")
