"""Fuzzes the kernels: python -m tests.fuzz.kernels --seconds 60 --seed 1

Every instruction set in its turn has a process of its own (ONEDNN_MAX_CPU_ISA), which runs drawn
cases until its turn is over; a crash is seen and outlived.  A finding is printed as one line that
--case repeats.  --zoo runs every layer of every net of sparknet/models instead.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sparknet.native import has_bf16, has_int8, onednn_isa
from tests.fuzz.kernels.case import Case, check
from tests.fuzz.kernels.draw import KINDS, draw
from tests.fuzz.kernels.guard import guard
from tests.fuzz.kernels.zoo import zoo

ROOT = Path(__file__).parents[3]
ISAS = (
    "SSE41",
    "AVX",
    "AVX2",
    "AVX2_VNNI",
    "AVX2_VNNI_2",
    "AVX512_CORE",
    "AVX512_CORE_VNNI",
    "AVX512_CORE_BF16",
    "AVX512_CORE_FP16",
    "AVX512_CORE_AMX",
)
TURN, SILENT = 60.0, 300.0
"""Seconds: of a process, and without a word until it counts as hanging."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--isa", action="append", help="of oneDNN's names; all unless given")
    parser.add_argument("--kind", default="", choices=["", *KINDS])
    parser.add_argument("--zoo", action="store_true", help="the layers of sparknet/models, once")
    parser.add_argument("--guard", action="store_true", help="a page behind each block of memory")
    parser.add_argument("--case", action="append", help="a finding's line, under this process' ISA")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        return repeat([Case.read(line) for line in options.case])
    if options.child:
        return child(options)
    with tempfile.TemporaryDirectory() as folder:
        return Fuzz(options, guard(Path(folder)) if options.guard else {}).run()


def repeat(cases: list[Case]) -> int:
    found = [check(case) for case in cases]
    print(*(said or "right" for said in found), sep="\n")
    return 1 if any(found) else 0


class Fuzz:
    """Turns of all instruction sets, and what was counted in them."""

    def __init__(self, options: argparse.Namespace, environment: dict[str, str]) -> None:
        self.options, self.environment = options, environment
        self.counts = Counter[tuple[str, str, str]]()
        self.findings = 0
        self.skipped = set[str]()

    def run(self) -> int:
        options, start = self.options, time.monotonic()
        isas = options.isa or ISAS
        print(f"seed {options.seed}, {', '.join(isas)}", flush=True)
        if options.zoo:
            for isa in isas:
                self.turn(isa, options.seed, 0)
        turn, each = 0, min(TURN, options.seconds / len(isas))
        while not options.zoo and time.monotonic() - start < options.seconds:
            isa = isas[turn % len(isas)]
            left = options.seconds - (time.monotonic() - start)
            if isa not in self.skipped:
                self.turn(isa, options.seed + turn, min(each, left))
            turn += 1
        self.report()
        return 1 if self.findings else 0

    def turn(self, isa: str, seed: int, seconds: float) -> None:
        """A child of one instruction set, until its time is over or it dies."""
        words = ["--seconds", str(seconds), "--seed", str(seed), "--kind", self.options.kind]
        words += ["--zoo"] if self.options.zoo else []
        made = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.kernels", "--child", *words],
            env={**os.environ, **self.environment, "ONEDNN_MAX_CPU_ISA": isa},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        last, silence = "", Silence(made)
        assert made.stdout
        for line in made.stdout:
            silence.end()
            word, _, rest = line.strip().partition(" ")
            if word == "isa":
                if not matches(rest, isa):
                    self.skipped.add(isa)
                    made.kill()
            elif word == "case":
                last = rest
            elif word == "right":
                self.count(isa, last)
            elif word == "wrong":
                self.count(isa, last)
                self.find(isa, rest, last)
        silence.stop()
        if made.wait() != 0 and isa not in self.skipped:
            self.find(isa, f"the process ended with {made.returncode}", last)

    def count(self, isa: str, line: str) -> None:
        case = Case.read(line)
        self.counts[case.kind, case.precision, isa] += 1

    def find(self, isa: str, said: str, line: str) -> None:
        self.findings += 1
        print(f"FINDING {isa}: {said}\n  --case '{line}'", flush=True)

    def report(self):
        isas = [isa for isa in self.options.isa or ISAS if isa not in self.skipped]
        rows = sorted({(kind, precision) for kind, precision, _ in self.counts})
        print(f"{'cases':<24}", *(f"{isa:>17}" for isa in isas))
        for kind, precision in rows:
            numbers = (self.counts[kind, precision, isa] for isa in isas)
            print(f"{kind:<15} {precision:<8}", *(f"{number:>17}" for number in numbers))
        for isa in sorted(self.skipped):
            print(f"{isa}: not of this processor")
        print(f"{self.counts.total()} cases, {self.findings} findings")


class Silence:
    """Ends a process that says nothing for long."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.begin()

    def begin(self):
        self.timer = threading.Timer(SILENT, self.process.kill)
        self.timer.daemon = True
        self.timer.start()

    def end(self):
        self.stop()
        self.begin()

    def stop(self):
        self.timer.cancel()


def matches(name: str, isa: str) -> bool:
    """Whether oneDNN's name of what it uses is that of its variable."""
    plain = isa.replace("AVX512_CORE_AMX", "AMX").replace("AVX512_CORE", "AVX-512")
    return name.replace("SSE4.1", "SSE41") == plain.replace("_", " ")


def child(options: argparse.Namespace) -> int:
    print("isa", onednn_isa(), flush=True)
    narrow = [name for name, has in (("bf16", has_bf16), ("int8", has_int8)) if has()]
    precisions = ("float32", *narrow)
    for case in zoo(precisions) if options.zoo else random_cases(options, precisions):
        print("case", case, flush=True)
        try:
            message = check(case)
        except Exception as failure:
            message = f"{type(failure).__name__}: {failure}"
        print("wrong " + message.replace("\n", " ") if message else "right", flush=True)
    return 0


def random_cases(options: argparse.Namespace, precisions: tuple[str, ...]) -> Iterator[Case]:
    rng, end = random.Random(options.seed), time.monotonic() + options.seconds
    while time.monotonic() < end:
        yield draw(rng, precisions, options.kind)


if __name__ == "__main__":
    sys.exit(main())
