"""Match: runs the sides on one net in turn, and collects the results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.peers.contests import Contest
from benchmarks.peers.process import Process, SideFailed

VARIANTS = ("eager", "channels_last", "compile", "compile channels_last")


@dataclass(frozen=True)
class Rules:
    """How the sides are run."""

    rounds: int
    turn_seconds: float
    threads: int
    variants: Sequence[str]
    limit: float
    log: Path


@dataclass
class Score:
    """The times of one side."""

    library: str
    variant: str
    ms: list[float] = field(default_factory=list)
    """The median of each turn."""
    memory: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """The sides of one match, sparknet first, and notes."""

    contest: Contest
    mode: str
    precision: str
    scores: list[Score]
    notes: list[str]

    def ratios(self, score: Score) -> list[float]:
        """The other side's time divided by sparknet's, pair by pair."""
        return [other / own for own, other in zip(self.scores[0].ms, score.ms, strict=True)]


class Match:
    """Runs every available side in turn, each in a process of its own.

    A match in bf16 or int8 also runs sparknet in float32.
    """

    def __init__(
        self, rules: Rules, contest: Contest, mode: str, precision: str, pythons: dict[str, str]
    ) -> None:
        self._rules, self._contest, self._mode = rules, contest, mode
        self._precision, self._pythons = precision, pythons
        self._notes: list[str] = []

    def play(self) -> Result:
        with ExitStack() as stack:
            sides = []
            for library, precision in self._wanted():
                try:
                    sides.append(self._best(stack, library, precision))
                except SideFailed as failure:
                    if library == "sparknet":
                        raise
                    self._notes.append(str(failure))
            self._check(sides)
            for number in range(self._rules.rounds):
                _say(f"  round {number + 1} of {self._rules.rounds}")
                for process, score, steps in sides:
                    answer = process.run(steps)
                    score.ms.append(median(answer["ms"]))
                    score.memory = answer["memory"]
        scores = [score for _, score, _ in sides]
        return Result(self._contest, self._mode, self._precision, scores, self._notes)

    def _wanted(self) -> list[tuple[str, str]]:
        """The libraries and their precisions, sparknet first."""
        sides = [(library, self._precision) for library in self._pythons]
        if self._precision != "float32":
            sides.insert(1, ("sparknet", "float32"))
        return sides

    def _best(self, stack: ExitStack, library: str, precision: str) -> tuple[Process, Score, int]:
        """The side in its fastest variant, warmed up, and the number of steps of a turn."""
        best: tuple[float, ExitStack, Process, Score] | None = None
        failures = []
        for variant in self._rules.variants if library == "torch" else [""]:
            with ExitStack() as own:
                try:
                    process, score, ms = self._try(own, library, precision, variant)
                except SideFailed as failure:
                    failures.append(f"{failure} ({variant})" if variant else str(failure))
                    continue
                _say(f"  {ms:.2f} ms")
                if best is None or ms < best[0]:
                    if best is not None:
                        best[1].close()
                    best = (ms, own.pop_all(), process, score)
        if best is None:
            raise SideFailed("; ".join(failures))
        self._notes += [text for text in failures if "is for images" not in text]
        ms, own, process, score = best
        stack.push(own)
        return process, score, min(max(round(self._rules.turn_seconds * 1e3 / ms), 3), 500)

    def _try(
        self, stack: ExitStack, library: str, precision: str, variant: str
    ) -> tuple[Process, Score, float]:
        rules = self._rules
        _say(f"{self._contest.name} {self._mode} {precision}: {library} {variant}".rstrip())
        process = stack.enter_context(
            Process(library, self._pythons[library], rules.threads, rules.log, rules.limit)
        )
        facts = process.load(
            self._contest.name, self._mode, precision, variant, self._contest.batch
        )
        process.run(2)
        ms = min(process.run(3)["ms"])
        # The fastest of half a second or more: other load must not decide the variant.
        ms = min(ms, *process.run(min(max(round(500 / ms), 2), 200))["ms"])
        shown = variant if precision == self._precision else precision
        return process, Score(library, shown, facts=facts), ms

    def _check(self, sides: Sequence[tuple[Process, Score, int]]) -> None:
        """Check that all sides train the same number of parameters."""
        if self._mode != "train":
            return
        counts = {
            score.library: score.facts["parameters"]
            for _, score, _ in sides
            if "parameters" in score.facts
        }
        if len(set(counts.values())) > 1:
            raise SideFailed(f"{self._contest.name}: the nets differ in parameters: {counts}")


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
