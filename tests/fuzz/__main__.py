"""Feeds damaged files to every reader: python -m tests.fuzz --seconds 600

Each batch runs in a process of its own, so that a crash, a hang or a blow-up of memory is seen and
outlived. What finds something is kept in tests/fuzz/seeds, and is from then on an ordinary test.
"""

import argparse
import hashlib
import os
import random
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.fuzz.corpus import another, corpus
from tests.fuzz.layers import TYPES, type_of
from tests.fuzz.readers import READERS, check, name_for

SEEDS = Path(__file__).parent / "seeds"
SLOW_SECONDS, SILENT_SECONDS = 4.0, 60.0
"""Of a processor, for one input; and on the clock until an input counts as hanging."""
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
MEMORY_GROWTH = (1024 if SANITIZED else 256) << 20
BATCH = 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--keep", type=Path, default=SEEDS, help="the folder for findings")
    parser.add_argument("--kind", choices=sorted(READERS), action="append")
    options = parser.parse_args()
    kinds = options.kind or list(READERS)
    files = corpus()
    print(f"fuzzing {', '.join(kinds)} for {options.seconds:g} s, seed {options.seed}", flush=True)
    tried, accepted, findings = Counter[str](), Counter[str](), 0
    types = Counter[str]()
    end, batch = time.monotonic() + options.seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            kind = kinds[batch % len(kinds)]
            progress, problem = run_batch(kind, files[kind], options.seed + batch, Path(folder))
            tried[kind] += len(progress)
            accepted[kind] += progress.count(b"y")
            if kind == "layer":
                count_types(types, random.Random(options.seed + batch), progress)
            batch += 1
            if problem:
                findings += 1
                keep(kind, Path(folder, name_for(kind)), options.keep, problem)
    for kind in kinds:
        print(f"{kind:<12} {tried[kind]:>8} inputs, {accepted[kind]:>7} accepted")
    if "layer" in kinds:
        tell_types(types)
    print(f"{sum(tried.values())} inputs, {findings} findings")
    return 1 if findings else 0


def count_types(types: Counter[str], rng: random.Random, progress: bytes) -> None:
    """Of a batch of layers the types of those that were built: the same draws give the same."""
    for answer in progress:
        type_name = type_of(another("layer", [], rng))
        types[type_name] += answer == ord("y")


def tell_types(types: Counter[str]) -> None:
    least = sorted((types[name], name) for name in TYPES)
    few = ", ".join(f"{name} {built}" for built, name in least[:8])
    print(f"layers built: {types.total()} of {len(TYPES)} types; fewest: {few}")


def keep(kind: str, path: Path, seeds: Path, problem: str) -> None:
    """Stores the input that found something."""
    data = path.read_bytes()
    seeds.mkdir(exist_ok=True)
    seed = seeds / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    seed.write_bytes(data)
    print(f"FINDING {seed.name} ({len(data)} bytes): {problem}", flush=True)


def run_batch(kind: str, files: list[bytes], seed: int, folder: Path) -> tuple[bytes, str]:
    """Runs a batch in a child; of each input whether it was accepted, and what went wrong."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            problem = batch_in_child(kind, files, seed, folder, writing)
        except BaseException:
            problem = "the fuzzer itself: " + traceback.format_exc()
        os.write(writing, b"!" + problem.encode("utf-8", "replace")[-1500:])
        os._exit(0)
    os.close(writing)
    heard = listen(reading, child)
    _, status = os.waitpid(child, 0)
    progress, _, message = heard.partition(b"!")
    problem = message.decode("utf-8", "replace")
    if os.WIFSIGNALED(status):
        problem = f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return progress, problem


def listen(reading: int, child: int) -> bytes:
    """Collects the child's progress; a child that is silent for long hangs, and is ended."""
    heard = b""
    while True:
        ready, _, _ = select.select([reading], [], [], SILENT_SECONDS)
        if not ready:
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(reading, 1 << 16)
        if not part:
            break
        heard += part
    os.close(reading)
    return heard


def batch_in_child(kind: str, files: list[bytes], seed: int, folder: Path, progress: int) -> str:
    if not SANITIZED:  # AddressSanitizer reserves terabytes for itself
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng, path = random.Random(seed), folder / name_for(kind)
    # The first sound file warms up what is loaded late, so that its memory is not counted.
    path.write_bytes(files[0])
    check(kind, path)
    for _ in range(BATCH):
        data = another(kind, files, rng)
        path.write_bytes(data)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        try:
            accepted = check(kind, path)
        except BaseException:
            return traceback.format_exc()
        took = time.process_time() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        if took > SLOW_SECONDS:
            return f"took {took:.1f} s"
        if grown > MEMORY_GROWTH:
            return f"took {grown >> 20} MiB"
        os.write(progress, b"y" if accepted else b"n")
    return ""


if __name__ == "__main__":
    sys.exit(main())
