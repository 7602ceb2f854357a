"""Coverage-guided fuzzing of all readers and of native code: python -m tests.fuzz.guided

Atheris (`pip install atheris`) chooses inputs by what new lines of sparknet they reach, and new
edges of its native code where `make fuzz-guided` could build that with clang.  What it
finds is kept in tests/fuzz/seeds.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.__main__ import SEEDS
from tests.fuzz.corpus import corpus
from tests.fuzz.readers import READERS

RUNNER = str(Path(__file__).parents[2] / ".ci" / "sanitized.py")
LIMITS = ["-timeout=20", "-rss_limit_mb=4096", "-malloc_limit_mb=4096", "-max_len=65536"]


def main() -> int:
    kinds = [*READERS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="for all targets together")
    parser.add_argument("--kind", choices=kinds, action="append")
    parser.add_argument("--keep", type=Path, default=SEEDS, help="the folder for findings")
    options = parser.parse_args()
    chosen = options.kind or kinds
    files, findings = corpus(), 0
    for kind in chosen:
        seconds = max(1, round(options.seconds / len(chosen)))
        done, problem = fuzz(kind, files[kind], seconds, options.keep)
        print(f"{kind:<12} {done:>8} inputs  {problem or 'no finding'}", flush=True)
        findings += bool(problem)
    return 1 if findings else 0


def fuzz(kind: str, files: list[bytes], seconds: int, keep: Path) -> tuple[int, str]:
    """How many inputs were tried, and what was found."""
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(files):
            Path(folder, str(number)).write_bytes(data)
        for seed in SEEDS.glob(f"{kind}-*"):
            Path(folder, seed.name).write_bytes(seed.read_bytes())
        told = [f"-max_total_time={seconds}", f"-artifact_prefix={keep}/{kind}-", *LIMITS]
        command = [sys.executable, RUNNER, "tests.fuzz.guided_target", kind, *told, folder]
        said = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment()
        )
    text = said.stdout.decode("utf-8", "replace")
    counts = [int(count) for count in re.findall(r"^#(\d+)", text, re.M)]
    if not said.returncode:
        return max(counts, default=0), ""
    sys.stderr.write(text[-3000:])
    lines = re.findall(r"^(?:.*Error.*|=+ .*Exception.*|Test unit written to .*)$", text, re.M)
    return max(counts, default=0), " / ".join(lines[:3]) or f"status {said.returncode}"


def environment() -> dict[str, str]:
    """One thread; the sanitizers' library first, if `make fuzz-guided` built with them."""
    out = {"OMP_NUM_THREADS": "1", **os.environ}
    if library := os.environ.get("GUIDED_PRELOAD"):
        out["LD_PRELOAD"] = library
        out["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64"
    return out


if __name__ == "__main__":
    sys.exit(main())
