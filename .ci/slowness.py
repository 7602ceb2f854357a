"""Print how slow this machine is, in percent: 100 is two quiet cores of the reference machine.

Two processes raise long integers to a power, which CPython does by the same loop in every version.
"""

from __future__ import annotations

import subprocess
import sys

REFERENCE = 1.65
"""Seconds that the loop takes on two quiet cores: a virtual machine of AMD EPYC, 2026."""
LOOP = """
import time
start = time.perf_counter()
for _ in range(10):
    pow(3, 10**2000, 10**1200 + 7)
print(time.perf_counter() - start)
"""


def measure() -> float:
    """Return the seconds of the slower of two processes."""
    words = [sys.executable, "-c", LOOP]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return max(float(process.communicate()[0]) for process in both)


if __name__ == "__main__":
    sys.stdout.write(f"{round(100 * measure() / REFERENCE)}\n")
